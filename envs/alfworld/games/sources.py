"""Sources of games: a folder, or the built-in games."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from handoff.envs.alfworld.games.files import SPLITS, FolderSource, GameSource
from handoff.errors import UsageError
from handoff.records import Task


def find_source(data: str | None, trust: bool = False) -> GameSource:
    """The source of games: ``data``, else the variable ``ALFWORLD_DATA``, else the built-in games.

    A path may contain ``~`` and variables.  Raises :class:`~handoff.errors.UsageError` for an unset variable and for a
    path that does not exist.
    """
    from handoff.envs.alfworld.games.builtin import BuiltinSource  # its modules are for built-in games only

    if data == "builtin":
        return BuiltinSource()
    path, origin = data, "--data"
    if path is None:
        path, origin = os.environ.get("ALFWORLD_DATA"), "ALFWORLD_DATA"
    if path is None:
        return BuiltinSource()
    if not path.strip():
        raise UsageError(f"{origin} is empty; give a folder with ALFWorld games or 'builtin'")
    expanded = os.path.expanduser(os.path.expandvars(path))
    unset = re.search(r"\$\{?(\w+)\}?", expanded)
    if unset:
        raise UsageError(f"{origin} is {path!r}, but the variable {unset[1]} is not set (resolved to {expanded!r})")
    return FolderSource(Path(expanded), trust)


def list_tasks(data: str | None, split: str | None, trust: bool = False) -> Sequence[Task]:
    """The tasks of one split, or of all splits of the source in the order of ``SPLITS``.

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
