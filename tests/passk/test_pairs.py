"""Many pairs: shared bases, signs, mean curves and their crossover, lost then solved, routing, early estimates."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pytest
from kit.shared import shared_path
from scipy import stats

from handoff.errors import DataError, UsageError
from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.passk.crossing import MeanCurves, mean_curves
from handoff.passk.curves import mean_pass_at_k, pass_at_k, pass_hat_k
from handoff.passk.early import early_estimate
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import Pair, SignCount, by_base, common_budget, signs
from handoff.passk.recovery import lost_then_solved
from handoff.passk.routing import choose, route, routed_coverage
from handoff.passk.task_intervals import correlation, rate, rate_difference
from handoff.passk.tax import calibrated_scalability


def counts(name: str, successes: Sequence[int], n: int = 8, prefix: str = "t") -> Counts:
    return Counts.of(name, [(f"{prefix}{i}", n, int(c)) for i, c in enumerate(successes)])


def drawn(seed: int, tasks: int = 20, n: int = 8, prefix: str = "t", sharpened: float = 0.5) -> Pair:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.2, tasks)
    q = np.where(rng.random(tasks) < sharpened, (rng.random(tasks) < p).astype(float), p)
    base, post = (
        counts(f"{name}-{seed}", rng.binomial(n, rates), n, prefix) for name, rates in (("base", p), ("post", q))
    )
    return Pair(base, post)


def estimate(point: float, low: float, high: float) -> TaxEstimate:
    return TaxEstimate(point, low, high)


# Pairs and bases ------------------------------------------------------------------------------------------------------


def test_pairs_of_one_base_evaluation_are_one_group_however_its_tasks_are_ordered() -> None:
    base = counts("base", [1, 2, 3])
    again = base.in_order_of(base.tasks[::-1])
    other = counts("base", [1, 2, 4])
    posts = [counts(name, [0, 8, 8]) for name in ("a", "b", "c")]
    groups = by_base([Pair(base, posts[0]), Pair(other, posts[1]), Pair(again, posts[2])])
    assert [[pair.post.name for pair in group.pairs] for group in groups] == [["a", "c"], ["b"]]


def test_one_table_of_counts_on_two_benchmarks_is_two_bases() -> None:
    base, post = counts("base", [1, 2, 3]), counts("post", [0, 8, 8])
    assert len(by_base([Pair(base, post, benchmark="x"), Pair(base, post, benchmark="y")])) == 2


def test_a_pair_that_occurs_twice_is_refused() -> None:
    base, post = counts("base", [1, 2, 3]), counts("post", [0, 8, 8])
    with pytest.raises(DataError, match="the pair base → post occurs twice"):
        by_base([Pair(base, post), Pair(base, post)])
    with pytest.raises(UsageError, match="at least one pair"):
        by_base([])


def test_a_pair_on_different_tasks_is_refused() -> None:
    with pytest.raises(DataError, match="post lacks 1 of the 3 tasks of base"):
        Pair(counts("base", [1, 2, 3]), counts("post", [1, 2]))


def test_the_budget_is_the_fewest_rollouts_of_any_pair_and_an_error_names_that_pair() -> None:
    pairs = [drawn(0, n=8), drawn(1, n=4)]
    assert common_budget(pairs) == 4
    with pytest.raises(UsageError, match=r"fewest rollouts of a task \(4, in base-1 → post-1\), not 5"):
        common_budget(pairs, 5)
    with pytest.raises(UsageError, match="budget must be a whole number"):
        common_budget(pairs, 2.5)  # type: ignore[arg-type]


def test_a_sign_is_counted_by_the_point_and_resolved_by_the_interval() -> None:
    estimates = [
        estimate(1, 0.5, 2), estimate(1, -1, 2), estimate(1, 0, 2), estimate(-1, -2, -0.5), estimate(0, 0, 0),
        TaxEstimate(None, None, None, reason="undefined"), TaxEstimate(1.0, None, None, interval_reason="refused"),
    ]  # fmt: skip
    assert SignCount.of(estimates) == SignCount(pairs=6, positive=4, negative=1, above=1, below=1)


def test_signs_are_counted_over_all_pairs_and_over_each_family_and_benchmark() -> None:
    labels = [("f", "x"), ("f", "y"), ("g", "x"), ("g", "y")]
    pairs = [attrs.evolve(drawn(i), family=f, benchmark=b) for i, (f, b) in enumerate(labels)]
    compared = [compare(pair.base, pair.post, draws=50) for pair in pairs]
    counted = signs(pairs, compared)
    assert [(group.kind, group.name, group.pairs) for group in counted] == [
        ("all", "", 4), ("family", "f", 2), ("family", "g", 2), ("benchmark", "x", 2), ("benchmark", "y", 2),
    ]  # fmt: skip
    positive = [one.tax_s.point is not None and one.tax_s.point > 0 for one in compared]
    assert [group.tax_s.positive for group in counted] == [
        sum(positive), sum(positive[:2]), sum(positive[2:]), sum(positive[::2]), sum(positive[1::2]),
    ]  # fmt: skip
    assert counted[0].overtaken == sum(one.crossover is not None for one in compared)
    assert [group.kind for group in signs(pairs[:1], compared[:1])] == ["all"], "one family is no group"


# Means and their crossover --------------------------------------------------------------------------------------------


def test_means_over_pairs_count_every_pair_once() -> None:
    pairs = [drawn(i, tasks=10 + i) for i in range(4)]
    found = mean_curves(pairs)
    for k in (1, 3, 8):
        for side, policies in ((found.base, [p.base for p in pairs]), (found.post, [p.post for p in pairs])):
            each = [[(int(n), int(c)) for n, c in zip(one.n_T, one.c_T, strict=True)] for one in policies]
            at = np.mean([np.mean([pass_at_k(n, c, k) for n, c in rows]) for rows in each])
            hat = np.mean([np.mean([pass_hat_k(n, c, k) for n, c in rows]) for rows in each])
            assert side.pass_at_k[k - 1] == pytest.approx(at)
            assert side.pass_hat_k[k - 1] == pytest.approx(hat)
    singles = [compare(pair.base, pair.post, draws=1) for pair in pairs]
    for name in ("tax_a", "tax_s", "coverage_lost", "efficiency_gained"):
        assert getattr(found, name).point == pytest.approx(np.mean([getattr(one, name).point for one in singles]))
    assert found.base.never_solved == pytest.approx(np.mean([(pair.base.c_T == 0).mean() for pair in pairs]))


def test_a_shared_base_counts_once_and_its_policies_are_averaged() -> None:
    base, lone = counts("base", [0, 2, 4, 6]), counts("lone", [8, 8, 8, 4])
    a, b, c = (counts(name, row) for name, row in (("a", [0, 8, 8, 8]), ("b", [0, 0, 8, 8]), ("c", [8, 8, 8, 8])))
    found = mean_curves([Pair(base, a), Pair(base, b), Pair(lone, c)])
    assert (found.bases, found.pairs) == (2, 3)
    # pass@1 by hand: bases 12/32 and 28/32; policies 24/32 and 16/32 of the first base, 32/32 of the other.
    assert found.base.pass_at_k[0] == pytest.approx((12 / 32 + 28 / 32) / 2)
    assert found.post.pass_at_k[0] == pytest.approx(((24 / 32 + 16 / 32) / 2 + 1) / 2)


def brute_force(pairs: Sequence[Pair], number: Callable[[Pair, list[str]], float]) -> tuple[float, float, float]:
    """The mean of a number of single pairs, all on the same tasks, with its standard error and degrees of freedom.

    Every delete-one mean is computed anew: without one pair, without one task, and of one pair without one task.
    """
    tasks, count = list(pairs[0].base.tasks), len(pairs)

    def spread(values: list[float]) -> float:
        """The variance by a delete-one jackknife."""
        n = len(values)
        return (n - 1) / n * sum((value - sum(values) / n) ** 2 for value in values)

    def mean(some: Sequence[Pair], left: list[str]) -> float:
        return sum(number(pair, left) for pair in some) / len(some)

    without = [[other for other in tasks if other != task] for task in tasks]
    between = spread([mean([*pairs[:i], *pairs[i + 1 :]], tasks) for i in range(count)])
    together = spread([mean(pairs, left) for left in without])
    single = sum(spread([number(pair, left) for left in without]) for pair in pairs) / count**2
    apart = max(together - single, 0.0)
    satterthwaite = (between + apart) ** 2 / (between**2 / (count - 1) + apart**2 / (len(tasks) - 1))
    freedom = math.sqrt(satterthwaite * (count - 1))
    return mean(pairs, tasks), math.sqrt(between + apart), freedom


def rows_of(one: Counts, tasks: list[str]) -> list[tuple[int, int]]:
    return [(int(one.n_T[i]), int(one.c_T[i])) for i, task in enumerate(one.tasks) if task in tasks]


def raw_tax(pair: Pair, tasks: list[str]) -> float:
    """A(4) of the base less that of the other, by definition."""
    total = 0.0
    for sign, one in ((1, pair.base), (-1, pair.post)):
        rows = rows_of(one, tasks)
        total += sign * sum(pass_at_k(n, c, 4) - pass_at_k(n, c, k) for n, c in rows for k in (1, 2, 3)) / len(rows)
    return total


def calibrated_tax(pair: Pair, tasks: list[str]) -> float:
    total = 0.0
    for sign, one in ((1, pair.base), (-1, pair.post)):
        rows = rows_of(one, tasks)
        a = sum(pass_at_k(n, c, 4) - pass_at_k(n, c, k) for n, c in rows for k in (1, 2, 3)) / len(rows)
        total += sign * a / (3 * (1 - sum(c / n for n, c in rows) / len(rows)))
    return total


def test_intervals_of_means_are_those_of_pairs_and_tasks_left_out_one_by_one() -> None:
    pairs = [drawn(i, tasks=12, n=4, sharpened=0.4) for i in range(5)]
    found = mean_curves(pairs, level=0.9)
    point, error, freedom = brute_force(pairs, raw_tax)
    half = stats.t.ppf(0.95, freedom) * error
    assert found.tax_a.point == pytest.approx(point)
    assert (found.tax_a.low, found.tax_a.high) == pytest.approx((point - half, point + half))
    # Tax_S is a ratio: its interval is the same to first order.
    point, error, freedom = brute_force(pairs, calibrated_tax)
    half = stats.t.ppf(0.95, freedom) * error
    assert found.tax_s.point == pytest.approx(point)
    assert found.tax_s.low == pytest.approx(point - half, abs=0.1 * half)
    assert found.tax_s.high == pytest.approx(point + half, abs=0.1 * half)


def test_the_interval_of_the_crossover_holds_every_k_that_the_bands_of_the_difference_leave_open() -> None:
    """The budgets of the pairs are shortened one by one: the last difference of each is the one at that k."""
    rng = np.random.default_rng(5)
    pairs = [
        Pair(counts(f"b{i}", rng.binomial(16, 0.15, 30), 16), counts(f"p{i}", 16 * (rng.random(30) < 0.6), 16))
        for i in range(6)
    ]
    found = mean_curves(pairs)
    gaps = [mean_curves(pairs, k).coverage_lost for k in range(2, 17)]
    first = {
        end: next((k for k, gap in enumerate(gaps, 2) if (getattr(gap, end) or 0) > 0), None)
        for end in ("high", "point", "low")
    }
    assert (found.crossing.low, found.crossing.k, found.crossing.high) == tuple(first.values())
    assert (found.crossing.low or 0) < (found.crossing.k or 0) < (found.crossing.high or 0)


def test_tasks_are_shared_by_all_pairs_of_a_benchmark() -> None:
    """Two pairs that are each other's mirror: what one loses on a task the other one gains, so the mean is 0."""
    one, other = counts("a", [1, 3, 5, 8, 0, 2]), counts("b", [8, 0, 6, 8, 0, 1])
    mirrored = mean_curves([Pair(one, other), Pair(other, one)])
    assert mirrored.spread == ""
    assert (mirrored.tax_a.point, mirrored.tax_a.low) == (pytest.approx(0), None)
    assert mirrored.tax_a.interval_reason == "all pairs and tasks agree"
    # One discordant task of 2 x 6: 1/12, times t with 5 degrees of freedom, 2.5706.
    assert mirrored.coverage_lost.high == pytest.approx(2.5706 / 12, abs=1e-4)
    elsewhere = [Pair(one, other, benchmark="x"), Pair(other, one, benchmark="y")]
    apart = mean_curves(elsewhere).tax_a
    assert apart.low is not None
    assert apart.low < -0.1, "tasks of two benchmarks vary independently"


