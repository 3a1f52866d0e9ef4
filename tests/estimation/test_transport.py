"""Transport of the interaction (Eq. 10), and several tables side by side."""

from __future__ import annotations

import json
import math

import attrs
import numpy as np
import pytest
from kit import paper_tables
from kit.bootstrap_draws import counts_of, values_of

from handoff.errors import UsageError
from handoff.estimation.bootstrap import estimate
from handoff.estimation.differences import side_by_side
from handoff.estimation.estimands import estimand
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import joined, plan_of
from handoff.estimation.table import Table
from handoff.estimation.transport import Prediction, Sample, check_compatible, transport

BOTH = ("sft", "rl")
PAIR = ("sft", "rl", "sft", "rl")
CROSS = {"a": "sft", "b": "rl", "c": "sft", "d": "rl"}


def renamed(table: Table) -> Table:
    return attrs.evolve(table, tasks=tuple(f"external {task}" for task in table.tasks))


def small(arrived: dict[str, tuple[int, int]], won: dict[str, tuple[int, int]], prefix: str, slots: int = 4) -> Table:
    """Two tasks a type.  ``arrived``: of 8 episodes, by reacher; ``won``: of the RL-reached ones, by solver."""
    types = tuple(sorted(arrived))
    arrived_WTS = np.zeros((2, 2 * len(types), slots), bool)
    won_WRTS = np.zeros((2, 2, 2 * len(types), slots), bool)
    for g, type in enumerate(types):
        block = slice(2 * g, 2 * g + 2)
        for w in range(2):
            flat = np.arange(2 * slots) < arrived[type][w]
            arrived_WTS[w, block] = flat.reshape(2, slots)
        for r in range(2):
            flat = np.arange(2 * slots) < won[type][r]
            won_WRTS[1, r, block] = flat.reshape(2, slots)
    tasks = tuple(f"{prefix}{t}" for t in range(2 * len(types)))
    strata = tuple(type for type in types for _ in range(2))
    return Table(BOTH, BOTH, tasks, strata, tuple(range(slots)), arrived_WTS, won_WRTS)


def test_prediction_is_the_reach_gap_here_times_the_solve_gap_there_averaged_over_types() -> None:
    target = small({"a": (2, 6), "b": (0, 4)}, {"a": (1, 5), "b": (2, 3)}, "t")
    external = small({"a": (0, 5), "b": (2, 8)}, {"a": (1, 4), "b": (3, 8)}, "x")
    found = transport(Sample("here", target), Sample("there", external), PAIR, Intervals(draws=200))
    # a: (6 - 2)/8 x (4 - 1)/5 = 0.5 x 0.6; b: (4 - 0)/8 x (8 - 3)/(2 + 8) = 0.5 x 0.5.
    points = {(e.estimand.name.removeprefix("transport_"), e.estimand.type): e.point for e in found.estimates.estimates}
    assert points["predicted", "a"] == pytest.approx(0.3)
    assert points["predicted", "b"] == pytest.approx(0.25)
    assert points["predicted", None] == pytest.approx((0.3 + 0.25) / 2)
    # Observed: ((5 - 1) + (3 - 2)) / 16, nothing won on SFT-reached states.
    assert points["observed", None] == pytest.approx(5 / 16)
    assert points["residual", None] == pytest.approx(5 / 16 - 0.275)


def test_draws_of_the_prediction_equal_a_plain_loop_over_both_samples() -> None:
    target, external = paper_tables.unseen(), renamed(paper_tables.seen())
    prediction = Prediction(target, external, PAIR)
    plan = joined(plan_of(target.strata, "paper"), plan_of(external.strata, "paper"))
    values_EB = values_of(prediction, plan, 60, seed=8)
    counts_BT = counts_of(plan, 60, 8)
    for b in range(60):
        predicted = 0.0
        for g in range(6):
            arrivals, wins, reached, episodes = [0, 0], [0, 0], 0, 0
            for t in range(5 * g, 5 * g + 5):
                times = int(counts_BT[b, t])
                episodes += 4 * times
                for w in range(2):
                    arrivals[w] += times * int(target.arrived_WTS[w, t].sum())
                times = int(counts_BT[b, 30 + t])
                for w in range(2):
                    reached += times * int(external.arrived_WTS[w, t].sum())
                    for r in range(2):
                        wins[r] += times * int(external.won_WRTS[w, r, t].sum())
            assert episodes == 20
            gap = (wins[1] - wins[0]) / reached if reached else math.nan
            predicted += (arrivals[1] - arrivals[0]) / episodes * gap / 6
        assert values_EB[-3, b] == pytest.approx(predicted, nan_ok=True, abs=1e-12)


