"""The bootstrap: equal to a plain loop, right in its variance, honest where data say nothing."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kit import paper_tables
from kit.bootstrap_draws import counts_of, values_of
from scipy import stats

from handoff.errors import UsageError
from handoff.estimation.bootstrap import Estimate, estimate
from handoff.estimation.differences import Difference
from handoff.estimation.draws import distributions
from handoff.estimation.estimands import Estimand, estimand, standard
from handoff.estimation.evaluation import Evaluation
from handoff.estimation.intervals import effective_trials, expanded, student, wilson
from handoff.estimation.jackknife import Jackknife, jackknife
from handoff.estimation.lookup import packing
from handoff.estimation.method import Intervals
from handoff.estimation.quantiles import order_statistics, quantiles
from handoff.estimation.resampling import joined, ordinary, plan_of, rescaled
from handoff.estimation.table import Table

BOTH = ("sft", "rl")
CROSS = {"a": "sft", "b": "rl", "c": "sft", "d": "rl"}
SIZES = (2, 3, 5, 9)  # all but the last have their draws listed


def unbalanced(sizes: tuple[int, ...] = SIZES, slots: int = 3, seed: int = 5) -> Table:
    rng = np.random.default_rng(seed)
    tasks = sum(sizes)
    arrived_WTS = rng.random((2, tasks, slots)) < np.array([0.3, 0.8])[:, None, None]
    won_WRTS = (rng.random((2, 2, tasks, slots)) < np.array([0.5, 0.9])[None, :, None, None]) & arrived_WTS[:, None]
    strata = tuple(f"type {g}" for g, n in enumerate(sizes) for _ in range(n))
    return Table(
        BOTH, BOTH, tuple(f"{t:03d}" for t in range(tasks)), strata, tuple(range(slots)), arrived_WTS, won_WRTS
    )


SLOW = [
    estimand("reach", reacher="rl"),
    estimand("solve", reacher="sft", solver="rl"),
    estimand("interaction", **CROSS),
    estimand("survivor_interaction", **CROSS),
    estimand("state_term", **CROSS),
    estimand("completion", reachers=BOTH, solver="sft"),
    estimand("endpoint", reacher="rl", solver="sft", type="type 2"),
]


def divided(a: float, b: float) -> float:
    return a / b if b else math.nan


def slow_draw(table: Table, taken: list[int], weights: dict[str, float]) -> list[float]:
    """One draw, written as loops over the drawn tasks and their seed slots, ratios by hand."""

    def total(array_TS: np.ndarray, of: list[str]) -> float:
        whole = 0.0
        for type in of:
            counted = 0
            for task in taken:
                if table.strata[task] == type:
                    for slot in range(len(table.slots)):
                        counted += int(array_TS[task][slot])
            whole += counted * weights[type]
        return whole

    every = list(table.types)
    ones = np.ones((len(table.tasks), len(table.slots)), int)
    n = total(ones, every)
    arrived = [total(table.arrived_WTS[w], every) for w in (0, 1)]
    won = [[total(table.won_WRTS[w, r], every) for r in (0, 1)] for w in (0, 1)]
    reach = [divided(arrived[w], n) for w in (0, 1)]
    solve = [[divided(won[w][r], arrived[w]) for r in (0, 1)] for w in (0, 1)]
    effect = [divided(won[w][1], n) - divided(won[w][0], n) for w in (0, 1)]
    survivor = (solve[1][1] - solve[1][0]) - (solve[0][1] - solve[0][0])
    one = ["type 2"]
    return [
        reach[1],
        solve[0][1],
        effect[1] - effect[0],
        survivor,
        reach[0] * survivor,
        divided(won[0][0] + won[1][0], arrived[0] + arrived[1]),
        divided(total(table.won_WRTS[1, 0], one), total(ones, one)),
    ]


@pytest.mark.parametrize("method", ["paper", "rescaled"])
def test_the_bootstrap_equals_one_written_as_loops_on_the_same_draws_exactly(method: str) -> None:
    table = unbalanced()
    plan = plan_of(table.strata, method)
    fast_EB = values_of(Evaluation(table, SLOW), plan, 300, seed=11)
    counts_BT = counts_of(plan, 300, 11)
    size = dict(zip(table.types, SIZES, strict=True))
    weights = {type: 1.0 if method == "paper" else size[type] / (size[type] - 1) for type in table.types}
    slow_EB = np.empty((len(SLOW), 300))
    for b in range(300):
        taken = [task for task in range(len(table.tasks)) for _ in range(int(counts_BT[b, task]))]
        for type, n in size.items():
            assert sum(table.strata[task] == type for task in taken) == (n if method == "paper" else n - 1)
        slow_EB[:, b] = slow_draw(table, taken, weights)
    for asked, slow_B, fast_B in zip(SLOW, slow_EB, fast_EB, strict=True):
        if asked.type is not None:  # evaluated once per way to draw the type, so the order of the draws is lost
            slow_B, fast_B = np.sort(slow_B), np.sort(fast_B)
        assert [x.hex() for x in slow_B.tolist()] == [x.hex() for x in fast_B.tolist()]


def test_a_drawn_task_is_equally_often_each_task_of_its_type() -> None:
    plan = ordinary(unbalanced().strata)
    counts_BT = counts_of(plan, 20_000, 3)
    # A task's count in one draw is binomial(n, 1/n): mean 1, variance below 1; the mean of 20,000 has s.d. < 0.0071.
    assert np.abs(counts_BT.mean(axis=0) - 1).max() < 0.03


def test_draws_do_not_depend_on_how_many_are_asked_for() -> None:
    plan = rescaled(unbalanced().strata)
    few = counts_of(plan, 9_000, 7)
    many = counts_of(plan, 50_000, 7)
    assert np.array_equal(few, many[:9_000])
    assert not np.array_equal(few, counts_of(plan, 9_000, 8))


def test_rescaled_draws_have_the_variance_of_a_stratified_mean_and_ordinary_ones_four_fifths_of_it() -> None:
    table = paper_tables.unseen()
    mean_T = table.arrived_WTS[1].mean(axis=1)
    # Six strata of five tasks, each with weight 1/6: var = sum (1/6)^2 s_h^2 / 5.
    exact = sum(np.var(mean_T[5 * h : 5 * h + 5], ddof=1) / 5 / 36 for h in range(6))
    evaluation = Evaluation(table, [estimand("reach", reacher="rl")])
    assert jackknife(evaluation, rescaled(table.strata)).variance_E[0] == pytest.approx(exact)
    variance = {m: values_of(evaluation, plan_of(table.strata, m), 40_000, 1)[0].var() for m in ("paper", "rescaled")}
    # The variance of 40,000 draws is known to about sqrt(2 / 40,000) = 0.7%.
    assert variance["rescaled"] == pytest.approx(exact, rel=0.04)
    assert variance["paper"] == pytest.approx(exact * 4 / 5, rel=0.04)


def jackknife_of(arrived_TS: np.ndarray, strata: tuple[str, ...]) -> Jackknife:
    """Of Reach alone, for these arrivals."""
    tasks, slots = arrived_TS.shape
    table = Table(
        ("w",), (), tuple(f"{t:02d}" for t in range(tasks)), strata, tuple(range(slots)), arrived_TS[None],
        np.zeros((1, 0, tasks, slots), bool),
    )  # fmt: skip
    return jackknife(Evaluation(table, [estimand("reach", reacher="w")]), rescaled(strata))


def test_jackknife_degrees_of_freedom_are_satterthwaites_with_unbiased_squares() -> None:
    rng = np.random.default_rng(2)
    arrived_TS = np.concatenate([rng.random((6, 4)) < 0.2, rng.random((10, 4)) < 0.6])
    mean_T = arrived_TS.mean(axis=1)
    parts = [len(own_T) * np.var(own_T, ddof=1) for own_T in (mean_T[:6], mean_T[6:])]  # of the sum of all 16 means
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 7 + parts[1] ** 2 / 11) - 2
    made = jackknife_of(arrived_TS, ("a",) * 6 + ("b",) * 10)
    assert made.variance_E[0] == pytest.approx(sum(parts) / 16**2)
    # Leaving out a task moves the sum by n / (n - 1) times the task's deviation, of which the kurtosis takes
    # ((n - 1) / n)^2 of the fourth power.
    fourths = sum(
        (len(own_T) / (len(own_T) - 1)) ** 2 * ((own_T - own_T.mean()) ** 4).sum() for own_T in (mean_T[:6], mean_T[6:])
    )
    kurtosis = 16 * fourths / sum(parts) ** 2
    assert made.freedom_E[0] == pytest.approx(min(expected, 14, 32 / (kurtosis - 13 / 15)))


def test_degrees_of_freedom_are_at_most_those_of_the_types_that_vary() -> None:
    # Two of four types of two tasks each have the whole variance, half and half: (2 v)^2 / (2 v^2 / 3) - 2 = 4, of 2.
    arrived_TS = np.array([[1], [0], [1], [0], [1], [1], [0], [0]], bool)
    assert jackknife_of(arrived_TS, tuple("aabbccdd")).freedom_E[0] == 2
    # All four alike: (4 v)^2 / (4 v^2 / 3) - 2 = 10, of 4.
    assert jackknife_of(np.array([[1], [0]] * 4, bool), tuple("aabbccdd")).freedom_E[0] == 4
    # One type alone: v^2 / (v^2 / 3) - 2 = 1.
    arrived_TS = np.array([[1], [0], [1], [1], [1], [1], [0], [0]], bool)
    assert jackknife_of(arrived_TS, tuple("aabbccdd")).freedom_E[0] == 1


def test_a_rate_has_wilsons_interval_on_its_effective_trials() -> None:
    table = paper_tables.unseen()
    one = estimand("reach", reacher="sft")
    made = jackknife(Evaluation(table, [one]), rescaled(table.strata))
    ratio = stats.norm.ppf(0.975) / stats.t.ppf(0.975, made.freedom_E[0])
    trials = ratio**2 * 16 / 120 * 104 / 120 / made.variance_E[0]
    assert trials < 120
    found = estimate(table, [one], Intervals(draws=100)).estimates[0]
    assert (found.low, found.high) == pytest.approx(wilson(16 / 120, trials, stats.norm.ppf(0.975)))


def test_percentiles_are_numpys() -> None:
    rng = np.random.default_rng(0)
    for size in (100, 101, 777):
        values_B = rng.standard_normal(size).round(1)
        for low, high in ((0.025, 0.975), (0.0003, 0.9997), (0.5, 0.5), (0.0, 1.0)):
            assert quantiles(values_B.copy(), low, high) == pytest.approx(np.quantile(values_B, [low, high]))


def test_score_interval_is_wilsons() -> None:
    z = stats.norm.ppf(0.975)
    for k, n in ((0, 10), (3, 10), (10, 10), (99, 120)):
        ends = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert wilson(k / n, n, z) == pytest.approx((ends.low, ends.high), abs=1e-12)


def test_effective_trials_undo_the_binomial_variance_and_never_exceed_the_trials() -> None:
    assert effective_trials(0.25, 0.25 * 0.75 / 40, 120, 30, 0.95, 1e9) == pytest.approx(40)
    # t tables: 1.96 normal, 2.776 at 4 degrees of freedom.
    assert effective_trials(0.25, 0.25 * 0.75 / 40, 120, 30, 0.95, 4) == pytest.approx(
        40 * (1.96 / 2.776) ** 2, rel=1e-3
    )
    assert effective_trials(0.25, 1e-9, 120, 30, 0.95, 4) == 120
    assert effective_trials(0.5, 0.0, 120, 30, 0.95, 4) == 120
    assert effective_trials(1.0, 0.0, 120, 30, 0.95, 1e9) == pytest.approx(30)


def test_expanded_percentiles_are_the_nominal_ones_with_many_degrees_of_freedom_and_wider_with_few() -> None:
    assert expanded(0.95, 1e9) == pytest.approx((0.025, 0.975), abs=1e-6)
    low, _ = expanded(0.95, 24)
    assert low == pytest.approx(stats.norm.cdf(-2.0639), abs=1e-5)  # t table: 2.064 at 24 degrees of freedom
    assert student(0.95, 0.2) == pytest.approx(12.706, abs=1e-3)  # one degree of freedom at least


# Against the paper's printed intervals.


def median_ends(tables: list[Table], asked: list[Estimand]) -> list[tuple[float, float]]:
    """In points: the median low and the median high of the paper's interval over ``tables``."""
    made = [estimate(table, asked, intervals=Intervals("paper", 4000)).estimates for table in tables]
    ends_NE = np.array([[(found.low, found.high) for found in one] for one in made], float)
    return [(100 * float(low), 100 * float(high)) for low, high in np.median(ends_NE, axis=0)]


