"""Two one-sided tests against arithmetic, and the commands that make them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit import paper_tables
from kit.command import invoke, output_of
from kit.tables import write_csv
from scipy import stats

from handoff.errors import UsageError
from handoff.estimation.equivalence import equivalence
from handoff.planning.population import from_guesses
from handoff.planning.power import equivalent


def normal(point: float, error: float):
    return lambda level: tuple(point + sign * stats.norm.ppf((1 + level) / 2) * error for sign in (-1, 1))


def test_the_p_value_is_that_of_the_farther_of_two_one_sided_tests() -> None:
    # The residual of "Reach or Solve?": 3.5 points, [-7.2, 14.2] at 95%.
    error = (0.142 + 0.072) / 2 / stats.norm.ppf(0.975)
    made = equivalence(normal(0.035, error), 0.10)
    assert made.p == pytest.approx(stats.norm.sf((0.10 - 0.035) / error), abs=5e-4)
    assert made.p == pytest.approx(0.12, abs=0.005)
    assert not made.shown
    assert str(made).startswith("Not shown to be within 10 points of 0 at 5% (p = 0.11")


def test_a_narrow_interval_inside_the_margin_is_equivalent_and_one_around_its_edge_is_not() -> None:
    assert equivalence(normal(0.0, 0.01), 0.1).shown
    assert str(equivalence(normal(0.0, 0.01), 0.1)) == (
        "Equivalent: within 10 points of 0 at 5% (p < 0.001, two one-sided tests)."
    )
    assert equivalence(normal(0.2, 0.01), 0.1).p == 0.5
    assert equivalence(lambda level: None, 0.1).p is None
    with pytest.raises(UsageError, match="the margin"):
        equivalence(normal(0.0, 0.01), 0.0)


def test_the_command_tests_a_margin_only_where_one_is_given(tmp_path: Path) -> None:
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    for path, table in ((here, paper_tables.unseen()), (there, paper_tables.seen())):
        with path.open("w", newline="") as file:
            write_csv(table, file)
    head, *rows = there.read_text().splitlines()
    there.write_text("\n".join([head, *(f"x{row}" for row in rows)]))
    arguments = ("transport", here, "--external", there, "--draws", "400")
    plain = json.loads(output_of(*arguments, "--json"))
    tested = json.loads(output_of(*arguments, "--margin", "10", "--json"))
    assert "equivalence" not in plain
    # The rule of the interval at 90% and the p value agree.
    ninety = json.loads(output_of(*arguments, "--level", "0.9", "--json"))["estimates"][-1]
    inside = ninety["low"] > -0.1 and ninety["high"] < 0.1
    assert tested["equivalence"]["shown"] == inside == (tested["equivalence"]["p"] <= 0.05)
    assert "two one-sided tests" in output_of(*arguments, "--margin", "10")
    assert invoke("transport", here, "--external", there, "--margin", "-1").exit_code == 2


def test_more_tasks_show_equivalence_more_often() -> None:
    design = from_guesses({"a": 0.3, "b": 0.8}, {(w, r): {"a": 0.5, "b": 0.7}[r] for w in "ab" for r in "ab"}, types=3)
    few, many = (equivalent(design, ("a", "b"), tasks, 4, 0.1, repeats=30) for tasks in (3, 60))
    assert few.power < 0.5 < many.power


def test_planning_for_equivalence_prints_a_curve_and_refuses_a_half_width() -> None:
    guesses = ("--reach", "a=0.3", "--reach", "b=0.8", "--solve", "a=0.5", "--solve", "b=0.7", "--types", "2")
    sizes = ("--max-tasks", "3", "--repeats", "10")
    output = output_of("plan", *guesses, "--equivalence", "60", "--power", "0.5", *sizes)
    assert "equivalence within 60 points, power >= 0.5" in output
    refused = invoke("plan", *guesses, "--equivalence", "10", "--half-width", "0.1", *sizes)
    assert "not for a half-width" in str(refused.exception)
