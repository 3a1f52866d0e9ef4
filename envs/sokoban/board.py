"""The rules of Sokoban with one box: boards, moves, and the exact distance of every state.

A state is the pair (player cell, box cell).  A 6x6 room with one box has at most 240 states, so one search
backwards from success gives the distances of all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs

from handoff.errors import DataError

SIZE = 6

BoardState = tuple[int, int]

#: The actions in the order of admissible actions, each with its step in cells.
MOVES: Mapping[str, int] = {"up": -SIZE, "down": SIZE, "left": -1, "right": 1}

# The usual notation for boards in text ("XSB"), with - for floor, since a model sees no blank at the end of a line.
WALL, FLOOR, TARGET, BOX, BOX_ON_TARGET, PLAYER, PLAYER_ON_TARGET = "#-.$*@+"


@attrs.frozen(slots=False)  # the instance caches the distances
class Board:
    """A room: walls, the target, and the start of player and box.  Cells are numbered row by row from 0."""

    walls: frozenset[int]
    target: int
    start: BoardState

    @classmethod
    def parse(cls, rows: Sequence[str]) -> Board:
        """A board from its rows.

        Raises :class:`~handoff.errors.DataError` unless it is 6x6, walled in, and has one player, one box and one
        target.
        """
        cells = "".join(rows)
        if len(rows) != SIZE or any(len(row) != SIZE for row in rows):
            raise DataError(f"a Sokoban board has {SIZE} rows of {SIZE} cells, not {[len(row) for row in rows]}")
        if odd := set(cells) - set(WALL + FLOOR + TARGET + BOX + BOX_ON_TARGET + PLAYER + PLAYER_ON_TARGET):
            raise DataError(f"{min(odd)!r} is not a cell of a Sokoban board")
        at = {
            "player": [i for i, cell in enumerate(cells) if cell in (PLAYER, PLAYER_ON_TARGET)],
            "box": [i for i, cell in enumerate(cells) if cell in (BOX, BOX_ON_TARGET)],
            "target": [i for i, cell in enumerate(cells) if cell in (TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET)],
        }
        for thing, places in at.items():
            if len(places) != 1:
                raise DataError(f"a Sokoban board here has one {thing}, not {len(places)}")
        if any(cells[i] != WALL for i in range(SIZE * SIZE) if not _inside(i)):
            raise DataError("a Sokoban board is walled in on all four sides")
        walls = frozenset(i for i, cell in enumerate(cells) if cell == WALL)
        return cls(walls, at["target"][0], (at["player"][0], at["box"][0]))

    def rows(self, state: BoardState | None = None) -> list[str]:
        """The board as text rows, in ``state`` (default: at the start)."""
        player, box = state or self.start
        cells = [WALL if i in self.walls else FLOOR for i in range(SIZE * SIZE)]
        cells[self.target] = TARGET
        cells[box] = BOX_ON_TARGET if box == self.target else BOX
        cells[player] = PLAYER_ON_TARGET if player == self.target else PLAYER
        return ["".join(cells[i : i + SIZE]) for i in range(0, SIZE * SIZE, SIZE)]

    def won(self, state: BoardState) -> bool:
        return state[1] == self.target

    def move(self, state: BoardState, step: int) -> BoardState | None:
        """The state after a move by ``step`` cells; ``None`` if a wall or a blocked box is in the way."""
        player, box = state
        ahead = player + step
        if ahead in self.walls:
            return None
        if ahead != box:
            return ahead, box
        beyond = box + step
        return None if beyond in self.walls else (ahead, beyond)

    def successors(self, state: BoardState) -> Iterator[tuple[str, BoardState]]:
        """The moves that change ``state``, in the order of :data:`MOVES`."""
        for word, step in MOVES.items():
            after = self.move(state, step)
            if after is not None:
                yield word, after

    @cached_property
    def distances(self) -> Mapping[BoardState, int]:
        """The least number of moves to success, for every state from which success is possible."""
        floor = [i for i in range(SIZE * SIZE) if i not in self.walls]
        before: dict[BoardState, list[BoardState]] = {}
        for player in floor:
            for box in floor:
                if player != box and box != self.target:  # success ends the episode
                    for _, after in self.successors((player, box)):
                        before.setdefault(after, []).append((player, box))
        distances = {(player, self.target): 0 for player in floor if player != self.target}
        queue = deque(distances)
        while queue:
            state = queue.popleft()
            for earlier in before.get(state, ()):
                if earlier not in distances:
                    distances[earlier] = distances[state] + 1
                    queue.append(earlier)
        return distances


def _inside(cell: int) -> bool:
    row, column = divmod(cell, SIZE)
    return 0 < row < SIZE - 1 and 0 < column < SIZE - 1
