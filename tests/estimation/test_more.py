"""What lies beside the plain intervals, against arithmetic, the papers, and formulas written here."""

from __future__ import annotations

import math
from itertools import combinations

import attrs
import numpy as np
import pytest
from kit import paper_tables, report_runs
from scipy import stats

from handoff.errors import UsageError
from handoff.estimation.bootstrap import Estimate, estimate
from handoff.estimation.common_support import BOUNDS
from handoff.estimation.estimands import Estimand, estimand
from handoff.estimation.method import Intervals
from handoff.estimation.more import more
from handoff.estimation.orders import ORDERS
from handoff.estimation.ratios import RatioEstimate, exponential
from handoff.estimation.sensitivity import e_value, sensitivity
from handoff.estimation.shrinkage import design_effect, posterior, shrunken
from handoff.estimation.simultaneous import EstimandFamily, main_family, pairwise_family, simultaneous
from handoff.estimation.table import Table
from handoff.planning.population import from_guesses

PAIR = ("sft", "rl", "sft", "rl")
CROSS = dict(zip("abcd", PAIR, strict=True))
FAST = Intervals(draws=500)
#: Arrivals and wins of the unseen split (Table 1 and section 4 of "Reach or Solve? Deep Diving into Agentic RL Gains
#: with Checkpoint Handoffs").
REACH_GAP, DELTA_SFT, DELTA_RL = (99 - 16) / 120, (15 - 7) / 16, (95 - 58) / 99


def one(table: Table, wanted: Estimand, intervals: Intervals = FAST) -> Estimate:
    return estimate(table, [wanted], intervals).estimates[0]


def random_table(names: tuple[str, ...], tasks: int, slots: int, rng: np.random.Generator, types: int = 1) -> Table:
    """Independent arms: every reacher arrives with 0.5, every solver wins with 0.6."""
    strata = [f"type {t * types // tasks}" for t in range(tasks)]
    return report_runs.table(
        names, names, lambda w, t, s: rng.random() < 0.5, lambda w, r, t, s: rng.random() < 0.6, strata, slots
    )


# The orders of Eq. 9.


def test_eq_9_has_the_printed_terms_the_other_orders_and_the_symmetric_ones() -> None:
    table = paper_tables.unseen()
    points = {name: [one(table, estimand(term, **CROSS)).point for term in pair] for name, pair in ORDERS.items()}
    printed = (REACH_GAP * DELTA_RL, 16 / 120 * (DELTA_RL - DELTA_SFT))
    other = (REACH_GAP * DELTA_SFT, 99 / 120 * (DELTA_RL - DELTA_SFT))
    assert [round(100 * term, 1) for term in (*printed, *other)] == [25.9, -1.7, 34.6, -10.4]
    assert points["as printed"] == pytest.approx(printed)
    assert points["other order"] == pytest.approx(other)
    # 30.2 and -6.05, the means: (25.85 + 34.58) / 2 and (-1.68 - 10.42) / 2.
    assert points["symmetric"] == pytest.approx([(a + b) / 2 for a, b in zip(printed, other, strict=True)])
    assert 100 * np.array(points["symmetric"]) == pytest.approx([30.2, -6.05], abs=0.03)


def test_the_terms_of_every_order_add_up_to_the_interaction() -> None:
    table = random_table(("sft", "rl"), 12, 3, np.random.default_rng(1), 3)
    whole = one(table, estimand("interaction", **CROSS)).point
    for pair in ORDERS.values():
        assert sum(one(table, estimand(term, **CROSS)).point or 0.0 for term in pair) == pytest.approx(whole)


# Common support.


def effects(table: Table) -> tuple[list[int], list[int], list[int]]:
    """Y_rl - Y_sft over the arrivals of sft, over those of rl, and the differences where both arrive, row by row."""
    after_sft, after_rl, both = [], [], []
    for t in range(len(table.tasks)):
        for s in range(len(table.slots)):
            gaps = [int(table.won_WRTS[w, 1, t, s]) - int(table.won_WRTS[w, 0, t, s]) for w in range(2)]
            sft, rl = (bool(table.arrived_WTS[w, t, s]) for w in range(2))
            after_sft += [gaps[0]] * sft
            after_rl += [gaps[1]] * rl
            both += [gaps[1] - gaps[0]] * (sft and rl)
    return after_sft, after_rl, both


