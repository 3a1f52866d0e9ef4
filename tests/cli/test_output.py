"""The standard streams as tools of the system have them: cut pipes, full disks, closed descriptors, old terminals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.command import handoff

RUN = ["run", "sokoban", "-p", "é=noisy:0.3", "--cross", "é", "--tasks", "3", "--slots", "1", "--workers", "0"]
COMMANDS = {
    "audit": ["audit", "RUN", "--records-only"],
    "json": ["audit", "RUN", "--records-only", "--json"],
    "report": ["report", "RUN", "--draws", "100"],
    "envs": ["envs"],
    "games": ["games", "list"],
    "help": ["run", "--help"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert handoff(*RUN, "--out", folder).returncode == 0
    return folder


def of(command: str, folder: Path) -> list[str]:
    return [str(folder) if word == "RUN" else word for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_goes_away_ends_a_command_as_it_does_any_tool(command: str, finished: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = handoff(*of(command, finished), stdout=writer)
    finally:
        os.close(writer)
    assert result.stderr == ""
    assert result.returncode == 141, "128 + SIGPIPE"


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_one_sentence(command: str, finished: Path) -> None:
    with open("/dev/full", "w") as full:
        result = handoff(*of(command, finished), stdout=full)
    assert result.returncode == 2
    way = "free space there, or choose a place on another file system"
    assert result.stderr == f"handoff: cannot write the output: No space left on device; {way}\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", ["report", "audit"])
def test_a_terminal_without_a_character_gets_an_escape_for_it(command: str, encoding: str, finished: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    result = handoff(*of(command, finished), env=environment, encoding=encoding)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    if command == "report":
        assert ("\\xe9" if encoding == "ascii" else "é") in result.stdout


def test_a_name_that_is_not_text_is_named_in_the_sentence_about_it(tmp_path: Path) -> None:
    result = handoff("audit", os.fsdecode(b"nowhere-\xff"), cwd=tmp_path)
    assert result.returncode == 2
    assert "nowhere-\\xff is not a run folder" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)], ids=str)
def test_a_command_whose_streams_are_closed_does_its_work(closed: tuple[int, ...], tmp_path: Path) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    result = handoff(*RUN, "--workers", "1", "--out", tmp_path / "run", preexec_fn=close)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "run" / "seal.json").exists()
    assert ("Reach" in result.stdout) == (1 not in closed)
