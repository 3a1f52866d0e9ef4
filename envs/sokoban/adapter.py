"""The Sokoban adapter: records are functions of the state alone; distances and certificates are exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.envs.seeded_tasks import find
from handoff.envs.sokoban.board import MOVES, Board, BoardState
from handoff.envs.sokoban.boards import SPLITS, catalogue
from handoff.errors import DataError, EnvironmentFault, UsageError
from handoff.records import Certificate, Record, Task

LEGEND = (
    "Sokoban: push the box onto the target.\n"
    "@ you, $ box, . target, # wall, - floor, + you on the target, * box on the target."
)


class SokobanEnvironment(Environment):
    """Sokoban, 6x6 rooms with one box; the admissible actions are the moves that change the state; exact distances."""

    name: ClassVar[str] = "sokoban"
    splits: ClassVar[tuple[str, ...]] = tuple(SPLITS)

    def __init__(self) -> None:
        self._board: Board | None = None
        self._state: BoardState = (0, 0)

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise UsageError(f"sokoban has no split {split!r} (it has {', '.join(SPLITS)})")
        return tuple(task for task, _ in catalogue()[split].values())

    def reset(self, task: Task, seed: int) -> Record:
        board = find(catalogue(), task)
        if board is None:
            raise DataError(f"task {task.name!r} of split {task.split!r} is not one of sokoban's boards")
        self._board, self._state = board, board.start
        return self._record()

    def step(self, action: str) -> Record:
        board = self._current()
        if action in MOVES and not board.won(self._state):
            self._state = board.move(self._state, MOVES[action]) or self._state
        return self._record()

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        boards = {split: list(boards) for split, boards in catalogue().items()}
        return {"rules": 1, "boards_sha256": digest(boards)}

    # Snapshots

    def snapshot(self) -> BoardState:
        self._current()
        return self._state

    def restore(self, snapshot: BoardState) -> Record:
        self._current()
        self._state = snapshot
        return self._record()

    # Planner and FrontierOracle

    def plan(self) -> tuple[str, ...]:
        """The first shortest way to success in the order of the moves; empty if there is none."""
        return self._shortest(self._state)

    def distance(self, limit: int | None = None) -> int | None:
        """The least number of moves to success; ``None`` if there is none, or none within ``limit`` moves."""
        moves = self._current().distances.get(self._state)
        return None if moves is None or (limit is not None and moves > limit) else moves

    def certify(self, depth: int) -> Certificate:
        """The certificate of the current state, equal to the plain search's.

        Sequences are counted, not tried: only the state after a sequence matters.
        """
        if depth < 1:
            raise UsageError(f"the depth of a frontier is at least 1, not {depth}")
        board, here = self._current(), self._state
        if board.won(here):
            return Certificate(depth, member=False, distance=0, tried=())
        distance = board.distances.get(here, depth + 1)
        tried, sequences = [], {here: 1}
        for _ in range(min(distance, depth)):
            longer: dict[BoardState, int] = {}
            count = 0
            for state, number in sequences.items():
                for _, after in board.successors(state):
                    count += number
                    if not board.won(after):
                        longer[after] = longer.get(after, 0) + number
            tried.append(count)
            sequences = longer
        if distance > depth:
            return Certificate(depth, member=False, distance=None, tried=tuple(tried))
        bridges = tuple(w for w, after in board.successors(here) if board.distances.get(after) == distance - 1)
        return Certificate(depth, distance == depth, distance, tuple(tried), bridges, self._shortest(here))

    def _shortest(self, state: BoardState) -> tuple[str, ...]:
        board, path = self._current(), list[str]()
        if state not in board.distances:
            return ()
        while not board.won(state):
            nearer = board.distances[state] - 1
            word, state = next(step for step in board.successors(state) if board.distances.get(step[1]) == nearer)
            path.append(word)
        return tuple(path)

    def _current(self) -> Board:
        if self._board is None:
            raise EnvironmentFault("sokoban was used before its first reset")
        return self._board

    def _record(self) -> Record:
        board, won = self._current(), self._current().won(self._state)
        moves = () if won else tuple(word for word, _ in board.successors(self._state))
        return Record(f"{LEGEND}\n" + "\n".join(board.rows(self._state)), moves, float(won), won, won)
