"""How many turns of an episode fit in a prompt, told before the run from the first turns of a few tasks.

The prompt before the first action is measured, and the one after some actions; the difference is the growth per turn.
What a model will write is not known, so two growths are told: with replies that are an action alone, and with replies
of ``max_new_tokens``, the most that they can have.  Where a prompt does not show replies, both are one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from handoff.policies.language.model import Speaker
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Request

#: Characters of a token, where nothing tokenizes.
_CHARACTERS = 4
#: What tells whether a prompt shows whole replies: longer than any action.
_THINKING = "<think>\n" + "and so on " * 40 + "\n</think>\n\n"


@runtime_checkable
class Prompting(Protocol):
    """A policy whose prompts can be measured."""

    options: ModelOptions
    speaker: Speaker
    context: int | None

    async def count(self, request: Request) -> int | None:
        """Tokens of the prompt for ``request``; ``None``: not known."""


@attrs.frozen
class Fit:
    """How many turns fit in the prompts of one policy."""

    #: Turns that an episode may have.
    turns: int
    #: Turns that fit if every reply has the most tokens.
    least: int
    #: Turns that fit if every reply is an action alone.
    most: int
    #: Tokens that a prompt may have.
    limit: int
    #: Whether the model's context sets the limit.
    by_context: bool
    #: Tokens of the first prompt, and of a turn after it in either case.
    first: int
    growth: tuple[float, float]
    #: ``tokens``, or ``characters``: four of them taken for a token.
    counted: str
    max_new_tokens: int

    @property
    def fits(self) -> bool:
        return self.least >= self.turns

    def sentence(self) -> str:
        """The same in words."""
        where = "the model's context of" if self.by_context else "--max-prompt-tokens"
        estimated = "" if self.counted == "tokens" else f", estimated at {_CHARACTERS} characters per token"
        if self.fits:
            return f"about {self.turns} of {self.turns} turns fit in {where} {self.limit}{estimated}"
        each = f"about {self.least}"
        why = ""
        if self.least != self.most:
            each += f" to {self.most}"
            why = (
                f" ({self.least} if every reply has {self.max_new_tokens} tokens, the most; {self.most} if it is an "
                "action alone)"
            )
        way = "give --history K" + ("" if self.by_context else " or a larger --max-prompt-tokens")
        return (
            f"{each} of {self.turns} turns fit in {where} {self.limit}{why}{estimated}; a longer prompt spends its "
            f"step as a context overflow: {way}"
        )

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


async def fit(policy: Prompting, openings: Sequence[Request], turns: int) -> Fit | None:
    """How many of ``turns`` turns fit, at the opening that leaves room for the fewest.

    ``openings`` are requests after some actions, with empty replies.  ``None``: there are none.
    """
    fits = [await _at(policy, opening, turns) for opening in openings if opening.history]
    return min(fits, key=lambda one: (one.least, one.most), default=None)


async def _at(policy: Prompting, opening: Request, turns: int) -> Fit:
    options = policy.options
    played = len(opening.history)
    bare = attrs.evolve(opening, history=(), remaining=opening.remaining + played)
    first, counted = await _size(policy, bare)
    short = ((await _size(policy, _replied(opening, "")))[0] - first) / played
    thought = ((await _size(policy, _replied(opening, _THINKING)))[0] - first) / played
    long = short + options.max_new_tokens if thought > short + 1 else short
    limit = options.max_prompt_tokens
    if policy.context is not None:
        limit = min(limit, policy.context - 1)
    window = turns if options.history is None else options.history
    least, most = (_turns(first, growth, limit, window, turns) for growth in (long, short))
    return Fit(
        turns,
        least,
        most,
        limit,
        limit < options.max_prompt_tokens,
        first,
        (round(short, 1), round(long, 1)),
        counted,
        options.max_new_tokens,
    )


def _turns(first: int, growth: float, limit: int, window: int, turns: int) -> int:
    """Turns whose prompt has at most ``limit`` tokens, where the prompt of turn n shows ``min(n - 1, window)`` more."""
    if first > limit:
        return 0
    if growth <= 0 or first + growth * min(turns - 1, window) <= limit:
        return turns
    return min(turns, math.floor((limit - first) / growth) + 1)


def _replied(opening: Request, thinking: str) -> Request:
    """``opening`` with replies that name their actions."""
    history = tuple(attrs.evolve(turn, reply=f"{thinking}<action>{turn.action}</action>") for turn in opening.history)
    return attrs.evolve(opening, history=history)


async def _size(policy: Prompting, request: Request) -> tuple[int, str]:
    tokens = await policy.count(request)
    if tokens is not None:
        return tokens, "tokens"
    return math.ceil(policy.speaker.render(request).characters / _CHARACTERS), "characters"