def test_margins_of_the_unseen_split_give_intervals_near_the_printed_ones() -> None:
    names = ("interaction", "survivor_interaction", "survivor_minus_interaction")
    asked = [estimand(name, **CROSS) for name in names]
    # The margins leave open which tasks have the ones, so single tables vary by several points.
    found = median_ends([paper_tables.unseen(seed) for seed in range(40)], asked)
    for ours, printed, near in zip(found, ((13.3, 35.0), (-45.8, 22.7), (-68.6, -7.3)), (3, 8, 8), strict=True):
        assert ours == pytest.approx(printed, abs=near)


def test_margins_of_the_seen_split_give_intervals_near_the_printed_ones() -> None:
    asked = [
        estimand("interaction", **CROSS),
        estimand("reach_gap", a="sft", b="rl"),
        estimand("completion_gap", reachers=BOTH, a="sft", b="rl"),
    ]
    found = median_ends([paper_tables.seen(seed) for seed in range(40)], asked)
    for ours, printed in zip(found, ((6.7, 27.5), (54.2, 77.5), (11.2, 41.3)), strict=True):
        assert ours == pytest.approx(printed, abs=4.5)


def test_margins_of_the_unseen_split_give_empty_draws_near_the_printed_55_in_100_000() -> None:
    table = paper_tables.unseen()
    assert (table.arrived_WTS.any(axis=2).sum(axis=1)).tolist() == [6, 28]
    assert len({table.strata[t] for t in np.flatnonzero(table.arrived_WTS[0].any(axis=1))}) == 4
    made = estimate(table, intervals=Intervals("paper"))
    # No SFT arrival: none of 1, 1, 2, 2 of five tasks in four types: 0.8^10 * 0.6^10 = 64.9 in 100,000, s.d. 8.1.
    expected = 100_000 * 0.8**10 * 0.6**10
    assert abs(55 - expected) < 2 * 8.1
    assert abs(made.get("survivor_interaction", **CROSS).excluded - expected) < 4 * 8.1
    assert made.get("interaction", **CROSS).excluded == 0


