"""A run that contradicts itself is refused by everybody who reads it or goes on from it; its audit names the place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.audits import failures
from kit.forger import canonical, digest
from kit.refusals import refusal
from kit.runs import first, forge, play, records

import handoff
from handoff.errors import DataError

FRONTIER = ("run", "sokoban", "-p", "a=noisy:0.3", "--cross", "a,expert", "--tasks", "3", "--slots", "1")
ROLLOUTS = ("rollout", "sokoban", "-p", "a=random", "-p", "b=expert", "-n", "2", "--tasks", "3", "--budget", "8")


@pytest.fixture(scope="module")
def frontier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("frontier") / "run", *FRONTIER)


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("rollouts") / "run", *ROLLOUTS)


def arrived(key: list[str], body: Any) -> bool:
    """A trajectory that arrived after two actions or more."""
    return key[0] == "trajectory" and (body["arrival"] or 0) > 1


def change(where: Callable[[list[str], Any], bool], **values: Any) -> Callable[[list[str], Any], bool]:
    def once(key: list[str], body: Any) -> bool:
        if where(key, body):
            body.update(values)
            return True
        return False

    return once


EARLIER = change(arrived, arrival=1)
LOST = change(lambda key, body: body["won"], won=False)


def test_every_command_that_reads_a_frontier_run_refuses_one_that_contradicts_itself(
    frontier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state after the first action has a certificate, and it is no member of the frontier."""
    folder = str(forge(frontier, tmp_path / "run", first(EARLIER)))
    says = "arrives at a state that has no certificate of depth 2"
    for words in (
        ("report", folder),
        ("export", folder, "--out", str(tmp_path / "tables")),
        ("estimate", folder, "--draws", "100"),
        ("estimate", folder, str(frontier), "--draws", "100"),
        ("plan", "--pilot", folder, "--power", "0.8"),
        ("compare", folder, str(frontier)),
        ("transport", folder, "--external", str(frontier)),
        (*FRONTIER, "--workers", "0", "-q", "--out", folder),
    ):
        assert says in refusal(capsys, *words), words
    assert not (tmp_path / "tables").exists()
    with pytest.raises(DataError, match=says):
        handoff.load(folder)
    with pytest.raises(DataError, match=says):
        handoff.estimate(folder)
    assert any("arrival 1" in failure for failure in failures(Path(folder))["protocol"])


def test_every_command_that_reads_a_rollouts_run_refuses_one_that_contradicts_itself(
    rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(forge(rollouts, tmp_path / "run", first(LOST)))
    says = "contradicts itself: outcome 'won' after"
    for words in (
        ("report", folder),
        ("export", folder, "--out", str(tmp_path / "tables")),
        ("tax", f"{folder}#a", f"{folder}#b"),
        (*ROLLOUTS, "--workers", "0", "-q", "--out", folder),
    ):
        assert says in refusal(capsys, *words), words
    with pytest.raises(DataError, match=says):
        handoff.load(folder)
    assert any("outcome 'won' after" in failure for failure in failures(Path(folder))["protocol"])


def unfinished(run: Path, folder: Path, alter: Callable[[list[str], Any], bool], *, sealed: bool) -> Path:
    """A copy whose last record is owed, with one record altered: all in the journal, or all in the chain."""
    forge(run, folder, first(alter))
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)[:-1]
    entries = records(folder)[:-1]
    (folder / "seal.json").unlink()
    (folder / "records.jsonl").write_bytes(b"".join(lines) if sealed else b"")
    if not sealed:
        forms = ({"key": key, "body": body, "digest": digest([key, body])} for key, body in entries)
        (folder / "journal.jsonl").write_bytes(b"".join(canonical(form) + b"\n" for form in forms))
    return folder


def bare(key: list[str], body: Any) -> bool:
    """No state of an arrived trajectory has a certificate."""
    for step in body["steps"] if arrived(key, body) else ():
        step["check"] = None
    return arrived(key, body)


def strange(key: list[str], body: Any) -> bool:
    """A solver's clone is of another state."""
    if body.get("clone") is None:
        return False
    body["clone"]["digest"] = "0" * 64
    return True


def is_trajectory(key: list[str], body: Any) -> bool:
    return key[0] == "trajectory"


@pytest.mark.parametrize("sealed", [False, True], ids=["in the journal", "in the chain"])
@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (EARLIER, "arrival 1 but the checks say"),
        (change(arrived, arrival=None), "arrival None but the checks say"),
        (change(arrived, arrival=None, outcome="budget"), "arrival None but the checks say"),
        (change(arrived, arrival=99), "it arrives after 99 actions"),
        (change(arrived, arrival=-3), "it arrives after -3 actions"),
        (change(arrived, steps=[]), "it arrives after"),
        (change(arrived, outcome="won"), "outcome 'won' but the records say 'arrived'"),
        (change(is_trajectory, slot=7), "holds the record of"),
        (change(is_trajectory, steps=None), "is not a valid Trajectory"),
        (bare, "a state that has no certificate"),
        (change(lambda key, body: body.get("won") is True, won=False), "won False but the records say True"),
        (change(lambda key, body: body.get("bridge") is True, bridge=False), "bridge False contradicts"),
        (strange, "its clone is not the arrival state"),
    ],
)  # fmt: skip
def test_no_run_goes_on_from_a_record_that_contradicts_itself(
    alter: Callable[[list[str], Any], bool],
    says: str,
    sealed: bool,
    frontier: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = unfinished(frontier, tmp_path / "run", alter, sealed=sealed)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    line = refusal(capsys, *FRONTIER, "--workers", "0", "-q", "--out", str(folder))
    assert "contradicts itself" in line
    assert says in line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"lock": b""} | before, "nothing was changed"


@pytest.mark.parametrize("sealed", [False, True], ids=["in the journal", "in the chain"])
def test_no_rollouts_run_goes_on_from_a_record_that_contradicts_itself(
    sealed: bool, rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unfinished(rollouts, tmp_path / "run", LOST, sealed=sealed)
    line = refusal(capsys, *ROLLOUTS, "--workers", "0", "-q", "--out", str(folder))
    assert "contradicts itself: outcome 'won' after" in line
    assert not (folder / "seal.json").exists()


@pytest.mark.parametrize("run", ["frontier", "rollouts"])
def test_an_honest_journal_goes_on_to_the_same_records(
    run: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    honest = request.getfixturevalue(run)
    folder = shutil.copytree(honest, tmp_path / "run")
    forms = ({"key": key, "body": body, "digest": digest([key, body])} for key, body in records(folder)[:-1])
    (folder / "journal.jsonl").write_bytes(b"".join(canonical(form) + b"\n" for form in forms))
    (folder / "seal.json").unlink()
    (folder / "records.jsonl").unlink()
    play(folder, *(FRONTIER if run == "frontier" else ROLLOUTS))
    for name in ("records.jsonl", "seal.json"):
        assert (folder / name).read_bytes() == (honest / name).read_bytes()