@pytest.mark.parametrize(
    ("bases", "posts", "spread"), [(3, 1, "bases"), (2, 2, ""), (1, 3, "post-trained policies"), (1, 2, "")]
)
def test_the_upper_level_is_bases_else_the_policies_of_one_base(bases: int, posts: int, spread: str) -> None:
    pairs = []
    for b in range(bases):
        base = drawn(b).base
        pairs += [Pair(base, attrs.evolve(drawn(100 * b + p).post, name=f"post-{b}-{p}")) for p in range(posts)]
    assert mean_curves(pairs).spread == spread


def test_a_crossover_that_the_budget_does_not_show_has_no_end() -> None:
    nothing, rising = counts("base", [0] * 60), counts("p", [1] * 60)
    never = mean_curves([Pair(nothing, rising), Pair(nothing, attrs.evolve(rising, name="q"))]).crossing
    assert (never.k, never.low, never.high) == (None, None, None)
    # By k of 8 rollouts one base solves k/8 of its tasks, its policy 7/8; the other base and its policy solve none.
    pairs = [Pair(counts("b", [1] * 8), counts("p", [8] * 7 + [0])), Pair(counts("c", [0] * 8), counts("d", [0] * 8))]
    last = mean_curves(pairs).crossing
    assert last.k == 8
    assert last.high is None


