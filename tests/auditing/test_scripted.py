"""Scripted policies decide again: another policy's records under a true chain are found by their actions alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.audits import command_checks, failed
from kit.runs import forge, play, records, reseal, rewrite_identity

import handoff
from handoff.policies import Policy, Request, scripted
from handoff.records import Decision

SPECS = {"n": "noisy:0.4", "r": "random", "x": "expert", "t": "tempered:0.5:2"}
DESCRIBED = {
    "noisy:0.4": {"kind": "noisy", "epsilon": 0.4},
    "noisy:0.5": {"kind": "noisy", "epsilon": 0.5},
    "expert": {"kind": "expert"},
    "random": {"kind": "random"},
    "tempered:0.5:2": {"kind": "tempered", "temperature": 0.5, "habit": 2.0},
    "tempered:5:2": {"kind": "tempered", "temperature": 5.0, "habit": 2.0},
}
BINDINGS = [word for name, spec in SPECS.items() for word in ("-p", f"{name}={spec}")]


@pytest.fixture(scope="module")
def crossing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crossing") / "run"
    return play(
        folder, "run", "sokoban", *BINDINGS, "--cross", "n,r,x,t", "--tasks", "3", "--slots", "1", "--budget", "8"
    )


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollouts") / "run"
    return play(folder, "rollout", "sokoban", *BINDINGS, "-n", "2", "--tasks", "3", "--budget", "8")


def decided(folder: Path) -> int:
    return sum(len(body.get("steps", body.get("decisions"))) for _, body in records(folder))


def described_as(spec: str) -> dict[str, Any]:
    return {"spec": spec, **DESCRIBED[spec]}


@pytest.mark.parametrize("fixture", ["crossing", "rollouts"])
def test_every_decision_of_an_honest_run_is_made_again(fixture: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(fixture)
    code, checks = command_checks(folder)
    assert code == 0, checks
    assert checks["decisions"]["count"] == decided(folder) > 50


@pytest.mark.parametrize("fixture", ["crossing", "rollouts"])
@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("n", "expert"), ("n", "noisy:0.5"), ("r", "noisy:0.4"), ("x", "random"), ("t", "tempered:5:2"),
    ],
)  # fmt: skip
def test_records_of_another_scripted_policy_fail_by_what_they_do(
    fixture: str, name: str, spec: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run = request.getfixturevalue(fixture)
    folder = forge(run, tmp_path / "run", identity=lambda i: i["policies"].update({name: described_as(spec)}))
    assert "decisions" in failed(folder)


def test_two_policies_whose_names_were_exchanged_fail(crossing: Path, tmp_path: Path) -> None:
    def exchange(identity: Any) -> None:
        policies = identity["policies"]
        policies["r"], policies["x"] = policies["x"], policies["r"]

    code, checks = command_checks(forge(crossing, tmp_path / "run", identity=exchange))
    assert code == 1
    failure = checks["decisions"]["failures"][0]
    assert "is recorded as" in failure
    assert "but its policy decides" in failure


def test_solvers_whose_continuations_were_exchanged_fail(crossing: Path, tmp_path: Path) -> None:
    """Each continuation is true, and stands under the name of the other solver."""
    folder = shutil.copytree(crossing, tmp_path / "run")
    lines = records(folder)
    bodies = {tuple(key): body for key, body in lines}
    other = {"r": "x", "x": "r"}
    forged = [
        (key, {**bodies[(*key[:-1], other[key[-1]])], "solver": key[-1]}
         if key[0] == "endpoint" and key[-1] in other else body)
        for key, body in lines
    ]  # fmt: skip
    assert forged != lines
    reseal(folder, forged)
    assert failed(folder) == ["decisions"]


def test_a_list_of_actions_is_held_against_itself(crossing: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("left\nup\nright\ndown\n")
    arguments = ("-p", f"a=actions:{tmp_path / 'list.txt'}", "--cross", "a", "--tasks", "3", "--slots", "2")
    honest = play(tmp_path / "honest", "run", "sokoban", *arguments, "--budget", "6")
    code, checks = command_checks(honest)
    assert code == 0, checks
    assert checks["decisions"]["count"] == decided(honest)
    assert "its file of actions is not read" in checks["decisions"]["notes"][0]

    def by_list(identity: Any) -> None:
        identity["policies"]["r"] = {"spec": "actions:list.txt", "kind": "actions", "sha256": "0" * 64}

    code, checks = command_checks(forge(crossing, tmp_path / "run", identity=by_list))
    assert code == 1
    assert any("but at this place of the task r did" in failure for failure in checks["decisions"]["failures"])


class Mine(Policy):
    """A policy of somebody else."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [scripted(request, request.record.admissible[0]) for request in requests]


@pytest.mark.parametrize("temperature", [0.0, -1e-9, -5.0])
def test_nothing_is_decided_again_at_a_temperature_that_is_none(
    temperature: float, rollouts: Path, tmp_path: Path
) -> None:
    def stated(key: list[str], body: Any) -> None:
        if body["policy"] == "t":
            body["temperature"] = temperature

    code, checks = command_checks(forge(rollouts, tmp_path / "run", stated))
    assert code == 1
    of_t = sum(len(body["decisions"]) for _, body in records(rollouts) if body["policy"] == "t")
    assert len(checks["decisions"]["failures"]) == of_t > 0
    says = f"is stated to be made at the temperature {temperature}, which is none"
    assert all(failure.endswith(says) for failure in checks["decisions"]["failures"])


def test_a_policy_of_another_package_does_not_decide_again_and_a_note_says_so(tmp_path: Path) -> None:
    handoff.run("sokoban", cross=["m"], policies={"m": Mine()}, tasks=3, slots=1, out=tmp_path, workers=0)
    code, checks = command_checks(tmp_path)
    assert code == 0, checks
    assert (checks["decisions"]["state"], checks["decisions"]["due"]) == ("not done", False)
    assert "who decided for another one cannot be known (docs/audit.md)" in checks["decisions"]["reason"]
    assert checks["decisions"]["notes"] == ["policy m: it is no policy of the toolkit, so it does not decide again"]


def test_a_scripted_policy_that_cannot_be_made_leaves_its_decisions_owed(rollouts: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(rollouts, tmp_path / "run")
    rewrite_identity(folder, lambda i: i["policies"]["n"].update(spec="noisy:often"))
    reseal(folder, records(folder))
    _, checks = command_checks(folder)
    assert "policy n cannot be made: write noisy:EPS" in checks["decisions"]["reason"]
    assert checks["decisions"]["due"]