def test_the_interaction_on_common_support_is_the_mean_over_slots_where_both_arrive() -> None:
    table = random_table(("sft", "rl"), 10, 4, np.random.default_rng(2), 2)
    *_, both = effects(table)
    assert one(table, estimand("common_share", a="sft", b="rl")).point == pytest.approx(len(both) / 40)
    assert one(table, estimand("common_interaction", **CROSS)).point == pytest.approx(sum(both) / len(both))


@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_are_those_of_the_best_and_the_worst_choice_of_slots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = report_runs.table(
        ("sft", "rl"), ("sft", "rl"), lambda w, t, s: rng.random() < (0.6, 0.8)[w], lambda *_: rng.random() < 0.5,
        ["a"] * 6, 2,
    )  # fmt: skip
    after_sft, after_rl, _ = effects(table)
    for least, names in (
        (min(len(after_sft), len(after_rl)), BOUNDS[:2]),
        (len(after_sft) + len(after_rl) - 12, BOUNDS[2:]),
    ):
        assert least > 0
        means = [[sum(some) / least for some in combinations(gaps, least)] for gaps in (after_sft, after_rl)]
        lower, upper = (one(table, estimand(name, **CROSS)).point for name in names)
        assert lower == pytest.approx(min(means[1]) - max(means[0]))
        assert upper == pytest.approx(max(means[1]) - min(means[0]))


def test_bounds_without_monotone_arrival_say_nothing_where_the_rates_do_not_overlap() -> None:
    table = paper_tables.unseen()  # 13.3% + 82.5% < 100%
    assert [one(table, estimand(name, **CROSS)).point for name in BOUNDS[2:]] == [-2.0, 2.0]
    lower, upper = (one(table, estimand(name, **CROSS)).point for name in BOUNDS[:2])
    # Of RL's 99 arrivals 37 are won by RL only and none by SFT only: any 16 have a mean of 0 to 1, less 8/16.
    assert (lower, upper) == pytest.approx((-0.5, 0.5))


# Ratios and sensitivity.


def test_reach_of_the_unseen_split_is_6_19_times_as_high() -> None:
    ratio = exponential(one(paper_tables.unseen(), estimand("log_reach_ratio", a="sft", b="rl")))
    assert ratio.point == pytest.approx(99 / 16)
    assert f"{ratio.point:.2f}" == "6.19"
    assert ratio.label == "Reach ratio, sft → rl"
    assert ratio.low is not None
    assert 1 < ratio.low < 99 / 16 < (ratio.high or 0)


def test_a_ratios_interval_is_that_of_the_delta_method_on_the_logarithmic_scale() -> None:
    table = random_table(("a", "b"), 120, 3, np.random.default_rng(5), 4)
    ratio = exponential(one(table, estimand("log_reach_ratio", a="a", b="b"), Intervals(draws=20_000)))
    # Var(log R) = sum over types of n/(n-1) sum of squares of (y_t/Y - x_t/X) around their mean in the type.
    x_T, y_T = table.arrived_WTS.sum(axis=2)
    share_GN = (y_T / y_T.sum() - x_T / x_T.sum()).reshape(4, 30)
    error = math.sqrt(30 / 29 * ((share_GN - share_GN.mean(axis=1, keepdims=True)) ** 2).sum())
    half = stats.t.ppf(0.975, 116) * error
    assert ratio.low is not None
    assert ratio.high is not None
    assert math.log(ratio.high / ratio.low) / 2 == pytest.approx(half, rel=0.06)


def test_a_ratio_to_nothing_is_undefined_with_the_reason() -> None:
    table = report_runs.table(("sft", "rl"), ("sft", "rl"), lambda w, t, s: w == 1, lambda *_: True, ["a"] * 4)
    beside = more(table, intervals=FAST)
    assert (beside.ratios[0].point, beside.ratios[0].low) == (None, None)
    assert "the denominator of arrived(rl) / arrived(sft) is 0" in (beside.ratios[0].reason or "")


def test_e_values_are_those_of_vanderweele_and_ding() -> None:
    """Their example: a risk ratio of 3.9 [1.8, 8.7] has the E-values 7.2 and 3.0."""
    assert e_value(3.9) == pytest.approx(7.26, abs=0.005)
    assert e_value(1.8) == pytest.approx(3.0)
    assert e_value(1 / 3.9) == pytest.approx(e_value(3.9))
    # It is the factor at which the greatest bias e^2 / (2e - 1) equals the ratio.
    assert e_value(3.9) ** 2 / (2 * e_value(3.9) - 1) == pytest.approx(3.9)


