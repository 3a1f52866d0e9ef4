"""A tiny environment with a known shape, for tests that count or break things.

The agent stands at ``position`` of a corridor; ``left`` and ``right`` move, ``wait`` does nothing; position 3 wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from handoff.environment import Environment
from handoff.records import Record, Task


class Corridor(Environment):
    name: ClassVar[str] = "corridor"

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(id=f"start-{n}", name=f"start-{n}", type="corridor", split=split) for n in range(3)]

    def reset(self, task: Task, seed: int) -> Record:
        self.position = int(task.id.split("-")[1])
        return self._record("corridor")

    def step(self, action: str) -> Record:
        if action in self._admissible():
            self.position += {"left": -1, "right": 1, "wait": 0}[action]
        return self._record(action)

    def _admissible(self) -> tuple[str, ...]:
        return tuple(a for a in ("left", "right", "wait") if not (a == "left" and self.position == 0))

    def _record(self, text: str) -> Record:
        won = self.position == 3
        return Record(f"{text}: {self.position}", self._admissible(), float(won), won, won)


class Snapshotting(Corridor):
    """The same with exact clones."""

    def snapshot(self) -> int:
        return self.position

    def restore(self, snapshot: int) -> Record:
        self.position = snapshot
        return self._record("restored")
