"""Draws a run's tasks by a seed, in equal numbers per type."""

from __future__ import annotations

from collections.abc import Sequence

from handoff.errors import UsageError
from handoff.records import Task
from handoff.seeds import derive


def draw_tasks(
    tasks: Sequence[Task], split: str, count: int | None, types: Sequence[str], selection_seed: int
) -> list[Task]:
    """``count`` of ``tasks``, as many of each type, drawn by a seed; all of them if ``count`` is ``None``.

    A task's place in the draw is a hash of (selection seed, task id), so the draw does not depend on the order or the
    paths of the tasks, and a smaller sample is part of a larger one.  Raises :class:`~handoff.errors.UsageError` if
    the number does not divide by the types or a type has too few tasks.
    """
    by_type: dict[str, list[Task]] = {}
    for task in tasks:
        by_type.setdefault(task.type, []).append(task)
    wanted = sorted(set(types or by_type))
    for name in wanted:
        if name not in by_type:
            raise UsageError(f"split {split!r} has no task of type {name!r} (it has: {', '.join(sorted(by_type))})")
    if count is None:
        return [task for name in wanted for task in by_type[name]]
    each, rest = divmod(count, len(wanted))
    if rest or not each:
        raise UsageError(
            f"{count} tasks cannot be drawn in equal numbers from {len(wanted)} task types; "
            f"ask for a multiple of {len(wanted)} (--tasks), or name the types (--type)"
        )
    chosen: list[Task] = []
    for name in wanted:
        if len(by_type[name]) < each:
            raise UsageError(
                f"type {name!r} has {len(by_type[name])} tasks in split {split!r}, but {each} are asked for"
            )
        drawn = sorted(by_type[name], key=lambda task: (derive(selection_seed, "select", task.id), task.id))
        chosen.extend(drawn[:each])
    return chosen
