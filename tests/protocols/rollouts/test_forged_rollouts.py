"""Rollouts whose ends were forged: their outcome, length and success follow from the replay and from nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.audits import command_checks, failed
from kit.fault_server import serving
from kit.runs import first, forge, play, records

from handoff.canonical import digest
from handoff.episodes.start import Where
from handoff.policies import ModelOptions
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts.config import RolloutsConfig


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "run"
    arguments = ("-p", "a=noisy:0.3", "-p", "b=random", "-n", "3", "--tasks", "3", "--budget", "12")
    return play(folder, "rollout", "sokoban", *arguments)


def of_outcome(outcome: str, change: Callable[[Any], None]) -> Any:
    """Apply ``change`` to the first rollout that ended so."""

    def one(key: list[str], body: Any) -> bool:
        if body["outcome"] != outcome:
            return False
        change(body)
        return True

    return first(one)


def cut_the_last_decision(body: Any) -> None:
    """As if the episode had ended without success one action before it was won."""
    body["decisions"].pop()
    body.update(records=len(body["decisions"]) + 1, outcome="terminal", won=False)


def cut_everything(body: Any) -> None:
    body.update(decisions=[], records=1, outcome="terminal", won=False)


def end_early(body: Any) -> None:
    body["decisions"].pop()
    body.update(records=len(body["decisions"]) + 1, outcome="terminal")


def append_a_decision(body: Any) -> None:
    body["decisions"].append({**body["decisions"][-1]})
    body["records"] += 1


def test_the_honest_run_has_both_ends_and_passes(run: Path) -> None:
    assert {body["outcome"] for _, body in records(run)} == {"won", "budget"}
    assert failed(run) == []


@pytest.mark.parametrize(
    ("outcome", "change", "says"),
    [
        ("won", cut_the_last_decision, "though the episode had not ended"),
        ("won", cut_everything, "it stops after 0 of 12 decisions"),
        ("budget", end_early, "it stops after 11 of 12 decisions"),
        ("won", append_a_decision, "was made after the episode had ended"),
        ("won", lambda body: body.update(outcome="terminal", won=False), "recorded as 'terminal', but is 'won'"),
        ("budget", lambda body: body.update(outcome="terminal"), "recorded as 'terminal', but is 'budget'"),
        ("budget", lambda body: body.update(outcome="won", won=True), "recorded as 'won', but is 'budget'"),
        ("won", lambda body: body.update(outcome="budget", won=False), "recorded as 'budget', but is 'won'"),
        ("won", lambda body: body.update(records=body["records"] + 1), "records, but the replay has"),
    ],
)
def test_a_forged_end_fails_the_replay_in_words(
    run: Path, tmp_path: Path, outcome: str, change: Callable[[Any], None], says: str
) -> None:
    code, checks = command_checks(forge(run, tmp_path / "run", of_outcome(outcome, change)))
    assert code == 1
    assert any(says in failure for failure in checks["replay"]["failures"]), checks["replay"]["failures"]


def test_records_that_were_digested_as_the_forger_likes_do_not_hide_a_cut(run: Path, tmp_path: Path) -> None:
    def cut(body: Any) -> None:
        cut_everything(body)
        body["digest"] = digest(["0" * 64])

    _, checks = command_checks(forge(run, tmp_path / "run", of_outcome("won", cut)))
    assert any("its records differ" in failure for failure in checks["replay"]["failures"])


# Prompts of rollouts


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "run"
    config = RolloutsConfig(split="test", policies=("m",), rollouts=2, tasks=3, budget=3)
    with serving() as server:
        options = {"m": ModelOptions(max_prompt_tokens=50_000)}
        ROLLOUTS.prepare("sokoban", {}, config, {"m": f"openai:{server.url}#m"}, options).run(folder, Where(0))
    return folder


def test_every_prompt_of_a_rollout_is_rendered_again(served: Path, tmp_path: Path) -> None:
    code, checks = command_checks(served)
    assert code == 0, checks
    assert checks["prompts"]["count"] == sum(len(body["decisions"]) for _, body in records(served)) > 0

    def change(key: list[str], body: Any) -> bool:
        body["decisions"][1]["generation"]["rendered"] = "0" * 64
        return True

    code, checks = command_checks(forge(served, tmp_path / "run", first(change)))
    assert code == 1
    (failure,) = checks["prompts"]["failures"]
    assert "the prompt of decision 2 is not what its template makes of the records" in failure


def test_a_template_that_may_not_be_rendered_is_no_passed_check(served: Path, tmp_path: Path) -> None:
    def other(identity: Any) -> None:
        identity["policies"]["m"]["prompt"].update(template="mine", source="{{ observation }} and mine")

    (tmp_path / "mine.jinja").write_text("{{ observation }} and mine")
    folder = forge(served, tmp_path / "run", identity=other)
    code, checks = command_checks(folder)
    assert code == 0
    assert (checks["prompts"]["state"], checks["prompts"]["count"]) == ("not done", 0)
    assert "give its file by --template" in checks["prompts"]["notes"][0]
    assert failed(folder, "--template", str(tmp_path / "mine.jinja")) == ["prompts"]
