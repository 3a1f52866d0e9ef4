"""The FrozenLake adapter: *clone* and *frontier* on slippery ice.

*Clone.*  Step ``t`` of an episode draws from (reset seed, t) only.  A replay meets the same slips as the recorded
episode, and two solvers of one clone meet the same slips: common random numbers.  So the random state is the pair
(seed, t), and it is part of the snapshot.

*Frontier.*  A state is in F_D if D is the least number of admissible actions that reach the goal with positive
probability, for any draws (see :mod:`handoff.frontier`).  ``value`` gives the greatest probability of success from the
current state, exactly, within a number of moves or without a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.envs.frozenlake.lake import HOLE, MOVES, Lake
from handoff.envs.frozenlake.lakes import SPLITS, catalogue
from handoff.envs.seeded_tasks import find
from handoff.errors import DataError, EnvironmentFault, UsageError
from handoff.records import Certificate, Record, Task
from handoff.seeds import derive

LEGEND = (
    "Frozen lake: reach the goal without falling into a hole.  The ice is slippery: a move goes where you want with\n"
    "probability 0.8 and to each side with probability 0.1.\n"
    "@ you, G goal, H hole, - ice, X you in a hole, * you at the goal."
)

#: (cell, number of draws so far, reset seed)
LakeState = tuple[int, int, int]


class FrozenLakeEnvironment(Environment):
    """Slippery FrozenLake, 4x4, with common random numbers; exact distances and exact success probabilities."""

    name: ClassVar[str] = "frozenlake"
    splits: ClassVar[tuple[str, ...]] = tuple(SPLITS)

    def __init__(self) -> None:
        self._lake: Lake | None = None
        self._state: LakeState = (0, 0, 0)

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise UsageError(f"frozenlake has no split {split!r} (it has {', '.join(SPLITS)})")
        return tuple(task for task, _ in catalogue()[split].values())

    def reset(self, task: Task, seed: int) -> Record:
        lake = find(catalogue(), task)
        if lake is None:
            raise DataError(f"task {task.name!r} of split {task.split!r} is not one of frozenlake's maps")
        self._lake, self._state = lake, (lake.start, 0, seed)
        return self._record()

    def step(self, action: str) -> Record:
        lake = self._current()
        cell, draws, seed = self._state
        if action in MOVES and not lake.ended(cell):
            # A number in [0, 1) with 53 bits, so that it and its comparison are exact.
            draw = Fraction(derive(seed, "slip", draws) >> 10, 2**53)
            for probability, direction in lake.directions(action):
                draw -= probability
                if draw < 0:
                    self._state = (lake.towards(cell, direction), draws + 1, seed)
                    break
        return self._record()

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        lakes = {split: list(lakes) for split, lakes in catalogue().items()}
        return {"rules": 1, "slip": "0.8/0.1/0.1", "maps_sha256": digest(lakes)}

    # Snapshots and Stochastic

    def snapshot(self) -> LakeState:
        self._current()
        return self._state

    def restore(self, snapshot: LakeState) -> Record:
        self._current()
        self._state = snapshot
        return self._record()

    def outcomes(self, action: str) -> tuple[tuple[float, LakeState], ...]:
        """The possible states after ``action``, whatever draw the seed fixes."""
        cell, draws, seed = self._state
        if action not in MOVES or self._current().ended(cell):
            return ((1.0, self._state),)
        possible = self._current().outcomes(cell, action)
        return tuple((float(probability), (after, draws + 1, seed)) for after, probability in possible.items())

    # FrontierOracle and Planner

    def distance(self, limit: int | None = None) -> int | None:
        """The least number of moves that reach the goal with positive probability; ``None`` if none do, or more than
        ``limit``."""
        moves = self._current().distances.get(self._state[0])
        return None if moves is None or (limit is not None and moves > limit) else moves

    def value(self, horizon: int | None = None) -> Fraction:
        """The greatest probability of success over all policies, within ``horizon`` moves or without a limit."""
        lake = self._current()
        return (lake.values if horizon is None else lake.horizon_values(horizon))[self._state[0]]

    def certify(self, depth: int) -> Certificate:
        """The certificate of the current state over possible outcomes, equal to :func:`handoff.frontier.search`'s.

        Sequences are counted, not tried: only the set of cells that a sequence may lead to matters.
        """
        if depth < 1:
            raise UsageError(f"the depth of a frontier is at least 1, not {depth}")
        lake, here = self._current(), self._state[0]
        if lake.ended(here):
            return Certificate(depth, member=False, distance=0 if here == lake.goal else None, tried=())
        distance = lake.distances.get(here, depth + 1)
        tried, sequences = [], {frozenset([here]): 1}
        for _ in range(min(distance, depth)):
            longer: dict[frozenset[int], int] = {}
            for cells, number in sequences.items():
                for word in MOVES:
                    onward = self._onward(cells, word)
                    if onward:
                        longer[onward] = longer.get(onward, 0) + number
            tried.append(len(MOVES) * sum(sequences.values()))
            sequences = longer
        if distance > depth:
            return Certificate(depth, member=False, distance=None, tried=tuple(tried))
        bridges = self._nearer(frozenset([here]), distance)
        cells, path = frozenset([here]), list[str]()
        for left in range(distance, 0, -1):
            path.append(self._nearer(cells, left)[0])
            cells = self._onward(cells, path[-1])
        return Certificate(depth, distance == depth, distance, tuple(tried), bridges, tuple(path))

    def plan(self) -> tuple[str, ...]:
        """The moves of :attr:`Lake.policy` along the shortest possible way to the goal.

        Empty at the end of an episode, and where the goal is out of reach.  After a slip a new plan is needed.
        """
        lake, start = self._current(), self._state[0]
        previous: dict[int, int] = {start: start}
        queue = deque([start])
        while queue and lake.goal not in previous:
            cell = queue.popleft()
            if cell in lake.policy:
                for after in lake.outcomes(cell, lake.policy[cell]):
                    if after not in previous:
                        previous[after] = cell
                        queue.append(after)
        if lake.goal not in previous:
            return ()
        path, cell = list[str](), lake.goal
        while cell != start:
            cell = previous[cell]
            path.append(lake.policy[cell])
        return tuple(reversed(path))

    def _onward(self, cells: frozenset[int], word: str) -> frozenset[int]:
        """The unfinished cells that a move from one of ``cells`` may lead to."""
        lake = self._current()
        return frozenset(after for cell in cells for after in lake.outcomes(cell, word) if not lake.ended(after))

    def _nearer(self, cells: frozenset[int], left: int) -> tuple[str, ...]:
        """The moves after which the goal may be ``left - 1`` moves away."""
        lake = self._current()
        return tuple(
            word
            for word in MOVES
            if any(lake.distances.get(after) == left - 1 for cell in cells for after in lake.outcomes(cell, word))
        )

    def _current(self) -> Lake:
        if self._lake is None:
            raise EnvironmentFault("frozenlake was used before its first reset")
        return self._lake

    def _record(self) -> Record:
        lake, cell = self._current(), self._state[0]
        won, ended = cell == lake.goal, lake.ended(cell)
        cells = list(lake.cells.replace("S", "-").replace("F", "-"))
        cells[cell] = "*" if won else "X" if cells[cell] == HOLE else "@"
        rows = ["".join(cells[i : i + lake.size]) for i in range(0, len(cells), lake.size)]
        return Record(f"{LEGEND}\n" + "\n".join(rows), () if ended else tuple(MOVES), float(won), ended, won)