def test_a_pair_without_a_calibrated_tax_is_left_out_of_its_mean_and_counted() -> None:
    perfect = Pair(counts("b", [1, 2, 3, 4] * 5), counts("p", [8] * 20))
    pairs = [*(drawn(i) for i in range(3)), perfect]
    found = mean_curves(pairs)
    known = mean_curves(pairs[:3])
    assert found.undefined == 1
    assert found.tax_s.point == pytest.approx(known.tax_s.point)
    alone = mean_curves([perfect])
    assert alone.tax_s.point is None
    assert "pass@1 is 1" in (alone.tax_s.reason or "")
    json.dumps(attrs.asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    "wrong", [{"level": 1.0}, {"level": math.nan}, {"level": True}, {"budget": 1}, {"budget": True}]
)
def test_means_of_pairs_refuse_numbers_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        mean_curves([drawn(0)], **wrong)  # type: ignore[arg-type]


def test_means_that_do_not_fit_into_memory_are_refused() -> None:
    huge = Counts.of("huge", [("a", 99_999_999, 1)])
    with pytest.raises(UsageError, match="99,999,999 rollouts over 2 tasks of all pairs does not fit into memory"):
        mean_curves([Pair(huge, attrs.evolve(huge, name=name)) for name in ("x", "y")])


