"""The interface that every policy has, scripted or a language model.

A policy is asked in batches: whatever requests are waiting make one batch, and no decision may depend on which other
requests are in it.  Randomness comes from ``Request.seed`` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from handoff.canonical import digest
from handoff.records import Decision, Record, Task


@attrs.frozen
class Turn:
    """One past action (the text that the environment got; empty when the step was spent without one) and the record
    that it led to."""

    action: str
    record: Record


@attrs.frozen
class Request:
    """What a policy decides from.

    ``history`` starts at the first action of the episode whoever took it: a solver sees the reacher's actions.
    ``remaining`` is the number of actions left, this one included.  ``plan`` is there only for a policy that
    ``needs_plan``: actions that win from here, empty if the environment knows none.
    """

    task: Task
    seed: int
    reset: Record
    history: tuple[Turn, ...]
    remaining: int
    plan: tuple[str, ...] | None = None

    @property
    def record(self) -> Record:
        """The current record."""
        return self.history[-1].record if self.history else self.reset

    def input_digest(self) -> str:
        """Digest of everything shown: task, reset record, each action with its record, and the actions left."""
        return digest(
            [
                self.task.id,
                self.remaining,
                self.reset.digest(),
                [[turn.action, turn.record.digest()] for turn in self.history],
            ]
        )


class Policy(ABC):
    """Decides actions.

    ``needs_plan`` asks the environment for a plan with every request.  A ``blocking`` policy takes so long that its
    batches are decided in a thread, while episodes that wait for other things go on.
    """

    needs_plan: ClassVar[bool] = False
    blocking: ClassVar[bool] = False

    @abstractmethod
    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        """One decision per request, in order."""

    def describe(self) -> Mapping[str, Any]:
        """JSON-safe identity for the manifest: specification, digests of weights or files, sampling options."""
        return {}

    def close(self) -> None:  # noqa: B027 - optional
        """Free what the policy holds.  May be called twice."""


def scripted(request: Request, action: str | None, flags: tuple[str, ...] = ()) -> Decision:
    """The decision of a policy that names an action outright."""
    if action is None or not action.strip():
        return Decision("", None, "empty", request.seed, request.input_digest(), flags)
    status = "parsed" if action in request.record.admissible else "inadmissible"
    return Decision(action, action, status, request.seed, request.input_digest(), flags)


__all__ = ["Policy", "Request", "Turn", "scripted"]
