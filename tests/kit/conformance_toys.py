"""Small environments for the tests of the conformance suite: one that keeps the contract, and broken ones.

They stand in a module of their own because the suite imports them again, by name, in another process.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.errors import DataError, UsageError
from handoff.records import Certificate, Record, Task


class Corridor(Environment):
    """Walk to the door at the far end of a corridor; some corridors are longer than others."""

    name: ClassVar[str] = "corridor"
    splits: ClassVar[tuple[str, ...]] = ("short", "long")
    lengths: ClassVar[Mapping[str, Sequence[int]]] = {"short": (3, 4, 5), "long": (6, 7)}

    def __init__(self, lamp: bool = False) -> None:
        self.lamp = lamp
        self.length = 0
        self.place = 0

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in self.splits:
            raise UsageError(f"no split {split!r}")
        return [self.task(split, length) for length in self.lengths[split]]

    def task(self, split: str, length: int) -> Task:
        return Task(digest({"corridor": length}), f"corridor-{length}", "corridor", split, str(length))

    def reset(self, task: Task, seed: int) -> Record:
        known = {self.task(split, length).id: length for split in self.splits for length in self.lengths[split]}
        if task.id not in known:
            raise DataError(f"there is no corridor {task.name!r}")
        self.length, self.place = known[task.id], 0
        return self.record()

    def step(self, action: str) -> Record:
        if self.place < self.length:
            self.place = max(0, self.place + {"forward": 1, "back": -1}.get(action, 0))
        return self.record()

    def record(self) -> Record:
        won = self.place == self.length
        light = "The lamp is lit. " if self.lamp else ""
        text = f"{light}You are {self.place} steps into a corridor of {self.length}."
        return Record(text, () if won else ("back", "forward"), float(won), won, won)


class Able(Corridor):
    """The same with every optional ability of an environment whose steps are not drawn."""

    name: ClassVar[str] = "able"

    def snapshot(self) -> Hashable:
        return self.place

    def restore(self, snapshot: Any) -> Record:
        self.place = snapshot
        return self.record()

    def plan(self) -> tuple[str, ...]:
        return ("forward",) * (self.length - self.place)

    def certify(self, depth: int) -> Certificate:
        # "back" at the start stays there, so every sequence short of the door is possible: 2, 4, 8, ...
        distance = self.length - self.place
        if distance == 0:
            return Certificate(depth, member=False, distance=0, tried=())
        tried = tuple(2**level for level in range(1, min(depth, distance) + 1))
        if distance > depth:
            return Certificate(depth, member=False, distance=None, tried=tried)
        return Certificate(depth, distance == depth, distance, tried, ("forward",), ("forward",) * distance)

    def distance(self, limit: int) -> int | None:
        distance = self.length - self.place
        return distance if distance <= limit else None

    def reference_options(self) -> Mapping[str, Any]:
        return {"lamp": self.lamp}


# Each of these breaks one thing; the names of the checks that must find it stand beside it in BROKEN.


class Misnamed(Corridor):
    name: ClassVar[str] = "another"


class TellsPaths(Able):
    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return {"data": os.getcwd()}


class TakesAnySplit(Able):
    def tasks(self, split: str) -> Sequence[Task]:
        return super().tasks(split if split in self.splits else "short")


class NoTasks(Able):
    lengths: ClassVar[Mapping[str, Sequence[int]]] = {"short": (3, 4), "long": ()}


class TwinTasks(Able):
    lengths: ClassVar[Mapping[str, Sequence[int]]] = {"short": (3, 4, 3), "long": (6,)}


class ShuffledTasks(Able):
    calls: ClassVar[int] = 0

    def tasks(self, split: str) -> Sequence[Task]:
        type(self).calls += 1
        return list(super().tasks(split))[:: 1 if self.calls % 2 else -1]


class IntScore(Able):
    def record(self) -> Record:
        return attrs.evolve(super().record(), score=0)


class NotANumber(Able):
    def record(self) -> Record:
        return attrs.evolve(super().record(), score=float("nan"))


class ListedTwice(Able):
    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, admissible=record.admissible * 2)


class ActionsWithSpaces(Able):
    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, admissible=tuple(f"{action} " for action in record.admissible))


class StuckButNotDone(Able):
    def record(self) -> Record:
        return attrs.evolve(super().record(), admissible=())


class NotARecord(Able):
    def record(self) -> Any:
        return {"observation": super().record().observation}


class WonAtOnce(Able):
    def record(self) -> Record:
        return attrs.evolve(super().record(), won=True)


class ListsWhatItCannotDo(Corridor):
    """Only at reset, and as the action that the suite's random walks do not happen to begin with."""

    def reset(self, task: Task, seed: int) -> Record:
        record = super().reset(task, seed)
        return attrs.evolve(record, admissible=(*record.admissible, "sing"))

    def step(self, action: str) -> Record:
        if action == "sing":
            raise NotImplementedError("no voice")
        return super().step(action)


