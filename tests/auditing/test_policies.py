"""What an audit says of forged policies, texts, tokens, seeds, versions and names, under a valid chain and seal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit.audits import checks, failures
from kit.fault_server import serving
from kit.runs import IdentityChange, RecordChange, forge, records

from handoff.episodes.start import Where
from handoff.policies import ModelOptions
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts.config import RolloutsConfig

OPTIONS = ModelOptions(max_prompt_tokens=50_000, concurrency=16)
SERVED = FrontierConfig(split="test", reachers=("b",), solvers=("a", "c"), tasks=3, slots=2, reach_budget=12)
PLAIN = RolloutsConfig(split="test", policies=("x", "y"), rollouts=2, tasks=3, budget=4)


@pytest.fixture(scope="module", params=["vllm", "plain"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("served") / "run"
    with serving(dialect=request.param) as server:
        specs = {"a": f"openai:{server.url}#m", "b": "noisy:0.1", "c": f"openai:{server.url}#m"}
        FRONTIER.prepare("sokoban", {}, SERVED, specs, {"a": OPTIONS, "c": OPTIONS}).run(folder, Where(0))
    return request.param, folder


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rolled") / "run"
    ROLLOUTS.prepare("sokoban", {}, PLAIN, {"x": "random", "y": "tempered:0.5:2"}).run(folder, Where(0))
    return folder


def last_text(solver: str, text: str) -> RecordChange:
    """Changes the text of a solver's last decisions, which no later input repeats."""

    def change(key: list[str], body: Any) -> None:
        if body.get("solver") == solver and body["steps"]:
            body["steps"][-1]["decision"]["text"] = text

    return change


def first_decision(solver: str, **values: Any) -> RecordChange:
    def change(key: list[str], body: Any) -> None:
        if body.get("solver") == solver and body["steps"]:
            body["steps"][0]["decision"].update(values)

    return change


def test_an_honest_run_passes_with_every_decision_looked_at(served: tuple[str, Path], rolled: Path) -> None:
    assert failures(served[1]) == {}
    assert failures(rolled, replay=True) == {}
    honest = checks(served[1])
    decisions = sum(len(body["steps"]) for _, body in records(served[1]))
    assert honest["policies"].count == decisions + 3, "and three descriptions"


def test_another_text_of_the_last_decision_is_found(served: tuple[str, Path], tmp_path: Path) -> None:
    found = failures(forge(served[1], tmp_path / "run", last_text("a", "<action>sing</action>")))
    assert set(found) == {"policies"}
    assert "its text comes to 'sing' (inadmissible)" in found["policies"][0]


def test_a_text_that_a_scripted_policy_cannot_have_said_is_found(served: tuple[str, Path], tmp_path: Path) -> None:
    def change(key: list[str], body: Any) -> None:
        if "solver" not in body and body["steps"]:
            body["steps"][-1]["decision"]["text"] += " "

    found = failures(forge(served[1], tmp_path / "run", change))
    assert "a policy without a model wrote" in found["policies"][0]


def test_tokens_that_were_made_up_or_left_out_on_one_solver_are_found(served: tuple[str, Path], tmp_path: Path) -> None:
    dialect, folder = served
    if dialect == "vllm":
        change, check, says = first_decision("a", prompt_digest=None, prompt_tokens=None), "policies", "no prompt token"
    else:
        change, check, says = first_decision("a", prompt_digest="0" * 64), "policies", "is stated to have none"
    found = failures(forge(folder, tmp_path / "ids", change))
    assert any(says in text for text in found[check])
    found = failures(forge(folder, tmp_path / "count", first_decision("c", prompt_tokens=None)))
    assert any("1 of 2 solvers have a number of tokens" in text for text in found["prompts"])


@pytest.mark.parametrize(
    ("change", "check", "says"),
    [
        (lambda i: i["policies"]["b"].update(epsilon=0.2), "policies", "'noisy:0.1' means"),
        (lambda i: i["policies"]["b"].update(spec="noisy:2"), "policies", "a probability between 0 and 1"),
        (lambda i: i["policies"]["b"].update(more="words"), "policies", "it is described as"),
        (lambda i: i["policies"]["b"].pop("spec"), "policies", "without a spec"),
        (lambda i: i["policies"]["a"].update(kind="hf"), "policies", "described as 'hf'"),
        (lambda i: i["policies"]["a"].pop("sampling"), "policies", "without sampling"),
        (lambda i: i["policies"]["a"]["actions"].update(format="runes"), "policies", "no action format is named"),
        (lambda i: i["seeds"].update(run=1), "identity", "seeds {'run': 1"),
        (lambda i: i["seeds"].update(schedule="dice"), "identity", "dice"),
        (lambda i: i.update(handoff="9.9"), "identity", "made by handoff '9.9'"),
    ],
)
def test_a_forged_manifest_fails_the_check_of_its_claim(
    served: tuple[str, Path], tmp_path: Path, change: IdentityChange, check: str, says: str
) -> None:
    found = failures(forge(served[1], tmp_path / "run", identity=change))
    assert set(found) == {check}
    assert any(says in text for text in found[check]), found


def test_another_name_of_a_task_is_found(rolled: Path, tmp_path: Path) -> None:
    def change(identity: Any) -> None:
        identity["tasks"][0]["name"] = "an easy one"

    found = failures(forge(rolled, tmp_path / "run", identity=change), replay=True)
    assert "is called an easy one, not" in found["tasks"][0]


def test_a_rollouts_policy_and_its_texts_are_held_against_its_spec(rolled: Path, tmp_path: Path) -> None:
    found = failures(forge(rolled, tmp_path / "a", identity=lambda i: i["policies"]["y"].update(habit=3.0)))
    assert "'tempered:0.5:2' means" in found["policies"][0]

    def change(key: list[str], body: Any) -> None:
        body["decisions"][-1]["text"] = "nothing of the kind"

    found = failures(forge(rolled, tmp_path / "b", change), replay=True)
    assert set(found) == {"policies", "texts"}
