"""The plan that is registered before a run: what it holds, when it is written, and what an audit makes of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from kit.audits import command_checks
from kit.command import invoke, output_of
from kit.refusals import refusal
from kit.runs import forge

import handoff

RUN = ("run", "sokoban", "-p", "a=noisy:0.5", "--cross", "a", "--tasks", "3", "--slots", "1", "--budget", "4")
ROLLOUT = ("rollout", "sokoban", "-p", "a=noisy:0.5", "-n", "2", "--tasks", "3", "--budget", "4")


def canonical(value: object) -> bytes:
    """Canonical JSON by its definition: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(("command", "records"), [(RUN, 3 + 3), (ROLLOUT, 3 * 2)], ids=["run", "rollout"])
def test_a_registered_plan_states_the_digest_of_the_identity_and_how_much_it_covers(
    command: tuple[str, ...], records: int, tmp_path: Path
) -> None:
    folder, plan = tmp_path / "run", tmp_path / "new" / "plan.json"
    output_of(*command, "--register", plan, "--out", folder, "--workers", "0", "-q")
    stated = json.loads(plan.read_bytes())
    identity = json.loads((folder / "manifest.json").read_bytes())["identity"]
    assert stated == {
        "format": 1,
        "digest": hashlib.sha256(canonical(identity)).hexdigest(),
        "handoff": identity["handoff"],
        "environment": "sokoban",
        "protocol": identity["protocol"],
        "tasks": {
            "count": 3,
            "digest": hashlib.sha256(canonical([task["id"] for task in identity["tasks"]])).hexdigest(),
        },
        "policies": {"a": "noisy:0.5"},
        "records": records,
    }
    code, checks = command_checks(folder, "--register", str(plan))
    assert code == 0
    assert (checks["register"]["state"], checks["register"]["count"]) == ("passed", 8)


def test_a_plan_is_registered_before_any_machine_is_booked_and_the_run_holds_to_it(tmp_path: Path) -> None:
    folder, plan = tmp_path / "run", tmp_path / "plan.json"
    printed = output_of(*RUN, "--register", plan, "--out", folder, "--dry-run")
    assert f"registered plan: {plan}" in printed
    assert not folder.exists()
    before = plan.read_bytes()
    for _ in range(2):  # the run, then the same run typed again
        output_of(*RUN, "--register", plan, "--out", folder, "--workers", "0", "-q")
        assert plan.read_bytes() == before, "the same plan has the same bytes at any time"
    other = invoke(*RUN, "--seed", "1", "--register", plan, "--out", tmp_path / "other")
    assert "these keys differ: digest, protocol.run_seed" in str(other.exception)
    assert plan.read_bytes() == before
    assert not (tmp_path / "other").exists()


def test_a_run_that_has_begun_is_not_registered_afterwards(tmp_path: Path) -> None:
    folder, plan = tmp_path / "run", tmp_path / "plan.json"
    output_of(*RUN, "--out", folder, "--workers", "0", "-q")
    late = invoke(*RUN, "--register", plan, "--out", folder, "--workers", "0", "-q")
    assert "a plan is registered before the first one" in str(late.exception)
    assert not plan.exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": 2, "digest": "x"}', '{"format": 1}', "my notes"])
def test_a_file_that_is_no_plan_is_neither_overwritten_nor_believed(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, plan = tmp_path / "run", tmp_path / "plan.json"
    plan.write_text(content)
    assert "is not a registered plan" in refusal(
        capsys, *RUN, "-q", "--register", str(plan), "--out", str(folder), "--workers", "0"
    )
    assert plan.read_text() == content
    output_of(*RUN, "--out", folder, "--workers", "0", "-q")
    assert "is not a registered plan" in refusal(capsys, "audit", str(folder), "--register", str(plan))


def test_places_where_no_plan_can_be_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    inside = refusal(capsys, *RUN, "-q", "--register", str(folder / "plan.json"), "--out", str(folder))
    assert "is inside the run folder" in inside
    assert "cannot read" in refusal(capsys, *RUN, "-q", "--register", str(tmp_path), "--out", str(folder))
    (tmp_path / "file").write_text("")
    below = refusal(capsys, *RUN, "-q", "--register", str(tmp_path / "file" / "plan.json"), "--out", str(folder))
    assert "cannot write" in below
    assert not folder.exists()
    output_of(*RUN, "--out", folder, "--workers", "0", "-q")
    assert "cannot read" in refusal(capsys, "audit", str(folder), "--register", str(tmp_path / "absent.json"))


def test_a_favourable_part_of_a_registered_run_is_found_by_the_plan(tmp_path: Path) -> None:
    folder, plan = tmp_path / "run", tmp_path / "plan.json"
    output_of(*ROLLOUT, "--register", plan, "--out", folder, "--workers", "0", "-q")

    def halve(identity: dict) -> None:  # type: ignore[type-arg]
        identity["protocol"]["rollouts"] = 1

    half = tmp_path / "half"
    forge(folder, half, identity=halve, keep=lambda key, body: key[3] == "0")
    code, _ = command_checks(half)
    assert code == 0, "half a run is a run: nothing in it tells"
    code, checks = command_checks(half, "--register", str(plan))
    assert code == 1
    found = checks["register"]["failures"]
    assert [text.partition(" of ")[0] for text in found] == ["digest", "protocol.rollouts", "records"]
    assert "6 was registered, the run has 3" in found[2]


def test_seeds_that_are_not_the_default_are_said(tmp_path: Path) -> None:
    for name, more in (("default", ()), ("seeds", ("--seed", "3", "--selection-seed", "7"))):
        output_of(*RUN, *more, "--out", tmp_path / name, "--workers", "0", "-q")
    code, checks = command_checks(tmp_path / "seeds", "--records-only")
    assert code == 0, "no default is an obligation"
    notes = checks["identity"]["notes"]
    assert [note.partition(":")[0] for note in notes] == [
        "the run seed 3 is not the default seed 0",
        "the selection seed 7 is not the default seed 2029",
    ]
    assert command_checks(tmp_path / "default", "--records-only")[1]["identity"]["notes"] == []


def test_python_registers_and_compares_too(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    study = handoff.run(
        "sokoban", cross=["a"], policies={"a": "random"}, tasks=3, slots=1, reach_budget=2, register=plan,
        out=tmp_path / "run", workers=0,
    )  # fmt: skip
    assert handoff.audit(study.folder, workers=0, register=plan).passed
    plan.write_text(plan.read_text().replace('"records": 6', '"records": 7'))
    assert not handoff.audit(study.folder, workers=0, register=plan).passed
