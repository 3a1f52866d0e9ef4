"""The three states of a check, and what an audit makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.audits import command_checks
from kit.command import invoke
from kit.runs import forge, play

from handoff.auditing.checks import Audit, Check, State


def looked(check: Check, *conditions: bool) -> Check:
    for condition in conditions:
        check.require(condition, "it does not hold")
    return check


def test_a_check_that_looked_at_nothing_has_not_passed() -> None:
    empty, good, bad = Check("a", "b"), looked(Check("a", "b"), True), looked(Check("a", "b"), True, False)
    assert (empty.state, good.state, bad.state) == (State.NOT_DONE, State.PASSED, State.FAILED)
    assert (empty.passed, good.passed, bad.passed) == (False, True, False)
    assert empty.reason == "it looked at nothing"
    assert good.reason is None


def test_an_audit_passes_without_what_was_not_due_and_not_without_what_was() -> None:
    audit = Audit(Path("run"))
    looked(audit.check("good", "c"), True)
    audit.check("nothing to do", "c").excuse("nobody came")
    assert audit.passed
    owing = looked(audit.check("half", "c"), True)
    owing.owe("2 of 3 were not found")
    assert (owing.state, owing.reason) == (State.NOT_DONE, "2 of 3 were not found")
    assert not audit.passed
    assert not Audit(Path("run"), [Check("a", "b")]).passed, "nothing says that nothing was due"
    excused = looked(Check("a", "b"), True)
    excused.excuse("nobody came")
    assert excused.passed, "an excuse that was not needed says nothing"


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose reachers never arrive: they have two actions."""
    arguments = ("--type", "long", "--tasks", "2", "--slots", "1", "--budget", "2", "-p", "x=expert")
    return play(tmp_path_factory.mktemp("stuck") / "run", "run", "sokoban", "--cross", "x", *arguments)


def test_a_run_in_which_nobody_arrived_passes_and_says_that_no_continuation_was_replayed(stuck: Path) -> None:
    code, checks = command_checks(stuck)
    assert code == 0, checks
    assert checks["continuations"] == {
        "name": "continuations", "claim": checks["continuations"]["claim"], "count": 0, "passed": False,
        "state": "not done", "due": False, "reason": "no trajectory arrived", "failures": [], "notes": [],
    }  # fmt: skip
    assert checks["replay"]["state"] == "passed"
    printed = " ".join(invoke("audit", stuck, "--workers", "0", "-q").stdout.split())
    assert "continuations: not done: no trajectory arrived" in printed
    assert "every check that was done passed; not done: prompts, continuations" in printed


def test_an_audit_of_the_records_names_every_check_that_it_leaves_out(stuck: Path) -> None:
    code, full = command_checks(stuck)
    code, checks = command_checks(stuck, "--records-only")
    assert code == 0
    assert list(checks) == list(full), "the same checks, in the same order"
    left_out = [name for name, check in checks.items() if check["state"] == "not done"]
    assert left_out == ["prompts", "tasks", "environment", "replay", "continuations", "frontier", "decisions"]
    assert {name: check["claim"] for name, check in checks.items()} == {n: c["claim"] for n, c in full.items()}
    printed = " ".join(invoke("audit", stuck, "--records-only").stdout.split())
    assert f"not done: {', '.join(left_out)}" in printed
    assert "every check passed" not in printed
    assert "docs/audit.md" in printed


def test_games_that_are_not_found_leave_the_replays_undone_and_the_run_does_not_pass(
    stuck: Path, tmp_path: Path
) -> None:
    def elsewhere(identity: dict) -> None:  # type: ignore[type-arg]
        identity["tasks"] = [task | {"id": "0" * 63 + str(n)} for n, task in enumerate(identity["tasks"])]

    def follow(key: list[str], body: dict) -> None:  # type: ignore[type-arg]
        key[1] = body["task"] = ids[key[1]]

    tasks = json.loads((stuck / "manifest.json").read_bytes())["identity"]["tasks"]
    ids = {task["id"]: "0" * 63 + str(n) for n, task in enumerate(tasks)}
    folder = forge(stuck, tmp_path / "run", follow, identity=elsewhere)
    code, checks = command_checks(folder)
    assert code == 1
    for name in ("replay", "frontier"):
        assert (checks[name]["count"], checks[name]["state"], checks[name]["due"]) == (0, "not done", True)
        assert checks[name]["reason"] == "2 of 2 tasks were not found"


def test_games_of_which_some_are_not_found_leave_the_replays_undone_too(stuck: Path, tmp_path: Path) -> None:
    tasks = json.loads((stuck / "manifest.json").read_bytes())["identity"]["tasks"]
    lost = tasks[0]["id"]

    def follow(key: list[str], body: dict) -> None:  # type: ignore[type-arg]
        key[1] = body["task"] = "0" * 64 if key[1] == lost else key[1]

    folder = forge(stuck, tmp_path / "run", follow, identity=lambda i: i["tasks"][0].update(id="0" * 64))
    _, checks = command_checks(folder)
    assert (checks["replay"]["count"], checks["replay"]["reason"]) == (1, "1 of 2 tasks were not found")