@pytest.mark.parametrize(
    ("ends", "limit"), [((1.8, 8.7), 3.0), ((0.2, 1 / 1.8), 3.0), ((0.8, 8.7), 1.0), ((None, None), None)]
)
def test_the_e_value_of_an_interval_is_that_of_its_end_nearer_to_one(
    ends: tuple[float | None, float | None], limit: float | None
) -> None:
    logarithm = one(paper_tables.unseen(), estimand("log_effect_ratio", **CROSS))
    assert sensitivity(RatioEstimate(logarithm, 3.9, *ends)).limit == (None if limit is None else pytest.approx(limit))


def test_solver_effects_of_two_signs_have_no_ratio_and_the_reason_says_so() -> None:
    table = report_runs.table(
        ("sft", "rl"), ("sft", "rl"), lambda *_: True, lambda w, r, t, s: r == w or (t + s) % 2 == 0, ["a"] * 4
    )
    beside = more(table, intervals=FAST)
    assert beside.sensitivity is not None
    assert beside.sensitivity.point is None
    assert "do not have one sign" in (beside.sensitivity.ratio.reason or "")


# Ladders.


def test_the_trend_is_the_slope_of_the_least_squares_line_over_the_rungs() -> None:
    names = ("base", "sft", "dpo", "rl")
    table = random_table(names, 10, 4, np.random.default_rng(3), 2)
    levels = table.arrived_WTS.mean(axis=(1, 2))
    slope = np.polyfit(range(4), levels, 1)[0]
    assert one(table, estimand("reach_trend", rungs=names)).point == pytest.approx(slope)
    # Page's weights for four are -3, -1, 1, 3, here over 10.
    assert slope == pytest.approx(np.array([-3, -1, 1, 3]) @ levels / 10)


def test_three_checkpoints_are_a_ladder_with_an_order_and_ranked_without() -> None:
    table = random_table(("base", "sft", "rl"), 12, 3, np.random.default_rng(4), 2)
    ladder = more(table, ("rl", "base", "sft"), FAST).ladder
    assert ladder is not None
    assert ladder.rungs == ("rl", "base", "sft")
    assert [step.pair for step in ladder.steps] == [("rl", "base"), ("base", "sft")]
    assert [step.reach.plain.estimand for step in ladder.steps] == [
        estimand("reach_gap", a="rl", b="base"), estimand("reach_gap", a="base", b="sft"),
    ]  # fmt: skip
    ranked = more(table, None, FAST)
    assert ranked.ladder is None
    points = [row.endpoint.point or 0.0 for row in ranked.ranking]
    assert points == sorted(points, reverse=True)
    assert len(ranked.ranking) == 3


# Families.


def test_the_main_family_has_twelve_contrasts_and_four_checkpoints_have_eighteen() -> None:
    assert len(main_family(paper_tables.unseen(), PAIR).estimands) == 12
    four = random_table(("a", "b", "c", "d"), 6, 2, np.random.default_rng(6))
    assert len(pairwise_family(four).estimands) == 18


def test_independent_contrasts_get_sidaks_level_and_p_values() -> None:
    names = tuple("abcdefgh")
    table = random_table(names, 200, 2, np.random.default_rng(7), 2)
    gaps = tuple(estimand("reach_gap", a=a, b=b) for a, b in zip(names[::2], names[1::2], strict=True))
    together = simultaneous(table, EstimandFamily("gaps", gaps), Intervals(draws=20_000))
    assert together.level_of_each == pytest.approx(0.95 ** (1 / 4), abs=0.003)
    ranked = sorted(together.members, key=lambda member: member.p or 0.0)
    adjusted = [1 - (1 - (member.p or 0.0)) ** (4 - place) for place, member in enumerate(ranked)]
    assert [member.p_adjusted for member in ranked] == pytest.approx(np.maximum.accumulate(adjusted), abs=0.03)


def test_one_contrast_said_twice_is_no_family() -> None:
    table = paper_tables.unseen()
    gap = estimand("reach_gap", a="sft", b="rl")
    together = simultaneous(table, EstimandFamily("twice", (gap, gap)), Intervals(draws=20_000))
    # The level of the largest of two equal sizes is that of one, up to the shape of the draws.
    assert together.level_of_each == pytest.approx(0.95, abs=0.006)
    assert together.members[0] == together.members[1]


@pytest.mark.parametrize("method", ["rescaled", "paper"])
def test_a_simultaneous_interval_holds_the_plain_one(method: str) -> None:
    table = paper_tables.unseen()
    family = EstimandFamily("all", (*main_family(table, PAIR).estimands, estimand("reach", reacher="sft")))
    for member in simultaneous(table, family, Intervals(method, 2000)).members:
        assert member.low is not None
        assert member.high is not None
        assert member.low <= (member.plain.low or 0.0) <= (member.plain.high or 0.0) <= member.high
        assert (member.p is None) == (member.plain.estimand.kind == "rate")
        assert member.p is None or (member.p_adjusted or 0.0) >= member.p


