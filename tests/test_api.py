"""The toolkit from Python, inside and outside an event loop."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.command import hear_the_terminal

import handoff
from handoff.errors import PolicyFault, StoreError, UsageError
from handoff.policies.policy import scripted

POLICIES = {"sft": "noisy:0.6", "rl": "expert"}


class First(handoff.Policy):
    """Takes the first admissible action."""

    def decide(self, requests: Sequence[handoff.Request]) -> list[handoff.Decision]:
        return [scripted(request, request.record.admissible[0]) for request in requests]

    def describe(self) -> dict[str, Any]:
        return {"rule": "first"}


def study(folder: Path, **settings: Any) -> Any:
    return handoff.run(
        "sokoban", cross=["sft", "rl"], policies=POLICIES, tasks=6, slots=1, out=folder, workers=0, **settings
    )


def test_importing_the_package_imports_no_library() -> None:
    heavy = "numpy scipy attrs click rich cattrs jinja2 aiohttp networkx asyncio torch textworld"
    script = (
        f"import handoff, json, sys; print(json.dumps([name for name in '{heavy}'.split() if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(handoff.__all__) == {
        "Decision", "Environment", "Policy", "Record", "Request", "Task", "audit", "estimate", "load", "run",
    }  # fmt: skip
    assert all(getattr(handoff, name).__name__ == name for name in handoff.__all__)
    assert set(handoff.__all__) <= set(dir(handoff))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = handoff.nothing


def test_a_study_is_run_loaded_estimated_and_audited(tmp_path: Path) -> None:
    made = study(tmp_path / "run")
    loaded = handoff.load(tmp_path / "run")
    assert loaded.trajectories == made.trajectories
    assert loaded.endpoints == made.endpoints
    assert loaded.table.rows == 6 * 1 * 2 * 2
    wins = sum(end.won for end in loaded.endpoints.values() if (end.reacher, end.solver) == ("rl", "rl"))
    for given in (loaded, loaded.table, tmp_path / "run", str(tmp_path / "run")):
        estimates = handoff.estimate(given, draws=200)
        assert estimates.get("endpoint", reacher="rl", solver="rl").point == wins / 6
    assert handoff.audit(tmp_path / "run", workers=0).passed


def test_everything_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    study(tmp_path / "outside")

    async def notebook() -> bool:
        study(tmp_path / "inside")
        return bool(handoff.audit(tmp_path / "inside", workers=0).passed)

    assert asyncio.run(notebook())
    names = ("records.jsonl", "seal.json")
    assert [(tmp_path / "inside" / n).read_bytes() for n in names] == [
        (tmp_path / "outside" / n).read_bytes() for n in names
    ]


def test_the_same_call_resumes_and_another_one_is_refused(tmp_path: Path) -> None:
    study(tmp_path / "run")
    before = (tmp_path / "run" / "records.jsonl").read_bytes()
    study(tmp_path / "run")
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == before
    with pytest.raises(StoreError, match=r"these keys differ: protocol\.depth"):
        study(tmp_path / "run", depth=1)


def test_a_policy_object_runs_and_its_run_passes_an_audit_with_a_note(tmp_path: Path) -> None:
    handoff.run(
        "sokoban", cross=["first", "sure"], policies={"first": First(), "sure": "expert"}, tasks=3, slots=1,
        out=tmp_path, workers=0,
    )  # fmt: skip
    loaded = handoff.load(tmp_path)
    assert loaded.described["first"]["rule"] == "first"
    assert loaded.described["first"]["spec"].startswith("python:")
    audit = handoff.audit(tmp_path, workers=0)
    assert audit.passed
    notes = [note for check in audit.checks for note in check.notes]
    assert any("first" in note for note in notes)


def test_rollouts_have_counts_and_no_table(tmp_path: Path) -> None:
    handoff.run("sokoban", protocol="rollouts", policies=POLICIES, rollouts=2, tasks=3, out=tmp_path, workers=0)
    loaded = handoff.load(tmp_path)
    assert loaded.counts("rl").n_T.tolist() == [2, 2, 2]
    with pytest.raises(UsageError, match="no table of reachers and solvers"):
        handoff.estimate(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "frontiers"}, "did you mean 'frontier'"),
        ({"depht": 2}, "has no setting 'depht'"),
        ({"slots": 0}, "slots must be at least 1"),
        ({"slots": "2"}, "slots must be a whole number, not '2'"),
        ({"cross": ["nobody"]}, "policy 'nobody' is not bound"),
        ({"cross": []}, "name at least one reacher"),
    ],
)
def test_a_wrong_request_is_one_sentence(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        handoff.run("sokoban", **{"cross": ["expert"], "out": tmp_path / "run", "workers": 0, **arguments})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", [None, 3, b"x", [], "a\0b"])
def test_what_is_no_path_is_refused(given: Any) -> None:
    for call in (handoff.load, handoff.audit, handoff.estimate):
        with pytest.raises(UsageError, match="is no path"):
            call(given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cross": "sft"}, "cross is a list of names, not 'sft'"),
        ({"reachers": "sft", "solvers": ["rl"]}, "reachers is a list of names"),
        ({"reachers": None, "solvers": ["rl"]}, "reachers is a list of names, not None"),
        ({"cross": ["sft"], "policies": {"sft": 3}}, "policy 'sft' is bound to 3"),
        ({"cross": ["sft", "rl"], "out": 3}, "3 is no path"),
    ],
)
def test_a_wrong_type_in_a_request_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    request = {"policies": POLICIES, "tasks": 6, "slots": 1, "workers": 0, "out": tmp_path / "run", **settings}
    with pytest.raises(UsageError, match=message):
        handoff.run("sokoban", **request)
    assert not (tmp_path / "run").exists()


class Quitter(First):
    def decide(self, requests: Sequence[handoff.Request]) -> list[handoff.Decision]:
        raise SystemExit(0)


class Generous(First):
    def decide(self, requests: Sequence[handoff.Request]) -> list[handoff.Decision]:
        return super().decide(requests) * 2


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Quitter(), r"policy 'a' \(.*test_api.Quitter\): decide\(\) raised SystemExit: 0 .*6 of 6 records are owed"),
        (Generous(), r"policy 'a' \(.*test_api.Generous\): decide\(\) gave 6 decisions for 3 requests; 6 of 6 "),
    ],
)
def test_a_policy_that_ends_the_program_or_gives_too_many_decisions_is_refused(
    policy: handoff.Policy, message: str, tmp_path: Path
) -> None:
    with pytest.raises(PolicyFault, match=message):
        handoff.run("sokoban", cross=["a"], policies={"a": policy}, tasks=3, slots=1, out=tmp_path / "run", workers=0)


def test_a_script_without_a_guard_ends_and_is_told_of_it(tmp_path: Path) -> None:
    study(tmp_path / "run")
    (tmp_path / "script.py").write_text("import handoff\nhandoff.audit('run', workers=1)\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert 'put the call under `if __name__ == "__main__":`' in done.stderr


IN_A_LOOP = r"""
import asyncio, handoff, os, signal, sys, threading, time

class Slow(handoff.Policy):
    def decide(self, requests):
        from handoff.policies.policy import scripted
        os.write(1, b"acts\n")  # what a policy prints goes to standard error
        time.sleep(0.05)
        return [scripted(request, request.record.admissible[0]) for request in requests]
    def describe(self):
        return {"rule": "slow"}

async def main():
    handoff.run("sokoban", cross=["a"], policies={"a": Slow()}, slots=50, out="run", workers=0)

asyncio.run(main())
"""


def test_the_first_interrupt_stops_a_run_inside_an_event_loop(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(IN_A_LOOP)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, preexec_fn=hear_the_terminal, **pipes)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "acts\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode != 0
    assert "stopped by the user" in errors
    assert not (tmp_path / "run" / "seal.json").exists()


@pytest.mark.parametrize("name", ["", " a", "a,b", "a/b", "a\x1b"])
def test_a_policys_name_is_held_to_what_a_command_line_may_say(name: str) -> None:
    with pytest.raises(UsageError, match="a policy's name"):
        handoff.run("sokoban", policies={name: "random"}, cross=[name], tasks=3)
