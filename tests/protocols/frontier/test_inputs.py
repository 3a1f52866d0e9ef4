"""Solvers of one clone are shown the same, or the run ends before they decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest
from kit import fault_server
from kit.fault_server import serving
from kit.runs import records

from handoff.episodes.start import Where
from handoff.errors import Interrupted
from handoff.policies import ModelOptions, Policy, Request, scripted
from handoff.policies.policy import Preview
from handoff.protocols.frontier import FRONTIER, study
from handoff.protocols.frontier.config import FrontierConfig
from handoff.records import Decision, Generation

X, Y, Z = ("1" * 64, "2" * 64, "3" * 64)
CONFIG = FrontierConfig(
    split="test", reachers=("r",), solvers=("a", "b"), tasks=6, slots=1, reach_budget=40, run_seed=3
)


class Shown(Policy):
    """Says that it is shown ``prompt`` with ``tokens`` tokens, before it decides or only afterwards."""

    def __init__(self, prompt: str, tokens: int = 3, stated: Any = "one template", foreseen: bool = True) -> None:
        self.prompt, self.tokens, self.stated, self.foreseen, self.asked = prompt, tokens, stated, foreseen, 0

    def describe(self) -> Mapping[str, Any]:
        return {"prompt": self.stated}

    def preview(self, request: Request) -> Preview:
        return Preview(self.prompt, None, self.tokens) if self.foreseen else Preview()

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        self.asked += len(requests)
        generation = Generation(rendered=self.prompt)
        return [
            attrs.evolve(scripted(one, one.record.admissible[0]), generation=generation, prompt_tokens=self.tokens)
            for one in requests
        ]


def play(folder: Path, a: Policy, b: Policy) -> None:
    FRONTIER.prepare("sokoban", {}, CONFIG, {"r": "expert", "a": a, "b": b}).run(folder, Where(0))


def test_a_prompt_that_is_known_to_differ_ends_the_run_before_the_second_solver_decides(tmp_path: Path) -> None:
    first, second = Shown(X), Shown(Y)
    with pytest.raises(Interrupted) as caught:
        play(tmp_path, first, second)
    text = str(caught.value)
    task = study.load(tmp_path).tasks
    assert any(f"task {one.name}, slot 0, reacher r: solvers a and b must be shown the same" in text for one in task)
    assert "the rendered prompt differs (111111111111... and 222222222222...)" in text
    assert "records are owed" in text
    assert first.asked > 0
    assert second.asked == 0
    kinds = [key[0] for key, _ in records(tmp_path)]
    assert kinds.count("trajectory") == 6, "what is finished is kept"


def test_a_prompt_that_only_the_answer_tells_ends_the_run_before_the_answer_counts(tmp_path: Path) -> None:
    second = Shown(X, tokens=4, foreseen=False)
    with pytest.raises(Interrupted, match=r"the number of prompt tokens differs \(3 and 4\)"):
        play(tmp_path, Shown(X), second)
    assert second.asked > 0
    endpoints = [body for key, body in records(tmp_path) if key[0] == "endpoint" and key[-1] == "b"]
    assert not any(body["arrived"] for body in endpoints)


def test_a_resumed_run_compares_with_what_was_finished_before(tmp_path: Path) -> None:
    for last in (Y, Z):
        with pytest.raises(Interrupted, match=rf"rendered prompt differs \(1+\.\.\. and {last[:12]}\.\.\.\)"):
            play(tmp_path, Shown(X), Shown(last, foreseen=False))
    play(tmp_path, Shown(X), Shown(X, foreseen=False))
    assert study.load(tmp_path).complete


def test_prompts_that_the_manifest_states_to_differ_are_not_compared(tmp_path: Path) -> None:
    play(tmp_path, Shown(X, 3), Shown(Y, 4, stated="another template"))
    assert study.load(tmp_path).complete


@pytest.mark.parametrize("shared", [True, False])
def test_a_server_whose_chat_template_shows_the_second_is_found_out(tmp_path: Path, shared: bool) -> None:
    options = {"max_prompt_tokens": 50_000, "patience": 5.0, "concurrency": 1}
    with serving() as server:
        seconds = count()
        server.chat = lambda messages, **_: f"It is 12:00:{next(seconds)}.{fault_server.chat(messages)}"
        specs = {"r": "expert", "a": f"openai:{server.url}#m", "b": f"openai:{server.url}#m"}
        # Solvers of equal options share one policy.
        models = {"a": ModelOptions(**options), "b": ModelOptions(**options, top_p=1.0 if shared else 0.9)}
        run = FRONTIER.prepare("sokoban", {}, CONFIG, specs, models)
        assert [caution.split(": ", 1)[0] for caution in run.cautions] == ["policy a", "policy b"]
        with pytest.raises(Interrupted, match=r"solvers a and b must be shown .* but the prompt token ids"):
            run.run(tmp_path, Where(0))
