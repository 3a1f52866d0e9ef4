"""All games of a source, whichever splits it has."""

from __future__ import annotations

from collections.abc import Sequence

from handoff.envs.alfworld.games import SPLITS, find_source
from handoff.errors import UsageError
from handoff.records import Task


def listed(data: str | None, split: str | None, trust: bool = False) -> Sequence[Task]:
    """Tasks of one split, or of all splits that the source has, in the order of ``SPLITS``.

    Raises :class:`~handoff.errors.UsageError` if there is none.
    """
    source = find_source(data, trust)
    if split is not None:
        return source.tasks(split)
    tasks: list[Task] = []
    refusal: UsageError | None = None
    for name in (*SPLITS, "default"):
        try:
            tasks.extend(source.tasks(name))
        except UsageError as error:
            refusal = refusal or error
    if not tasks and refusal is not None:
        raise refusal
    return tasks
