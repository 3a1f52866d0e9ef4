"""What else lies in a run folder, and what else stands in its manifest, is noticed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.audits import command_checks, failed
from kit.command import output_of
from kit.runs import forge, play, records

from handoff.canonical import canonical, digest, parse
from handoff.runs.store import Store

ARGUMENTS = ("run", "sokoban", "--cross", "expert,random", "--tasks", "3", "--slots", "1", "--budget", "4")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("folder") / "run", *ARGUMENTS)


def journal(*entries: tuple[list[str], Any]) -> bytes:
    return b"".join(
        canonical({"key": key, "body": body, "digest": digest([key, body])}) + b"\n" for key, body in entries
    )


def test_a_journal_that_a_kill_after_the_seal_leaves_is_honest_and_goes_with_the_next_command(
    run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / "journal.jsonl").write_bytes(journal(*records(folder)[3:6]))
    code, checks = command_checks(folder, "--records-only")
    assert code == 0, checks
    assert "journal.jsonl remains, and holds only what is sealed" in checks["folder"]["notes"][0]
    output_of(*ARGUMENTS, "--out", folder, "--workers", "0", "-q")
    assert not (folder / "journal.jsonl").exists()
    assert command_checks(folder, "--records-only")[1]["folder"]["notes"] == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: journal((lines[0][0], {**lines[0][1], "outcome": "won"})), "line 1: another record of"),
        (lambda lines: journal(lines[0], (["trajectory", "t", "0", "me"], {})), "line 2: another record of"),
        (lambda lines: journal(lines[0]) + b"torn", "line 2: it is not a record"),
        (lambda lines: b"[]\n", "line 1: it is not a record"),
    ],
)
def test_a_journal_that_says_something_else_than_the_sealed_records_fails(
    run: Path, tmp_path: Path, change: Callable[[list[Any]], bytes], says: str
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    (folder / "journal.jsonl").write_bytes(change(records(folder)))
    code, checks = command_checks(folder, "--records-only")
    assert code == 1
    assert any(says in failure for failure in checks["folder"]["failures"]), checks["folder"]


def test_what_a_run_and_its_reports_leave_is_known_and_other_files_are_named(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    output_of("report", folder, "--html", "--draws", "100")
    output_of("export", folder, "--format", "csv")
    (folder / "torn-journal-0123456789ab").write_bytes(b'{"key"')
    code, checks = command_checks(folder, "--records-only")
    assert code == 0
    assert checks["folder"]["notes"] == []
    (folder / "better.jsonl").write_text("{}")
    (folder / "notes").mkdir()
    code, checks = command_checks(folder, "--records-only")
    assert code == 0, "somebody's notes are no fault of the run"
    assert checks["folder"]["notes"] == ["not a run's, and not looked at: better.jsonl, notes"]


def test_an_unfinished_run_keeps_its_journal_and_owes_its_seal(tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parents[1] / "data" / "version_0_1_0" / "unfinished"
    assert (folder / "journal.jsonl").exists()
    code, checks = command_checks(folder, "--records-only")
    assert code == 1
    assert checks["folder"]["passed"]
    assert "are owed" in checks["seal"]["failures"][0]


@pytest.mark.parametrize(
    ("change", "check", "says"),
    [
        (lambda i: i.update(remark="the best run"), "manifest", "its identity has 'remark'"),
        (lambda i: i["tasks"][0].update(source="/etc/passwd"), "manifest", "states a place, '/etc/passwd'"),
        (lambda i: i["protocol"].update(kept=3), "chain", "kept"),
        (lambda i: i["tasks"][0].update(level=3), "chain", "level"),
        (lambda i: i["policies"]["random"].update(level=3), "policies", "it is described as"),
        (lambda i: i["policies"].update(other={"spec": "random", "kind": "random"}), "crossing", "other"),
        (lambda i: i["seeds"].update(more=1), "identity", "seeds"),
    ],
)
def test_a_key_that_no_run_writes_fails_the_check_of_its_place(
    run: Path, tmp_path: Path, change: Callable[[Any], Any], check: str, says: str
) -> None:
    folder = forge(run, tmp_path / "run", identity=change)
    _, checks = command_checks(folder, "--records-only")
    assert failed(folder, "--records-only") == [check]
    assert says in checks[check]["failures"][0]


def test_a_key_beside_the_identity_fails_too(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    manifest = parse((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_bytes(canonical({**manifest, "winner": "me"}))
    _, checks = command_checks(folder, "--records-only")
    assert checks["manifest"]["failures"] == ["it has 'winner', which no run of this version writes"]


def test_a_seal_counts_in_whole_numbers(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    seal = parse((folder / "seal.json").read_bytes())
    (folder / "seal.json").write_bytes(canonical({**seal, "records": float(seal["records"])}))
    assert failed(folder, "--records-only") == ["seal"]


def test_the_store_takes_the_journal_away_when_it_seals(tmp_path: Path) -> None:
    plan = [("a",), ("b",)]
    with Store(tmp_path, {"protocol": {}}, plan, {}) as store:
        store.finish(("b",), 2)
        assert (tmp_path / "journal.jsonl").read_bytes() == journal((["b"], 2))
        store.finish(("a",), 1)
        store.complete()
    assert not (tmp_path / "journal.jsonl").exists()
