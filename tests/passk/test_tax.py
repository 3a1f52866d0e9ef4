"""The sharpening tax by definition, by Corollary 4 and by enumeration; Theorem 2; intervals; routing; the command."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
from fractions import Fraction
from math import comb
from pathlib import Path

import attrs
import numpy as np
import pytest
from kit.command import output_of
from scipy import stats

from handoff.cli import inputs
from handoff.errors import DataError, StoreError, UsageError
from handoff.passk.comparison import compare, draw_counts
from handoff.passk.counts import Counts, matched
from handoff.passk.counts_file import read_counts
from handoff.passk.curves import mean_pass_at_k
from handoff.passk.routing import choose, route
from handoff.passk.tax import (
    calibrated_scalability,
    contributions,
    crossover,
    scalability,
)

SMALL = Counts.of("small", [("a", 5, 0), ("b", 5, 1), ("c", 6, 3), ("d", 7, 6), ("e", 5, 5)])


def pair(tasks=200, n=64, seed=0, sharpened=0.5):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.2, tasks)
    q = np.where(rng.random(tasks) < sharpened, (rng.random(tasks) < p).astype(float), p)
    names = [f"task-{i}" for i in range(tasks)]
    return tuple(
        Counts.of(name, list(zip(names, [n] * tasks, rng.binomial(n, rates).tolist(), strict=True)))
        for name, rates in (("base", p), ("post", q))
    )


# A and S three ways ---------------------------------------------------------------------------------------------------


def by_definition(counts, budget):
    """Exact: A = sum over k < K of (pass@K - pass@k), and pass@1."""
    curve = [
        sum(1 - Fraction(comb(int(n - c), k), comb(int(n), k)) for n, c in zip(counts.n_T, counts.c_T, strict=True))
        / len(counts.tasks)
        for k in range(1, budget + 1)
    ]
    return sum(curve[-1] - value for value in curve[:-1]), curve[0], curve


def by_first_success(counts, budget):
    """Exact: A = E[(H-1) 1{H <= K}], H the first success in a random order, by going through all orders."""
    total = Fraction(0)
    for n, c in zip(counts.n_T.tolist(), counts.c_T.tolist(), strict=True):
        orders = list(itertools.combinations(range(n), c))  # where the successes stand
        firsts = [places[0] for places in orders if places and places[0] < budget]
        total += Fraction(sum(firsts), len(orders))
    return total / len(counts.tasks)


@pytest.mark.parametrize("budget", [2, 3, 4, 5])
def test_raw_and_calibrated_scalability_are_equal_by_three_ways(budget):
    exact, pass_1, curve = by_definition(SMALL, budget)
    corollary = budget * (curve[-1] - sum(curve) / budget)  # A(K) = K (C - Cbar(K))
    assert exact == corollary == by_first_success(SMALL, budget)
    ours = mean_pass_at_k(SMALL.n_T, SMALL.c_T, budget)
    assert scalability(ours)[-1] == pytest.approx(float(exact), rel=1e-12)
    assert calibrated_scalability(ours) == pytest.approx(float(exact / ((budget - 1) * (1 - pass_1))), rel=1e-12)


def test_every_smaller_budgets_scalability_comes_with_the_curve():
    curve = mean_pass_at_k(SMALL.n_T, SMALL.c_T, 5)
    expected = [0.0, *(float(by_definition(SMALL, k)[0]) for k in (2, 3, 4, 5))]
    np.testing.assert_allclose(scalability(curve), expected, atol=1e-14)


def test_one_task_with_success_probability_0_4_and_a_budget_of_3():
    # (0.6 - 0.216) + (0.36 - 0.216) = 0.528, with pass@k = 1 - 0.6^k
    curve = 1 - 0.6 ** np.arange(1, 4)
    assert scalability(curve)[-1] == pytest.approx(0.528)
    assert calibrated_scalability(curve) == pytest.approx(0.528 / (2 * 0.6))


def test_calibrated_scalability_lies_between_0_and_1():
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(2, 40))
        c = rng.integers(0, n + 1, 20)
        if c.min() == n:
            continue
        value = calibrated_scalability(mean_pass_at_k(np.full(20, n), c, n))
        assert -1e-12 <= value <= 1 + 1e-12
    # All of it: every task is solved at the last of K rollouts only.
    assert calibrated_scalability([0.0, 0.0, 0.0, 1.0]) == 1


def test_calibrated_scalability_without_a_failing_attempt_is_undefined_and_not_zero():
    assert calibrated_scalability([1.0, 1.0, 1.0]) is None
    assert calibrated_scalability([0.5]) is None


# Theorem 2 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lam", "lam_0"),
    [(Fraction(1, 2), Fraction(1, 5)), (Fraction(1, 4), Fraction(0)), (Fraction(3, 4), Fraction(3, 4))],
)
@pytest.mark.parametrize("budget", [2, 3, 16, 128])
def test_theorem_2_on_a_population_whose_sharpened_part_is_chosen_at_random(lam, lam_0, budget):
    # 20 success rates; of each, a part lam is replaced by 0 or 1 (lam_0 by 0) and the rest stays: the population as
    # weighted rates, so that nothing is left to chance.
    p = np.linspace(0.02, 0.9, 20)
    k = np.arange(1, budget + 1)
    kept, ones = float(1 - lam), float(lam - lam_0)
    base = (1 - (1 - p[:, None]) ** k).mean(axis=0)
    post = kept * base + ones  # what was replaced by 1 always passes, what was replaced by 0 never does
    a_base, a_post = scalability(base)[-1], scalability(post)[-1]
    assert a_base - a_post == pytest.approx(float(lam) * a_base)
    s_base, s_post = calibrated_scalability(base), calibrated_scalability(post)
    epsilon = 1 - base[0]
    assert s_post / s_base == pytest.approx(kept * epsilon / (kept * epsilon + float(lam_0)))


# A comparison ---------------------------------------------------------------------------------------------------------


def test_the_three_parts_of_the_raw_tax_and_the_two_of_equation_8_add_up():
    found = compare(*pair(), draws=50)
    assert found.lost.point + found.gained.point + found.shape.point == pytest.approx(found.tax_a.point)
    assert found.ceiling.point - found.averaged.point == pytest.approx(found.tax_a.point)
    assert found.base.scalability.point - found.post.scalability.point == pytest.approx(found.tax_a.point)
    assert found.base.calibrated.point - found.post.calibrated.point == pytest.approx(found.tax_s.point)
    assert found.budget * (found.base.coverage.point - found.base.mean_coverage.point) == pytest.approx(
        found.base.scalability.point
    )
    assert found.lost.point > 0 > found.gained.point
    assert found.tasks_lost + found.tasks_gained + found.tasks_both <= 200


def test_lost_gained_and_shape_of_three_tasks_worked_out_by_hand():
    # K = 2 of n = 2: a = pass@2 - pass@1 is 1/2 for c = 1, and 0 for c = 0 and c = 2.
    base = Counts.of("base", [("lost", 2, 1), ("gained", 2, 0), ("both", 2, 1)])
    post = Counts.of("post", [("both", 2, 2), ("lost", 2, 0), ("gained", 2, 1)])
    found = compare(base, post, draws=20)
    assert (found.lost.point, found.gained.point, found.shape.point) == pytest.approx((1 / 6, -1 / 6, 1 / 6))
    assert (found.tasks_lost, found.tasks_gained, found.tasks_both) == (1, 1, 1)
    assert found.tax_a.point == pytest.approx(1 / 6)
    # pass@1 is 1/3 and 1/2: S = (1/3)/(2/3) and (1/6)/(1/2)
    assert found.tax_s.point == pytest.approx(1 / 2 - 1 / 3)
    assert found.efficiency_gained.point == pytest.approx(1 / 2 - 1 / 3)
    assert found.coverage_lost.point == pytest.approx(0)


def test_contributions_average_to_the_calibrated_tax_and_are_listed_from_either_end():
    base, post = pair()
    parts = contributions(base, post, 64)
    found = compare(base, post, draws=20, extremes=3)
    assert parts.mean() == pytest.approx(found.tax_s.point)
    assert [row.contribution for row in found.highest] == sorted(parts.tolist(), reverse=True)[:3]
    assert [row.contribution for row in found.lowest] == sorted(parts.tolist())[:3]
    first = found.highest[0]
    i = base.tasks.index(first.task)
    assert (first.base, first.post) == ((base.c_T[i], 64), (post.c_T[i], 64))


def test_shares_of_tasks_never_and_always_solved():
    found = compare(SMALL, SMALL, draws=20)
    assert found.base.never_solved == found.base.always_solved == 1 / 5


def test_the_base_overtakes_at_the_first_k_where_it_is_greater():
    assert crossover([0.1, 0.3, 0.5], [0.2, 0.3, 0.4]) == 3
    assert crossover([0.3, 0.3], [0.2, 0.4]) == 1
    assert crossover([0.1, 0.2], [0.1, 0.2]) is None
    found = compare(SMALL, SMALL, draws=20)
    assert found.crossover is None
    assert found.crossover_reason == "the base's pass@k is greater at no k up to 5"
    assert found.crossed_share == 0


def test_a_policy_that_never_fails_has_no_calibrated_number_and_says_why():
    perfect = Counts.of("post", [(task, 5, 5) for task in SMALL.tasks])
    found = compare(SMALL, perfect, 5, draws=50)
    for estimate in (found.post.calibrated, found.tax_s, found.tax_s_by_k[4]):
        assert estimate.point is None
        assert "pass@1 is 1: no attempt fails" in estimate.reason
    assert found.tax_s_by_k[0].reason == "a budget of one rollout has no retries"
    assert found.tax_a.point is not None
    assert found.highest == found.lowest == ()
    json.dumps(found.to_json(), allow_nan=False)


# Intervals ------------------------------------------------------------------------------------------------------------


def test_intervals_are_percentiles_of_paired_resamples_of_tasks():
    base, post = pair(tasks=40)
    found = compare(base, post, draws=200, seed=9, method="paper")
    taxes = []
    for taken in draw_counts(40, 200, 9).astype(int):
        chosen = np.repeat(np.arange(40), taken)
        assert len(chosen) == 40
        curves = [mean_pass_at_k(counts.n_T[chosen], counts.c_T[chosen], 64) for counts in (base, post)]
        taxes.append(calibrated_scalability(curves[0]) - calibrated_scalability(curves[1]))
    low, high = np.quantile(taxes, [0.025, 0.975])
    assert (found.tax_s.low, found.tax_s.high) == pytest.approx((low, high))


def test_by_the_papers_interval_a_policy_against_itself_has_a_degenerate_one_of_zero():
    found = compare(SMALL, SMALL, draws=100, method="paper")
    assert (found.tax_a.point, found.tax_a.low, found.tax_a.high, found.tax_a.degenerate) == (0, 0, 0, True)


def test_the_interval_widens_with_fewer_tasks_and_covers_the_truth_about_as_often_as_it_says():
    # Tasks are drawn from a population with a known raw tax of sum over k < K: E[(1-p)^k - (1-p)^K], K = 16, halved for
    # half of the tasks being set to 0 or 1.
    rng = np.random.default_rng(2)
    grid = (np.arange(20_000) + 0.5) / 20_000  # p uniform on (0, 1)
    k = np.arange(1, 16)
    truth = 0.5 * ((1 - grid[:, None]) ** k - (1 - grid[:, None]) ** 16).sum(axis=1).mean()
    covered = 0
    for trial in range(100):
        p = rng.random(80)
        q = np.where(rng.random(80) < 0.5, (rng.random(80) < 0.5).astype(float), p)
        rows = [[(str(i), 16, int(c)) for i, c in enumerate(rng.binomial(16, rates))] for rates in (p, q)]
        found = compare(Counts.of("b", rows[0]), Counts.of("p", rows[1]), draws=300, seed=trial)
        covered += found.tax_a.low <= truth <= found.tax_a.high
    # 95% of 100 within four standard errors (sqrt(100 x .95 x .05) = 2.2).
    assert 86 <= covered <= 100


def test_many_draws_without_headroom_refuse_the_interval_with_their_number():
    # Two tasks, one always solved: a draw of that one alone (probability 1/4) has no failing attempt.
    counts = Counts.of("c", [("a", 4, 4), ("b", 4, 1)])
    found = compare(counts, counts, draws=400, seed=1, method="paper")
    estimate = found.base.calibrated
    assert estimate.point is not None
    assert (estimate.low, estimate.high) == (None, None)
    assert 60 < estimate.excluded < 140
    assert f"undefined in {estimate.excluded} of 400 draws" in estimate.interval_reason


def test_the_same_seed_gives_the_same_numbers_and_another_one_others():
    first, again, other = (compare(*pair(), draws=100, seed=seed, method="paper") for seed in (4, 4, 5))
    assert first == again
    assert first.tax_s.point == other.tax_s.point
    assert (first.tax_s.low, first.tax_s.high) != (other.tax_s.low, other.tax_s.high)


def test_the_default_interval_is_students_t_on_the_jackknife():
    # Written out, task by task.
    base, post = pair(tasks=12)
    found = compare(base, post, 8)

    def taxes(kept):
        curves = [mean_pass_at_k(counts.n_T[kept], counts.c_T[kept], 8) for counts in (base, post)]
        return calibrated_scalability(curves[0]) - calibrated_scalability(curves[1])

    everyone = list(range(12))
    without = np.array([taxes([t for t in everyone if t != left]) for left in everyone])
    off = without - without.mean()
    variance = 11 / 12 * (off**2).sum()
    kurtosis = 12 * (off**4).sum() / (off**2).sum() ** 2
    failing = [1 - counts.c_T / counts.n_T for counts in (base, post)]
    carriers = min(one.sum() ** 2 / (one**2).sum() for one in failing)
    freedom = max(1, min(11, 24 / (kurtosis - 9 / 11), carriers - 1))
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert (found.tax_s.low, found.tax_s.high) == pytest.approx((taxes(everyone) - half, taxes(everyone) + half))


def test_a_pass_rate_has_wilsons_interval_and_none_is_without_width():
    counts = Counts.of("c", [(str(i), 4, 4) for i in range(4)])
    found = compare(counts, counts, 4)
    critical = stats.t.ppf(0.975, 3)
    # 4 of 4 tasks: Wilson's lower end is n / (n + z^2).
    assert found.base.coverage.low == pytest.approx(4 / (4 + critical**2))
    assert found.base.coverage.high == 1
    assert found.base.pass_at_k_band[0] == pytest.approx((4 / (4 + critical**2), 1))


def test_coverage_that_no_task_lost_may_have_been_lost_by_one_rollout():
    found = compare(SMALL, SMALL)
    tasks, n = len(SMALL.tasks), SMALL.rollouts
    half = stats.t.ppf(0.975, tasks - 1) * found.budget / n / tasks
    assert (found.coverage_lost.point, found.coverage_lost.low) == (0, pytest.approx(-half))
    assert found.tax_s.low is None
    assert "no width" in found.tax_s.interval_reason


def test_a_number_that_one_task_defines_has_no_interval():
    counts = Counts.of("c", [("a", 4, 4), ("b", 4, 1)])
    found = compare(counts, counts)
    assert found.base.calibrated.point is not None
    assert (found.base.calibrated.low, found.base.calibrated.excluded) == (None, 1)
    assert "without one of its tasks" in found.base.calibrated.interval_reason


def test_a_number_that_few_tasks_carry_is_marked():
    rows = [(str(i), 8, 8) for i in range(30)]
    post = Counts.of("p", [("30", 8, 1), ("31", 8, 3), *rows])
    base = Counts.of("b", [("30", 8, 1), ("31", 8, 3), *((task, n, 4) for task, n, _ in rows)])
    found = compare(base, post)
    # Failing shares 7/8 and 5/8: (12/8)^2 / (49/64 + 25/64) = 144/74 = 1.9 tasks.
    assert "as many as 1.9 of equal weight" in found.tax_s.note
    assert found.base.calibrated.note is None


def test_an_unknown_kind_of_interval_is_refused():
    with pytest.raises(UsageError, match="one of jackknife, paper, not 'x'"):
        compare(SMALL, SMALL, method="x")


@pytest.mark.parametrize(
    ("budget", "message"), [(1, "between 2 and the fewest rollouts"), (65, r"fewest rollouts of a task \(64\), not 65")]
)
def test_a_budget_beyond_the_rollouts_is_refused(budget, message):
    with pytest.raises(UsageError, match=message):
        compare(*pair(), budget)


def test_policies_on_different_tasks_are_not_compared():
    other = Counts.of("other", [("a", 5, 0), ("b", 5, 1)])
    with pytest.raises(DataError, match=r"other lacks 3 of the 5 tasks of small \(c, d, e\)"):
        matched(SMALL, other)
    with pytest.raises(DataError, match="other lacks"):
        matched(other, SMALL)


# Routing --------------------------------------------------------------------------------------------------------------


def test_single_policies_random_and_oracle_are_what_their_definitions_say():
    base, post = pair()
    routes = {row.rule: row for row in route(base, post, 64, 16, pilots=20).routes}
    found = compare(base, post, draws=1)
    assert routes["base"].pass_k == pytest.approx(found.base.coverage.point)
    assert routes["post"].pass_1 == pytest.approx(found.post.pass_at_k[0])
    assert routes["random"].pass_k == pytest.approx((routes["base"].pass_k + routes["post"].pass_k) / 2)
    best = np.maximum(base.c_T > 0, post.c_T > 0).mean()  # pass@n is 1 where there is any success
    assert routes["oracle"].pass_k == pytest.approx(best)
    assert max(row.pass_k for row in routes.values()) == routes["oracle"].pass_k


def test_the_pilots_of_the_other_policy_are_counted_as_cost():
    base, post = pair()
    routes = {row.rule: row for row in route(base, post, 64, 16, pilots=20).routes}
    assert {rule: row.rollouts for rule, row in routes.items()} == {
        "base": 64, "post": 64, "random": 64, "oracle": 64, "tax": 80,
    }  # fmt: skip
    assert routes["tax"].equal_cost < routes["tax"].pass_k
    assert routes["base"].equal_cost == routes["base"].pass_k
    alone = route(base, post, 64, 64, pilots=5).routes[3]
    assert alone.equal_cost is None
    assert alone.reason == "the pilot of both policies takes the whole budget"


def test_the_tax_rule_sends_rare_successes_to_whoever_has_them():
    # Of four pilots: base rare / post none; base none / post rare; both alike; post certain / base none; base certain.
    chosen = choose(np.array([1, 0, 2, 0, 4]), np.array([0, 1, 2, 4, 0]), 4)
    # Headrooms: pass@1 is 7/20 for either, so equal counts cancel; ties go to more pilot successes, then to post.
    assert chosen.tolist() == [1, 0, 0, 0, 1]


def test_tax_routing_beats_random_routing_where_post_training_lost_rare_successes():
    routes = {row.rule: row for row in route(*pair(tasks=400), 64, 16, pilots=50).routes}
    assert routes["tax"].pass_k > routes["random"].pass_k + 0.02


def test_routing_is_reproducible_and_refuses_an_impossible_pilot():
    assert route(*pair(), 64, 16, pilots=10, seed=2) == route(*pair(), 64, 16, pilots=10, seed=2)
    with pytest.raises(UsageError, match="not pilot 65, budget 64 and 64 rollouts"):
        route(*pair(), 64, 65)


# Files and the command ------------------------------------------------------------------------------------------------


def write(path, counts, form="csv"):
    rows = list(zip(counts.tasks, counts.n_T.tolist(), counts.c_T.tolist(), strict=True))
    if form == "csv":
        path.write_text("task,n,c\n" + "".join(f"{t},{n},{c}\n" for t, n, c in rows))
    else:
        path.write_text("".join(json.dumps({"task": t, "n": n, "c": c}) + "\n" for t, n, c in rows))
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_reads_back_as_it_was_written(tmp_path, form):
    found = read_counts(write(tmp_path / f"small.{form}", SMALL, form))
    assert (found.name, found.tasks) == ("small", SMALL.tasks)
    assert (found.n_T.tolist(), found.c_T.tolist()) == (SMALL.n_T.tolist(), SMALL.c_T.tolist())


def test_columns_may_stand_in_any_order_beside_others_and_a_byte_order_mark_is_no_part_of_them(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\ufeffc,model,n,task\r\n1,m,4,a\r\n\r\n0,m,4,b\r\n", encoding="utf-8")
    found = read_counts(path)
    assert (found.tasks, found.c_T.tolist()) == (("a", "b"), [1, 0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the header needs the columns task,n,c once each"),
        ("task,n\na,4\n", "line 1: the header needs the columns"),
        ("task,n,c\n", "has no rows"),
        ("task,n,c\na,4,5\n", "line 2: 5 successes in 4 rollouts"),
        ("task,n,c\na,0,0\n", "line 2: 0 successes in 0 rollouts"),
        ("task,n,c\na,4,1\na,4,2\n", "task 'a' occurs twice"),
        ("task,n,c\na,4,1.0\n", "line 2: c is '1.0', not a whole number"),
        ("task,n,c\na,4,nan\n", "line 2: c is 'nan', not a whole number"),
        ("task,n,c\na,4,-1\n", "line 2: c is '-1', not a whole number"),
        ("task,n,c\na,4\n", "line 2: 2 fields, but the header has 3"),
        ("task,n,c\n,4,1\n", "line 2: task is '', not a name"),
        ('task,n,c\n"a,4,1\n', "not CSV"),
        ('{"task": "a", "n": 4, "c": NaN}\n', "line 1: not JSON (NaN is not JSON)"),
        ('{"task": "a", "n": 4}\n', "line 1: no 'c'"),
        ('{"task": "a", "n": 4, "c": true}\n', "line 1: c is True, not a whole number"),
        ('{"task": "a", "n": 4, "c": 1}\n[1]\n', "line 2: an object with the keys"),
        ('{"task": "a", "n": 4, "n": 5, "c": 1}\n', "key 'n' occurs twice"),
        ('{"task": ["a"], "n": 4, "c": 1}\n', "task is ['a'], not a name"),
    ],
)
def test_a_malformed_file_is_refused_in_one_sentence_with_the_line(tmp_path, text, message):
    path = tmp_path / "counts.txt"
    path.write_text(text)
    with pytest.raises(DataError) as raised:
        read_counts(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_unreadable_files_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*: No such file"):
        read_counts(tmp_path / "none.csv")
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        read_counts(tmp_path)
    with pytest.raises(StoreError, match="is not a run folder"):
        inputs.counts(tmp_path)
    path = tmp_path / "utf16.csv"
    path.write_bytes("task,n,c\na,4,1\n".encode("utf-16"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_counts(path)


@pytest.fixture
def files(tmp_path):
    return [str(write(tmp_path / f"{counts.name}.csv", counts)) for counts in pair(n=128)]


def test_the_command_prints_every_part(files):
    output = output_of("tax", *files, "--draws", "50", env={"COLUMNS": "200"})
    for text in (
        "base → post · 200 tasks, K = 128 rollouts",
        "pass@k base",
        "Tax_S",
        "lost: base only",
        "base's pass@k is first the greater one at k = ",
        "highest parts of Tax_S",
        "pilots of 32",
        "oracle",
    ):
        assert text in output


def test_the_commands_json_holds_the_same_comparison_and_no_nan(files):
    text = output_of("tax", *files, "--draws", "50", "--budget", "16", "--json")
    told = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    found = compare(*(read_counts(path) for path in files), 16, draws=50)
    assert told["comparison"] == json.loads(json.dumps(attrs.asdict(found)))
    assert told["routing"]["pilot"] == 4  # a quarter of the budget, up to 32
    assert told["early"] is None


def test_the_command_correlates_early_and_late_taxes_over_pairs(files, tmp_path):
    more = []
    for seed in (1, 2):
        paths = [write(tmp_path / f"{counts.name}-{seed}.jsonl", counts, "jsonl") for counts in pair(seed=seed)]
        more += ["--pair", *map(str, paths)]
    text = output_of("tax", *files, "--draws", "10", *more, "--json")
    told = json.loads(text)["early"]
    assert [row[0] for row in told["pairs"]] == ["base / post", "base-1 / post-1", "base-2 / post-2"]
    assert (told["early"], told["late"]) == (8, 32)
    assert -1 <= told["low"] <= told["rho"] <= told["high"] <= 1


@pytest.mark.slow
def test_every_command_in_the_documents_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for counts in pair(n=64):
        write(tmp_path / f"{counts.name}.csv", counts)
    for size, seed in (("1b", 1), ("7b", 2)):
        for counts in pair(n=64, seed=seed):
            write(tmp_path / f"{counts.name}-{size}.csv", counts)
    for name in ("ppo", "ptgs"):
        (tmp_path / f"{name}.csv").write_text((tmp_path / "post.csv").read_text().replace(",64,64", f",64,{len(name)}"))
    root = Path(__file__).resolve().parents[2]
    shutil.copytree(root / "examples" / "tax", tmp_path / "examples" / "tax")
    text = (root / "docs" / "passk.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    commands = [line for language, block in blocks if not language for line in block.splitlines()]
    commands = [line for line in commands if line.startswith("handoff ")]
    assert len(commands) == 14
    for line in commands:
        assert output_of(*shlex.split(line)[1:]), line
    for language, block in blocks:
        if language == "python":
            exec(compile(block, "docs/passk.md", "exec"), {})  # the document is ours
