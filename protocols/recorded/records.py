"""What a recorded-history run records: trajectories, continuations, formatted answers, repairs, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from handoff.messages.replies import read_reply
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.records import AnswerVerdict, Decision, Record, Step
from handoff.runs.chain import Key

TRAJECTORY, CONTINUATION, FORMATTING, REPAIR, VERDICT = "recorded", "continuation", "formatting", "repair", "verdict"
#: Kinds of records that each row (task, slot, reacher, solver) has, in the order in which they are sealed.
OF_ROWS = (CONTINUATION, FORMATTING, REPAIR, VERDICT)


def trajectory_key(cell: Cell) -> Key:
    return (TRAJECTORY, cell.task, str(cell.slot), cell.reacher)


def row_key(kind: str, row: EndpointCell) -> Key:
    return (kind, row.task, str(row.slot), row.reacher, row.solver)


@attrs.frozen
class History:
    """A reacher's whole episode, under the native limits.

    ``outcome`` is ``ended`` (an answer, or an end of the environment), ``decisions`` or ``calls`` (a limit was
    reached), ``context`` (the prompt no longer fitted) or ``markup`` (the server left calls unread in the text).
    ``closing`` says that the last decision was made after the environment's last request had replaced the last
    message.
    """

    task: str
    slot: int
    reacher: str
    reset_seed: int
    reset: Record
    steps: tuple[Step, ...]
    outcome: str
    closing: bool = False

    @property
    def cell(self) -> Cell:
        return Cell(self.task, self.slot, self.reacher)

    def records(self) -> tuple[Record, ...]:
        """The record after reset and after every step (``len(steps) + 1`` records)."""
        return (self.reset, *(step.record for step in self.steps))


@attrs.frozen
class Rebuilt:
    """What was verified when a history was rebuilt: ``records`` replayed records with the digest ``digest``, and
    ``messages`` messages, equal byte for byte, with the digest ``messages_digest``.  ``input_digest`` is that of the
    solver's first input."""

    records: int
    digest: str
    messages: int
    messages_digest: str
    input_digest: str


@attrs.frozen
class Continuation:
    """A solver's turn after the cut.

    ``cut`` is the number of the reacher's decisions that were handed over; ``None``: the trajectory never came to the
    cut, so there is no turn, and the row is a failure.  ``outcome`` is ``ended``, ``invalid`` (an action that is none),
    ``budget``, ``context``, ``markup`` or ``unreached``.  ``answer`` is what the episode came to, where it ended.
    """

    task: str
    slot: int
    reacher: str
    solver: str
    cut: int | None
    outcome: str
    rebuilt: Rebuilt | None = None
    steps: tuple[Step, ...] = ()
    answer: Any = None

    @property
    def row(self) -> EndpointCell:
        return EndpointCell(self.task, self.slot, self.reacher, self.solver)


@attrs.frozen
class Formatting:
    """A row's answer in the form that is scored.

    ``call`` is the digest of the messages that asked for it: rows with equal answers to one query share the call, and
    so the ``decision``.  ``None``: there was no call, since there is no answer, or nothing in it.  ``answer`` is what
    the reply was read as; ``None``: it could not be read.
    """

    task: str
    slot: int
    reacher: str
    solver: str
    call: str | None = None
    decision: Decision | None = None
    answer: Any = None

    @property
    def row(self) -> EndpointCell:
        return EndpointCell(self.task, self.slot, self.reacher, self.solver)

    @property
    def empty(self) -> bool:
        """Whether the formatter's reply was an empty envelope."""
        return self.decision is not None and not self.decision.text.strip()


@attrs.frozen
class Scoring:
    """The score of a row.  ``verdict`` is ``None`` where there was nothing to score: the row is a failure."""

    task: str
    slot: int
    reacher: str
    solver: str
    verdict: AnswerVerdict | None = None

    @property
    def row(self) -> EndpointCell:
        return EndpointCell(self.task, self.slot, self.reacher, self.solver)

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.passed


def calls_in(steps: Sequence[Step]) -> int:
    """How many of the decisions call a tool."""
    return sum(bool(read_reply(step.decision.action or "").calls) for step in steps)
