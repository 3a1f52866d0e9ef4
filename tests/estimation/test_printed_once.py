"""One estimand has one interval wherever it is printed, and no interval leaves the parameter's range."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from handoff.estimation.bootstrap import Estimates, estimate
from handoff.estimation.differences import side_by_side
from handoff.estimation.estimands import estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample, transport

BOTH = ("sft", "rl")
PAIR = (*BOTH, *BOTH)
CROSS = dict(zip("abcd", PAIR, strict=True))
FAST = Intervals(draws=2000)


def drawn(sizes: tuple[int, ...], seed: int, prefix: str = "t") -> Table:
    """Types of these sizes with three seed slots; SFT arrives on a half and RL on nine tenths of them."""
    rng = np.random.default_rng(seed)
    tasks = sum(sizes)
    arrived_WTS = rng.random((2, tasks, 3)) < np.array([0.5, 0.9])[:, None, None]
    won_WRTS = (rng.random((2, 2, tasks, 3)) < np.array([0.4, 0.8])[None, :, None, None]) & arrived_WTS[:, None]
    strata = tuple(f"type {g}" for g, n in enumerate(sizes) for _ in range(n))
    names = tuple(f"{prefix}{t:04d}" for t in range(tasks))
    return Table(BOTH, BOTH, names, strata, (0, 1, 2), arrived_WTS, won_WRTS)


ENDS = ("point", "low", "high", "reason", "interval", "interval_reason", "excluded_draws", "notes")


def ends_of(estimates: Estimates) -> dict[tuple[str, str | None], list[object]]:
    """What JSON says of each estimand of this name and type."""
    rows = estimates.to_json()["estimates"]
    return {(row["name"], row["type"]): [row[key] for key in ENDS] for row in rows}


@pytest.mark.parametrize("there", [(2, 2), (5, 3), (9, 1), (500, 400)])
@pytest.mark.parametrize("here", [(2, 2), (1, 6)])
def test_what_transport_says_of_one_table_is_what_that_table_says_alone(
    here: tuple[int, ...], there: tuple[int, ...]
) -> None:
    target, external = drawn(here, 1), drawn(there, 2, "x")
    types: list[str | None] = ["type 0", "type 1"]
    asked = [estimand("interaction", type=type, **CROSS) for type in (*types, None)]
    asked += [estimand("reach_gap", type=type, a="sft", b="rl") for type in types]
    gaps = [estimand("completion_gap", type=type, reachers=BOTH, a="sft", b="rl") for type in types]
    alone = ends_of(estimate(target, asked, FAST)) | ends_of(estimate(external, gaps, FAST))
    beside = ends_of(transport(Sample("a", target), Sample("b", external), PAIR, FAST).estimates)
    for name, quantity in (("interaction", "observed"), ("reach_gap", "reach_gap"), ("completion_gap", "external_gap")):
        for type in (*types, None) if name == "interaction" else types:
            assert beside[f"transport_{quantity}", type] == alone[name, type]


def test_what_compare_says_of_one_table_is_what_that_table_says_alone() -> None:
    first, second = drawn((2, 5), 3), drawn((4, 3), 4, "x")
    several = side_by_side({"first": first, "second": second}, by_type=True, intervals=FAST)
    for label, table in (("first", first), ("second", second)):
        assert several.estimates[label].to_json() == estimate(table, None, FAST).to_json()


def stepped(arrival: list[list[int]], budget: int | None = 10) -> Table:
    """Two reachers on tasks of two slots each, which arrive after so many actions (-1: never, after ten)."""
    arrival_WTS = np.array(arrival, np.int64).reshape(2, -1, 2)
    tasks = arrival_WTS.shape[1]
    arrived_WTS = arrival_WTS >= 0
    return Table(
        BOTH, BOTH, tuple(f"{t}" for t in range(tasks)), ("a",) * tasks, (0, 1), arrived_WTS,
        np.zeros((2, 2, tasks, 2), bool), arrival_WTS=arrival_WTS,
        actions_WTS=np.where(arrived_WTS, arrival_WTS, 10), budget=budget,
    )  # fmt: skip


WITHIN_0 = [
    estimand("reach_within", reacher="rl", steps=0),
    estimand("reach_within_gap", a="sft", a_steps=0, b="rl", b_steps=0),
]


def test_nobody_arrives_within_0_actions() -> None:
    table = stepped([[1, 2, 3, -1, 5, -1], [1, 1, 2, 2, 3, 3]])
    for one in estimate(table, WITHIN_0, FAST).estimates:
        assert (one.point, one.low, one.high) == (0, 0, 0)
    one = estimate(table, [estimand("reach_within", reacher="sft", steps=1)], FAST).estimates[0]
    assert one.low is not None
    assert one.high is not None
    assert one.low < 1 / 6 < one.high


def test_tasks_that_begin_on_the_frontier_leave_arrivals_within_0_actions_unsure() -> None:
    one = estimate(stepped([[0, 0, 3, -1, 5, -1], [0, 0, 2, 2, 3, 3]]), WITHIN_0, FAST).estimates[0]
    assert one.point == pytest.approx(1 / 3)
    assert one.low is not None
    assert one.high is not None
    assert 0 <= one.low < 1 / 3 < one.high <= 1


def test_mean_actions_lie_between_none_and_the_budget() -> None:
    table = stepped([[1, 1, 1, 1, -1, -1], [1, 1, -1, -1, -1, -1]])
    means = [estimand("mean_actions", reacher=w) for w in BOTH]
    few, many = estimate(table, means, FAST).estimates
    # Three tasks, t at 2 degrees of freedom or fewer: wider than the range of 0 to 10 around 4 and 7.
    assert (few.point, few.low) == (4, 0)
    assert (many.point, many.high) == (7, 10)
    # A table without the budget tells it by the longest turn, where that did not arrive.
    told = attrs.evolve(table, budget=None)
    assert estimate(told, means, FAST).estimates[1].high == 10
    arrived_WTS = np.ones_like(table.arrived_WTS)
    untold = attrs.evolve(told, arrived_WTS=arrived_WTS, arrival_WTS=table.actions_WTS)
    boundless = estimate(untold, means, FAST).estimates[1]
    assert boundless.high is not None
    assert boundless.high > 10