# What data cannot say.


def all_ones() -> Table:
    table = paper_tables.unseen()
    ones_WTS, ones_WRTS = np.ones_like(table.arrived_WTS), np.ones_like(table.won_WRTS)
    return Table(BOTH, BOTH, table.tasks, table.strata, table.slots, ones_WTS, ones_WRTS)


def test_all_ones_are_flagged_degenerate_with_a_percentile_interval_of_1_to_1() -> None:
    made = estimate(all_ones(), intervals=Intervals("paper", 500))
    found = made.get("solve", reacher="sft", solver="rl")
    assert (found.point, found.low, found.high, found.degenerate) == (1.0, 1.0, 1.0, True)


def test_all_ones_have_an_honest_default_interval() -> None:
    made = estimate(all_ones(), intervals=Intervals(draws=500))
    rate = made.get("solve", reacher="sft", solver="rl")
    # Wilson on 30 tasks, t at 24 degrees of freedom: 30 / (30 + 2.0639^2) = 0.8756.
    assert rate.degenerate
    assert (rate.low, rate.high) == (pytest.approx(0.8756, abs=1e-4), pytest.approx(1.0))
    contrast = made.get("interaction", **CROSS)
    # One of 120 episodes more in each of its four rates: the floor is 4 / 2 / 120^2, and 1.5 of it where none differs.
    half = stats.t.ppf(0.975, 24) * np.sqrt(1.5 * 2) / 120
    assert (contrast.low, contrast.high) == (pytest.approx(-half), pytest.approx(half))
    assert (contrast.point, contrast.degenerate) == (0.0, True)


