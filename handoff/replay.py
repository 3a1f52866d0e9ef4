"""Clone by replay: reset + recorded actions, with equal canonical JSON after reset and after every action.

Nothing else counts as "the same state".  The first difference is named: task, step, field and both values.
"""

from __future__ import annotations

from collections.abc import Sequence

from handoff.canonical import canonical, digest
from handoff.environment import Environment
from handoff.errors import ReplayMismatch, UsageError
from handoff.records import Record, Task, to_json


def difference(recorded: Record, replayed: Record) -> tuple[str, object, object] | None:
    """The first field in which two records differ as canonical JSON, with both values; ``None`` if they are equal."""
    left, right = to_json(recorded), to_json(replayed)
    if canonical(left) == canonical(right):
        return None
    return next(
        (field, left[field], right[field]) for field in left if canonical(left[field]) != canonical(right[field])
    )


def require_equal(recorded: Record, replayed: Record, task: Task, step: int) -> None:
    """Raise :class:`~handoff.errors.ReplayMismatch` unless the two records are equal.  ``step`` 0 is the reset."""
    first = difference(recorded, replayed)
    if first is not None:
        field, left, right = first
        where = "after reset" if step == 0 else f"after action {step}"
        raise ReplayMismatch(
            f"task {task.name or task.id}: {where}, field {field!r} was recorded as {_short(left, right)} "
            f"and replayed as {_short(right, left)}"
        )


def replay(
    environment: Environment, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record]
) -> tuple[Record, ...]:
    """Reset ``environment`` to ``task`` and take ``actions``, requiring each record to equal its ``recorded`` one.

    ``recorded`` holds ``len(actions) + 1`` records, the first after reset.  An empty action means a step that was
    spent without one: the environment is left alone and its record must repeat.  Returns the replayed records.
    Raises :class:`~handoff.errors.ReplayMismatch` at the first difference.
    """
    if len(recorded) != len(actions) + 1:
        raise UsageError(
            f"task {task.name}: {len(actions)} actions need {len(actions) + 1} records, not {len(recorded)}"
        )
    replayed = [environment.reset(task, seed)]
    require_equal(recorded[0], replayed[0], task, 0)
    for step, action in enumerate(actions, start=1):
        replayed.append(environment.step(action) if action else replayed[-1])
        require_equal(recorded[step], replayed[-1], task, step)
    return tuple(replayed)


def records_digest(records: Sequence[Record]) -> str:
    """One digest for a sequence of records: that of the list of their digests."""
    return digest([record.digest() for record in records])


def _short(value: object, other: object) -> str:
    """A value for a message: whole if short, else the part around the first difference to ``other``."""
    text, against = repr(value), repr(other)
    if len(text) <= 200:
        return text
    start = next((i for i, (a, b) in enumerate(zip(text, against, strict=False)) if a != b), len(against))
    low = max(0, start - 60)
    return f"{'...' if low else ''}{text[low : start + 140]}{'...' if start + 140 < len(text) else ''}"
