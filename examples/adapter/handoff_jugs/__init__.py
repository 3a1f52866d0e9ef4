"""Water jug puzzles for ``handoff``: measure out the wanted amount with jugs without marks."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from handoff.environment import Environment
from handoff.errors import DataError, UsageError
from handoff.records import Record, Task

__all__ = ["JugsEnvironment"]

#: Puzzles as (capacities in litres, wanted litres), by split.
PUZZLES: Mapping[str, Sequence[tuple[tuple[int, ...], int]]] = {
    "test": [
        ((3, 5), 4), ((5, 7), 6), ((4, 7), 5), ((5, 8), 6), ((3, 8), 7), ((4, 9), 7),
        ((3, 5, 8), 4), ((5, 7, 12), 6), ((4, 7, 9), 1), ((2, 5, 9), 6), ((3, 7, 10), 5), ((5, 6, 8), 4),
    ],
    "train": [((3, 7), 5), ((5, 9), 7), ((2, 7), 3), ((3, 4, 9), 2), ((4, 5, 7), 6), ((2, 7, 11), 8)],
}  # fmt: skip

Amounts = tuple[int, ...]


class JugsEnvironment(Environment):
    """Water jugs: fill, empty and pour until one jug holds the wanted amount."""

    name: ClassVar[str] = "jugs"
    splits: ClassVar[tuple[str, ...]] = tuple(PUZZLES)

    def __init__(self) -> None:
        self._capacities: Amounts = ()
        self._wanted = 0
        self._amounts: Amounts = ()

    # Every adapter has tasks, reset and step ----------------------------------------------------------------------

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in PUZZLES:
            raise UsageError(f"jugs has no split {split!r} (it has {', '.join(PUZZLES)})")
        return [_task(split, number) for number in range(len(PUZZLES[split]))]

    def reset(self, task: Task, seed: int) -> Record:
        # Nothing is random here, so the seed goes unused.
        for split, puzzles in PUZZLES.items():
            for number, (capacities, wanted) in enumerate(puzzles):
                if _task(split, number).id == task.id:
                    self._capacities, self._wanted = capacities, wanted
                    self._amounts = (0,) * len(capacities)
                    return self._record()
        raise DataError(f"task {task.name!r} is not one of the jug puzzles")

    def step(self, action: str) -> Record:
        if self._wanted not in self._amounts:
            # An inadmissible action is a step that changes nothing.
            self._amounts = dict(self._moves(self._amounts)).get(action, self._amounts)
        return self._record()

    # Some adapters have exact clones and a plan -------------------------------------------------------------------

    def snapshot(self) -> Amounts:
        return self._amounts

    def restore(self, snapshot: Amounts) -> Record:
        self._amounts = snapshot
        return self._record()

    def plan(self) -> tuple[str, ...]:
        """A shortest way to the wanted amount, by breadth-first search."""
        ways: dict[Amounts, tuple[str, ...]] = {self._amounts: ()}
        queue = deque([self._amounts])
        while queue:
            amounts = queue.popleft()
            if self._wanted in amounts:
                return ways[amounts]
            for action, after in self._moves(amounts):
                if after not in ways:
                    ways[after] = (*ways[amounts], action)
                    queue.append(after)
        return ()

    # The rules ----------------------------------------------------------------------------------------------------

    def _moves(self, amounts: Amounts) -> Iterator[tuple[str, Amounts]]:
        """The actions that change an amount, each with the amounts after it."""
        for i, capacity in enumerate(self._capacities):
            if amounts[i] < capacity:
                yield f"fill jug {i + 1}", _with(amounts, {i: capacity})
            if amounts[i]:
                yield f"empty jug {i + 1}", _with(amounts, {i: 0})
            for j, room in enumerate(self._capacities):
                poured = min(amounts[i], room - amounts[j])
                if i != j and poured:
                    yield (
                        f"pour jug {i + 1} into jug {j + 1}",
                        _with(amounts, {i: amounts[i] - poured, j: amounts[j] + poured}),
                    )

    def _record(self) -> Record:
        won = self._wanted in self._amounts
        jugs = [
            f"Jug {i + 1} holds {amount} of {capacity} litres."
            for i, (amount, capacity) in enumerate(zip(self._amounts, self._capacities, strict=True))
        ]
        return Record(
            observation=f"Measure out {self._wanted} litres.  {' '.join(jugs)}",
            admissible=() if won else tuple(action for action, _ in self._moves(self._amounts)),
            score=float(won),
            done=won,
            won=won,
        )

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return {"version": 1}


def _task(split: str, number: int) -> Task:
    capacities, wanted = PUZZLES[split][number]
    content = json.dumps({"environment": "jugs", "capacities": capacities, "wanted": wanted}, sort_keys=True)
    return Task(
        id=hashlib.sha256(content.encode()).hexdigest(),  # of the content of the task, not of its place
        name=f"{'-'.join(map(str, capacities))}-for-{wanted}",
        type={2: "two jugs", 3: "three jugs"}[len(capacities)],
        split=split,
    )


def _with(amounts: Amounts, changes: Mapping[int, int]) -> Amounts:
    return tuple(changes.get(i, amount) for i, amount in enumerate(amounts))