def test_strata_of_1_and_9_tasks_stay_fixed_in_the_papers_draws_and_say_what_that_means() -> None:
    table = unbalanced((1, 9))
    counts_BT = counts_of(plan_of(table.strata, "paper"), 1000, 0)
    assert (counts_BT[:, 0] == 1).all()
    assert (counts_BT[:, 1:].sum(axis=1) == 9).all()
    found = estimate(table, [estimand("interaction", **CROSS)], intervals=Intervals("paper", 500)).estimates[0]
    assert any("only one task of type type 0" in note and "too narrow" in note for note in found.notes)
    lone = estimate(
        table, [estimand("reach", reacher="rl", type="type 0")], intervals=Intervals("paper", 500)
    ).estimates[0]
    assert lone.degenerate


def test_strata_of_1_and_9_tasks_are_drawn_together_by_default_and_replicates_without_one_are_counted() -> None:
    table = unbalanced((1, 9))
    plan = plan_of(table.strata, "rescaled")
    assert [(len(s.tasks), s.takes) for s in plan.strata] == [(10, 9)]
    asked = [estimand("interaction", **CROSS), estimand("reach", reacher="rl", type="type 0")]
    whole, lone = estimate(table, asked, intervals=Intervals(draws=10_000)).estimates
    assert whole.low is not None
    assert whole.notes == ("only one task of type type 0: drawn together with another stratum",)
    # The lone task is missing from a draw with probability 0.9^9 = 38.7%.
    assert lone.low is None
    assert lone.excluded == pytest.approx(10_000 * 0.9**9, abs=250)
    assert lone.interval_reason is not None
    assert "one task only" in lone.interval_reason


