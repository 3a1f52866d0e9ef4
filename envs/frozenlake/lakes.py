"""The seeded task sets: which lakes there are.

Lake number ``attempt`` of a split is drawn from the sha256 of (split, attempt), so the sets are the same on every
machine, in every process, and under every version of every library.  A lake is kept if its goal lies at a distance that
its type still needs, and if no lake of a set is the same turned or mirrored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache

from handoff.canonical import canonical, digest
from handoff.envs.frozenlake.lake import FROZEN, GOAL, HOLE, START, Lake
from handoff.records import Task

SIZE = 4
#: Types by the least number of moves that reach the goal with positive probability.
TYPES = {"near": range(3, 5), "far": range(5, 100)}
#: Lakes of each type.
SPLITS = {"test": 30, "train": 100}


def draw(split: str, attempt: int) -> Lake:
    """The lake number ``attempt``: each cell is a hole with probability 1/5, then start and goal fall on two cells."""
    bits = hashlib.sha256(canonical(["frozenlake", split, attempt])).digest()
    cells = [HOLE if byte < 51 else FROZEN for byte in bits[: SIZE**2]]
    places = list(range(SIZE**2))
    for i, cell in enumerate((START, GOAL)):
        at = SIZE**2 + 6 * i
        cells[places.pop(int.from_bytes(bits[at : at + 6], "big") % len(places))] = cell
    return Lake(tuple("".join(cells[i : i + SIZE]) for i in range(0, SIZE**2, SIZE)))


def _symmetries(rows: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for _ in range(4):
        rows = tuple("".join(column) for column in zip(*rows[::-1], strict=True))
        yield rows
        yield tuple(row[::-1] for row in rows)


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, tuple[Task, Lake]]]:
    """All tasks with their lakes, by split and by the task's id."""
    seen: set[tuple[str, ...]] = set()
    splits: dict[str, dict[str, tuple[Task, Lake]]] = {}
    for split, wanted in SPLITS.items():
        found: dict[str, list[Lake]] = {kind: [] for kind in TYPES}
        attempt = 0
        while any(len(lakes) < wanted for lakes in found.values()):
            lake = draw(split, attempt)
            attempt += 1
            distance = lake.distances.get(lake.start, 0)
            kind = next((kind for kind, moves in TYPES.items() if distance in moves), None)
            if kind is None or len(found[kind]) == wanted:
                continue
            form = min(_symmetries(lake.rows))
            if form not in seen:
                seen.add(form)
                found[kind].append(lake)
        splits[split] = {}
        for kind, lakes in found.items():
            for number, lake in enumerate(lakes):
                task = Task(
                    id=digest({"environment": "frozenlake", "map": list(lake.rows)}),
                    name=f"frozenlake-{split}-{kind}-{number:02d}",
                    type=kind,
                    split=split,
                    source=f"{split}/{kind}/{number:02d}",
                )
                splits[split][task.id] = task, lake
    return splits


def find(task: Task) -> Lake | None:
    """The lake of a task, told by its id alone; ``None`` if there is none."""
    return next((lakes[task.id][1] for lakes in catalogue().values() if task.id in lakes), None)
