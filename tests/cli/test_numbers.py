"""Numbers from outside have a range, and whatever is out of it is one sentence that names it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from kit.command import output_of
from kit.refusals import refusal

from handoff.cli import COMMANDS, group
from handoff.cli.numbers import Real, Whole
from handoff.errors import DataError, UsageError
from handoff.policies import ModelOptions
from handoff.protocols import study_file
from handoff.protocols.frontier import FRONTIER

HUGE = "9" * 5000  # more digits than Python reads


def parameters() -> list[tuple[str, click.Option]]:
    """Every option of every command, plug-ins' groups included."""
    context = click.Context(group)
    found, waiting = [], [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    while waiting:
        name, command = waiting.pop()
        assert command is not None
        if isinstance(command, click.Group):
            waiting += [(f"{name} {inner}", one) for inner, one in command.commands.items()]
        found += [(name, option) for option in command.params if isinstance(option, click.Option)]
    return found


def test_every_option_with_a_number_has_a_range() -> None:
    assert {name for name, _ in parameters()} >= {*COMMANDS, "distance", "games generate"} - {"envs"}
    loose = [
        f"{name} {option.opts[0]}"
        for name, option in parameters()
        if not isinstance(option.type, Whole | Real)
        and (
            isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
            or type(option.default) in (int, float)
        )
    ]
    assert loose == []


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "-1", HUGE, "-" + HUGE, "", "x", "٣", "1_0e"])
def test_no_option_takes_a_number_that_is_none_or_out_of_range(text: str) -> None:
    checked = 0
    for name, option in parameters():
        if isinstance(option.type, Whole | Real):
            with pytest.raises(click.BadParameter) as caught:
                option.type.convert(text, option, None)
            assert len(str(caught.value)) < 200, name
            checked += 1
    assert checked > 50


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Whole(0, 2**63 - 1), "9223372036854775807", 2**63 - 1),
        (Whole(0, 5), " 5 ", 5),
        (Real(0, 1), "1", 1.0),
        (Real(0, 1, open=True), "1e-9", 1e-9),
    ],
)
def test_what_is_in_range_is_taken_to_the_end(kind: click.ParamType, text: str, value: float) -> None:
    assert kind.convert(text, None, None) == value


def test_an_open_range_leaves_its_ends_out() -> None:
    for text in ("0", "1"):
        with pytest.raises(click.BadParameter, match="than"):
            Real(0, 1, open=True).convert(text, None, None)


GUESSES = ["--reach", "a=0.5", "--reach", "b=0.6", "--solve", "a=0.5", "--solve", "b=0.7", "--half-width", "0.1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tax", "B", "P", "--seed", "-1"], "'--seed': -1 is not in the range; ask for at least 0"),
        (["tax", "B", "P", "--draws", "99999999999"], "ask for at most 1,000,000"),
        (["tax", "B", "P", "--pilot", "0"], "'--pilot': 0 is not in the range"),
        (["tax", "B", "P", "--pilot", "1"], "routing needs 1 < pilot"),
        (["tax", "H", "H"], "does not fit into memory: choose a smaller --budget"),
        (["tax", "X", "X"], "line 2: n is 1000000000000, more than 100,000,000"),
        (["plan", *GUESSES, "--spread", "nan"], "'nan' is not a number"),
        (["plan", *GUESSES, "--seeds", "1000000"], "write --seeds as numbers from 1 to 10,000"),
        (["plan", *GUESSES, "--seeds", "10000", "--types", "1000"], "too large to simulate"),
        (["plan", *GUESSES, "--types", HUGE], "ask for at most 1,000"),
        (["games", "generate", "-n", "100000000", "--out", "x"], "ask for at most 100,000"),
        (["games", "generate", "--seed", HUGE, "--out", "x"], "ask for at most 9,223,372,036,854,775,807"),
        (["distance", "x", "--limit", "99999999999"], "ask for at most 100"),
        (["run", "sokoban", "--cross", "random", "--history", "²"], "'²' is not a whole number, or all"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_number_that_cannot_be_meant_is_one_sentence(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in {
        "B": "a,4,1\nb,4,2\n",
        "P": "a,4,2\nb,4,2\n",
        "H": "a,99999999,1\n",
        "X": "a,1000000000000,1\n",
    }.items():
        Path(name).write_text("task,n,c\n" + rows)
    assert says in refusal(capsys, *arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"B", "P", "H", "X"}


def test_a_pilot_of_the_tax_is_what_was_asked_for(tmp_path: Path) -> None:
    for name in ("base", "post"):
        (tmp_path / f"{name}.csv").write_text("task,n,c\n" + "".join(f"t{i},16,{i}\n" for i in range(8)))
    arguments = ["tax", str(tmp_path / "base.csv"), str(tmp_path / "post.csv"), "--pilot", "3", "--json"]
    assert json.loads(output_of(*arguments))["routing"]["pilot"] == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[study]\nslots = 0\n", "study.slots must be at least 1 and at most 1,000,000, not 0"),
        ("[study]\nbudget = 99999999999999999999\n", "study.budget must be at least 1 and at most 1,000,000"),
        ("[study]\nseed = -1\n", "study.seed must be at least 0"),
        ("[study]\ndepth = 101\n", "study.depth must be at least 1 and at most 100"),
    ],
)
def test_a_study_file_has_the_ranges_of_the_command_line(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(DataError, match=says):
        study_file.load(tmp_path / "study.toml", FRONTIER)


@pytest.mark.parametrize("name", ["temperature", "timeout", "patience", "top_p"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_no_option_of_a_model_is_nan_or_infinite(name: str, value: float) -> None:
    with pytest.raises(UsageError, match="at most"):
        ModelOptions(**{name: value})


def test_actions_that_are_not_text_are_a_sentence_with_the_files_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of("games", "write", "--out", tmp_path / "g", "--split", "valid_seen")
    game = next((tmp_path / "g").rglob("game.tw-pddl"))
    (tmp_path / "actions").write_bytes(b"look\n\xff\n")
    line = refusal(capsys, "distance", str(game), "--actions", str(tmp_path / "actions"))
    assert f"{tmp_path / 'actions'} is not UTF-8 text (invalid start byte at byte 5)" in line
    form = json.loads(game.read_text())
    form["pddl_problem"] = form["pddl_problem"].replace("(:goal", "(:gaol")
    game.write_text(json.dumps(form))
    assert str(game) in refusal(capsys, "distance", str(game))