def test_an_estimand_of_one_type_is_in_no_family() -> None:
    family = EstimandFamily("one type", (estimand("reach_gap", a="sft", b="rl", type="type 1"),))
    with pytest.raises(UsageError, match="all tasks"):
        simultaneous(paper_tables.unseen(), family, FAST)


def test_equal_checkpoints_are_told_apart_seldom_by_adjusted_p_values_and_often_by_plain_intervals() -> None:
    """18 contrasts of four equal checkpoints, 40 studies: 5% would be 2, and more than 6 has a chance below 1%."""
    names = ("a", "b", "c", "d")
    guesses = from_guesses(dict.fromkeys(names, 0.6), {(w, r): 0.7 for w in names for r in names}, types=6)
    design = attrs.evolve(guesses, tasks_G=(5,) * 6, slots=4)
    plain = adjusted = 0
    for seed in range(40):
        table = design.draw(np.random.default_rng([11, seed]))
        members = simultaneous(table, pairwise_family(table), Intervals(draws=400, seed=seed)).members
        plain += any((member.plain.low or 0) > 0 or (member.plain.high or 0) < 0 for member in members)
        adjusted += any(member.p_adjusted is not None and member.p_adjusted <= 0.05 for member in members)
    assert adjusted <= 6
    assert plain >= 10


# Types.


def test_shrunken_rates_average_the_beta_binomial_model_over_its_mean_and_spread() -> None:
    wins_G, trials_G = np.array([0, 3, 9, 10]), np.array([10, 10, 10, 10])
    m_P, rho_P = (grid.ravel() for grid in np.meshgrid((np.arange(200) + 0.5) / 200, (np.arange(80) + 0.5) / 80))
    alpha_P, beta_P = m_P * (1 / rho_P - 1), (1 - m_P) * (1 / rho_P - 1)
    likely_P = stats.betabinom.pmf(wins_G[:, None], trials_G[:, None], alpha_P, beta_P).prod(axis=0)
    given = stats.beta(alpha_P + wins_G[:, None], beta_P + (trials_G - wins_G)[:, None])
    mean_G = given.mean() @ likely_P / likely_P.sum()
    square_G = (given.var() + given.mean() ** 2) @ likely_P / likely_P.sum()
    rates = posterior(wins_G.astype(float), trials_G.astype(float))
    assert rates.mean_G == pytest.approx(mean_G, abs=0.002)
    assert rates.variance_G == pytest.approx(square_G - mean_G**2, abs=0.001)
    assert (rates.mean_G[0] > 0, rates.mean_G[3] < 1) == (True, True)


def test_the_design_effect_is_one_for_independent_slots_and_their_number_for_equal_ones() -> None:
    rng = np.random.default_rng(8)
    strata = ["a"] * 2000
    equal_T, trials_T = 4 * (rng.random(2000) < 0.4), np.full(2000, 4)
    assert design_effect(equal_T, trials_T, strata) == pytest.approx(4, abs=0.01)
    assert design_effect(rng.binomial(4, 0.4, 2000), trials_T, strata) == pytest.approx(1, abs=0.07)


def test_a_types_shrunken_interaction_is_that_of_its_shrunken_endpoints() -> None:
    *rates, whole = shrunken(paper_tables.unseen(), PAIR, 0.95)
    by_name = {rate.name: rate.rows for rate in rates}
    for place, row in enumerate(whole.rows):
        cell = {(w, r): by_name[f"endpoint, {w} then {r}"][place] for w in PAIR[:2] for r in PAIR[:2]}
        for what in ("raw", "point"):
            value = {key: getattr(entry, what) for key, entry in cell.items()}
            expected = value["rl", "rl"] - value["rl", "sft"] - value["sft", "rl"] + value["sft", "sft"]
            assert getattr(row, what) == pytest.approx(expected)
        assert -2 <= row.low < row.point < row.high <= 2
        assert row.high - row.low < 2  # five tasks alone say "anything"


def test_a_table_without_a_contrast_has_nothing_beside_the_plain_intervals() -> None:
    table = report_runs.table(("sft",), ("sft",), lambda *_: True, lambda *_: True, ["a"] * 3)
    beside = more(table, intervals=FAST)
    assert beside.contrast is None
    assert beside.to_json()["families"] == []
