"""The rules of Sokoban with one box: boards, moves, and the exact distance of every state.

A state is the pair (player cell, box cell).  A 6x6 room with one box has at most 240 states, so the distance of all of
them is found at once, by one search backwards from success.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs

from handoff.errors import DataError

SIZE = 6

BoardState = tuple[int, int]

#: Action words in the order in which they are listed, with the step in cells that they make.
MOVES: Mapping[str, int] = {"up": -SIZE, "down": SIZE, "left": -1, "right": 1}

# The usual notation for boards in text ("XSB"), with - for floor, since a model sees no blank at the end of a line.
WALL, FLOOR, TARGET, BOX, BOX_ON_TARGET, PLAYER, PLAYER_ON_TARGET = "#-.$*@+"


@attrs.frozen(slots=False)  # the distances are kept on the instance
class Board:
    """A room: walls, the target, and where player and box start.  Cells are numbered row by row from 0."""

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
        for what, found in at.items():
            if len(found) != 1:
                raise DataError(f"a Sokoban board here has one {what}, not {len(found)}")
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
        """The least number of moves to success, of every state from which success is possible."""
        floor = [i for i in range(SIZE * SIZE) if i not in self.walls]
        before: dict[BoardState, list[BoardState]] = {}
        for player in floor:
            for box in floor:
                if player != box and box != self.target:  # success ends the episode: nothing leads on from it
                    for _, after in self.successors((player, box)):
                        before.setdefault(after, []).append((player, box))
        found = {(player, self.target): 0 for player in floor if player != self.target}
        queue = deque(found)
        while queue:
            state = queue.popleft()
            for earlier in before.get(state, ()):
                if earlier not in found:
                    found[earlier] = found[state] + 1
                    queue.append(earlier)
        return found


def _inside(cell: int) -> bool:
    row, column = divmod(cell, SIZE)
    return 0 < row < SIZE - 1 and 0 < column < SIZE - 1


def symmetries(rows: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The eight boards that are this one, turned or mirrored."""
    turned = tuple(rows)
    for _ in range(4):
        turned = tuple("".join(column) for column in zip(*turned[::-1], strict=True))
        yield turned
        yield tuple(row[::-1] for row in turned)
