"""The seeded task sets: which boards there are.

Board number ``attempt`` of a split is drawn from the sha256 of (split, attempt), so the sets are the same on every
machine, in every process, and under every version of every library.  A board is kept if it can be solved in a number
of moves that its type still needs, and if neither it nor a turned or mirrored form of it is in a set already: no test
board is a training board seen from another side.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from handoff.canonical import canonical, digest
from handoff.envs.sokoban.board import SIZE, Board, symmetries
from handoff.records import Task

#: Types by the least number of moves to success.
TYPES = {"short": range(3, 6), "medium": range(6, 9), "long": range(9, 100)}
#: Boards of each type.
SPLITS = {"test": 20, "train": 60}

_INSIDE = [row * SIZE + column for row in range(1, SIZE - 1) for column in range(1, SIZE - 1)]


def draw(split: str, attempt: int) -> Board | None:
    """The board number ``attempt``, solvable or not; ``None`` if the walls leave no room for three things.

    Each of the 16 inner cells is a wall with probability 1/4; target, box and player then fall on three different
    free cells.
    """
    bits = hashlib.sha256(canonical(["sokoban", split, attempt])).digest()
    free = [cell for cell, byte in zip(_INSIDE, bits[:16], strict=True) if byte >= 64]
    if len(free) < 3:
        return None
    picked = [free.pop(int.from_bytes(bits[16 + 5 * i : 21 + 5 * i], "big") % len(free)) for i in range(3)]
    target, box, player = picked
    walls = frozenset(range(SIZE * SIZE)) - set(free) - set(picked)
    return Board(walls, target, (player, box))


@lru_cache(maxsize=1)
def catalogue() -> dict[str, dict[str, tuple[Task, Board]]]:
    """All tasks with their boards, by split and by the task's id."""
    seen: set[tuple[str, ...]] = set()
    splits: dict[str, dict[str, tuple[Task, Board]]] = {}
    for split, wanted in SPLITS.items():
        found: dict[str, list[Board]] = {kind: [] for kind in TYPES}
        attempt = 0
        while any(len(boards) < wanted for boards in found.values()):
            board = draw(split, attempt)
            attempt += 1
            if board is None:
                continue
            distance = board.distances.get(board.start, 0)
            kind = next((kind for kind, moves in TYPES.items() if distance in moves), None)
            if kind is None or len(found[kind]) == wanted:
                continue
            form = min(symmetries(board.rows()))
            if form not in seen:
                seen.add(form)
                found[kind].append(board)
        splits[split] = {}
        for kind, boards in found.items():
            for number, board in enumerate(boards):
                task = Task(
                    id=digest({"environment": "sokoban", "board": board.rows()}),
                    name=f"sokoban-{split}-{kind}-{number:02d}",
                    type=kind,
                    split=split,
                    source=f"{split}/{kind}/{number:02d}",
                )
                splits[split][task.id] = task, board
    return splits


def find(task: Task) -> Board | None:
    """The board of a task, told by its id alone; ``None`` if there is none."""
    return next((boards[task.id][1] for boards in catalogue().values() if task.id in boards), None)
