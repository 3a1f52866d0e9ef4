"""The interface that every policy has, scripted or a language model.

A policy is asked in batches of all waiting requests, and no decision may depend on the other requests of its batch.
Randomness comes from ``Request.seed`` alone.
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
from handoff.errors import UsageError
from handoff.messages.history import conversation
from handoff.records import Decision, Message, Offer, Record, Step, Task

#: Entries of a description that tell what was observed of a model, or that earlier versions did not state.  They do not
#: follow from the command, so a folder's name does not depend on them, and :meth:`Policy.resume_from` compares them.
OBSERVED = frozenset({"answers_as", "fingerprint", "now", "rewrites", "texts"})


@attrs.frozen
class Turn:
    """One past action and its result."""

    #: The text that the environment got; empty when the step was spent without one.
    action: str
    record: Record
    #: Everything that the policy said.
    reply: str = ""

    @classmethod
    def of(cls, step: Step) -> Turn:
        """The turn of a recorded step."""
        return cls(step.decision.action or "", step.record, step.decision.text)

    @cached_property
    def digest(self) -> str:
        """Digest of all fields, kept because every later decision of the episode shows the turn again."""
        return digest([self.action, self.reply, self.record.digest()])


@attrs.frozen
class Request:
    """The input of one decision."""

    task: Task
    seed: int
    #: The record of the episode's reset.
    reset: Record
    #: From the first action of the episode, whoever took it: a solver sees the reacher's actions.
    history: tuple[Turn, ...]
    #: Actions left, this one included.
    remaining: int
    #: Actions that win from here, for a policy that ``needs_plan``; empty if the environment knows none.
    plan: tuple[str, ...] | None = None
    #: Tells episodes of one task apart, to choose among equal servers; the policy does not see it.
    slot: int = 0
    #: Sampling temperature; ``None``: the policy's own.  Only for a policy that has one.
    temperature: float | None = None

    @property
    def record(self) -> Record:
        """The current record."""
        return self.history[-1].record if self.history else self.reset

    @property
    def is_conversation(self) -> bool:
        """Whether the environment's state is a list of messages, and the action a whole reply."""
        return bool(self.reset.messages)

    @property
    def offer(self) -> Offer:
        """The actions that the current state accepts."""
        return self.record.offer(self.is_conversation)

    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return conversation(self.reset, ((turn.action, turn.record) for turn in self.history))

    def tempered(self, own: float) -> float:
        """The temperature to sample at, for a policy whose own is ``own``."""
        return own if self.temperature is None else self.temperature

    def input_digest(self) -> str:
        """Digest of everything that the policy sees: task, reset record, each action with reply and record, the actions
        left, and the temperature where the request names one."""
        view: list[Any] = [
            self.task.id,
            self.remaining,
            self.reset.digest(),
            [turn.digest for turn in self.history],
        ]
        return digest(view if self.temperature is None else [*view, self.temperature])


@attrs.frozen
class Preview:
    """What is known of a prompt before a policy decides; ``None``: not known."""

    #: Digest of the rendered prompt.
    rendered: str | None = None
    #: Digest of its token ids.
    ids: str | None = None
    #: Their number.
    tokens: int | None = None


class Policy(ABC):
    """Decides actions."""

    #: Whether every request has the environment's plan.
    needs_plan: ClassVar[bool] = False
    #: Whether a batch takes so long that it is decided in a thread, while other episodes go on.
    blocking: ClassVar[bool] = False
    #: Whether it holds memory that others need: it decides in a separate phase, between ``activate`` and ``release``.
    exclusive: ClassVar[bool] = False
    #: How many requests at once it can use (0: any number).
    capacity: int = 0
    #: What it samples at unless a request says otherwise (``None``: it has no temperature, and takes none).
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

    def set_time(self, now: str) -> None:  # noqa: B027 - optional
        """Take ``now``, in ISO form, as the time that prompts show, unless the policy's own options pin another."""

    def cautions(self) -> list[str]:
        """What a user should know of the policy before a run, each as the rest of a sentence."""
        return []

    def preview(self, request: Request) -> Preview:
        """What the policy will be shown for ``request``, as far as it is known without asking anybody."""
        return Preview()

    async def ask_preview(self, request: Request) -> Preview:
        """As :meth:`preview`, with what others know of it."""
        return self.preview(request)

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        """Hold this policy against ``stated``, its description in the manifest of a run that is to go on.

        The two are equal but for :data:`OBSERVED`.  Returns remarks.  Raises
        :class:`~handoff.errors.UsageError` if another model answers now.
        """
        described = self.describe()
        names = [key for key in sorted(OBSERVED) if described.get(key) != stated.get(key)]
        if names:
            raise UsageError(f"its description differs in {', '.join(names)}")
        return []

    def remarks(self) -> list[str]:
        """What somebody who reads a run's results should know of how the policy was asked; for the end of the run."""
        return []

    def system_fingerprints(self) -> Sequence[str]:
        """What the servers have said of their software and hardware so far, sorted; no part of the identity."""
        return ()

    def activate(self) -> None:  # noqa: B027 - optional
        """Get ready to be asked: load the model, or move it to the accelerator.  May be called twice."""

    def release(self) -> None:  # noqa: B027 - optional
        """Free the memory that others need; :meth:`activate` may follow.  May be called twice."""

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
    status = "parsed" if action in request.offer else "inadmissible"
    return Decision(action, action, status, request.seed, request.input_digest(), flags)