class CountsAcrossResets(Corridor):
    played = 0

    def reset(self, task: Task, seed: int) -> Record:
        self.played += 1
        return super().reset(task, seed)

    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, observation=f"{record.observation} Game {self.played}.")


class CountsInstances(Corridor):
    made: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.number = self.made

    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, observation=f"{record.observation} Instance {self.number}.")


class KeepsTheLastTask(Corridor):
    before = 0

    def reset(self, task: Task, seed: int) -> Record:
        # Looks right as long as one task is played over and over.
        self.before = self.length if self.length and task.source != str(self.length) else 0
        return super().reset(task, seed)

    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, observation=f"{record.observation} Before it: {self.before}.")


class NoSeedZero(Corridor):
    def reset(self, task: Task, seed: int) -> Record:
        if not seed:
            raise ValueError("a seed is needed")
        return super().reset(task, seed)


class SharesItsPlace(Corridor):
    shared: ClassVar[list[int]] = [0, 0]

    @property
    def place(self) -> int:
        return self.shared[0]

    @place.setter
    def place(self, value: int) -> None:
        self.shared[0] = value


class HashesStrings(Corridor):
    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, observation=f"{record.observation} Mark {hash(record.observation)}.")


class RaisesOnOddActions(Corridor):
    def step(self, action: str) -> Record:
        if action not in ("forward", "back"):
            raise KeyError(action)
        return super().step(action)


class WinsByShouting(Corridor):
    def step(self, action: str) -> Record:
        if len(action) > 1000:
            self.place = self.length
        return super().step(action)


class CannotEncode(Corridor):
    def step(self, action: str) -> Record:
        action.encode()
        return super().step(action)


class RaisesAfterTheEnd(Able):
    def step(self, action: str) -> Record:
        if self.place == self.length:
            raise RuntimeError("the episode is over")
        return super().step(action)


class TakesAnyTask(Corridor):
    def reset(self, task: Task, seed: int) -> Record:
        try:
            return super().reset(task, seed)
        except DataError:
            return self.record()


class KeyErrorForTasks(Corridor):
    def reset(self, task: Task, seed: int) -> Record:
        try:
            return super().reset(task, seed)
        except DataError:
            raise KeyError(task.id) from None


class ForgetsItsClock(Able):
    clock = 0

    def reset(self, task: Task, seed: int) -> Record:
        self.clock = 0
        return super().reset(task, seed)

    def step(self, action: str) -> Record:
        self.clock += 1
        return super().step(action)

    def record(self) -> Record:
        record = super().record()
        return attrs.evolve(record, observation=f"{record.observation} Step {self.clock}.")


@attrs.frozen
class Remembered:
    place: int
    lit: bool = attrs.field(eq=False)
    record: Record = attrs.field(eq=False)


class ForgetsItsLight(Able):
    """Restores exactly, but equal snapshots have different futures: walking back lights a lamp, and later steps show
    it."""

    lit = False
    shown: Record

    def reset(self, task: Task, seed: int) -> Record:
        self.lit = False
        self.shown = super().reset(task, seed)
        return self.shown

    def step(self, action: str) -> Record:
        record = super().step(action)
        if self.lit:
            record = attrs.evolve(record, observation=f"{record.observation} It is light.")
        self.lit = self.lit or action == "back"
        self.shown = record
        return record

    def snapshot(self) -> Hashable:
        return Remembered(self.place, self.lit, self.shown)

    def restore(self, snapshot: Any) -> Record:
        self.place, self.lit, self.shown = snapshot.place, snapshot.lit, snapshot.record
        return self.shown


class ListSnapshots(Able):
    def snapshot(self) -> Any:
        return [self.place]

    def restore(self, snapshot: Any) -> Record:
        return super().restore(snapshot[0])


