"""The interface that every policy has, scripted or a language model.

A policy is asked in batches: whatever requests are waiting make one batch, and no decision may depend on which other
requests are in it.  Randomness comes from ``Request.seed`` alone.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs

from handoff import signals
from handoff.canonical import digest
from handoff.records import Decision, Record, Step, Task


@attrs.frozen
class Turn:
    """One past action (the text that the environment got; empty when the step was spent without one), the record that
    it led to, and all that the policy said (``reply``)."""

    action: str
    record: Record
    reply: str = ""

    @classmethod
    def of(cls, step: Step) -> Turn:
        """The turn that a recorded step was."""
        return cls(step.decision.action or "", step.record, step.decision.text)

    @cached_property
    def digest(self) -> str:
        """Digest of all of it.  A turn is shown again at every later decision of its episode."""
        return digest([self.action, self.reply, self.record.digest()])


@attrs.frozen
class Request:
    """What a policy decides from.

    ``history`` starts at the first action of the episode whoever took it: a solver sees the reacher's actions.
    ``remaining`` is the number of actions left, this one included.  ``plan`` is there only for a policy that
    ``needs_plan``: actions that win from here, empty if the environment knows none.  ``slot`` tells episodes of one
    task apart, for choosing among equal servers; it is not shown to the policy.  ``temperature`` is what the decision
    is sampled at (``None``: the policy's own); only a policy that has one may be given another.
    """

    task: Task
    seed: int
    reset: Record
    history: tuple[Turn, ...]
    remaining: int
    plan: tuple[str, ...] | None = None
    slot: int = 0
    temperature: float | None = None

    @property
    def record(self) -> Record:
        """The current record."""
        return self.history[-1].record if self.history else self.reset

    def tempered(self, own: float) -> float:
        """The temperature to sample at, for a policy whose own is ``own``."""
        return own if self.temperature is None else self.temperature

    def input_digest(self) -> str:
        """Digest of everything shown: task, reset record, each action with reply and record, and the actions left; and
        of the temperature where the request names one."""
        shown: list[Any] = [
            self.task.id,
            self.remaining,
            self.reset.digest(),
            [turn.digest for turn in self.history],
        ]
        return digest(shown if self.temperature is None else [*shown, self.temperature])


class Policy(ABC):
    """Decides actions.

    ``needs_plan`` asks the environment for a plan with every request.  A ``blocking`` policy takes so long that its
    batches are decided in a thread, while episodes that wait for other things go on.  An ``exclusive`` policy holds
    memory that others need: it is asked in a phase of its own, between :meth:`activate` and :meth:`release`.
    ``capacity`` is how many requests at once it can make use of (0: any number will do).  ``temperature`` is what it
    samples at unless a request says otherwise (``None``: it has no temperature, and takes none).
    """

    needs_plan: ClassVar[bool] = False
    blocking: ClassVar[bool] = False
    exclusive: ClassVar[bool] = False
    capacity: int = 0
    temperature: float | None = None

    @abstractmethod
    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """One decision per request, in order."""

    async def introduce(self) -> None:  # noqa: B027 - optional
        """Read or ask outside what :meth:`describe` says.  May be called twice; a run awaits it before the rest, and
        constructors do no input or output."""

    def describe(self) -> Mapping[str, Any]:
        """JSON-safe identity for the manifest: specification, digests of weights or files, sampling options."""
        return {}

    def activate(self) -> None:  # noqa: B027 - optional
        """Get ready to be asked: load the model, or move it to the accelerator.  May be called twice."""

    def release(self) -> None:  # noqa: B027 - optional
        """Give up what others need; :meth:`activate` may follow.  May be called twice."""

    def close(self) -> None:  # noqa: B027 - optional
        """Free what the policy holds.  May be called twice."""


class Served(Policy):
    """A policy whose decisions are made elsewhere, one request at a time: none is held up by the others."""

    @abstractmethod
    async def decide_one(self, request: Request) -> Decision:
        """The decision for ``request``."""

    async def aclose(self) -> None:
        """Close what belongs to the running event loop.  May be called twice."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """One decision per request, in order, all asked at once."""

        async def ask() -> list[Decision]:
            await self.introduce()
            try:
                return list(await asyncio.gather(*(self.decide_one(request) for request in requests)))
            finally:
                await self.aclose()

        return signals.run(ask)


def scripted(request: Request, action: str | None, flags: tuple[str, ...] = ()) -> Decision:
    """The decision of a policy that names an action outright."""
    if action is None or not action.strip():
        return Decision("", None, "empty", request.seed, request.input_digest(), flags)
    status = "parsed" if action in request.record.admissible else "inadmissible"
    return Decision(action, action, status, request.seed, request.input_digest(), flags)