# The real cells -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> list[Pair]:
    """Twelve real pairs.  Their counts are not paired by task: points of means are right, single intervals are not."""
    rows = json.loads(shared_path("data/passk/outcome_histograms.json").read_text())
    arms: dict[tuple[str, str], dict[str, Counts]] = {}
    for row in rows:
        tasks = row["tasks_by_successes"]
        successes = np.repeat(np.arange(len(tasks)), tasks)
        arms.setdefault((row["model"], row["benchmark"]), {})[row["arm"]] = counts(
            f"{row['model']}-{row['arm']}", successes.tolist(), row["rollouts"]
        )
    return [Pair(both["base"], both["post"], f"{m} {b}", m, b) for (m, b), both in arms.items()]


@pytest.fixture(scope="module")
def real(cells: list[Pair]) -> MeanCurves:
    return mean_curves(cells)


def test_the_mean_curves_of_twelve_real_pairs_cross_at_22(real: MeanCurves) -> None:
    """ "Sharpening Tax in Post-Training", appendix C.1: "at around k = 22 for the largest backbones"."""
    assert (real.bases, real.budget, real.spread) == (12, 128, "bases")
    assert real.crossing.k == 22
    assert real.crossing.low is not None
    assert real.crossing.low < 22
    assert real.crossing.high is None or real.crossing.high > 22