class PlansBackwards(Able):
    def plan(self) -> tuple[str, ...]:
        return ("back",) * (self.length - self.place)


class PlansTooFar(Able):
    def plan(self) -> tuple[str, ...]:
        return ("back", *super().plan(), "forward")


class Miscounts(Able):
    def certify(self, depth: int) -> Certificate:
        found = super().certify(depth)
        return attrs.evolve(found, tried=tuple(count + (level > 0) for level, count in enumerate(found.tried)))


class SeesNoFrontier(Able):
    def certify(self, depth: int) -> Certificate:
        return attrs.evolve(super().certify(depth), member=False, distance=None, bridges=(), path=())


class KeepsToNoLimit(Able):
    def distance(self, limit: int) -> int | None:
        return self.length - self.place


class MeasuresFromTheStart(Able):
    def distance(self, limit: int) -> int | None:
        distance = self.length if self.place < self.length else 0
        return distance if distance <= limit else None


class UnlikeItsReference(Able):
    def reference_options(self) -> Mapping[str, Any]:
        return {"lamp": True}


class PlansUnlikeItsReference(Able):
    """Both plans win; a policy that takes the first action of its plan does not do the same in both."""

    def __init__(self, lamp: bool = False, detour: bool = False) -> None:
        super().__init__(lamp)
        self.detour = detour

    def plan(self) -> tuple[str, ...]:
        extra = ("wait",) if self.detour and self.place < self.length else ()
        return (*extra, *super().plan())

    def reference_options(self) -> Mapping[str, Any]:
        return {"lamp": self.lamp, "detour": True}


class ChangesArguments(Able):
    def reset(self, task: Task, seed: int) -> Record:
        sys.argv = ["translate.py", "domain", "task"]
        return super().reset(task, seed)


class Prints(Able):
    def reset(self, task: Task, seed: int) -> Record:
        print("loading")
        return super().reset(task, seed)


class UsesGlobalRandomness(Able):
    def reset(self, task: Task, seed: int) -> Record:
        random.seed(seed)
        return super().reset(task, seed)


class NeedsAKey(Able):
    def __init__(self) -> None:
        raise RuntimeError("no key was given")


class LeavesTheProgram(Able):
    def reset(self, task: Task, seed: int) -> Record:
        sys.exit("I have had enough")


BROKEN: Mapping[type[Corridor], set[str]] = {
    TellsPaths: {"create"},
    NeedsAKey: {"create"},
    TakesAnySplit: {"splits"},
    NoTasks: {"tasks"},
    TwinTasks: {"tasks"},
    ShuffledTasks: {"tasks"},
    IntScore: {"records"},
    NotANumber: {"records"},
    ListedTwice: {"records"},
    ActionsWithSpaces: {"records"},
    StuckButNotDone: {"records"},
    NotARecord: {"records"},
    WonAtOnce: {"records"},
    LeavesTheProgram: {"records"},
    ListsWhatItCannotDo: {"admissible"},
    CountsAcrossResets: {"determinism", "replay", "reuse", "interleaving", "terminal", "bad-task"},
    CountsInstances: {"replay", "reuse", "interleaving", "inadmissible", "terminal", "bad-task"},
    KeepsTheLastTask: {"determinism", "replay", "reuse", "interleaving"},
    NoSeedZero: {"seeds"},
    SharesItsPlace: {"interleaving"},
    RaisesOnOddActions: {"inadmissible"},
    WinsByShouting: {"inadmissible"},
    CannotEncode: {"inadmissible"},
    RaisesAfterTheEnd: {"terminal"},
    TakesAnyTask: {"bad-task"},
    KeyErrorForTasks: {"bad-task"},
    ForgetsItsClock: {"snapshots"},
    ForgetsItsLight: {"snapshots"},
    ListSnapshots: {"snapshots"},
    PlansBackwards: {"planner"},
    PlansTooFar: {"planner"},
    Miscounts: {"frontier"},
    SeesNoFrontier: {"frontier", "distance"},
    KeepsToNoLimit: {"distance"},
    MeasuresFromTheStart: {"distance"},
    UnlikeItsReference: {"reference"},
    PlansUnlikeItsReference: {"reference"},
    ChangesArguments: {"host"},
    Prints: {"host"},
    UsesGlobalRandomness: {"host"},
}
