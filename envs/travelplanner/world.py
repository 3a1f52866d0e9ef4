"""A whole world: the database, the queries by split, and gold plans where they are known.

The folder is the official one, or the small invented world that ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from handoff.canonical import digest, parse
from handoff.envs.travelplanner.database import Database, Reader, describe
from handoff.envs.travelplanner.queries import Query, read
from handoff.errors import DataError, UsageError
from handoff.records import Task

SPLITS = ("validation", "train")
GOLD = "gold_plans.jsonl"


@attrs.frozen(eq=False)
class World:
    """All that the environment reads."""

    database: Database
    #: JSON forms by split and idx, as far as the folder has the split.
    queries: Mapping[str, Mapping[int, Mapping[str, Any]]]
    gold: Mapping[tuple[str, int], list[Any]]
    digests: Mapping[str, str]
    #: Whether it is the invented world.
    shipped: bool

    def tasks(self, split: str) -> list[Task]:
        """All tasks of ``split`` in the order of ``idx``.  Raises :class:`~handoff.errors.UsageError` for no split."""
        if split not in self.queries:
            known = ", ".join(self.queries) or "none"
            more = "; --data FOLDER names a folder with queries_train.jsonl" if self.shipped else ""
            raise UsageError(f"travelplanner has no split {split!r:.40} here (it has {known}){more}")
        return [self._task(split, Query.of(form, "")) for form in self.queries[split].values()]

    def _task(self, split: str, query: Query) -> Task:
        form = self.queries[split][query.idx]
        return Task(
            id=digest({"environment": "travelplanner", "query": dict(form)}),
            name=f"{split}-{query.idx:03d}",
            type=query.level or "query",
            split=split,
            source=f"{split}/{query.idx}",
        )

    def query(self, task: Task) -> tuple[str, Query]:
        """Split and query of ``task``, by its id.  Raises :class:`~handoff.errors.DataError` if there is none."""
        place = _places(self).get(task.id)
        if place is None:
            raise DataError(f"task {task.name!r:.60} is none of this folder's queries")
        split, idx = place
        return split, Query.of(self.queries[split][idx], task.name)

    def describe(self) -> dict[str, Any]:
        """JSON-safe: the digest of every file."""
        return {**describe(self.database), "queries": dict(self.digests)}


@lru_cache(maxsize=8)
def _places(world: World) -> dict[str, tuple[str, int]]:
    return {task.id: (split, int(task.source.split("/")[1])) for split in world.queries for task in world.tasks(split)}


@lru_cache(maxsize=4)
def load(data: str | None, flights: str | None) -> World:
    """The world in the folder ``data``, or the one that ships; ``flights`` is the flight table, if it lies elsewhere.

    Raises :class:`~handoff.errors.DataError`, naming the file.
    """
    folder = (
        Path(str(resources.files("handoff.artifacts") / "travelplanner")) if data is None else Path(data).expanduser()
    )
    if data is not None and not folder.is_dir():
        raise DataError(f"{data}: no such folder; give one in TravelPlanner's official layout")
    database = Database.load(folder, [] if flights is None else [Path(flights).expanduser()])
    reader = Reader()
    queries = {}
    for split in SPLITS:
        path = folder / f"queries_{split}.jsonl"
        if path.exists():
            queries[split] = read(path, reader)
    if not queries:
        raise DataError(f"{folder} has no queries (queries_validation.jsonl or queries_train.jsonl)")
    gold = _gold(folder / GOLD, reader) if (folder / GOLD).exists() else {}
    return World(database, queries, gold, dict(sorted(reader.digests.items())), data is None)


def _gold(path: Path, reader: Reader) -> dict[tuple[str, int], list[Any]]:
    plans = {}
    for number, line in enumerate(reader.text(path).splitlines(), start=1):
        try:
            form = parse(line)
            plans[str(form["split"]), int(form["idx"])] = list(form["plan"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"TravelPlanner's data: {path}, line {number}: no plan with split and idx") from error
    return plans