def test_both_splits_are_drawn_independently() -> None:
    table = paper_tables.unseen()
    plan = joined(plan_of(table.strata, "paper"), plan_of(table.strata, "paper"))
    counts_BT = counts_of(plan, 20_000, 0)
    correlation = np.corrcoef(counts_BT[:, :30].T, counts_BT[:, 30:].T)[:30, 30:]
    assert np.abs(correlation).max() < 5 / math.sqrt(20_000)


def test_random_tables_with_the_papers_margins_predict_near_the_printed_20_7_and_3_5_points() -> None:
    rows = []
    for seed in range(40):
        here, there = Sample("here", paper_tables.unseen(seed)), Sample("there", renamed(paper_tables.seen(seed)))
        found = transport(here, there, PAIR, Intervals("paper", 2000)).estimates.estimates
        if found[-1].low is not None and found[-1].high is not None:
            rows.append((found[-3].point, found[-1].point, found[-1].high - found[-1].low))
    predicted, residual, width = 100 * np.median(np.array(rows, float), axis=0)
    # How arrivals fall on types is not printed; one prediction of these varies by some points.
    assert predicted == pytest.approx(20.7, abs=5)
    assert residual == pytest.approx(3.5, abs=5)
    assert width == pytest.approx(14.2 + 7.2, abs=7)


def test_a_type_without_external_states_is_named_and_leaves_the_whole_without_a_prediction() -> None:
    target = small({"a": (2, 6), "b": (0, 4)}, {"a": (1, 5), "b": (2, 3)}, "t")
    external = small({"a": (0, 5), "b": (0, 0)}, {"a": (1, 4), "b": (0, 0)}, "x")
    found = transport(Sample("here", target), Sample("there", external), PAIR, Intervals(draws=200))
    assert found.without_states == ("b",)
    by = {(e.estimand.name, e.estimand.type): e for e in found.estimates.estimates}
    assert by["transport_predicted", "a"].point == pytest.approx(0.3)
    for type in ("b", None):
        lost = by["transport_residual", type]
        assert lost.point is None
        assert lost.reason == "the external split has no states of type b: none of its reachers arrived there"
    assert by["transport_observed", None].point == pytest.approx(5 / 16)
    json.dumps(found.to_json(), allow_nan=False)


def test_a_type_that_the_external_split_lacks_altogether_is_named_too() -> None:
    target = small({"a": (2, 6), "b": (0, 4)}, {"a": (1, 5), "b": (2, 3)}, "t")
    external = small({"a": (0, 5), "c": (1, 4)}, {"a": (1, 4), "c": (0, 2)}, "x")
    found = transport(Sample("here", target), Sample("there", external), PAIR, Intervals(draws=200))
    assert found.without_states == ("b",)


def test_draws_without_the_states_of_a_type_are_left_out_of_the_papers_interval_and_pooled_in_the_default_one() -> None:
    there = renamed(paper_tables.seen())
    arrived_WTS = there.arrived_WTS.copy()
    arrived_WTS[:, 1:5] = False  # one of the five tasks of the first type has all of its states
    arrived_WTS[:, 0] = True
    there = attrs.evolve(
        there, arrived_WTS=arrived_WTS, won_WRTS=there.won_WRTS & arrived_WTS[:, None], arrival_WTS=None,
        actions_WTS=None, bridge_WRTS=None,
    )  # fmt: skip
    samples = Sample("here", paper_tables.unseen()), Sample("there", there)
    for method in ("paper", "default"):
        residual = transport(*samples, PAIR, Intervals(method, 20_000)).estimates.estimates[-1]
        if method == "paper":
            # A draw misses the task with probability 0.8^5 = 32.8%; the s.d. in 20,000 draws is 66.
            assert residual.excluded == pytest.approx(20_000 * 0.8**5, abs=270)
            assert residual.low is None
        else:
            assert residual.excluded == 0
            assert residual.low is not None