def test_the_always_solved_share_of_real_pairs_goes_from_nearly_0_to_37_percent(real: MeanCurves) -> None:
    assert real.base.always_solved == pytest.approx(0.003, abs=5e-4)
    assert real.post.always_solved == pytest.approx(0.372, abs=5e-4)


def test_the_tax_is_positive_in_11_of_12_real_pairs_and_gemma_pays_4_486_attempts_on_webshop(cells: list[Pair]) -> None:
    compared = [compare(pair.base, pair.post, draws=2) for pair in cells]
    every = signs(cells, compared)[0]
    assert (every.tax_s.positive, every.tax_s.negative, every.overtaken) == (11, 1, 11)
    gemma = compared[[pair.name for pair in cells].index("gemma-4-31B webshop")]
    assert gemma.tax_a.point == pytest.approx(4.486, abs=5e-4)
    assert gemma.tax_s.point == pytest.approx(0.0364, abs=5e-5)
    never = [pair.name for pair, one in zip(cells, compared, strict=True) if one.crossover is None]
    assert never == ["Ministral-3-14B bfcl"]


def test_the_early_tax_of_real_pairs_orders_them_with_0_72_and_not_with_0_76(cells: list[Pair]) -> None:
    found = early_estimate(cells, level=0.9)
    assert (found.early, found.late) == (8, 32)
    assert found.rho == pytest.approx(0.72, abs=0.01)
    assert found.low == pytest.approx(0.64, abs=0.02)  # 90% of splits; their 12 ranks make steps of 0.007
    assert found.high == pytest.approx(0.78, abs=0.02)
    assert found.rho_of_same_rollouts == pytest.approx(0.762, abs=5e-4)


# Early estimates ------------------------------------------------------------------------------------------------------


def test_the_early_tax_is_the_mean_over_all_choices_of_rollouts_and_the_late_one_is_of_the_others() -> None:
    """Two tasks of six rollouts, three early: every choice of three rollouts, one by one."""
    rollouts = {"base": [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]], "post": [[1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]]}
    pair = Pair(*(counts(name, [sum(row) for row in rows], 6) for name, rows in rollouts.items()))
    choices = list(itertools.combinations(range(6), 3))

    def values(rows: list[list[int]]) -> list[tuple[float | None, float | None]]:
        both = []
        for chosen in itertools.product(choices, repeat=2):
            first = [sum(row[i] for i in picked) for row, picked in zip(rows, chosen, strict=True)]
            rest = [sum(row) - c for row, c in zip(rows, first, strict=True)]
            both.append(
                (calibrated_scalability(mean_pass_at_k([3, 3], first, 3)),
                 calibrated_scalability(mean_pass_at_k([3, 3], rest, 2)))
            )  # fmt: skip
        return both

    means = {
        name: [np.mean([v for v in column if v is not None]) for column in zip(*values(rows), strict=True)]
        for name, rows in rollouts.items()
    }
    found = early_estimate([pair], 3, 2, splits=4000)
    _, early, late = found.pairs[0]
    # No split leaves a policy without a failure, so the mean of differences is the difference of means.
    assert early == pytest.approx(means["base"][0] - means["post"][0], abs=0.02)
    assert late == pytest.approx(means["base"][1] - means["post"][1], abs=0.02)
    assert found.reason == "1 pairs with both taxes; three are needed"


def test_without_a_true_difference_between_pairs_the_honest_correlation_is_zero_and_the_other_is_not() -> None:
    """All pairs have one population: an order of the pairs is noise, which different rollouts do not share."""
    pairs = [
        Pair(*(counts(f"{name}{i}", np.random.default_rng(90 * i + s).binomial(40, 0.3, 60), 40)
               for s, name in enumerate(("b", "p"))))
        for i in range(40)
    ]  # fmt: skip
    found = early_estimate(pairs, splits=60)
    assert found.rho == pytest.approx(0, abs=0.2)  # 40 pairs: the standard error of rho is 1/sqrt(39) = 0.16
    assert found.rho_of_same_rollouts is not None
    assert found.rho is not None
    assert found.rho_of_same_rollouts > found.rho + 0.2


