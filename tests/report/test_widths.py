"""Tables and sentences on terminals of any width: lines break at blanks, and no word, name or number is broken."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from kit import report_runs
from kit.command import output_of
from kit.runs import play

from handoff.progress import Console
from handoff.report.sheet import Sheet, SheetCell, SheetRow
from handoff.report.terminal import line, say, show_sheet

NAMES = ("base", "sft-checkpoint-1200", "rl")
TYPES = ["look_at_obj_in_light"] * 4 + ["pick_and_place_with_movable_recep"] * 4
FAST = ("--draws", "100")
FRAME = re.compile("[─━│┃┏┓┗┛┡┩├┤└┘┬┴┼╇┳╈┻+|]+")
COMMANDS = {
    "report": ("report", "three", *FAST),
    "prediction": ("report", "three", "--external", "other", *FAST),
    "estimate": ("estimate", "three", *FAST),
    "side by side": ("estimate", "one=three", "two=three", *FAST),
    "compare": ("compare", "three", "other", *FAST),
    "transport": ("transport", "three", "--external", "other", *FAST),
    "rollouts": ("report", "rollouts"),
    "tax": ("tax", "rollouts#base", "rollouts#rl", *FAST),
    "tax of pairs": ("tax", "rollouts#base", "rollouts#rl", "rollouts#cool", "--more", *FAST),
    "audit": ("audit", "rollouts", "--records-only"),
    "run": ("run", "sokoban", "-p", "a=noisy:0.5", "--cross", "a", "--tasks", "3", "--slots", "1", "--dry-run"),
    "plan": (
        "plan", "--reach", "sft=0.13", "--reach", "rl=0.82", "--solve", "sft=0.55", "--solve", "rl=0.95",
        "--half-width", "0.5", "--max-tasks", "4", "--seeds", "1", "--repeats", "20",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of three checkpoints with long names, and a rollouts run."""
    folder = tmp_path_factory.mktemp("widths")
    for name, prefix in (("three", ""), ("other", "other ")):
        table = report_runs.table(
            NAMES, NAMES,
            lambda w, t, s: w > 0 or (t + s) % 2 == 0,
            lambda w, r, t, s: r == 2 or t % 3 == 0,
            TYPES,
        )  # fmt: skip
        report_runs.write(folder / name, table, prefix=prefix)
    play(
        folder / "rollouts", "rollout", "sokoban", "-p", "base=noisy:0.6", "-p", "rl=noisy:0.2",
        "-p", "cool=noisy:0.4", "--tasks", "6",
        "-n", "8", "--budget", "12",
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def wide() -> dict[str, set[str]]:
    return {}


def words(text: str) -> set[str]:
    return set(FRAME.sub(" ", text).split())


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_word_of_the_wide_form_is_whole_at_every_width(
    command: str, width: int, folder: Path, wide: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if command not in wide:
        wide[command] = words(output_of(*COMMANDS[command], env={"COLUMNS": "1000"}))
    text = output_of(*COMMANDS[command], env={"COLUMNS": str(width)})
    assert wide[command] - words(text) == set()
    # Only a word that is longer than the line makes a line longer, and what is data on one line.
    assert all(len(row) <= width for row in text.splitlines() if FRAME.match(row))


def shown(width: int, sheet: Sheet) -> str:
    text = io.StringIO()
    show_sheet(Console(file=text, width=width), sheet)
    return text.getvalue()


def test_a_table_whose_words_do_not_fit_is_shown_row_by_row() -> None:
    cells = (SheetCell("13.3%", "16/120", "[4.2, 26.0]"), SheetCell("−24.2"))
    sheet = Sheet("Rates", ("task type", "solver_of_the_first", "gap"), (SheetRow("pick_and_place_simple", cells),))
    # Words of 21, 19 and 5 cells, two blanks for each column and four lines between: 55.
    assert "pick_and_place_simple │" in shown(55, sheet)
    assert shown(54, sheet).splitlines() == [
        "Rates", "task type  pick_and_place_simple", "  solver_of_the_first  13.3% (16/120) [4.2, 26.0]",
        "  gap  −24.2",
    ]  # fmt: skip


def test_cells_of_wide_characters_are_measured_as_the_terminal_shows_them() -> None:
    sheet = Sheet("t", ("name", "value"), (SheetRow("漢字漢字", (SheetCell("1"),)),))
    assert "漢字漢字" in shown(20, sheet)  # 8 cells, 5 cells, and 7 of the frame
    assert "│" in shown(20, sheet)
    assert "│" not in shown(19, sheet)


@pytest.mark.parametrize("width", [10, 20, 33])
def test_sentences_keep_their_words_and_the_width(width: int) -> None:
    text, sentence = io.StringIO(), "A reacher stops at the first state exactly 2 actions from success_of_a_long_name."
    say(Console(file=text, width=width), sentence)
    lines = text.getvalue().splitlines()
    assert " ".join(lines) == sentence
    assert all(len(row) <= width or " " not in row for row in lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plan_line_breaks_at_blanks_on_a_terminal_and_nowhere_else(terminal: bool) -> None:
    text, sentence = io.StringIO(), "  reachers rl: 8 trajectories, until exactly 2 from success"
    line(Console(file=text, width=30, force_terminal=terminal), sentence)
    lines = text.getvalue().splitlines()
    assert lines == (["  reachers rl: 8 trajectories,", "until exactly 2 from success"] if terminal else [sentence])