SFT = {"spec": "hf:sft", "weights": "aa"}
RL = {"spec": "hf:rl", "weights": "bb"}


def sample(label: str, table: Table, **changes: object) -> Sample:
    return attrs.evolve(Sample(label, table, policies={"sft": SFT, "rl": RL}, settings={"depth": 2}), **changes)


def test_samples_that_share_nothing_but_checkpoints_are_compatible() -> None:
    table = paper_tables.unseen()
    check_compatible(sample("here", table), sample("there", renamed(table)))


def test_a_shared_task_is_refused_and_named() -> None:
    table = paper_tables.unseen()
    other = attrs.evolve(renamed(table), tasks=("task 03", *renamed(table).tasks[1:]))
    with pytest.raises(UsageError, match="here and there share 1 tasks or games, the first being task 03"):
        check_compatible(sample("here", table), sample("there", other))


def test_a_shared_game_digest_is_refused_by_the_name_of_its_task() -> None:
    table = paper_tables.unseen()
    names = {id: f"pick_{t}" for t, id in enumerate(table.tasks)}
    copied = attrs.evolve(renamed(table), tasks=(*renamed(table).tasks[:-1], table.tasks[7]))
    with pytest.raises(UsageError, match=r"the first being pick_7 \(task 07\)"):
        check_compatible(sample("here", table, names=names), sample("there", copied))


def test_a_checkpoint_that_differs_is_refused_with_the_fact_that_differs() -> None:
    table = paper_tables.unseen()
    other = sample("there", renamed(table), policies={"sft": SFT, "rl": {**RL, "weights": "cc"}})
    message = "checkpoint 'rl' is not the same in here and there: weights is 'bb' in here and 'cc' in there"
    with pytest.raises(UsageError, match=message):
        transport(sample("here", table), other, PAIR, Intervals(draws=200))
    check_compatible(sample("here", table), other, ["sft"])
    lacking = sample("there", renamed(table), policies={"sft": {"spec": "hf:sft"}, "rl": RL})
    with pytest.raises(UsageError, match="weights is 'aa' in here and absent in there"):
        check_compatible(sample("here", table), lacking)


def test_another_depth_is_refused() -> None:
    table = paper_tables.unseen()
    with pytest.raises(UsageError, match="depth is 2 in here and 4 in there"):
        check_compatible(sample("here", table), sample("there", renamed(table), settings={"depth": 4}))


# Several tables side by side.


def test_depths_side_by_side_differ_by_paired_intervals() -> None:
    near = paper_tables.unseen()
    lost_WTS = near.arrived_WTS.copy()
    lost_WTS[1, ::3] = False  # at the greater depth RL arrives on fewer tasks
    far = attrs.evolve(near, arrived_WTS=lost_WTS, won_WRTS=near.won_WRTS & lost_WTS[:, None], bridge_WRTS=None)
    found = side_by_side({"D=2": near, "D=4": far}, intervals=Intervals(draws=5000))
    assert found.estimates["D=2"].get("reach", reacher="rl").point == 99 / 120
    by = {dict(e.estimand.arguments)["of"]: e for e in found.differences["D=4"].estimates}
    reach = by["reach(reacher=rl)"]
    assert reach.point == pytest.approx((lost_WTS[1].sum() - 99) / 120)
    assert by["reach(reacher=sft)"].point == 0.0
    assert by["reach(reacher=sft)"].degenerate  # the same in every paired draw
    alone = estimate(far, [estimand("reach", reacher="rl")], Intervals(draws=5000)).estimates[0]
    assert reach.low is not None
    assert reach.high is not None
    assert alone.low is not None
    assert reach.low < reach.point < reach.high < 0
    json.dumps(found.to_json(), allow_nan=False)


def test_tables_of_other_tasks_stand_side_by_side_without_differences() -> None:
    near = paper_tables.unseen()
    found = side_by_side({"here": near, "there": renamed(near)}, intervals=Intervals(draws=200))
    assert found.differences == {}
    assert "other tasks" in found.unpaired["there"]
    assert found.estimates["there"].get("interaction", **CROSS).point == pytest.approx(29 / 120)