def test_the_rank_correlation_of_a_split_is_spearmans() -> None:
    pairs = [drawn(i, tasks=40, n=40, sharpened=i / 6) for i in range(6)]
    found = early_estimate(pairs, splits=1)  # the means over one split are that split's taxes
    ranks = [np.argsort(np.argsort([row[i] for row in found.pairs])) for i in (1, 2)]
    squares = int(((ranks[0] - ranks[1]) ** 2).sum())
    assert found.rho == pytest.approx(1 - 6 * squares / (6 * 35))  # Spearman without ties
    same = [[compare(pair.base, pair.post, k, draws=1).tax_s.point for pair in pairs] for k in (8, 32)]
    assert found.rho_of_same_rollouts == pytest.approx(stats.spearmanr(*same).statistic)


def test_pairs_whose_taxes_are_all_equal_have_no_rank_correlation() -> None:
    pairs = [Pair(counts("b", [0] * 9 + [8]), counts("p", [0] * (9 - i) + [8] * (1 + i))) for i in range(3)]
    found = early_estimate(pairs, 4, 4)
    assert [row[1:] for row in found.pairs] == [(0, 0)] * 3
    assert found.rho is None
    assert found.reason == "the taxes at one budget are all equal"


def test_an_early_estimate_takes_what_rollouts_there_are_and_refuses_what_there_are_not() -> None:
    eight = [drawn(i, tasks=40) for i in range(4)]
    assert (early_estimate(eight, splits=5).early, early_estimate(eight, splits=5).late) == (4, 4)
    many = [drawn(i, tasks=40, n=100) for i in range(4)]
    assert (early_estimate(many, splits=5).early, early_estimate(many, splits=5).late) == (8, 32)
    with pytest.raises(UsageError, match="a task has 8 rollouts: 4 for the early tax and 5 others"):
        early_estimate(eight, 4, 5)
    few = early_estimate([drawn(i, n=3) for i in range(3)])
    assert few.rho is None
    assert few.reason == "a split needs 4 rollouts of every task, not 3"
    for wrong in ({"early": 1}, {"late": 1}, {"splits": 0}, {"seed": -1}, {"level": 1}):
        with pytest.raises(UsageError):
            early_estimate(eight, **wrong)  # type: ignore[arg-type]
    assert early_estimate(eight, splits=9, seed=4) == early_estimate(eight, splits=9, seed=4)


# Lost, then solved ----------------------------------------------------------------------------------------------------


def test_of_what_one_policy_loses_the_share_that_another_solves_by_hand() -> None:
    base = counts("base", [1, 1, 1, 1, 1, 0, 2, 8], 8)
    ppo = counts("ppo", [0, 0, 0, 0, 8, 8, 8, 0], 8)  # loses tasks 0-3 and 7, which the base solves
    ptgs = counts("ptgs", [3, 1, 0, 0, 0, 0, 8, 1], 8)  # of these solves 0, 1 and 7; loses 2, 3, 4
    one, other = lost_then_solved([Pair(base, ppo), Pair(base, ptgs)])
    assert (one.loser, one.solver, one.base_solves, one.lost, one.solved) == ("ppo", "ptgs", 7, 5, 3)
    assert (other.loser, other.solver, other.lost, other.solved) == ("ptgs", "ppo", 3, 1)
    assert one.share.point == pytest.approx(3 / 5)
    # Wilson's interval of 3 of 5, from a table: 23.1% to 88.2%; of 1 of 3: 6.1% to 79.2%.
    assert (one.share.low, one.share.high) == pytest.approx((0.231, 0.882), abs=1e-3)
    assert (other.share.low, other.share.high) == pytest.approx((0.061, 0.792), abs=1e-3)
    assert one.difference.point == pytest.approx(3 / 5 - 1 / 3)
    assert other.difference.point == pytest.approx(-(3 / 5 - 1 / 3))
    assert (other.difference.low, other.difference.high) == pytest.approx(
        (-(one.difference.high or 0), -(one.difference.low or 0))
    )


