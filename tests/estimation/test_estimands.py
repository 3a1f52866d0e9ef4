"""Every exact number that the paper prints, from its counts; and what a table must refuse."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from kit import paper_tables
from kit.tables import write_csv

from handoff.errors import DataError, UsageError
from handoff.estimation.bootstrap import Estimates, estimate
from handoff.estimation.estimands import DECLARED, Estimand, arrival_curve, estimand, pairs, standard
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.estimation.table_csv import read_csv
from handoff.protocols.frontier.records import Endpoint, Trajectory
from handoff.protocols.frontier.table import table_of
from handoff.records import Certificate, Decision, Record, Step, Task

BOTH = ("sft", "rl")
CROSS = {"a": "sft", "b": "rl", "c": "sft", "d": "rl"}


def all_of(table: Table) -> Estimates:
    return estimate(table, intervals=Intervals(draws=200))


@pytest.fixture(scope="module")
def unseen() -> Estimates:
    return all_of(paper_tables.unseen())


@pytest.fixture(scope="module")
def seen() -> Estimates:
    return all_of(paper_tables.seen())


def percent(estimates: Estimates, name: str, **arguments: object) -> str:
    point = estimates.get(name, **arguments).point  # type: ignore[arg-type]
    assert point is not None
    return f"{100 * point:.1f}"


def counts(estimates: Estimates, name: str, **arguments: object) -> tuple[int, int]:
    (ratio,) = estimates.get(name, **arguments).ratios  # type: ignore[arg-type]
    return ratio.numerator, ratio.denominator


@pytest.mark.parametrize(
    ("name", "arguments", "printed", "of"),
    [
        ("reach", {"reacher": "sft"}, "13.3", (16, 120)),
        ("reach", {"reacher": "rl"}, "82.5", (99, 120)),
        ("solve", {"reacher": "sft", "solver": "sft"}, "43.8", (7, 16)),
        ("solve", {"reacher": "sft", "solver": "rl"}, "93.8", (15, 16)),
        ("solve", {"reacher": "rl", "solver": "sft"}, "58.6", (58, 99)),
        ("solve", {"reacher": "rl", "solver": "rl"}, "96.0", (95, 99)),
        ("completion", {"reachers": BOTH, "solver": "sft"}, "56.5", (65, 115)),
        ("completion", {"reachers": BOTH, "solver": "rl"}, "95.7", (110, 115)),
        ("won_only", {"reachers": BOTH, "winner": "rl", "loser": "sft"}, "39.1", (45, 115)),
        ("won_only", {"reachers": BOTH, "winner": "sft", "loser": "rl"}, "0.0", (0, 115)),
        ("bridge", {"reachers": BOTH, "solver": "sft"}, "72.2", (83, 115)),
        ("bridge", {"reachers": BOTH, "solver": "rl"}, "97.4", (112, 115)),
        ("finish", {"reachers": BOTH, "solver": "sft"}, "78.3", (65, 83)),
        ("finish", {"reachers": BOTH, "solver": "rl"}, "98.2", (110, 112)),
        ("endpoint", {"reacher": "sft", "solver": "sft"}, "5.8", (7, 120)),
        ("endpoint", {"reacher": "sft", "solver": "rl"}, "12.5", (15, 120)),
        ("endpoint", {"reacher": "rl", "solver": "sft"}, "48.3", (58, 120)),
        ("endpoint", {"reacher": "rl", "solver": "rl"}, "79.2", (95, 120)),
    ],
)
def test_unseen_split_rates_come_out_of_their_counts(
    unseen: Estimates, name: str, arguments: dict[str, object], printed: str, of: tuple[int, int]
) -> None:
    assert counts(unseen, name, **arguments) == of
    assert percent(unseen, name, **arguments) == printed


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("interaction", CROSS, "24.2"),
        ("survivor_interaction", CROSS, "-12.6"),
        ("survivor_minus_interaction", CROSS, "-36.8"),
        ("arrival_term", CROSS, "25.9"),
        ("state_term", CROSS, "-1.7"),
        ("solver_effect", {"reacher": "sft", "a": "sft", "b": "rl"}, "50.0"),
        ("solver_effect", {"reacher": "rl", "a": "sft", "b": "rl"}, "37.4"),
        ("bridge_gap", {"reachers": BOTH, "a": "sft", "b": "rl"}, "25.2"),
        ("finish_gap", {"reachers": BOTH, "a": "sft", "b": "rl"}, "19.9"),
    ],
)
def test_unseen_split_contrasts_come_out_of_their_counts(
    unseen: Estimates, name: str, arguments: dict[str, object], printed: str
) -> None:
    assert percent(unseen, name, **arguments) == printed


@pytest.mark.parametrize(
    ("name", "arguments", "printed", "of"),
    [
        ("reach", {"reacher": "sft"}, "15.8", (19, 120)),
        ("reach", {"reacher": "rl"}, "81.7", (98, 120)),
        ("completion", {"reachers": BOTH, "solver": "sft"}, "49.6", (58, 117)),
        ("completion", {"reachers": BOTH, "solver": "rl"}, "76.1", (89, 117)),
        ("won_only", {"reachers": BOTH, "winner": "rl", "loser": "sft"}, "35.0", (41, 117)),
        ("won_only", {"reachers": BOTH, "winner": "sft", "loser": "rl"}, "8.5", (10, 117)),
        ("bridge", {"reachers": BOTH, "solver": "sft"}, "72.6", (85, 117)),
        ("bridge", {"reachers": BOTH, "solver": "rl"}, "92.3", (108, 117)),
        ("finish", {"reachers": BOTH, "solver": "sft"}, "68.2", (58, 85)),
        ("finish", {"reachers": BOTH, "solver": "rl"}, "82.4", (89, 108)),
    ],
)
def test_seen_split_rates_come_out_of_their_counts(
    seen: Estimates, name: str, arguments: dict[str, object], printed: str, of: tuple[int, int]
) -> None:
    assert counts(seen, name, **arguments) == of
    assert percent(seen, name, **arguments) == printed


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("interaction", CROSS, "17.5"),
        ("arrival_term", CROSS, "17.5"),
        ("state_term", CROSS, "0.0"),
        ("reach_gap", {"a": "sft", "b": "rl"}, "65.8"),
        ("completion_gap", {"reachers": BOTH, "a": "sft", "b": "rl"}, "26.5"),
    ],
)
def test_seen_split_contrasts_come_out_of_their_counts(
    seen: Estimates, name: str, arguments: dict[str, object], printed: str
) -> None:
    assert percent(seen, name, **arguments) == printed


def recorded_history(wins: dict[tuple[str, str], int]) -> Table:
    """180 tasks, one seed, every history handed over (arrived throughout): ``wins`` per (reacher, solver)."""
    won_WRTS = np.zeros((2, 2, 180, 1), bool)
    for (reacher, solver), number in wins.items():
        won_WRTS[BOTH.index(reacher), BOTH.index(solver), :number] = True
    tasks = tuple(f"{t:03d}" for t in range(180))
    strata = ("easy",) * 60 + ("hard",) * 60 + ("medium",) * 60
    return Table(BOTH, BOTH, tasks, strata, (0,), np.ones((2, 180, 1), bool), won_WRTS)


def test_recorded_history_at_7b_has_an_interaction_of_13_tasks_in_180() -> None:
    # 29.4% = 53/180 and 38.9% = 70/180; 13/180 = 7.22 points, so the other two cells differ by 123 + 13 = 136 wins.
    table = recorded_history({("sft", "rl"): 53, ("rl", "sft"): 70, ("sft", "sft"): 45, ("rl", "rl"): 91})
    made = all_of(table)
    assert percent(made, "endpoint", reacher="sft", solver="rl") == "29.4"
    assert percent(made, "endpoint", reacher="rl", solver="sft") == "38.9"
    point = made.get("interaction", **CROSS).point  # type: ignore[arg-type]
    assert f"{100 * point:.2f}" == "7.22"
    assert table.rows == 720


def test_recorded_history_at_1_5b_ranks_the_two_mixed_arms_the_other_way() -> None:
    # 14.4% = 26/180 and 7.8% = 14/180.
    made = all_of(recorded_history({("sft", "rl"): 26, ("rl", "sft"): 14}))
    assert percent(made, "endpoint", reacher="sft", solver="rl") == "14.4"
    assert percent(made, "endpoint", reacher="rl", solver="sft") == "7.8"


@pytest.mark.parametrize("seed", range(5))
def test_equations_2_and_9_are_identities_on_random_tables(seed: int) -> None:
    made = all_of(paper_tables.unseen(seed, spread=2.0))

    def value(name: str, **arguments: object) -> float:
        point = made.get(name, **arguments).point  # type: ignore[arg-type]
        assert point is not None
        return point

    for w, r in itertools.product(BOTH, BOTH):
        cell = {"reacher": w, "solver": r}
        assert value("endpoint", **cell) == pytest.approx(value("reach", reacher=w) * value("solve", **cell))
    split = value("arrival_term", **CROSS) + value("state_term", **CROSS)
    assert split == pytest.approx(value("interaction", **CROSS))
    survivor = value("survivor_interaction", **CROSS) - value("interaction", **CROSS)
    assert survivor == pytest.approx(value("survivor_minus_interaction", **CROSS))
    for r in BOTH:
        pooled = {"reachers": BOTH, "solver": r}
        assert value("completion", **pooled) == pytest.approx(value("bridge", **pooled) * value("finish", **pooled))


def test_types_add_up_to_the_whole_when_they_are_balanced() -> None:
    table = paper_tables.unseen()
    made = all_of(table)
    by_type = [made.get("interaction", type=type, **CROSS).point for type in table.types]  # type: ignore[arg-type]
    assert len(by_type) == 6
    assert np.mean(by_type) == pytest.approx(29 / 120)  # type: ignore[arg-type]


def ladder(names: tuple[str, ...]) -> Table:
    rng = np.random.default_rng(3)
    arrived_WTS = rng.random((len(names), 12, 2)) < np.linspace(0.3, 0.9, len(names))[:, None, None]
    wins = rng.random((len(names), len(names), 12, 2)) < np.linspace(0.4, 0.9, len(names))[None, :, None, None]
    return Table(
        names, names, tuple(f"{t:02d}" for t in range(12)), ("a",) * 6 + ("b",) * 6, (0, 1), arrived_WTS,
        wins & arrived_WTS[:, None],
    )  # fmt: skip


def test_a_ladder_of_four_checkpoints_has_six_contrasts_in_the_order_asked_for() -> None:
    table = ladder(("rl", "base", "dpo", "sft"))
    order = ("base", "sft", "dpo", "rl")
    wanted = [("base", "sft"), ("base", "dpo"), ("base", "rl"), ("sft", "dpo"), ("sft", "rl"), ("dpo", "rl")]
    assert pairs(table, order) == wanted
    listed = [e for e in standard(table, order) if e.name == "interaction" and e.type is None]
    assert [(dict(e.arguments)["a"], dict(e.arguments)["b"]) for e in listed] == wanted
    forward = estimate(
        table, [estimand("interaction", a="base", b="rl", c="base", d="rl")], intervals=Intervals(draws=100)
    )
    backward = estimate(table, [estimand("reach_gap", a="rl", b="base")], intervals=Intervals(draws=100))
    assert forward.estimates[0].point is not None
    gap = table.arrived_WTS[1].mean() - table.arrived_WTS[0].mean()
    assert backward.estimates[0].point == pytest.approx(gap)


def test_reachers_and_solvers_may_be_different_checkpoints() -> None:
    table = ladder(("a", "b"))
    other = Table(("w1", "w2"), ("r1", "r2"), table.tasks, table.strata, table.slots, table.arrived_WTS, table.won_WRTS)
    assert pairs(other) == []
    names = {str(e) for e in standard(other)}
    assert "interaction(a=w1, b=w2, c=r1, d=r2)" in names


def test_one_solver_alone_has_no_contrast_but_all_its_rates() -> None:
    table = ladder(("a", "b"))
    alone = Table(("a", "b"), ("a",), table.tasks, table.strata, table.slots, table.arrived_WTS, table.won_WRTS[:, :1])
    made = {e.name for e in standard(alone)}
    assert {"reach", "reach_gap", "solve", "endpoint", "reacher_effect"} <= made
    assert not made & {"interaction", "solver_effect", "endpoint_gain"}


def timed() -> Table:
    """Two tasks, two seeds; sft arrives after 20 actions once, rl after 3, 8, 9 and never.  Budget 48."""
    arrival_WTS = np.array([[[20, -1], [-1, -1]], [[3, 8], [9, -1]]])
    actions_WTS = np.where(arrival_WTS < 0, 48, arrival_WTS)
    return Table(
        BOTH, (), ("x", "y"), ("t", "t"), (0, 1), arrival_WTS >= 0, np.zeros((2, 0, 2, 2), bool),
        arrival_WTS=arrival_WTS, actions_WTS=actions_WTS, budget=48,
    )  # fmt: skip


def test_arrival_curve_and_budgets_count_arrivals_so_far() -> None:
    made = all_of(timed())
    shares = [made.get("reach_within", reacher="rl", steps=t).point for t in (8, 16, 48)]
    assert shares == [0.5, 0.75, 0.75]  # 3 and 8; then 9 too
    # RL at 8 against SFT at 48: 2/4 - 1/4.
    assert made.get("reach_within_gap", a="sft", a_steps=48, b="rl", b_steps=8).point == 0.25
    assert made.get("mean_actions", reacher="rl").point == (3 + 8 + 9 + 48) / 4
    curve = estimate(timed(), arrival_curve(timed()), intervals=Intervals(draws=100))
    assert len(curve.estimates) == 2 * 49
    points = [found.point for found in curve.estimates[49:]]
    assert points == [0] * 3 + [0.25] * 5 + [0.5] + [0.75] * 40


def test_a_budget_beyond_what_was_run_is_refused() -> None:
    with pytest.raises(UsageError, match="49 is outside what was observed: 0 to 48"):
        standard(timed(), budgets=(8, 49))


def test_an_empty_denominator_is_null_with_its_reason_and_never_zero() -> None:
    table = paper_tables.unseen()
    arrived_WTS = table.arrived_WTS.copy()
    arrived_WTS[0] = False
    empty = Table(
        BOTH, BOTH, table.tasks, table.strata, table.slots, arrived_WTS, table.won_WRTS & arrived_WTS[:, None]
    )
    made = all_of(empty)
    for name, arguments in (("solve", {"reacher": "sft", "solver": "rl"}), ("survivor_interaction", CROSS)):
        found = made.get(name, **arguments)  # type: ignore[arg-type]
        assert found.point is None
        assert found.low is None
        assert found.reason is not None
        assert "arrived(sft) is 0" in found.reason
    found = made.get("endpoint", reacher="sft", solver="rl")
    assert (found.point, found.ratios[0].numerator, found.ratios[0].denominator) == (0.0, 0, 120)


def test_json_holds_counts_and_no_nan_for_any_estimand() -> None:
    text = json.dumps(all_of(paper_tables.unseen()).to_json(), allow_nan=False)
    rows = {row["key"]: row for row in json.loads(text)["estimates"]}
    row = rows["solve(reacher=sft, solver=rl)"]
    assert (row["numerator"], row["denominator"], row["arguments"]) == (15, 16, {"reacher": "sft", "solver": "rl"})
    interaction = rows["interaction(a=sft, b=rl, c=sft, d=rl)"]
    assert [(r["numerator"], r["denominator"]) for r in interaction["ratios"]] == [
        (95, 120), (58, 120), (15, 120), (7, 120),
    ]  # fmt: skip


def test_every_estimand_names_its_source() -> None:
    for name, declaration in DECLARED.items():
        if name != "difference":
            words = ("Eq.", "section", "Table", "Figure", "Appendix", "full population")
            assert any(word in declaration.equation for word in words)


def test_a_rate_is_one_ratio_and_a_contrast_is_bounded_by_its_limit() -> None:
    for one in all_of(timed()).estimates:
        assert (one.estimand.kind == "contrast") == (len(one.ratios) > 1)
        assert one.point is None or abs(one.point) <= one.estimand.limit
        if one.estimand.kind == "rate":
            assert one.point is None or 0 <= one.point <= 1


@pytest.mark.parametrize(
    ("one", "label"),
    [
        (estimand("reach", reacher="rl"), "Reach, rl"),
        (estimand("solve", reacher="sft", solver="rl"), "Solve, sft then rl"),
        (estimand("reach_within", reacher="rl", steps=8), "Reach within 8, rl"),
        (
            estimand("reach_within_gap", a="sft", a_steps=8, b="rl", b_steps=16),
            "Reach gap, sft within 8 → rl within 16",
        ),
        (estimand("won_only", reachers=BOTH, winner="rl", loser="sft"), "won by rl, not sft"),
        (estimand("reacher_effect", solver="rl", a="sft", b="rl"), "endpoint effect of sft → rl before rl"),
        (estimand("interaction", **CROSS), "interaction, sft → rl"),
        (estimand("interaction", a="x", b="y", c="sft", d="rl"), "interaction, x → y × sft → rl"),
        (estimand("reach", reacher="{odd}"), "Reach, {odd}"),
    ],
)
def test_an_estimand_has_one_label(one: Estimand, label: str) -> None:
    assert one.label == label


def test_an_unknown_estimand_or_checkpoint_is_named() -> None:
    with pytest.raises(UsageError, match="'raech'"):
        estimand("raech", reacher="sft")
    with pytest.raises(UsageError, match="no reacher is named 'dpo'; the table has sft, rl"):
        estimate(paper_tables.unseen(), [estimand("reach", reacher="dpo")])


# The table from records and from CSV.

RECORD = Record("room", ("look",), 0.0, False, False)
NOWHERE = Certificate(2, False, None, (1, 1))
FRONTIER = Certificate(2, True, 2, (1, 1), ("look",), ("look", "look"))


def trajectory(task: str, slot: int, reacher: str, arrival: int | None, steps: int) -> Trajectory:
    decision = Decision("look", "look", "parsed", 0, "")
    taken = tuple(Step(decision, RECORD, FRONTIER if n + 1 == arrival else NOWHERE) for n in range(steps))
    outcome = "budget" if arrival is None else "arrived"
    return Trajectory(task, slot, reacher, 0, RECORD, NOWHERE, taken, arrival, outcome)


def records() -> tuple[list[Task], list[Trajectory], list[Endpoint]]:
    tasks = [Task("t2", "two", "a", "s"), Task("t1", "one", "b", "s")]
    runs, ends = [], []
    for task, slot, reacher in itertools.product(("t1", "t2"), (0, 1), BOTH):
        arrives = reacher == "rl" or (task, slot) == ("t2", 1)
        runs.append(trajectory(task, slot, reacher, 3 if arrives else None, 3 if arrives else 5))
        for solver in BOTH:
            won = arrives and solver == "rl"
            ends.append(Endpoint(task, slot, reacher, solver, arrives, won, won if arrives else None))
    return tasks, runs, ends


def test_a_table_from_records_is_sorted_by_type_and_keeps_every_axis() -> None:
    table = table_of(*records(), budget=5)
    assert table.tasks == ("t2", "t1")
    assert table.strata == ("a", "b")
    assert (table.reachers, table.solvers, table.slots, table.rows) == (BOTH, BOTH, (0, 1), 16)
    assert table.arrived_WTS.tolist() == [[[False, True], [False, False]], [[True, True], [True, True]]]
    assert table.arrival_WTS is not None
    assert table.arrival_WTS.tolist() == [[[-1, 3], [-1, -1]], [[3, 3], [3, 3]]]
    assert table.actions_WTS is not None
    assert table.actions_WTS[0].tolist() == [[5, 3], [5, 5]]
    assert table.won_WRTS[:, 0].sum() == 0
    assert table.won_WRTS[:, 1].sum() == table.arrived_WTS.sum() == 5


def test_records_that_are_missing_doubled_or_contradictory_are_refused() -> None:
    tasks, runs, ends = records()
    with pytest.raises(DataError, match="no trajectory of task t2, seed 0, reacher sft"):
        table_of(tasks, runs[:4] + runs[5:], ends)
    with pytest.raises(DataError, match="no endpoint of task t1, seed 1, reacher rl, solver rl"):
        table_of(tasks, runs, ends[:7] + ends[8:])
    with pytest.raises(DataError, match="two endpoint records of one cell: t1, 0, sft, sft"):
        table_of(tasks, runs, [*ends, ends[0]])
    with pytest.raises(DataError, match="disagree on whether it arrived"):
        table_of(tasks, runs, [Endpoint("t1", 0, "sft", "sft", True, False, False), *ends[1:]])
    with pytest.raises(DataError, match="t3, which is not among"):
        table_of(tasks, [*runs, trajectory("t3", 0, "rl", None, 1)], ends)


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


HEADER = "task,type,seed,reacher,solver,arrived,won\n"
GOOD = HEADER + "".join(
    f"t{t},{'ab'[t]},{s},{w},{r},{int(w == 'rl')},{int(w == r == 'rl')}\n"
    for t, s, w, r in itertools.product((0, 1), (0, 1), BOTH, BOTH)
)


def test_a_csv_is_read_whatever_the_order_of_rows_and_columns_and_other_columns_are_ignored(tmp_path: Path) -> None:
    plain = read_csv(write(tmp_path / "a.csv", GOOD))
    lines = GOOD.splitlines()
    turned = [",".join([*reversed(line.split(",")), "x"]) for line in [lines[0], *lines[:0:-1]]]
    other = read_csv(write(tmp_path / "b.csv", "﻿" + "\r\n".join(turned) + "\r\n\r\n"))
    assert (plain.tasks, plain.strata, plain.slots) == (other.tasks, other.strata, other.slots)
    assert plain.reachers == other.reachers[::-1] == BOTH
    assert np.array_equal(plain.won_WRTS, other.won_WRTS[::-1, ::-1])
    assert plain.won_WRTS[1, 1].all()


def test_a_table_survives_the_round_trip_through_csv(tmp_path: Path) -> None:
    for table in (paper_tables.unseen(), table_of(*records(), budget=5)):
        text = io.StringIO()
        write_csv(table, text)
        again = read_csv(write(tmp_path / "t.csv", text.getvalue()))
        for name in ("reachers", "solvers", "tasks", "strata", "slots"):
            assert getattr(again, name) == getattr(table, name)
        for name in ("arrived_WTS", "won_WRTS", "bridge_WRTS", "arrival_WTS", "actions_WTS"):
            before, after = getattr(table, name), getattr(again, name)
            assert (before is None and after is None) or np.array_equal(before, after)


def test_tasks_may_name_their_seeds_differently_but_need_equally_many(tmp_path: Path) -> None:
    renamed = GOOD.replace("t1,b,0,", "t1,b,17,").replace("t1,b,1,", "t1,b,x,")
    assert read_csv(write(tmp_path / "a.csv", renamed)).slots == (0, 1)
    fewer = "".join(line for line in GOOD.splitlines(True) if not line.startswith("t1,b,1,"))
    with pytest.raises(DataError, match=r"task t1 has 1 seeds and others have 2|task t0 has 2 seeds and others have 1"):
        read_csv(write(tmp_path / "b.csv", fewer))


ROW = "t0,a,0,sft,sft,0,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column task, type, seed, reacher, solver, arrived, won"),
        (HEADER, "a header but no rows"),
        (GOOD.replace("won", "wins", 1), "line 1: no column won"),
        (GOOD.replace("type", "won", 1), "line 1: no column type"),
        (GOOD.replace("task,type", "task,type,task", 1), "line 1: column task occurs twice"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,0\n"), "line 2: 6 fields, but the header has 7"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,2,0\n"), "line 2: arrived is '2'; write 0 or 1"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,nan,0\n"), "line 2: arrived is 'nan'; write 0 or 1"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,0,0.5\n"), "line 2: won is '0.5'; write 0 or 1"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,0,\n"), "line 2: won is ''; write 0 or 1"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,0,1\n"), "line 2: won is 1 where arrived is 0"),
        (GOOD.replace(ROW, "t0,a,0,,sft,0,0\n"), "line 2: reacher is empty"),
        (GOOD.replace(ROW, "t0,a,0,sft,sft,1,0\n"), "line 3: arrived of task t0, seed 0, reacher sft contradicts"),
        (GOOD.replace(ROW, "t0,b,0,sft,sft,0,0\n"), "line 3: task t0 has type a here and type b in line 2"),
        (GOOD + ROW, "line 18: task t0, seed 0, reacher sft, solver sft occurs already in line 2"),
        (GOOD.replace(ROW, ""), "no row for task t0, seed 0, reacher sft, solver sft (1 of 16 cells"),
        (GOOD.replace(ROW, 't0,"a,0,sft,sft,0,0\n'), "not CSV"),
        (GOOD.replace("t0", "t\0", 1), "line 2: "),
        (GOOD.replace("t0", "t\x1b[31m", 1), "line 2: task is 't\\x1b[31m', which has control characters"),
    ],
)  # fmt: skip
def test_a_csv_that_is_no_complete_crossing_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_csv(write(tmp_path / "t.csv", text))
    assert message in str(caught.value)


def test_a_csv_that_is_no_text_or_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match="cannot read"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(DataError, match="cannot read"):
        read_csv(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("arrival", "3", "arrival is 3 where arrived is 0"), ("arrival", "x", "arrival is 'x'"),
     ("bridge", "1", "bridge is 1 where arrived is 0"), ("actions", "-2", "actions is '-2'")],
)  # fmt: skip
def test_an_optional_column_that_contradicts_the_row_is_refused(
    tmp_path, column: str, value: str, message: str
) -> None:  # type: ignore[no-untyped-def]
    text = f"task,type,seed,reacher,solver,arrived,won,{column}\nt,a,0,w,r,0,0,{value}\n"
    with pytest.raises(DataError, match="line 2") as caught:
        read_csv(write(tmp_path / "t.csv", text))
    assert message in str(caught.value)


def test_arrays_that_contradict_each_other_make_no_table() -> None:
    good = ladder(("a", "b"))
    names = (good.reachers, good.solvers, good.tasks, good.strata, good.slots)
    won_WRTS = good.won_WRTS.copy()
    won_WRTS[:, :, :, :] = True
    with pytest.raises(DataError, match="won without having arrived: task"):
        Table(*names, good.arrived_WTS, won_WRTS)
    with pytest.raises(DataError, match="won has shape"):
        Table(*names, good.arrived_WTS, good.won_WRTS[:1])
    with pytest.raises(DataError, match="must be an array of bool"):
        Table(*names, good.arrived_WTS.astype(int), good.won_WRTS)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the table is empty"):
        Table(good.reachers, good.solvers, (), (), good.slots, good.arrived_WTS[:, :0], good.won_WRTS[:, :, :0])