def test_two_lone_types_are_drawn_together_and_leave_the_others_alone() -> None:
    plan = rescaled(("a", "b", "b", "b", "c"))
    assert [(s.tasks.tolist(), s.takes) for s in plan.strata] == [([1, 2, 3], 2), ([0, 4], 1)]
    assert plan.lone == ("a", "c")


def test_more_than_one_percent_of_empty_draws_refuse_the_papers_interval_and_leave_students_t() -> None:
    table = paper_tables.unseen()
    arrived_WTS = table.arrived_WTS.copy()
    keep = np.flatnonzero(arrived_WTS[0].any(axis=1))[[0, 1]]  # one task in each of two types
    arrived_WTS[0, np.setdiff1d(np.arange(30), keep)] = False
    rare = Table(BOTH, BOTH, table.tasks, table.strata, table.slots, arrived_WTS, table.won_WRTS & arrived_WTS[:, None])
    for method, takes in (("paper", 5), ("rescaled", 4)):
        made = estimate(rare, intervals=Intervals(method, 20_000))
        found = made.get("solver_effect", reacher="sft", a="sft", b="rl")
        assert found.point is not None
        # Both tasks missed: 0.8^(2 takes), 10.7% or 16.8%; its s.d. in 20,000 draws is below 60.
        assert found.excluded == pytest.approx(20_000 * 0.8 ** (2 * takes), abs=240)
        remark = f"{found.excluded:,} of 20,000 draws"
        if method == "paper":
            assert (found.low, found.high) == (None, None)
            assert found.interval_reason is not None
            assert remark in found.interval_reason
        else:
            assert found.interval == "student"
            assert any(remark in note and "Student's t alone" in note for note in found.notes)
        assert made.get("reach", reacher="sft").low is not None


def test_one_task_alone_has_points_but_no_default_interval() -> None:
    table = unbalanced((1,))
    for found in estimate(table, intervals=Intervals(draws=200)).estimates:
        assert found.low is None
        assert found.interval_reason is not None


# Same seed, same numbers.


def ends(found: Estimate) -> tuple[object, ...]:
    return found.point, found.low, found.high, found.excluded


def test_the_default_interval_of_a_contrast_is_wider_than_the_papers() -> None:
    table = paper_tables.unseen()
    paper, ours = (
        estimate(table, intervals=Intervals(m, 20_000)).get("interaction", **CROSS) for m in ("paper", "default")
    )
    assert paper.low is not None
    assert paper.high is not None
    assert ours.low is not None
    assert ours.high is not None
    # sqrt(5/4) for the variance, at least 2.06/1.96 for t: between 1.15 and 1.35 with the coarse steps of the draws.
    assert 1.15 < (ours.high - ours.low) / (paper.high - paper.low) < 1.35