def test_runs_of_one_recipe_are_averaged_over_all_pairs_of_runs() -> None:
    rng = np.random.default_rng(8)
    base = counts("base", rng.integers(0, 3, 30))
    runs = {r: [counts(f"{r}-{i}", rng.integers(0, 2, 30)) for i in range(3)] for r in ("ppo", "ptgs")}
    pairs = [Pair(base, run, recipe=recipe) for recipe, each in runs.items() for run in each]
    one = lost_then_solved(pairs)[0]
    lost = solved = 0
    for x, y in itertools.product(runs["ppo"], runs["ptgs"]):
        for i in range(30):
            lost += base.c_T[i] > 0 and x.c_T[i] == 0
            solved += base.c_T[i] > 0 and x.c_T[i] == 0 and y.c_T[i] > 0
    assert (one.loser_runs, one.solver_runs) == (3, 3)
    assert one.share.point == pytest.approx(solved / lost)
    assert one.lost == pytest.approx(lost / 9)


def test_below_all_rollouts_every_choice_of_k_counts_alike() -> None:
    """K = 1 of n = 2: a task with one success is solved by half of the choices of each policy."""
    base, x, y = (counts(name, row, 2) for name, row in (("base", [1, 2]), ("x", [1, 0]), ("y", [1, 2])))
    pairs = [Pair(base, x), Pair(base, y)]
    one = lost_then_solved([attrs.evolve(pair) for pair in pairs], 2)[0]
    assert (one.lost, one.solved) == (1, 1)
    halves = lost_then_solved(
        [Pair(*(attrs.evolve(side, n_T=2 * side.n_T) for side in (pair.base, pair.post))) for pair in pairs], 2
    )[0]
    # n = 4, c as above, K = 2: pass@2 = 1 - C(4-c,2)/C(4,2): 1/2 for c = 1 and 5/6 for c = 2.
    lost = 0.5 * 0.5 + 5 / 6
    assert halves.lost == pytest.approx(lost)
    assert halves.share.point == pytest.approx((0.25 * 0.5 + 5 / 6 * 5 / 6) / lost)


def test_a_policy_that_loses_nothing_has_no_share_and_says_so() -> None:
    base, x, y = counts("base", [1, 1, 0]), counts("x", [1, 1, 0]), counts("y", [0, 1, 0])
    one, other = lost_then_solved([Pair(base, x), Pair(base, y)])
    assert (one.share.point, one.share.reason) == (None, "x loses no task that base solves")
    assert other.share.point == 1
    assert one.difference.point is None
    assert lost_then_solved([Pair(base, x)]) == ()


# Intervals over tasks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (8, 10, 0.4902, 0.9433), (1, 2, 0.0945, 0.9055)],
)
def test_a_rate_of_single_outcomes_has_wilsons_interval(successes: int, trials: int, low: float, high: float) -> None:
    """Wilson's intervals as tabulated."""
    outcomes = np.array([1.0] * successes + [0.0] * (trials - successes))
    found = rate(outcomes, np.ones(trials))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    more = rate(np.concatenate([outcomes, np.zeros(7)]), np.concatenate([np.ones(trials), np.zeros(7)]))
    assert more == found, "tasks without a part in the denominator change nothing"


