"""The seeded task sets of FrozenLake.

Lake number ``attempt`` of a split is drawn from the sha256 of (split, attempt), so the sets are the same on every
machine, in every process, and under every version of every library.  A lake is kept if its type still needs the
distance of its goal, and if no lake of a set is the same turned or mirrored.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from handoff.canonical import canonical
from handoff.envs.frozenlake.lake import FROZEN, GOAL, HOLE, START, Lake
from handoff.envs.seeded_tasks import seeded_tasks
from handoff.records import Task

SIZE = 4
#: Types by the least number of moves that reach the goal with positive probability.
TYPES = {"near": range(3, 5), "far": range(5, 100)}
#: Lakes of each type.
SPLITS = {"test": 30, "train": 100}


def draw(split: str, attempt: int) -> Lake:
    """Lake number ``attempt``: each cell is a hole with probability 1/5, then start and goal fall on two cells."""
    bits = hashlib.sha256(canonical(["frozenlake", split, attempt])).digest()
    cells = [HOLE if byte < 51 else FROZEN for byte in bits[: SIZE**2]]
    places = list(range(SIZE**2))
    for i, cell in enumerate((START, GOAL)):
        at = SIZE**2 + 6 * i
        cells[places.pop(int.from_bytes(bits[at : at + 6], "big") % len(places))] = cell
    return Lake(tuple("".join(cells[i : i + SIZE]) for i in range(0, SIZE**2, SIZE)))


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, tuple[Task, Lake]]]:
    """All tasks with their lakes, by split and by the task's id."""
    return seeded_tasks(
        "frozenlake",
        "map",
        SPLITS,
        TYPES,
        draw,
        rows=lambda lake: lake.rows,
        distance=lambda lake: lake.distances.get(lake.start, 0),
    )
