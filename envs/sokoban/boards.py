"""The seeded task sets of Sokoban.

Board number ``attempt`` of a split is drawn from the sha256 of (split, attempt), so the sets are the same on every
machine, in every process, and under every version of every library.  A board is kept if its type still needs its
number of moves to success, and if no board of a set is the same turned or mirrored: no test board is a training board
seen from another side.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from handoff.canonical import canonical
from handoff.envs.seeded_tasks import seeded_tasks
from handoff.envs.sokoban.board import SIZE, Board
from handoff.records import Task

#: Types by the least number of moves to success.
TYPES = {"short": range(3, 6), "medium": range(6, 9), "long": range(9, 100)}
#: Boards of each type.
SPLITS = {"test": 20, "train": 60}

_INSIDE = [row * SIZE + column for row in range(1, SIZE - 1) for column in range(1, SIZE - 1)]


def draw(split: str, attempt: int) -> Board | None:
    """Board number ``attempt``, solvable or not; ``None`` if the walls leave fewer than three free cells.

    Each of the 16 inner cells is a wall with probability 1/4; target, box and player then fall on three different
    free cells.
    """
    bits = hashlib.sha256(canonical(["sokoban", split, attempt])).digest()
    free = [cell for cell, byte in zip(_INSIDE, bits[:16], strict=True) if byte >= 64]
    if len(free) < 3:
        return None
    things = [free.pop(int.from_bytes(bits[16 + 5 * i : 21 + 5 * i], "big") % len(free)) for i in range(3)]
    target, box, player = things
    walls = frozenset(range(SIZE * SIZE)) - set(free) - set(things)
    return Board(walls, target, (player, box))


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, tuple[Task, Board]]]:
    """All tasks with their boards, by split and by the task's id."""
    return seeded_tasks(
        "sokoban",
        "board",
        SPLITS,
        TYPES,
        draw,
        rows=lambda board: board.rows(),
        distance=lambda board: board.distances.get(board.start, 0),
    )
