"""Where a recorded trajectory is cut: a function of the recorded run alone.

``final``
    before the last model call, whatever that was.
``call:K``
    before the K-th model call, counted from 1.
``turn:K``
    before the first decision after the K-th message of the user, counted from 1; ``turn:last`` is the last one that the
    trajectory has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from handoff.errors import UsageError
from handoff.messages.history import added
from handoff.protocols.recorded.records import History
from handoff.records import Message

#: How a cut is written.
FORMS = "final, call:K, turn:K (K counted from 1) or turn:last"


@attrs.frozen
class Cut:
    """A rule for the cut."""

    text: str
    kind: str
    #: ``None``: the last one.
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Raises :class:`~handoff.errors.UsageError` for what is no rule."""
        kind, _, argument = text.partition(":")
        if text == "final":
            return cls(text, kind)
        if kind in ("call", "turn") and re.fullmatch("[1-9][0-9]{0,5}", argument):
            return cls(text, kind, int(argument))
        if text == "turn:last":
            return cls(text, kind)
        raise UsageError(f"no cut is written {text!r:.40}; write {FORMS}")

    @property
    def of_turns(self) -> bool:
        """Whether the solver plays on under the native limits, and not for a few decisions."""
        return self.kind == "turn"

    def place(self, history: History) -> int | None:
        """How many of the reacher's decisions are handed over; ``None``: the trajectory never comes to the cut."""
        count = len(history.steps)
        if self.kind == "final":
            return max(count - 1, 0)
        if self.kind == "call":
            assert self.number is not None
            return self.number - 1 if self.number <= max(count, 1) else None
        totals = [_users(history.reset.messages)]
        for step in history.steps:  # a decision without a reply adds nothing
            totals.append(totals[-1] + (_users(added(step.record)) if step.decision.action else 0))
        wanted = totals[-1] if self.number is None else self.number
        return next((place for place, total in enumerate(totals) if total >= wanted), None)


def _users(messages: Sequence[Message]) -> int:
    return sum(message.role == "user" for message in messages)
