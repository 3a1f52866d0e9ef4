"""Whatever a plug-in's protocol does ends in one sentence that names it and the method."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from kit import hostile_protocols as hostile
from kit.command import output_of
from kit.refusals import refusal
from kit.runs import play, records, reseal, rewrite_identity

from handoff.protocols.protocol import Protocol
from handoff.protocols.registry import load_protocol

RUN = ("sokoban", "-p", "a=random", "-n", "1", "--tasks", "3", "--budget", "2", "-q", "--workers", "0", "--out")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    hostile.install(folder)
    return folder


@pytest.fixture(autouse=True)
def protocols(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)


@pytest.mark.parametrize("name", hostile.IN_RUN)
def test_what_a_method_does_in_a_run_is_one_sentence_with_what_is_owed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, name, *RUN, str(tmp_path / "run"), code=3)
    assert hostile.IN_RUN[name][2] in line
    assert f"protocol {name!r}" in line or name == "odd-adds"
    assert "; 3 of 3 records are owed. What is finished is kept in " in line


@pytest.mark.parametrize("name", hostile.BEFORE)
def test_what_a_method_does_before_a_run_is_one_sentence_and_nothing_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, name, *RUN, str(tmp_path / "run"), code=3)
    assert line.startswith(f"handoff: protocol {name!r}: ")
    assert hostile.BEFORE[name][2] in line
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def finished(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the protocol that behaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        return play(tmp_path_factory.mktemp("finished") / "run", "odd", *RUN[:-4])


@pytest.mark.parametrize("name", hostile.READING)
def test_what_a_method_does_when_a_run_is_read_is_one_sentence(
    name: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    rewrite_identity(run, lambda identity: identity["protocol"].update(name=name))
    reseal(run, records(run))
    *_, words, command = hostile.READING[name]
    more = ("--workers", "0", "-q") if command == "audit" else ("--json",) if command == "report" else ()
    line = refusal(capsys, command, str(run), *more, code=3)
    assert line.startswith(f"handoff: protocol {name!r}: ")
    assert words in line


@pytest.mark.parametrize("name", hostile.GOING_ON)
def test_what_a_method_does_when_a_run_goes_on_is_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = play(tmp_path / "run", name, *RUN[:-4])
    (folder / "seal.json").unlink()
    line = refusal(capsys, name, *RUN, str(folder), code=3)
    assert line.startswith(f"handoff: protocol {name!r}: ")
    assert hostile.GOING_ON[name][2] in line
    assert not (folder / "seal.json").exists()


def test_a_protocol_that_behaves_is_played_read_and_audited(finished: Path) -> None:
    protocol = load_protocol("odd")
    assert protocol.name == "odd"
    assert protocol.load(finished).complete
    assert json.loads(output_of("audit", finished, "--json", "--workers", "0", "-q"))["passed"]


def test_every_method_of_a_protocol_is_guarded() -> None:
    methods = {name for name, value in vars(Protocol).items() if callable(value) and not name.startswith("_")}
    assert methods <= set(vars(type(load_protocol("odd")).__mro__[1]))