def test_a_difference_of_two_rates_has_newcombes_interval() -> None:
    """Newcombe (1998), method 10, 56/70 - 48/80: 0.2 [0.0524, 0.3339]."""
    first, second = (rate(np.array([1.0] * c + [0.0] * (n - c)), np.ones(n)) for c, n in ((56, 70), (48, 80)))
    found = rate_difference(first, second)
    assert (found.point, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_two_rates_with_the_same_errors_differ_for_certain() -> None:
    outcomes = np.array([1.0] * 6 + [0.0] * 4)
    ones = np.ones(10)
    assert correlation((outcomes, outcomes), (ones, ones)) == pytest.approx(1)
    assert correlation((outcomes, 1 - outcomes), (ones, ones)) == pytest.approx(-1)
    assert correlation((outcomes, ones), (ones, ones)) == 0, "a rate of 1 shows no spread"
    one = rate(outcomes, ones)
    same = rate_difference(one, one, 1.0)
    # The ends are at unequal distances from the point, so the interval has a width: (0.6 - low) - (high - 0.6).
    assert one.low is not None
    assert one.high is not None
    assert same.high == pytest.approx(abs((one.high - 0.6) - (0.6 - one.low)))
    opposed = rate_difference(one, one, -1.0)
    assert opposed.high == pytest.approx(one.high - one.low)


@pytest.mark.parametrize(("tasks", "concentration"), [(15, 0.3), (40, 1.0), (40, 0.1)])
def test_the_interval_of_a_share_covers_the_truth_as_often_as_it_says(tasks: int, concentration: float) -> None:
    rng = np.random.default_rng(tasks)
    covered = 0
    for _ in range(400):
        weights = rng.random(tasks)
        one = rate(weights * rng.beta(0.7 * concentration, 0.3 * concentration, tasks), weights)  # mean 0.7
        covered += one.low is not None and one.high is not None and one.low <= 0.7 <= one.high
    assert covered >= 362  # 95% of 400 = 380, less four standard errors of 4.4


# Routing --------------------------------------------------------------------------------------------------------------


def test_the_coverage_of_the_tax_rule_is_that_of_route_and_its_gains_are_differences_from_it() -> None:
    pair = drawn(3, tasks=60, n=32)
    found = routed_coverage(pair.base, pair.post, 32, 8, pilots=30, seed=5)
    routes = {row.rule: row for row in route(pair.base, pair.post, 32, 8, pilots=30, seed=5).routes}
    assert found.tax.point == pytest.approx(routes["tax"].pass_k)
    assert found.oracle.point == pytest.approx(routes["oracle"].pass_k)
    for gain, rule in ((found.over_base, "base"), (found.over_post, "post"), (found.over_random, "random"),
                       (found.over_oracle, "oracle")):  # fmt: skip
        assert gain.point == pytest.approx(routes["tax"].pass_k - routes[rule].pass_k)
    assert found.equal_cost_over_post is not None
    assert found.equal_cost_over_post.point == pytest.approx((routes["tax"].equal_cost or 0) - routes["post"].pass_k)
    whole = routed_coverage(pair.base, pair.post, 32, 32, pilots=5)
    assert whole.equal_cost_over_post is None


def test_the_gain_of_the_tax_rule_has_the_t_interval_of_its_tasks() -> None:
    pair = drawn(4, tasks=25, n=16)
    found = routed_coverage(pair.base, pair.post, 16, 4, pilots=12, seed=2).over_post
    rng = np.random.Generator(np.random.PCG64(2))
    to_base = np.zeros(25)
    for _ in range(12):
        wins = [rng.hypergeometric(one.c_T, one.n_T - one.c_T, 4) for one in (pair.base, pair.post)]
        to_base += choose(wins[0], wins[1], 4) / 12
    gains = np.array([
        to_base[i] * (float(pair.base.c_T[i] > 0) - float(pair.post.c_T[i] > 0)) for i in range(25)
    ])  # fmt: skip
    # K = n: one rollout's outcome may decide a task, which counts where the rule sends it to the base.
    error = math.sqrt(gains.var(ddof=1) / 25 + (to_base.mean() / 25) ** 2)
    off = gains - gains.mean()
    kurtosis = 25 * (off**4).sum() / (off**2).sum() ** 2
    freedom = min(24, max(1, 2 * 25 / (kurtosis - 22 / 24)))  # O'Neill 2014
    half = stats.t.ppf(0.975, freedom) * error
    assert found.point == pytest.approx(gains.mean())
    assert (found.low, found.high) == pytest.approx((gains.mean() - half, gains.mean() + half))


def test_where_both_policies_solve_every_task_the_gain_has_an_interval_with_a_width() -> None:
    pair = Pair(counts("b", [8] * 10 + [1] * 10), counts("p", [1] * 10 + [8] * 10))
    found = routed_coverage(pair.base, pair.post, 8, 7, pilots=40)
    assert found.over_post.point == 0
    assert found.over_post.low is not None
    assert found.over_post.low < 0