def test_estimands_asked_for_alone_or_together_have_the_same_intervals() -> None:
    table = unbalanced()
    every = estimate(table, intervals=Intervals(draws=1000))
    for wanted in standard(table)[::7]:
        (alone,) = estimate(table, [wanted], intervals=Intervals(draws=1000)).estimates
        assert ends(alone) == ends(next(e for e in every.estimates if e.estimand == wanted))


def test_estimates_beyond_what_is_kept_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = unbalanced()
    before = estimate(table, intervals=Intervals(draws=500))
    monkeypatch.setattr("handoff.estimation.draws.VALUES", 1500)
    assert [ends(e) for e in estimate(table, intervals=Intervals(draws=500)).estimates] == [
        ends(e) for e in before.estimates
    ]


SCRIPT = """
import json
from kit import paper_tables
from handoff.estimation.bootstrap import estimate
from handoff.estimation.method import Intervals
print(json.dumps(estimate(paper_tables.unseen(), intervals=Intervals(draws=2000, seed=4)).to_json(), allow_nan=False))
"""


def test_intervals_are_the_same_bytes_in_every_process() -> None:
    here = Path(__file__).resolve().parents[1]
    out = set()
    for hash_seed, threads in (("1", "1"), ("77", "2")):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "OPENBLAS_NUM_THREADS": threads}
        env["PYTHONPATH"] = os.pathsep.join([str(here.parent), str(here)])
        out.add(subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, check=True).stdout)
    assert len(out) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bca"}, "interval is one of default, rescaled, paper, not 'bca'"),
        ({"draws": 99}, "draws must be at least 100 and at most 1,000,000, not 99"),
        ({"draws": 1_000_001}, "not 1000001"),
        ({"draws": 1e3}, "draws must be a whole number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"level": 1.0}, "level must be more than 0 and less than 1, not 1.0"),
        ({"level": math.nan}, "not nan"),
    ],
)
def test_intervals_that_cannot_be_made_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Intervals(**options)  # type: ignore[arg-type]


def test_the_default_method_has_one_name() -> None:
    assert Intervals("default") == Intervals() == Intervals("rescaled")


# What makes it fast gives the same numbers.


