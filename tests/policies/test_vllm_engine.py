"""What the policy asks of vLLM's offline engine: a stub here, the real engine in test_vllm."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from handoff.errors import Interrupted, UsageError
from handoff.policies import ModelOptions, make
from handoff.policies.doctor import requests

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from kit.checkpoints import make as make_checkpoint


class Engine:
    """Replies with the seed of each request, and keeps what it was asked."""

    finish: str | None = "stop"

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        engines.append(self)

    def generate(self, prompts: list[Any], parameters: list[Any], use_tqdm: bool) -> list[Any]:
        self.prompts, self.parameters = prompts, parameters
        return [SimpleNamespace(outputs=[self.reply(one)]) for one in parameters]

    def reply(self, parameters: Any) -> Any:
        text = f"<action>{parameters.seed}</action>"
        return SimpleNamespace(text=text, finish_reason=self.finish, stop_reason=None, token_ids=[1, 2])


engines: list[Engine] = []


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = Engine, SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr("handoff.policies.vllm._version", lambda: "0.0.test")
    monkeypatch.setattr("handoff.policies.vllm._device", lambda: "cpu")
    engines.clear()
    make_checkpoint(tmp_path / "model", 1)
    return tmp_path / "model"


def test_each_request_is_sent_as_token_ids_with_its_seed_and_settings(checkpoint: Path) -> None:
    policy = make(f"vllm:{checkpoint}", ModelOptions(max_new_tokens=9, top_k=3, dtype="float32"))
    batch = requests(5)
    decisions = policy.decide(batch)
    (engine,) = engines
    assert [decision.action for decision in decisions] == [str(request.seed) for request in batch]
    assert [one.seed for one in engine.parameters] == [request.seed for request in batch]
    assert {(one.temperature, one.top_p, one.top_k, one.max_tokens) for one in engine.parameters} == {(0.4, 1.0, 3, 9)}
    assert [len(prompt["prompt_token_ids"]) for prompt in engine.prompts] == [one.prompt_tokens for one in decisions]
    assert (engine.arguments["model"], engine.arguments["trust_remote_code"]) == (str(checkpoint), False)
    facts = policy.describe()
    assert (facts["kind"], facts["spec"], facts["tokens"]) == ("vllm", "vllm:model", "ids")
    assert facts["engine"].items() >= {"name": "vllm", "version": "0.0.test", "device": "cpu", "seed": 0}.items()


def test_a_prompt_that_is_too_long_is_an_overflow_in_its_place_and_is_not_sent(checkpoint: Path) -> None:
    batch = requests(7)  # histories of 0 to 6 turns
    lengths = [one.prompt_tokens or 0 for one in make(f"vllm:{checkpoint}").decide(batch)]
    limit = sorted(lengths)[3]
    decisions = make(f"vllm:{checkpoint}", ModelOptions(max_prompt_tokens=limit)).decide(batch)
    assert [one.status == "context_overflow" for one in decisions] == [length > limit for length in lengths]
    assert len(engines[-1].prompts) == sum(length <= limit for length in lengths) == 4


def test_a_reply_that_was_aborted_leaves_the_decision_owed(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "finish", "abort")
    with pytest.raises(Interrupted, match=r"did not end a reply \(finish reason 'abort'\)"):
        make(f"vllm:{checkpoint}").decide(requests(2))


def test_arguments_that_say_which_model_it_is_are_refused(checkpoint: Path) -> None:
    with pytest.raises(UsageError, match="the toolkit sets the engine arguments model, revision itself"):
        make(f"vllm:{checkpoint}", ModelOptions(engine={"model": "other", "revision": "x", "seed": 1}))
