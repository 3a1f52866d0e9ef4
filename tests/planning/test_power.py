"""Planning by simulation, the populations that it draws from, and the command lines of the statistics."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import attrs
import numpy as np
import pytest
from kit import paper_tables
from kit.command import invoke, output_of
from kit.tables import write_csv

from handoff.errors import HandoffError, UsageError
from handoff.estimation.estimands import estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.planning.pairing import learned
from handoff.planning.population import Design, centre, from_guesses, from_pilot, spread_out
from handoff.planning.power import curve, question, simulate

REACH = {"sft": 0.3, "rl": 0.8}
SOLVE = {("sft", "sft"): 0.4, ("sft", "rl"): 0.9, ("rl", "sft"): 0.5, ("rl", "rl"): 0.95}
CROSS = {"a": "sft", "b": "rl", "c": "sft", "d": "rl"}


def guessed(spread: float = 1.0) -> Design:
    return from_guesses(REACH, SOLVE, types=3, spread=spread)


def test_a_population_of_equal_tasks_has_the_guessed_rates_and_their_arithmetic_for_truth() -> None:
    asked = [
        estimand("reach", reacher="rl"),
        estimand("solve", reacher="rl", solver="sft"),
        estimand("interaction", **CROSS),
        estimand("survivor_interaction", **CROSS),
    ]
    truth = guessed(spread=0.0).truth(asked)
    # I = 0.8 (0.95 - 0.5) - 0.3 (0.9 - 0.4) = 0.36 - 0.15; survivor-only: 0.45 - 0.5.
    assert truth == pytest.approx([0.8, 0.5, 0.21, -0.05])


def test_tasks_that_differ_keep_reach_and_raise_solve_where_easy_tasks_are_reached() -> None:
    reach, solve = guessed().truth([estimand("reach", reacher="sft"), estimand("solve", reacher="sft", solver="sft")])
    assert reach == pytest.approx(0.3)
    assert solve > 0.4  # arrival selects easier tasks


def test_the_truth_is_what_a_large_study_finds() -> None:
    design = attrs.evolve(guessed(), tasks_G=(4000,) * 3, slots=4)
    table = design.draw(np.random.default_rng(0))
    arrived, won = table.arrived_WTS, table.won_WRTS
    only = won[1, 1] & ~won[1, 0]
    seen = [arrived[0].mean(), won[0, 0].sum() / arrived[0].sum(), only.sum() / arrived[1].sum()]
    asked = [
        estimand("reach", reacher="sft"),
        estimand("solve", reacher="sft", solver="sft"),
        estimand("won_only", reachers=("rl",), winner="rl", loser="sft"),
    ]
    # 48,000 episodes of 12,000 tasks: standard errors below 0.006.
    assert seen == pytest.approx(list(design.truth(asked)), abs=0.02)


def test_the_centre_of_a_spread_keeps_the_mean() -> None:
    z = np.random.default_rng(1).standard_normal(400_000)
    for mean, sd in ((0.05, 2.0), (0.5, 1.0), (0.97, 0.5)):
        assert float((1 / (1 + np.exp(-(centre(mean, sd) + sd * z)))).mean()) == pytest.approx(mean, abs=0.003)
    with pytest.raises(UsageError, match="strictly between 0 and 1"):
        centre(1.0, 1.0)


def test_full_pairing_makes_a_better_solver_win_wherever_the_worse_one_does() -> None:
    design = attrs.evolve(guessed(), tasks_G=(50,) * 3, slots=4, pairing=1.0)
    won_WRTS = design.draw(np.random.default_rng(0)).won_WRTS
    assert not (won_WRTS[:, 0] & ~won_WRTS[:, 1]).any()


def test_half_width_shrinks_with_the_square_root_of_the_tasks() -> None:
    design, asked = guessed(), question("interaction", guessed())
    few, many = (simulate(design, asked, tasks, 4, repeats=60) for tasks in (8, 32))
    assert few.half_width is not None
    assert many.half_width is not None
    assert few.half_width / many.half_width == pytest.approx(2.0, rel=0.2)
    assert (many.total_tasks, many.trajectories) == (96, 96 * 4 * 2)


def test_the_smallest_size_that_reaches_the_goal_is_found_and_the_one_below_does_not() -> None:
    found = curve(
        guessed(), question("interaction", guessed()), 2, half_width=0.12, repeats=40, intervals=Intervals(draws=400)
    )
    assert found.needed is not None
    by_size = {point.tasks: point for point in found.points}
    best = by_size[found.needed.tasks].half_width
    worse = by_size[found.needed.tasks - 1].half_width
    assert best is not None
    assert worse is not None
    assert best <= 0.12 < worse


def test_power_rises_to_what_is_wanted() -> None:
    found = curve(guessed(), question("reach_gap", guessed()), 1, power=0.9, repeats=40, intervals=Intervals(draws=400))
    assert found.needed is not None
    assert found.needed.power >= 0.9 > found.points[0].power
    again = curve(guessed(), question("reach_gap", guessed()), 1, power=0.9, repeats=40, intervals=Intervals(draws=400))
    assert again == found


def test_a_goal_beyond_the_largest_size_is_not_reached_and_said_so() -> None:
    found = curve(
        guessed(),
        question("interaction", guessed()),
        1,
        half_width=0.01,
        sizes=(2, 3),
        repeats=10,
        intervals=Intervals(draws=200),
    )
    assert found.needed is None
    assert [point.tasks for point in found.points] == [2, 3]


def test_a_pilot_gives_back_the_population_that_it_was_drawn_from() -> None:
    design = attrs.evolve(from_guesses(REACH, SOLVE, types=2, spread=1.2), tasks_G=(300, 300), slots=8)
    fitted = from_pilot(design.draw(np.random.default_rng(3)))
    assert fitted.reach_sd == pytest.approx(1.2, abs=0.2)
    asked = [estimand("reach", reacher="sft"), estimand("reach", reacher="rl")]
    assert list(fitted.truth(asked)) == pytest.approx([0.3, 0.8], abs=0.03)
    assert fitted.slots == 8
    assert fitted.types == ("type 1", "type 2")


def test_a_pilot_without_wins_or_losses_still_makes_a_population() -> None:
    table = paper_tables.unseen()
    ones = np.ones_like(table.won_WRTS)
    every = Table(table.reachers, table.solvers, table.tasks, table.strata, table.slots, ones[:, 0], ones)
    fitted = from_pilot(every)
    assert np.isfinite(fitted.reach_WG).all()
    assert np.isfinite(fitted.solve_WRG).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either a half-width or a power"),
        ({"half_width": 0.1, "power": 0.8}, "either a half-width or a power"),
        ({"half_width": 10.0}, "0.1 is ten points"),
        ({"power": math.nan}, "between 0 and 1"),
    ],
)
def test_a_goal_that_is_none_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        curve(guessed(), question("interaction", guessed()), 4, **options)  # type: ignore[arg-type]


def test_power_for_an_effect_of_zero_is_refused() -> None:
    same = from_guesses({"a": 0.5, "b": 0.5}, {("a", "a"): 0.5, ("a", "b"): 0.5, ("b", "a"): 0.5, ("b", "b"): 0.5})
    with pytest.raises(UsageError, match="make the estimand 0"):
        curve(same, question("reach_gap", same), 4, power=0.8)


def test_guesses_that_miss_a_cell_or_a_reacher_are_named() -> None:
    assert spread_out({"a": 0.5}, {"b": 0.4, "a/b": 0.6}) == ({"a": 0.5}, {("a", "b"): 0.6})
    with pytest.raises(UsageError, match="no guess of Solve for reacher 'b' and solver 'c'"):
        spread_out({"a": 0.5, "b": 0.5}, {"a/c": 0.4})
    with pytest.raises(UsageError, match="a guess of Solve for 'x', but none of its Reach"):
        spread_out({"a": 0.5}, {"x/c": 0.4, "c": 0.3})
    with pytest.raises(UsageError, match="cannot plan for 'recah'; known: interaction"):
        question("recah", guessed())
    with pytest.raises(UsageError, match="needs 'dpo' among sft, rl"):
        question("interaction", guessed(), "sft", "dpo")


# Command lines.


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    seen = paper_tables.seen()
    tables = {
        "unseen": paper_tables.unseen(),
        "seen": attrs.evolve(seen, tasks=tuple(f"seen {task}" for task in seen.tasks)),
    }
    paths = {}
    for name, table in tables.items():
        paths[name] = tmp_path / f"{name}.csv"
        with paths[name].open("w", encoding="utf-8", newline="") as file:
            write_csv(table, file)
    return paths


def test_estimate_prints_every_estimand_as_json_with_point_interval_and_counts(files: dict[str, Path]) -> None:
    result = invoke("estimate", files["unseen"], "--json", "--draws", 1000)
    assert result.exit_code == 0, result.output
    made = json.loads(result.output)
    assert (made["interval"], made["draws"], made["seed"]) == ("rescaled", 1000, 0)
    by = {row["key"]: row for row in made["estimates"]}
    assert by["interaction(a=sft, b=rl, c=sft, d=rl)"]["point"] == pytest.approx(29 / 120)
    for row in made["estimates"]:
        assert row["point"] is not None or row["reason"]
        assert (row["low"] is None) == (row["high"] is None)
        assert row["low"] is not None or row["interval_reason"]
        assert row["ratios"]


def test_estimate_prints_tables_with_the_papers_numbers(files: dict[str, Path]) -> None:
    result = invoke("estimate", files["unseen"], "--interval", "paper", "--draws", 1000)
    assert result.exit_code == 0, result.output
    for text in ("16/120", "99/120", "+24.2", "−12.6", "−36.8", "45/115", "480 endpoint rows", "the paper's bootstrap"):
        assert text in result.output


def test_estimate_puts_tables_side_by_side_with_paired_differences(files: dict[str, Path]) -> None:
    result = invoke("estimate", f"a={files['unseen']}", f"b={files['unseen']}", files["seen"], "--draws", 200, "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.output)
    assert set(made["tables"]) == {"a", "b", str(files["seen"])}
    assert all(row["point"] in (0.0, None) for row in made["differences"]["b"]["estimates"])
    assert list(made["unpaired"]) == [str(files["seen"])]


def test_transport_prints_types_and_residual(files: dict[str, Path]) -> None:
    result = invoke("transport", files["unseen"], "--external", files["seen"], "--draws", 1000, "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)["estimates"]
    whole = {row["name"]: row["point"] for row in rows if row["type"] is None}
    assert whole["transport_residual"] == pytest.approx(whole["transport_observed"] - whole["transport_predicted"])
    shown = invoke("transport", files["unseen"], "--external", files["seen"], "--draws", 1000)
    assert "type 6" in shown.output
    assert "+24.2" in shown.output


def test_plan_prints_a_curve_from_guesses_and_from_a_pilot(files: dict[str, Path]) -> None:
    common = ("--repeats", 10, "--max-tasks", 4, "--half-width", 0.2)
    guesses = ("--reach", "sft=0.13", "--reach", "rl=0.82", "--solve", "sft=0.55", "--solve", "rl=0.95")
    shown = invoke("plan", *guesses, *common)
    assert shown.exit_code == 0, shown.output
    assert "half-width <= 0.2: " in shown.output
    piloted = invoke("plan", "--pilot", files["unseen"], *common, "--seeds", "1,4", "--json")
    assert piloted.exit_code == 0, piloted.output
    curves = json.loads(piloted.output)["curves"]
    assert [one["points"][0]["slots"] for one in curves] == [1, 4]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("estimate", ("none.csv",), "does not exist"),
        ("estimate", ("UNSEEN", "--budgets", "8"), "needs to know after how many actions"),
        ("estimate", ("UNSEEN", "--budgets", "8,x"), "whole numbers with commas"),
        ("estimate", ("UNSEEN", "--order", "sft,dpo"), "no checkpoint is named 'dpo'"),
        ("estimate", ("UNSEEN", "--order", "sft,sft"), "each once"),
        ("estimate", ("a=UNSEEN", "a=UNSEEN"), "two tables are called 'a'"),
        ("transport", ("UNSEEN", "--external", "UNSEEN"), "share 30 tasks"),
        ("transport", ("UNSEEN", "--external", "SEEN", "--pair", "sft"), "a contrast has two checkpoints"),
        ("transport", ("UNSEEN", "--external", "SEEN", "--pair", "sft,x"), "no reacher is named 'x'"),
        ("plan", ("--half-width", "0.1"), "give guesses"),
        ("plan", ("--reach", "sft=1.2", "--solve", "a=0.5", "--power", "0.8"), "a rate between 0 and 1"),
        ("plan", ("--reach", "sft", "--solve", "a=0.5", "--power", "0.8"), "NAME=RATE"),
    ],
)
def test_a_bad_request_is_one_sentence(
    files: dict[str, Path], command: str, arguments: tuple[str, ...], message: str
) -> None:
    filled = [text.replace("UNSEEN", str(files["unseen"])).replace("SEEN", str(files["seen"])) for text in arguments]
    result = invoke(command, *filled)
    assert isinstance(result.exception, HandoffError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


def test_csv_tables_are_plain_enough_for_any_reader(files: dict[str, Path]) -> None:
    with files["unseen"].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 480
    assert sum(int(row["arrived"]) for row in rows if row["reacher"] == "rl" and row["solver"] == "sft") == 99


def test_the_pairing_of_a_pilot_is_learned_whatever_its_tasks_are() -> None:
    for pairing in (0.0, 0.5, 1.0):
        truth = attrs.evolve(
            from_guesses({"a": 0.5, "b": 0.6}, {(w, r): 0.6 for w in "ab" for r in "ab"}, types=4, pairing=pairing),
            tasks_G=(60,) * 4, slots=6,
        )  # fmt: skip
        pilot = truth.draw(np.random.default_rng([3, round(10 * pairing)]))
        told = learned(pilot, from_pilot(pilot))
        assert told.learned
        assert told.error is not None
        assert abs(told.share - pairing) <= 4 * told.error + 0.1
        assert told.error < 0.1


def test_a_pilot_with_one_slot_per_task_does_not_tell_the_pairing() -> None:
    pilot = attrs.evolve(
        from_guesses({"a": 0.5, "b": 0.6}, {(w, r): 0.6 for w in "ab" for r in "ab"}), tasks_G=(5,) * 6
    )
    table = pilot.draw(np.random.default_rng(1))
    told = learned(table, from_pilot(table))
    assert (told.share, told.learned, told.error) == (0.5, False, None)
    assert "too small to tell" in str(told)


def test_two_arms_that_act_as_one_are_fully_paired_and_opposite_ones_not_at_all() -> None:
    # One task, four slots, rates of one half: the products of deviations add up to 4 x 1/4 of a possible 3 x 1/4.
    arrived_WTS = np.array([[[True, True, False, False]] * 4] * 2)
    table = Table(tuple("ab"), tuple("ab"), tuple("stuv"), ("x",) * 4, (0, 1, 2, 3), arrived_WTS,
                  np.zeros((2, 2, 4, 4), bool))  # fmt: skip
    assert learned(table, from_pilot(table)).share == 1
    arrived_WTS = np.array([[[True, True, False, False]] * 4, [[False, False, True, True]] * 4])
    assert learned(attrs.evolve(table, arrived_WTS=arrived_WTS), from_pilot(table)).share == 0


def test_the_plan_of_a_pilot_says_which_pairing_it_used(tmp_path: Path) -> None:
    run = tmp_path / "run"
    policies = ("-p", "a=noisy:0.5", "-p", "b=noisy:0.2", "--cross", "a,b")
    output_of("run", "sokoban", *policies, "--tasks", "6", "--slots", "4", "--out", run, "-q", "--workers", "0")
    arguments = ("plan", "--pilot", run, "--half-width", "0.4", "--repeats", "10", "--max-tasks", "3")
    assert re.search(r"^pairing [01]\.\d\d, (learned|assumed)", output_of(*arguments))
    assert "pairing" not in json.loads(output_of(*arguments, "--pairing", "0.5", "--json"))
    assert set(json.loads(output_of(*arguments, "--json"))["pairing"]) == {"share", "error", "learned"}
