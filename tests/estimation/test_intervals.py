"""The rules of the default intervals, against arithmetic written out here."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from kit import paper_tables
from scipy import stats

from handoff.estimation.bootstrap import estimate
from handoff.estimation.differences import difference
from handoff.estimation.estimands import estimand
from handoff.estimation.intervals import Spread, difference_of, interval, kurtosis_freedom
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample, transport

BOTH = ("sft", "rl")
PAIR = (*BOTH, *BOTH)
CROSS = dict(zip("abcd", PAIR, strict=True))


def near_equal() -> Table:
    """Six types of five tasks, four slots; all arrive.  Each solver misses one episode, and not the same."""
    table = paper_tables.unseen()
    arrived_WTS = np.ones_like(table.arrived_WTS)
    won_WRTS = np.ones_like(table.won_WRTS)
    won_WRTS[0, 0, 3, 1] = False
    won_WRTS[0, 1, 17, 2] = False
    return Table(BOTH, BOTH, table.tasks, table.strata, table.slots, arrived_WTS, won_WRTS)


def test_solvers_that_differ_in_two_of_240_states_have_an_interval_with_a_width() -> None:
    gap = estimate(near_equal()).get("completion_gap", reachers=BOTH, a="sft", b="rl")
    assert gap.point == 0
    assert gap.low is not None
    assert gap.high is not None
    # Each task adds (5/4 x 1/240)^2 by the jackknife's weights; one discordant pair of 240 states adds (1/240)^2.  Two
    # strata of four degrees of freedom carry the first part, and 24 the second.
    deviations = np.array([4.0, -1, -1, -1, -1]) / 5 * (5 / 4) / 240
    seen = 2 * 4 / 5 * (deviations**2).sum()
    extra = 1 / 240**2
    kurtosis = 30 * 2 * (4 / 5) ** 2 * (deviations**4).sum() / seen**2
    own = min(8, seen**2 / (2 * (seen / 2) ** 2 / 6) - 2, 60 / (kurtosis - 27 / 29))
    freedom = (seen + extra) ** 2 / (seen**2 / own + extra**2 / 24)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(seen + extra)
    assert min(-gap.low, gap.high) >= half - 1e-12
    assert max(-gap.low, gap.high) < 1.5 * half


def test_one_pseudo_episode_is_added_to_a_variance_and_one_and_a_half_to_none() -> None:
    seen = interval(0.1, Spread(3e-4, 8.0, 1e-4, 24), 0.9)
    freedom = 4e-4**2 / (3e-4**2 / 8 + 1e-4**2 / 24)
    half = stats.t.ppf(0.95, freedom) * 0.02
    assert seen == (pytest.approx(0.1 - half), pytest.approx(0.1 + half))
    none = interval(0.0, Spread(0.0, float("nan"), 1e-4, 24), 0.9)
    half = stats.t.ppf(0.95, 24) * np.sqrt(1.5e-4)
    assert none == (pytest.approx(-half), pytest.approx(half))
    assert interval(0.0, Spread(0.0, float("nan"), 0.0, 24), 0.9) is None


def test_percentiles_that_reach_farther_are_kept_and_widened() -> None:
    percentiles = (-0.05, 0.30)
    ends = interval(0.1, Spread(3e-4, 8.0, 1e-4, 24, percentiles), 0.9)
    wider = np.sqrt(4 / 3)
    assert ends == (pytest.approx(0.1 - 0.15 * wider), pytest.approx(0.1 + 0.2 * wider))


def test_the_kurtosis_of_normal_values_costs_no_degree_of_freedom_and_one_value_costs_nearly_all() -> None:
    assert kurtosis_freedom(30, 3.0) == pytest.approx(29)
    # All of the variance in one of 30 values: a kurtosis of 30, so 60 / (30 - 27/29).
    assert kurtosis_freedom(30, 30.0) == pytest.approx(60 / (30 - 27 / 29))
    assert kurtosis_freedom(30, 1.0) == 29


def test_a_difference_of_independent_numbers_is_never_narrower_than_either() -> None:
    # Symmetric intervals add in squares: 3-4-5.
    assert difference_of((0.2, 0.17, 0.23), (0.5, 0.46, 0.54)) == (pytest.approx(0.25), pytest.approx(0.35))
    low, high = difference_of((0.0, 0.0, 0.3), (1.0, 0.9, 1.0))
    # Zou and Donner: the lower end from the second's lower and the first's upper end, and the other way round.
    assert (low, high) == (pytest.approx(1 - np.hypot(0.1, 0.3)), pytest.approx(1.0))
    here, there = paper_tables.unseen(), renamed(paper_tables.seen())
    asked = [estimand("interaction", **CROSS), estimand("reach", reacher="rl")]
    one, other = (estimate(table, asked).estimates for table in (here, there))
    both = difference(here, there, asked, Intervals(), paired=False).estimates
    for before, after, gap in zip(one, other, both, strict=True):
        assert gap.point == pytest.approx(after.point - before.point)
        assert gap.high - gap.low >= max(before.high - before.low, after.high - after.low)


def renamed(table: Table) -> Table:
    return attrs.evolve(table, tasks=tuple(f"x{task}" for task in table.tasks))


@pytest.mark.parametrize("tasks", [30, 12])
def test_the_observed_interaction_has_one_interval_wherever_it_is_printed(tasks: int) -> None:
    here, there = first_of(paper_tables.unseen(), tasks // 6), renamed(first_of(paper_tables.seen(), tasks // 6))
    alone = estimate(here).get("interaction", **CROSS)
    prediction = transport(Sample("a", here), Sample("b", there), PAIR).estimates.estimates
    beside = {one.estimand.name: one for one in prediction if one.estimand.type is None}["transport_observed"]
    assert (beside.point, beside.low, beside.high) == (alone.point, alone.low, alone.high)
    assert alone.low is not None


def first_of(table: Table, number: int) -> Table:
    """So many tasks of every type."""
    kept = [t for t, type in enumerate(table.strata) if table.strata[:t].count(type) < number]
    return attrs.evolve(
        table,
        tasks=tuple(table.tasks[t] for t in kept),
        strata=tuple(table.strata[t] for t in kept),
        arrived_WTS=table.arrived_WTS[:, kept],
        won_WRTS=table.won_WRTS[:, :, kept],
        **{
            name: None if getattr(table, name) is None else getattr(table, name)[:, kept]
            for name in ("arrival_WTS", "actions_WTS")
        },
        bridge_WRTS=None if table.bridge_WRTS is None else table.bridge_WRTS[:, :, kept],
    )


def test_a_residual_is_given_where_leaving_out_one_task_empties_a_type() -> None:
    there = renamed(paper_tables.seen())
    arrived_WTS = there.arrived_WTS.copy()
    own = [t for t, type in enumerate(there.strata) if type == there.strata[0]]
    arrived_WTS[:, own[1:]] = False  # one task alone has the states of its type
    arrived_WTS[:, own[0]] = True
    there = attrs.evolve(there, arrived_WTS=arrived_WTS, won_WRTS=there.won_WRTS & arrived_WTS[:, None],
                         arrival_WTS=None, actions_WTS=None, bridge_WRTS=None)  # fmt: skip
    prediction = transport(Sample("a", paper_tables.unseen()), Sample("b", there), PAIR)
    residual = next(one for one in prediction.estimates.estimates if str(one.estimand).startswith("transport_residual(")
                    and one.estimand.type is None)  # fmt: skip
    assert residual.low is not None
    assert residual.high is not None


def test_mean_actions_are_never_below_none() -> None:
    # Two tasks a type: one reacher stops at once but for one episode, the other runs out but for one.
    arrived_WTS = np.ones((2, 4, 2), bool)
    actions_WTS = np.array([np.ones((4, 2), int), np.full((4, 2), 48)])
    actions_WTS[0, 0, 0], actions_WTS[1, 0, 0] = 48, 1
    table = Table(BOTH, BOTH, tuple("abcd"), ("x", "x", "y", "y"), (0, 1), arrived_WTS, np.ones((2, 2, 4, 2), bool),
                  arrival_WTS=actions_WTS, actions_WTS=actions_WTS, budget=48)  # fmt: skip
    means = [one for one in estimate(table).estimates if one.estimand.name == "mean_actions"]
    assert [one.point for one in means] == [pytest.approx(55 / 8), pytest.approx(337 / 8)]
    assert means[0].low == 0


def test_an_interval_that_an_added_episode_makes_is_marked_as_wide() -> None:
    gap = estimate(near_equal()).get("completion_gap", reachers=BOTH, a="sft", b="rl")
    assert any("may be too wide" in note for note in gap.notes)
    wide = estimate(paper_tables.unseen()).get("completion_gap", reachers=BOTH, a="sft", b="rl")
    assert wide.notes == ()
