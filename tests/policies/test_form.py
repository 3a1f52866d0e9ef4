"""What a decision may hold is checked where a policy hands it over, and every part of it is."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from handoff.episodes.batching import Batcher
from handoff.errors import PolicyFault
from handoff.policies import Policy, Request, Served, scripted
from handoff.policies.form import MOST_TEXT, form_problems
from handoff.records import STATUSES, Decision, Generation, Record, Task

RESET = Record("here", ("a", "b"), 0.0, False, False)
REQUEST = Request(Task("t", "t", "x", "test"), 5, RESET, (), 3)
GOOD = scripted(REQUEST, "a")
SPOKEN = attrs.evolve(GOOD, generation=Generation("0" * 64, "stop", None, 3, "f" * 64, 8), prompt_tokens=4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "fine"}, "has the unknown status 'fine'"),
        ({"text": 3}, "a text that is none"),
        ({"text": "x" * (MOST_TEXT + 1)}, "too long"),
        ({"action": "  "}, "an action without words"),
        ({"action": None}, "is called 'parsed', with the action None"),
        ({"status": "empty"}, "is called 'empty', with the action 'a'"),
        ({"seed": -1}, "has the seed -1"),
        ({"seed": True}, "has the seed True"),
        ({"seed": 2**63}, "has the seed"),
        ({"input_digest": "0" * 63}, "has the input digest"),
        ({"flags": ["noise"]}, "flags that are no words"),
        ({"flags": (1,)}, "flags that are no words"),
        ({"flags": ("noise", "noise")}, "a flag twice"),
        ({"prompt_digest": "0" * 63 + "g"}, "has the prompt digest"),
        ({"prompt_tokens": -5}, "has -5 prompt tokens"),
        ({"prompt_tokens": 10**40}, "prompt tokens"),
        ({"prompt_tokens": 3.0}, "has 3.0 prompt tokens"),
    ],
)
def test_each_part_of_a_decision_has_its_form(changes: dict[str, Any], says: str) -> None:
    assert list(form_problems(SPOKEN)) == []
    (problem,) = form_problems(attrs.evolve(SPOKEN, **changes))
    assert says in problem


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rendered": "hello"}, "the rendered prompt's digest 'hello'"),
        ({"digest": ""}, "of its tokens, which is none"),
        ({"finish": "banana"}, "the unknown finish reason 'banana'"),
        ({"stop": 7}, "a stop string that is no text"),
        ({"reasoning": ["a"]}, "a thinking that is no text"),
        ({"tokens": -5}, "has -5 generated tokens"),
        ({"tokens": 10**9}, "generated tokens"),
        ({"max_tokens": 0}, "the limit of 0 generated tokens"),
    ],
)
def test_each_part_of_a_generation_has_its_form(changes: dict[str, Any], says: str) -> None:
    assert SPOKEN.generation is not None
    (problem,) = form_problems(attrs.evolve(SPOKEN, generation=attrs.evolve(SPOKEN.generation, **changes)))
    assert says in problem


def test_flags_are_those_that_the_policy_can_write() -> None:
    noisy = attrs.evolve(GOOD, flags=("noise",))
    assert list(form_problems(noisy, {"noise"})) == []
    assert list(form_problems(noisy, None)) == []
    assert list(form_problems(noisy, set())) == ["has the flag 'noise', which its policy never writes"]


def test_every_status_has_an_action_or_has_none() -> None:
    for status in STATUSES:
        with_action, without = (attrs.evolve(GOOD, status=status, action=action) for action in ("a", None))
        assert [bool(list(form_problems(one))) for one in (with_action, without)].count(True) == 1, status


class Fixed(Policy):
    """Gives what it was made with."""

    def __init__(self, decision: Any) -> None:
        self.decision = decision

    def decide(self, requests: Any) -> list[Decision]:
        return [self.decision for _ in requests]


class FixedServer(Served):
    """Gives what it was made with, one request at a time."""

    def __init__(self, decision: Any) -> None:
        self.decision = decision

    async def decide_one(self, request: Request) -> Decision:
        decision: Decision = self.decision
        return decision


@pytest.mark.parametrize("kind", [Fixed, FixedServer])
def test_no_record_gets_a_decision_of_another_form(kind: Any) -> None:
    assert asyncio.run(Batcher(kind(GOOD)).decide(REQUEST)) == GOOD
    for wrong, says in (
        (attrs.evolve(GOOD, prompt_digest="none"), "has the prompt digest 'none', which is none"),
        (attrs.evolve(SPOKEN, generation=attrs.evolve(SPOKEN.generation, tokens=-5)), "has -5 generated tokens"),
    ):
        with pytest.raises(PolicyFault, match=says):
            asyncio.run(Batcher(kind(wrong)).decide(REQUEST))