@pytest.mark.parametrize("method", ["paper", "rescaled"])
@pytest.mark.parametrize("sizes", [SIZES, (5,) * 6, (1, 2, 1, 12), (30, 9)])
def test_looked_up_sums_are_those_of_the_weight_matrix_exactly(
    sizes: tuple[int, ...], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handoff.estimation.resampling.BLOCK", 256)  # several blocks, of which the last is shorter
    table = unbalanced(sizes)
    plan = plan_of(table.strata, method)
    evaluation = Evaluation(table, standard(table))
    counts_BT, scale_T = counts_of(plan, 700, 3), plan.scale_T()
    sums = {}
    for type in table.types:
        of_type_T = np.array(table.strata) == type
        # A common factor within a type, applied to whole sums.
        sums[type] = (evaluation.counts_KT[:, of_type_T] @ counts_BT[:, of_type_T].T) * scale_T[of_type_T][0]
    sums[None] = sum(sums[type] for type in table.types)
    with np.errstate(invalid="ignore", divide="ignore"):
        exact = dict(evaluation.formulas([sums], range(len(evaluation.estimands))))
    values_EB = values_of(evaluation, plan, 700, seed=3)
    shares = (0.1, 0.8)
    everywhere = dict.fromkeys(range(len(values_EB)), shares)
    for e, found in enumerate(distributions(evaluation, plan, 700, 3, everywhere)):
        if math.isnan(evaluation.points_E[e]):
            assert found.draws == 0
            continue
        assert np.array_equal(np.sort(exact[e]), np.sort(values_EB[e]), equal_nan=True)
        defined_B = exact[e][~np.isnan(exact[e])]
        assert (found.draws, found.excluded) == (700, 700 - len(defined_B))
        if len(defined_B):
            assert found.varies == (defined_B.max() - defined_B.min() > 1e-12)
            assert found.ends == pytest.approx(np.quantile(defined_B, shares), rel=1e-12)


@pytest.mark.parametrize("size", [5, 999, 5_000, 30_000])
def test_order_statistics_are_those_of_the_sorted_values(size: int) -> None:
    rng = np.random.default_rng(2)
    drawn_B = rng.standard_normal(size)
    for values_B in (drawn_B, drawn_B.round(1), np.sort(drawn_B), -np.sort(drawn_B), np.zeros(size)):
        sorted_B = np.sort(values_B)
        for low, high in ((0.025, 0.975), (0.0003, 0.9997), (0.4, 0.6), (0.01, 0.02), (0.0, 1.0)):
            ranks = sorted({int(low * (size - 1)), int(high * (size - 1)), size - 1})
            assert order_statistics(values_B.copy(), ranks) == {rank: sorted_B[rank] for rank in ranks}


@pytest.mark.parametrize("paired", [True, False])
def test_differences_take_the_same_draws_of_paired_tables_and_separate_ones_of_others(paired: bool) -> None:
    first, second = unbalanced(seed=1), unbalanced(SIZES if paired else (4, 12), slots=2, seed=2)
    estimands = [estimand("reach", reacher="rl"), estimand("solve", reacher="rl", solver="sft")]
    plan = plan_of(first.strata, "paper")
    if not paired:
        plan = joined(plan, plan_of(second.strata, "paper"))
    difference = Difference(Evaluation(first, estimands), Evaluation(second, estimands), paired)
    values_EB = values_of(difference, plan, 300, seed=6)
    counts_BT = counts_of(plan, 300, 6)
    start = 0 if paired else len(first.tasks)
    values = []
    for table, weights_BT in ((first, counts_BT[:, : len(first.tasks)]), (second, counts_BT[:, start:])):
        arrived_B = weights_BT @ table.arrived_WTS[1].sum(axis=1)
        won_B = weights_BT @ table.won_WRTS[1, 0].sum(axis=1)
        values.append(np.array([arrived_B / (len(table.tasks) * len(table.slots)), won_B / arrived_B]))
    assert np.array_equal(values_EB, values[1] - values[0])


@pytest.mark.parametrize("largest", [255, 256, 65_535, 65_536, 2**32 - 1, 2**32])
def test_packed_numbers_add_up_to_the_largest_total_without_touching_their_neighbours(largest: int) -> None:
    rng = np.random.default_rng(largest)
    for many in (1, 3, 8, 11):
        kept = packing(many, largest)
        part_LK = rng.integers(0, largest // 2 + 1, (40, many))
        rest_LK = largest - part_LK  # every sum is the largest total
        words_WL = kept.pack(part_LK) + kept.pack(rest_LK)
        assert np.array_equal(kept.unpack(words_WL), np.full((many, 40), float(largest)))
        assert np.array_equal(kept.unpack(kept.pack(part_LK)), part_LK.T)


def test_percentiles_of_repeated_values_are_numpys_of_all_of_them() -> None:
    rng = np.random.default_rng(4)
    for size in (1, 2, 30):
        values_V, times_V = rng.standard_normal(size), rng.integers(1, 40, size)
        every = np.repeat(values_V, times_V)
        for low, high in ((0.025, 0.975), (0.0003, 0.9997), (0.5, 0.5), (0.0, 1.0)):
            assert quantiles(values_V, low, high, times_V) == pytest.approx(np.quantile(every, [low, high]))


def test_an_estimate_that_is_not_there_is_answered_with_those_of_its_name() -> None:
    made = estimate(paper_tables.unseen(), intervals=Intervals(draws=100))
    with pytest.raises(UsageError, match=r"completion_gap\(a=sft, b=rl\); .*reachers=sft \+ rl, a=sft, b=rl"):
        made.get("completion_gap", a="sft", b="rl")


def test_an_interval_of_a_mean_number_of_actions_has_no_negative_end() -> None:
    # One type of two tasks: 1 and 31 actions.  Student's t with one degree of freedom reaches far below 0.
    table = Table(
        ("w",),
        ("r",),
        ("a", "b"),
        ("x", "x"),
        (0,),
        arrived_WTS=np.array([[[True], [True]]]),
        won_WRTS=np.array([[[[True], [False]]]]),
        actions_WTS=np.array([[[1], [31]]]),
    )
    found = estimate(table, intervals=Intervals(draws=100)).get("mean_actions", reacher="w")
    assert found.point == 16
    assert found.low == 0
    assert found.high is not None
    assert found.high > 31
