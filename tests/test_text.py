"""Text from outside cannot steer the terminal: control characters, markup, surrogates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.command import invoke, output_of
from kit.game_files import form, write
from kit.runs import play, rewrite_identity

from handoff.cli import main
from handoff.cli.output import console
from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import load_game
from handoff.errors import DataError
from handoff.text import printable, require_printable

HEADER = "task,type,seed,reacher,solver,arrived,won\n"


def table(reacher: str, solver: str = "s") -> str:
    return HEADER + "".join(f"t{i},k,0,{reacher},{solver},1,{i % 2}\n" for i in range(4))


def test_control_characters_and_surrogates_are_written_as_escapes() -> None:
    assert printable("a\x1b[31mb\nc\ud800é") == "a\\x1b[31mb\\nc\\ud800é"
    assert printable(os.fsdecode(b"n\xff")) == "n\\xff"
    with pytest.raises(DataError, match="unprintable character"):
        require_printable("task", ["fine", "a\x1b[31m"])


def test_markup_in_names_is_shown_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[red]x[/] :smile:")
    assert capsys.readouterr().out == "[red]x[/] :smile:\n"
    (tmp_path / "a.csv").write_text(table("[/]", "[red]"))
    assert "[/]" in output_of("estimate", "--draws", "200", f"[/]={tmp_path / 'a.csv'}")


def test_a_name_with_a_control_character_in_a_table_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(table("r\x1b[31m"))
    with pytest.raises(SystemExit) as caught:
        main(["estimate", str(tmp_path / "a.csv")])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert len(shown.strip().splitlines()) == 1


def test_a_run_whose_names_would_steer_the_terminal_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "sokoban", "--cross", "random", "--tasks", "3", "--slots", "1", "--budget", "3"]
    folder = play(tmp_path / "run", *arguments)
    rewrite_identity(folder, lambda identity: identity["tasks"][0].update(name="\x1b]0;owned\x07"))
    with pytest.raises(SystemExit) as caught:
        main(["report", str(folder)])
    assert caught.value.code == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_label_must_have_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(table("r"))
    result = invoke("estimate", f"={tmp_path / 'a.csv'}")
    assert "write LABEL=PATH" in str(result.exception)


def test_a_game_with_a_lone_surrogate_is_a_sentence(tmp_path: Path) -> None:
    source = BuiltinSource()
    game = source.load(source.tasks("valid_seen")[0])
    path = write(tmp_path, {**form(game), "grammar": "\ud800" + game.grammar})
    with pytest.raises(DataError, match="lone surrogate"):
        load_game(path)
