"""The adapter conformance suite: does an environment keep the contract that everything else rests on?

One invariant: whatever an adapter does, it becomes a result.  A check that finds a fault, or that the adapter makes
raise, is *failed*, with what was seen and what to do about it; a check that has nothing to look at is *skipped*, with
the reason; nothing that an adapter raises leaves this module.

The suite plays short episodes, so it can show that an adapter is wrong and cannot prove that it is right.  It plays
every episode again on the same instance, on a fresh one, on one that was in the middle of another task, on two
instances in turn, and in a new process with another hash seed, and compares canonical JSON.  ``handoff check`` prints
it; :mod:`handoff.testing` gives the same checks to pytest.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs
import numpy as np

from handoff import environment as adapters
from handoff import frontier, stochastic
from handoff.canonical import canonical
from handoff.environment import Certified, Environment, FrontierOracle, Planner, Snapshots
from handoff.errors import DataError, HandoffError, UsageError
from handoff.records import Certificate, Record, Task, from_json, to_json
from handoff.replay import difference as _difference
from handoff.seeds import derive
from handoff.stochastic import Stochastic

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

#: The optional abilities by name, as ``handoff envs`` shows them.
ABILITIES: Mapping[str, type] = {
    "snapshots": Snapshots,
    "frontier-oracle": FrontierOracle,
    "planner": Planner,
    "certified": Certified,
    "stochastic": Stochastic,
}

#: Action texts that no adapter may choke on: a policy is a language model, and its text reaches ``step`` as it is.
ODD_ACTIONS = ("", " ", "no such action", "go\nto\tnowhere", "\x00", "漢字 \ud800", "{6*7} %s \\", "x" * 5000)

CHILD_TIMEOUT_S = 600


@attrs.frozen
class Settings:
    """How much is tried.

    ``split``: where the played tasks come from (``None``: the adapter's first split; the task lists of all splits are
    checked in any case).  ``tasks``: how many are played.  ``steps``: actions of each random walk.  ``depth``: greatest
    depth of the frontier searches.  ``replays`` and ``sequences``: how many action sequences the plain searches may
    try in all where each costs a reset, and where each costs one restored step.
    """

    split: str | None = None
    tasks: int = 2
    steps: int = 6
    depth: int = 2
    seed: int = 0
    replays: int = 120
    sequences: int = 20_000

    def __attrs_post_init__(self) -> None:
        for name in ("tasks", "steps", "depth"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")


@attrs.frozen
class Result:
    """One check's outcome: ``status`` is passed, failed or skipped; ``advice`` says what to do about a failure."""

    check: str
    title: str
    status: str
    detail: str
    advice: str | None = None


@attrs.frozen
class Report:
    """All results for one adapter, in the order of the suite."""

    environment: str
    implementation: str
    abilities: tuple[str, ...]
    settings: Settings
    results: tuple[Result, ...]

    def count(self, status: str) -> int:
        return sum(result.status == status for result in self.results)

    @property
    def conforms(self) -> bool:
        """No check failed and at least one passed."""
        return self.count(FAILED) == 0 and self.count(PASSED) > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "environment": self.environment,
            "implementation": self.implementation,
            "abilities": list(self.abilities),
            "settings": attrs.asdict(self.settings),
            "conforms": self.conforms,
            **{status: self.count(status) for status in (PASSED, FAILED, SKIPPED)},
            "results": [attrs.asdict(result) for result in self.results],
        }


@attrs.frozen
class Listed:
    """One installed adapter as ``handoff envs`` lists it; ``broken`` is the reason why it cannot be loaded."""

    name: str
    implementation: str
    distribution: str
    summary: str = ""
    splits: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ()
    broken: str | None = None


class _Failed(Exception):
    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.detail, self.advice = detail, advice


class _Skipped(Exception):
    pass


def _fail(detail: str, advice: str) -> NoReturn:
    raise _Failed(detail, advice)


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


# What an adapter can do ----------------------------------------------------------------------------------------------


def abilities(cls: type[Environment]) -> tuple[str, ...]:
    """Names of the optional abilities (keys of :data:`ABILITIES`) that the adapter class has."""
    return tuple(name for name, protocol in ABILITIES.items() if issubclass(cls, protocol))


def _load(name: str) -> type[Environment]:
    try:
        return adapters.load(name)
    except SystemExit as error:
        # A plug-in that leaves the interpreter while being imported must not take the toolkit along.
        raise UsageError(f"environment {name!r} cannot be loaded: importing it ends the program ({error})") from error


def inventory() -> list[Listed]:
    """All installed adapters by name.  A broken plug-in is listed with its reason; it is never an error."""
    found = []
    for name, point in adapters.registered().items():
        package = f"{point.dist.name} {point.dist.version}" if point.dist else ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                cls = _load(name)
            summary = (cls.__doc__ or "").strip().split("\n")[0]
            entry = Listed(name, point.value, package, summary, tuple(cls.splits), abilities(cls))
        except Exception as error:
            entry = Listed(name, point.value, package, broken=str(error))
        found.append(entry)
    return found


# Episodes ------------------------------------------------------------------------------------------------------------


@attrs.frozen
class Episode:
    """A played episode: ``records`` has one entry more than ``actions`` (the one after reset comes first)."""

    task: Task
    seed: int
    actions: tuple[str, ...]
    records: tuple[Record, ...]


def record_faults(record: object) -> list[str]:
    """What keeps ``record`` from being a complete, JSON-safe Record (empty: nothing does)."""
    if not isinstance(record, Record):
        return [f"it is a {type(record).__name__}, not a Record"]
    faults = []
    for field, kind in (("observation", str), ("score", float), ("done", bool), ("won", bool), ("admissible", tuple)):
        value = getattr(record, field)
        if type(value) is not kind:
            faults.append(f"{field} is a {type(value).__name__}, not a {kind.__name__}")
    if type(record.admissible) is tuple:
        odd = [a for a in record.admissible if type(a) is not str or not a or a != a.strip() or "\n" in a]
        if odd:
            faults.append(f"admissible holds {odd[0]!r:.60}, which is not one trimmed line of text")
        elif len(set(record.admissible)) != len(record.admissible):
            twice = next(a for a in record.admissible if record.admissible.count(a) > 1)
            faults.append(f"admissible holds {twice!r} more than once")
        elif not record.admissible and not record.done:
            faults.append("admissible is empty though the episode is not done")
    if not faults:
        try:
            plain = canonical(to_json(record))
            if canonical(to_json(from_json(Record, json.loads(plain)))) != plain:
                faults.append("it does not survive a JSON round trip")
        except (ValueError, TypeError) as error:
            faults.append(f"it has no canonical JSON ({_reason(error)})")
    return faults


def _differs(expected: Record, actual: Record) -> str | None:
    found = _difference(expected, actual)
    return None if found is None else f"{found[0]} {found[1]!r:.120} against {found[2]!r:.120}"


def _play(environment: Environment, task: Task, seed: int, actions: Sequence[str]) -> tuple[Record, ...]:
    return (environment.reset(task, seed), *(environment.step(action) for action in actions))


def _compare(episode: Episode, records: Sequence[Record], where: str, advice: str) -> None:
    for position, (expected, actual) in enumerate(zip(episode.records, records, strict=True)):
        found = _differs(expected, actual)
        if found:
            after = "reset" if position == 0 else f"action {position} ({episode.actions[position - 1]!r:.60})"
            _fail(f"task {episode.task.name}, after {after}, {where}: {found}", advice)


class Subject:
    """The adapter under test, with the episodes that the checks share.

    ``cls`` is the adapter class and ``options`` its constructor's keyword options.  Instances are made as needed and
    closed by :meth:`close`.
    """

    def __init__(
        self,
        cls: type[Environment],
        options: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        name: str | None = None,
    ) -> None:
        settings = settings or Settings()
        splits = getattr(cls, "splits", ())
        if settings.split is not None and settings.split not in splits:
            raise UsageError(f"{cls.__name__} has no split {settings.split!r}; it has {', '.join(map(str, splits))}")
        self.cls = cls
        self.options = dict(options or {})
        self.settings = settings
        self.name: str = name or getattr(cls, "name", cls.__name__)
        self._instances: list[Environment] = []
        self._episodes: list[Episode] | None = None
        self._shared: Environment | None = None

    def make(self) -> Environment:
        environment = self.cls(**self.options)
        self._instances.append(environment)
        return environment

    @property
    def shared(self) -> Environment:
        """The instance that is reused wherever a check does not need a fresh one."""
        if self._shared is None:
            self._shared = self.make()
        return self._shared

    @property
    def split(self) -> str:
        return self.settings.split or self.cls.splits[0]

    def tasks(self) -> list[Task]:
        """The tasks that are played: spread evenly over the split, so that they differ in type where types differ."""
        everything = list(self.shared.tasks(self.split))
        if not everything:
            raise _Skipped(f"split {self.split!r} has no tasks")
        wanted = min(self.settings.tasks, len(everything))
        return [everything[i * len(everything) // wanted] for i in range(wanted)]

    def seed_of(self, task: Task) -> int:
        return derive(self.settings.seed, task.id, "check")

    def episodes(self) -> list[Episode]:
        """A random walk over admissible actions for every task, then, where there is a plan, the plan's episode."""
        if self._episodes is None:
            walks, plans = [], []
            for task in self.tasks():
                walks.append(self._walk(task))
                if isinstance(self.shared, Planner):
                    self.shared.reset(task, self.seed_of(task))
                    plan = tuple(self.shared.plan())[:100]
                    if plan:
                        records = _play(self.shared, task, self.seed_of(task), plan)
                        plans.append(Episode(task, self.seed_of(task), plan, records))
            self._episodes = walks + plans
        return self._episodes

    def walks(self) -> list[Episode]:
        return self.episodes()[: len(self.tasks())]

    def _walk(self, task: Task) -> Episode:
        seed = self.seed_of(task)
        records, actions = [self.shared.reset(task, seed)], list[str]()
        while len(actions) < self.settings.steps and records[-1].admissible and not _over(records[-1]):
            choices = records[-1].admissible
            actions.append(choices[derive(seed, "walk", len(actions)) % len(choices)])
            records.append(self.shared.step(actions[-1]))
        return Episode(task, seed, tuple(actions), tuple(records))

    def close(self) -> None:
        while self._instances:
            with contextlib.suppress(Exception):
                self._instances.pop().close()


def _over(record: Record) -> bool:
    return record.done or record.won


# The checks ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Check:
    """``run`` returns what was seen when all is well; ``needs`` names checks without which it makes no sense."""

    name: str
    title: str
    run: Callable[[Subject], str]
    needs: tuple[str, ...] = ()


CHECKS: list[Check] = []


def _check(name: str, title: str, *needs: str) -> Callable[[Callable[[Subject], str]], Callable[[Subject], str]]:
    def register(run: Callable[[Subject], str]) -> Callable[[Subject], str]:
        CHECKS.append(Check(name, title, run, needs))
        return run

    return register


def _absolute_paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and os.path.isabs(value) and os.path.exists(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _absolute_paths(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _absolute_paths(item)


@_check("create", "The adapter can be made, described and closed")
def _create(subject: Subject) -> str:
    if getattr(subject.cls, "name", None) != subject.name:
        _fail(
            f"the class calls itself {getattr(subject.cls, 'name', None)!r} and its entry point {subject.name!r}",
            "set the class attribute `name` to the entry point's name",
        )
    try:
        canonical(subject.options)
    except (TypeError, ValueError) as error:
        _fail(f"its options are not JSON-safe ({_reason(error)})", "take only options that JSON has a form for")
    first, second = subject.make(), subject.make()
    told = first.describe()
    try:
        identity = canonical(dict(told))
    except (TypeError, ValueError) as error:
        _fail(f"describe() is not JSON-safe ({_reason(error)})", "return only strings, numbers, lists and dicts")
    if canonical(dict(second.describe())) != identity:
        _fail("describe() differs between two instances", "describe versions and digests, not this instance")
    for path in _absolute_paths(told):
        _fail(f"describe() names a path of this machine: {path}", "describe data by its digest, not by where it lies")
    second.close()
    second.close()
    return f"describe() has {len(told)} entries"


@_check("splits", "Splits are named, and an unknown one is refused", "create")
def _splits(subject: Subject) -> str:
    splits = subject.cls.splits
    if not isinstance(splits, tuple) or not splits or not all(isinstance(s, str) and s for s in splits):
        _fail(f"`splits` is {splits!r:.80}", "set the class attribute `splits` to a tuple of names, the default first")
    if len(set(splits)) != len(splits):
        _fail(f"`splits` repeats a name: {splits}", "name every split once")
    unknown = "no-such-split"
    advice = f"raise handoff.errors.UsageError for a split that is not one of {', '.join(splits)}"
    try:
        found = subject.make().tasks(unknown)
    except HandoffError:
        return ", ".join(splits)
    except Exception as error:
        _fail(f"tasks({unknown!r}) raised {_reason(error)}", advice)
    _fail(f"tasks({unknown!r}) returned {len(found)} tasks", advice)


@_check("tasks", "Every split has tasks, with unique ids, in a stable order", "splits")
def _tasks(subject: Subject) -> str:
    counts, first = [], subject.shared
    second = subject.make()
    for split in subject.cls.splits:
        try:
            tasks = list(first.tasks(split))
        except DataError:
            if split == subject.split:
                raise
            counts.append(f"{split}: no data here")
            continue
        if not tasks:
            _fail(f"split {split!r} has no tasks", "raise handoff.errors.DataError that says where the data was sought")
        for task in tasks:
            if not isinstance(task, Task):
                _fail(f"split {split!r} holds a {type(task).__name__}", "return handoff.records.Task objects")
            if from_json(Task, to_json(task)) != task:
                _fail(f"task {task.name} does not survive JSON", "use plain strings in every field")
            if not task.id or task.split != split:
                _fail(
                    f"task {task.name!r} of split {split!r} has id {task.id!r} and split {task.split!r}",
                    "give every task the digest of its content as id, and the split that it was asked for",
                )
            if os.path.isabs(task.source):
                _fail(f"task {task.name} has the absolute source {task.source}", "give the locator below the data root")
        ids = [task.id for task in tasks]
        if len(set(ids)) != len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            _fail(f"two tasks of split {split!r} have the id {twice}", "make the id a digest of what the task is")
        for other in (first, second):
            if list(other.tasks(split)) != tasks:
                _fail(f"split {split!r} is listed differently the second time", "sort the tasks by a fixed key")
        counts.append(f"{split}: {len(tasks)} of {len({task.type for task in tasks})} types")
    return "; ".join(counts)


@_check("records", "Every record is complete and JSON-safe", "tasks")
def _records(subject: Subject) -> str:
    count = 0
    for episode in subject.episodes():
        for position, record in enumerate(episode.records):
            faults = record_faults(record)
            if faults:
                _fail(
                    f"task {episode.task.name}, after {position} actions: the record is unusable: {'; '.join(faults)}",
                    "return Record(observation: str, admissible: tuple of str, score: float, done: bool, won: bool)",
                )
            count += 1
        if _over(episode.records[0]):
            _fail(
                f"task {episode.task.name} is over at reset",
                "leave tasks out that need no action, and return done=False, won=False at reset",
            )
    return f"{count} records of {len(subject.episodes())} episodes"


@_check("admissible", "Every admissible action can be taken", "records")
def _admissible(subject: Subject) -> str:
    tried = 0
    for episode in subject.walks():
        choices = episode.records[0].admissible
        # Every action costs a reset, which may be slow: some, spread over the list.
        for action in choices[:: max(1, len(choices) // 4)]:
            subject.shared.reset(episode.task, episode.seed)
            try:
                faults = record_faults(subject.shared.step(action))
            except Exception as error:
                _fail(f"step({action!r}) raised {_reason(error)}", "list only actions that step() takes")
            if faults:
                _fail(f"step({action!r}) gave an unusable record: {'; '.join(faults)}", "return a complete Record")
            tried += 1
    return f"{tried} actions at reset"


@_check("determinism", "Two resets and the same actions give the same records", "records")
def _determinism(subject: Subject) -> str:
    for episode in subject.episodes():
        _compare(
            episode,
            _play(subject.shared, episode.task, episode.seed, episode.actions),
            "second time on the same instance",
            "let reset() set every part of the state, and draw only from a generator seeded by reset(task, seed)",
        )
    return f"{len(subject.episodes())} episodes"


@_check("replay", "A fresh instance replays a recorded episode exactly", "records")
def _replay(subject: Subject) -> str:
    for episode in subject.episodes():
        fresh = subject.make()
        _compare(
            episode,
            _play(fresh, episode.task, episode.seed, episode.actions),
            "replayed in a fresh instance",
            "keep nothing that decides records outside the instance, nor from before its reset",
        )
        fresh.close()
    return f"{sum(len(e.records) for e in subject.episodes())} records equal"


@_check("reuse", "An instance in the middle of another task starts afresh", "records")
def _reuse(subject: Subject) -> str:
    walks = subject.walks()
    if len(walks) < 2:
        raise _Skipped("one task only: raise --tasks, if the split has more")
    environment = subject.make()
    for before, after in zip(walks, walks[1:] + walks[:1], strict=True):
        _play(environment, before.task, before.seed, before.actions[: max(1, len(before.actions) // 2)])
        _compare(
            after,
            _play(environment, after.task, after.seed, after.actions),
            f"on an instance left in the middle of task {before.task.name}",
            "let reset() forget the task before: something of it is still there",
        )
    return f"{len(walks)} changes of task"


@_check("seeds", "Every seed from 0 to 2**63 - 1 is taken", "records")
def _seeds(subject: Subject) -> str:
    episode = subject.walks()[0]
    differ = False
    for seed in (0, 1, 2**63 - 1):
        try:
            records = _play(subject.shared, episode.task, seed, episode.actions)
        except Exception as error:
            _fail(f"an episode with seed {seed} raised {_reason(error)}", "take any int from 0 to 2**63 - 1 as a seed")
        differ = differ or any(_differs(a, b) for a, b in zip(episode.records, records, strict=True))
    return "records depend on the seed" if differ else "records do not depend on the seed"


@_check("interleaving", "Two instances played in turn do not touch each other", "records")
def _interleaving(subject: Subject) -> str:
    walks = subject.walks()
    pairs = [(walks[0], walks[0])] + ([(walks[0], walks[1])] if len(walks) > 1 else [])
    advice = "keep all state in the instance: these two share some (a module global, a class attribute, a library)"
    for left, right in pairs:
        first, second = subject.make(), subject.make()
        seen: tuple[list[Record], list[Record]] = ([], [])
        seen[0].append(first.reset(left.task, left.seed))
        seen[1].append(second.reset(right.task, right.seed))
        for position in range(max(len(left.actions), len(right.actions))):
            for environment, episode, records in ((first, left, seen[0]), (second, right, seen[1])):
                if position < len(episode.actions):
                    records.append(environment.step(episode.actions[position]))
        _compare(left, seen[0], "beside another instance", advice)
        _compare(right, seen[1], "beside another instance", advice)
        first.close()
        second.close()
    return f"{len(pairs)} pairs of episodes"


@_check("processes", "A new process with another hash seed gives the same tasks and records", "records")
def _processes(subject: Subject) -> str:
    if subject.cls.__module__ == "__main__":
        raise _Skipped("the class is defined in the main script, which another process cannot import")
    answer = _ask_child(subject)
    ours = [to_json(task) for task in subject.shared.tasks(subject.split)]
    if canonical(answer["tasks"]) != canonical(ours):
        _fail(
            f"another process lists other tasks in split {subject.split!r}: {len(answer['tasks'])} against {len(ours)}",
            "do not let ids or order depend on hash(), on set order, or on the order of a folder's files",
        )
    for episode, records in zip(subject.episodes(), answer["episodes"], strict=True):
        _compare(
            episode,
            [from_json(Record, record) for record in records],
            "in a new process with another PYTHONHASHSEED",
            "do not let records depend on hash(), on the order of a set, on time, or on the process",
        )
    return f"{len(ours)} tasks, {len(subject.episodes())} episodes"


@_check("inadmissible", "An action that is not admissible is a step like any other", "records")
def _inadmissible(subject: Subject) -> str:
    episode = subject.walks()[0]
    runs: list[list[Record]] = []
    advice = "let step() take any text: answer with the unchanged state and a remark in the observation"
    for _ in range(2):
        environment = subject.make()
        records = [environment.reset(episode.task, episode.seed)]
        for action in ODD_ACTIONS:
            if action in records[-1].admissible:
                continue
            try:
                records.append(environment.step(action))
            except Exception as error:
                _fail(f"step({action!r:.40}) raised {_reason(error)}", advice)
            faults = record_faults(records[-1])
            if faults:
                _fail(f"step({action!r:.40}) gave an unusable record: {'; '.join(faults)}", advice)
            if records[-1].won:
                _fail(f"step({action!r:.40}) won, though it is not admissible", advice)
        runs.append(records)
        environment.close()
    for position, pair in enumerate(zip(*runs, strict=True)):
        found = _differs(*pair)
        if found:
            _fail(f"odd action {position} is answered differently the second time: {found}", advice)
    return f"{len(runs[0]) - 1} odd texts, among them an empty one and one that UTF-8 has no form for"


@_check("terminal", "After its end an episode neither fails nor haunts the next one", "records")
def _terminal(subject: Subject) -> str:
    ended = [episode for episode in subject.episodes() if _over(episode.records[-1])]
    if not ended:
        raise _Skipped("no episode came to its end: give the adapter a plan(), or raise --steps")
    for episode in ended:
        environment = subject.make()
        _play(environment, episode.task, episode.seed, episode.actions)
        for action in (episode.actions[-1], *ODD_ACTIONS[:2]):
            try:
                faults = record_faults(environment.step(action))
            except Exception as error:
                _fail(f"step({action!r:.40}) after the end raised {_reason(error)}", "answer with the last record")
            if faults:
                _fail(f"step() after the end gave an unusable record: {'; '.join(faults)}", "return a complete Record")
        _compare(
            episode,
            _play(environment, episode.task, episode.seed, episode.actions),
            "after the end of an earlier episode",
            "let reset() forget that the episode before had ended",
        )
        environment.close()
    return f"{len(ended)} episodes played past their end, {sum(e.records[-1].won for e in ended)} of them won"


@_check("bad-task", "A task that cannot be loaded is refused in one sentence", "records")
def _bad_task(subject: Subject) -> str:
    task = Task(id="0" * 64, name="no-such-task", type="none", split=subject.split, source="no/such/task")
    advice = "raise handoff.errors.DataError that names the task and says what is wrong with it"
    environment = subject.make()
    try:
        environment.reset(task, 0)
    except HandoffError as error:
        told = str(error)
    except Exception as error:
        _fail(f"reset() of a task that does not exist raised {_reason(error)}", advice)
    else:
        _fail("reset() of a task that does not exist started an episode", advice)
    episode = subject.walks()[0]
    _compare(
        episode,
        _play(environment, episode.task, episode.seed, episode.actions),
        "after a task that could not be loaded",
        "leave the instance usable when reset() refuses a task",
    )
    environment.close()
    return f"{told:.120}"


@_check("snapshots", "A restored snapshot goes on as the episode did", "records")
def _snapshots(subject: Subject) -> str:
    if not isinstance(subject.shared, Snapshots):
        raise _Skipped("the adapter has no snapshot() and restore(); states are cloned by reset and replay")
    environment, restored = subject.shared, 0
    advice = (
        "put all that decides later records into the snapshot, the random state included, and copy nothing by reference"
    )
    for episode in subject.episodes():
        taken: list[Hashable] = []
        environment.reset(episode.task, episode.seed)
        taken.append(_snapshot(environment))
        for action in episode.actions:
            environment.step(action)
            taken.append(_snapshot(environment))
        for position in reversed(range(len(taken))):
            records = [environment.restore(taken[position])]
            if environment.snapshot() != taken[position]:
                _fail("the snapshot of a restored state differs from the snapshot it was restored from", advice)
            records += [environment.step(action) for action in episode.actions[position:]]
            rest = Episode(episode.task, episode.seed, episode.actions[position:], episode.records[position:])
            _compare(rest, records, f"restored after {position} actions", advice)
            restored += 1
    merged = sum(_equal_snapshots(subject, episode) for episode in subject.walks())
    return f"{restored} states restored and played on; {merged} pairs of paths to one snapshot compared"


def _snapshot(environment: Snapshots) -> Hashable:
    first, second = environment.snapshot(), environment.snapshot()
    advice = "return an immutable value, for instance a tuple of numbers and strings"
    try:
        same = hash(first) == hash(second) and first == second
    except TypeError as error:
        _fail(f"a snapshot is not hashable ({_reason(error)})", advice)
    if not same:
        _fail("two snapshots of one state are not equal", advice)
    return first


def _equal_snapshots(subject: Subject, episode: Episode, states: int = 40, pairs: int = 3) -> int:
    """Two paths to one snapshot must have one future: reach both by reset and replay, and compare what follows."""
    environment = subject.shared
    assert isinstance(environment, Snapshots)
    record = environment.reset(episode.task, episode.seed)
    reached: dict[Hashable, tuple[str, ...]] = {environment.snapshot(): ()}
    queue = [(environment.snapshot(), record)]
    compared = 0
    for state, shown in queue:
        for action in () if _over(shown) else shown.admissible[:12]:
            environment.restore(state)
            after = environment.step(action)
            path, found = (*reached[state], action), environment.snapshot()
            if found not in reached:
                if len(reached) < states:
                    reached[found] = path
                    queue.append((found, after))
                continue
            if compared == pairs:
                return compared
            compared += 1
            known = reached[found]
            for following in after.admissible[:3]:
                one = _play(environment, episode.task, episode.seed, (*path, following))
                other = _play(environment, episode.task, episode.seed, (*known, following))
                for left, right in zip(one[-2:], other[-2:], strict=True):
                    differs = _differs(left, right)
                    if differs:
                        _fail(
                            f"the paths {path} and {known} lead to equal snapshots and read differently: {differs}",
                            "put what distinguishes the two states into the snapshot",
                        )
            environment.reset(episode.task, episode.seed)
    return compared


@_check("planner", "A plan leads to success", "records")
def _planner(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Planner):
        raise _Skipped("the adapter has no plan(); the `expert` and `noisy` policies need one")
    found, asked = 0, 0
    for episode in subject.walks():
        for position in sorted({0, len(episode.actions) // 2}):
            if _over(episode.records[position]):
                continue
            _play(environment, episode.task, episode.seed, episode.actions[:position])
            plan = environment.plan()
            asked += 1
            if not isinstance(plan, tuple) or not all(isinstance(action, str) for action in plan):
                _fail(f"plan() returned {plan!r:.80}", "return a tuple of actions, empty if none is known")
            again = environment.plan()
            if plan != again:
                _fail("plan() differs when it is asked twice", "make the plan a function of the state alone")
            if not plan:
                continue
            found += 1
            if isinstance(environment, Stochastic):
                # A plan is one way that chance may take: it is only asked to be possible.
                shown = episode.records[position]
                if plan[0] not in shown.admissible:
                    _fail(f"the plan starts with {plan[0]!r}, which is not admissible", "plan over admissible actions")
                continue
            shown = episode.records[position]
            for number, action in enumerate(plan, 1):
                if action not in shown.admissible:
                    _fail(f"action {number} of the plan, {action!r}, is not admissible", "plan over admissible actions")
                shown = environment.step(action)
                if shown.won != (number == len(plan)):
                    _fail(
                        f"task {episode.task.name}, after {position} actions: the plan of {len(plan)} actions "
                        f"{'wins at' if shown.won else 'has not won after'} action {number}",
                        "return actions that win exactly at the last one",
                    )
    if not found:
        raise _Skipped(f"plan() knew none from {asked} states")
    return f"{found} plans from {asked} states"


@_check("frontier", "Every way to search the frontier gives the same certificate", "records")
def _frontier(subject: Subject) -> str:
    environment = subject.shared
    drawn = isinstance(environment, Stochastic)
    if not isinstance(environment, (FrontierOracle, Snapshots)):
        raise _Skipped("the adapter has neither certify() nor snapshots: reset and replay is the only way")
    replays, sequences = subject.settings.replays, subject.settings.sequences
    states = members = 0
    counts = {"certify()": 0, "snapshots": 0, "outcomes": 0, "reset and replay": 0}
    for episode, position in _checkpoints(subject):
        states += 1
        prefix, shown = episode.actions[:position], episode.records[position]
        for depth in range(1, subject.settings.depth + 1):
            where = f"task {episode.task.name}, after {position} actions, depth {depth}"
            cost = len(shown.admissible) ** depth
            found: dict[str, Certificate] = {}
            if isinstance(environment, FrontierOracle):
                _play(environment, episode.task, episode.seed, prefix)
                found["certify()"] = environment.certify(depth)
                if not isinstance(found["certify()"], Certificate):
                    _fail(f"certify({depth}) returned a {type(found['certify()']).__name__}", "return a Certificate")
                _claims(environment, episode, position, found["certify()"], where)
            if cost <= sequences and isinstance(environment, Snapshots):
                sequences -= cost
                _play(environment, episode.task, episode.seed, prefix)
                if drawn:
                    found["outcomes"] = stochastic.search_here(environment, shown, depth)
                else:
                    found["snapshots"] = frontier.search_here(environment, shown, depth)
            if cost <= replays and not drawn:
                replays -= cost
                found["reset and replay"] = frontier.search(environment, episode.task, episode.seed, prefix, depth)
            for way in found:
                counts[way] += 1
            _agree(found, where)
            members += any(certificate.member for certificate in found.values())
    if not states:
        raise _Skipped("every walk ended at once")
    told = ", ".join(f"{count} by {way}" for way, count in counts.items() if count)
    return f"{states} states, {members} times on a frontier; certificates: {told}"


def _agree(found: Mapping[str, Certificate], where: str) -> None:
    """All ways must give equal certificates; reset and replay, the last one, is right by definition."""
    ways = list(found)
    for way in ways[:-1]:
        for field in attrs.fields_dict(Certificate):
            ours, theirs = getattr(found[way], field), getattr(found[ways[-1]], field)
            if ours != theirs:
                _fail(
                    f"{where}: {field} is {ours!r:.120} by {way} and {theirs!r:.120} by {ways[-1]}",
                    "count every action sequence of every completed level, list all bridges in admissible order, and "
                    "stop after the first level with a win; or a restored snapshot is not the state it was taken of",
                )


def _checkpoints(subject: Subject) -> Iterator[tuple[Episode, int]]:
    """States for the oracle: where the walks start and stop, and on the way of the plans 3, 2 and 1 before success."""
    for episode in subject.episodes():
        last = len(episode.actions)
        positions = {0, last} if episode in subject.walks() else {last - 3, last - 2, last - 1}
        for position in sorted(p for p in positions if p >= 0):
            if not _over(episode.records[position]):
                yield episode, position


def _claims(environment: Environment, episode: Episode, position: int, found: Certificate, where: str) -> None:
    """What a certificate says of itself: consistent counts, and a path that wins exactly at its end."""
    shown = episode.records[position]
    advice = "see the definition of Certificate in handoff.records"
    if found.member != (found.distance == found.depth):
        _fail(f"{where}: member is {found.member} and distance {found.distance}", advice)
    if found.distance is None:
        if found.path or found.bridges:
            _fail(f"{where}: there is a path or a bridge though no win was found", advice)
        return
    if len(found.path) != found.distance or found.path[:1] != found.bridges[:1] or found.distance > found.depth:
        _fail(f"{where}: path {found.path}, bridges {found.bridges} and distance {found.distance} disagree", advice)
    if not set(found.bridges) <= set(shown.admissible):
        _fail(f"{where}: a bridge is not admissible: {found.bridges}", advice)
    if found.tried[:1] != (len(shown.admissible),):
        _fail(f"{where}: {found.tried[:1]} first actions tried of {len(shown.admissible)} admissible", advice)
    if isinstance(environment, Stochastic):
        return
    records = _play(environment, episode.task, episode.seed, (*episode.actions[:position], *found.path))
    won = [record.won for record in records[position + 1 :]]
    if won != [False] * (found.distance - 1) + [True]:
        _fail(f"{where}: the path {found.path} does not win exactly at its end", advice)


@_check("outcomes", "The outcomes of an action are all that may happen, with their probabilities", "records")
def _outcomes(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Stochastic):
        raise _Skipped("the adapter has no outcomes(): its steps are not drawn")
    if not isinstance(environment, Snapshots):
        _fail("outcomes() is there without snapshot() and restore()", "outcomes are snapshots: add both")
    checked = 0
    for episode in subject.walks():
        environment.reset(episode.task, episode.seed)
        for action in episode.actions:
            outcomes = environment.outcomes(action)
            if environment.outcomes(action) != outcomes:
                _fail(f"outcomes({action!r}) differs when it is asked twice", "outcomes() must draw nothing")
            total = sum(probability for probability, _ in outcomes)
            if abs(total - 1) > 1e-9 or any(probability <= 0 for probability, _ in outcomes):
                _fail(f"the probabilities of outcomes({action!r}) sum to {total}", "list possible outcomes only, once")
            environment.step(action)
            if environment.snapshot() not in [state for _, state in outcomes]:
                _fail(
                    f"step({action!r}) led to a state that outcomes() does not list", "list everything that may happen"
                )
            checked += 1
    return f"{checked} steps"


@_check("reference", "The reference implementation shows the same records", "records")
def _reference(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Certified):
        raise _Skipped("the adapter is its own reference")
    reference = environment.reference()
    try:
        for episode in subject.episodes():
            _compare(
                episode,
                _play(reference, episode.task, episode.seed, episode.actions),
                "in the reference implementation",
                "mend the fast implementation: the reference is right by definition",
            )
    finally:
        reference.close()
    return f"{len(subject.episodes())} episodes"


# The host is looked at around the whole suite, so this check only reads what the others left behind.
_HOST = ("host", "The adapter leaves its host alone: arguments, folder, variables, output, global random state")


@attrs.frozen
class _Host:
    argv: tuple[str, ...]
    folder: str
    variables: Mapping[str, str]
    python_random: str
    numpy_random: str

    @classmethod
    def now(cls) -> _Host:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = np.random.get_state(legacy=False)
        return cls(tuple(sys.argv), os.getcwd(), dict(os.environ), repr(random.getstate()), repr(state))


def _host(before: _Host, after: _Host, printed: str, output_kept: bool) -> Result:
    told = {
        "argv": "sys.argv was changed",
        "folder": "the working folder was changed",
        "variables": "environment variables were changed",
        "python_random": "Python's global random state was used",
        "numpy_random": "NumPy's global random state was used",
    }
    faults = [text for name, text in told.items() if getattr(before, name) != getattr(after, name)]
    if not output_kept:
        faults.append("sys.stdout was replaced")
    if printed.strip():
        faults.append(f"it printed {printed.strip().splitlines()[0]!r:.80}")
    if not faults:
        return Result(*_HOST, PASSED, "nothing was touched")
    return Result(*_HOST, FAILED, "; ".join(faults), "restore what a library changes; own your generator")


# Running -------------------------------------------------------------------------------------------------------------


def run_check(check: Check, subject: Subject, earlier: Mapping[str, Result] | None = None) -> Result:
    """The outcome of one check; ``earlier`` are the results of those that it may need."""
    for needed in check.needs:
        if earlier and needed in earlier and earlier[needed].status != PASSED:
            return Result(check.name, check.title, SKIPPED, f"needs {needed!r}, which did not pass")
    try:
        return Result(check.name, check.title, PASSED, check.run(subject))
    except _Failed as error:
        return Result(check.name, check.title, FAILED, error.detail, error.advice)
    except _Skipped as error:
        return Result(check.name, check.title, SKIPPED, str(error))
    except HandoffError as error:
        return Result(check.name, check.title, FAILED, str(error), "do what the message says, then check again")
    except (Exception, SystemExit) as error:
        return Result(check.name, check.title, FAILED, f"{_reason(error)}{_place(error, subject)}", _UNEXPECTED)


_UNEXPECTED = "mend the adapter so that this does not raise; a HandoffError is for what the user must act on"


def _place(error: BaseException, subject: Subject) -> str:
    """Where in the adapter's own package an exception came from, as file name and line."""
    module = sys.modules.get(subject.cls.__module__)
    folder = os.path.dirname(getattr(module, "__file__", None) or "")
    found, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if folder and name.startswith(folder + os.sep):
            found = f" (in {os.path.basename(name)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def check_class(
    cls: type[Environment],
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    name: str | None = None,
) -> Report:
    """Run the whole suite on an adapter class.

    ``name`` is the name that its entry point gives it (default: the class's own).  Raises
    :class:`~handoff.errors.UsageError` for a split that the class does not have; whatever the adapter does is in the
    report.
    """
    settings = settings or Settings()
    subject = Subject(cls, options, settings, name)
    results: dict[str, Result] = {}
    before, printed = _Host.now(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            for check in CHECKS:
                results[check.name] = run_check(check, subject, results)
            subject.close()
            output_kept = sys.stdout is printed
    finally:
        subject.close()
    results[_HOST[0]] = _host(before, _Host.now(), printed.getvalue(), output_kept)
    return Report(
        subject.name, f"{cls.__module__}:{cls.__qualname__}", abilities(cls), settings, tuple(results.values())
    )


def check_environment(name: str, options: Mapping[str, Any] | None = None, settings: Settings | None = None) -> Report:
    """Run the whole suite on the installed adapter ``name``.

    An adapter that is installed and cannot be loaded gets a report with that one failure.  Raises
    :class:`~handoff.errors.UsageError` if none has this name, if it does not take the given options, or if it lacks
    the split that is asked for.
    """
    settings = settings or Settings()
    points = adapters.registered()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            cls = _load(name)
    except UsageError as error:
        if name not in points:
            raise
        failed = Result("load", "The plug-in can be loaded", FAILED, str(error), "mend the package, then check again")
        return Report(name, points[name].value, (), settings, (failed,))
    if options:
        with contextlib.redirect_stdout(sys.stderr):
            adapters.create(name, options).close()  # an option that it does not take is the caller's mistake
    return check_class(cls, options, settings, name)


# The other process ---------------------------------------------------------------------------------------------------

_CHILD = (
    "import json, sys; request = json.load(sys.stdin); sys.path[:] = request['path']; "
    "import handoff.conformance as suite; suite.child(request)"
)


def _ask_child(subject: Subject) -> dict[str, Any]:
    """Play the episodes in a new interpreter.  Not a fork: a fork would inherit the very state that must not matter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        request = {
            # The empty entry means the working folder, which a child started elsewhere would read differently.
            "path": [os.path.abspath(entry) for entry in sys.path],
            "module": subject.cls.__module__,
            "qualname": subject.cls.__qualname__,
            "options": subject.options,
            "split": subject.split,
            "answer": str(path),
            "episodes": [
                {"task": to_json(e.task), "seed": e.seed, "actions": list(e.actions)} for e in subject.episodes()
            ],
        }
        other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        try:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD],
                input=json.dumps(request).encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": other},
                timeout=CHILD_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            _fail(f"a new process had not answered after {CHILD_TIMEOUT_S} s", "look for a wait that never ends")
        try:
            answer: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            _fail(f"a new process could not play the episodes: {lines[-1]:.300}", "make the class importable by name")
    if "error" in answer:
        _fail(f"in a new process the adapter raised {answer['error']}", "do not rely on what this process has set up")
    return answer


def child(request: Mapping[str, Any]) -> None:
    """The other process's side: play the episodes of ``request`` and write the answer where it says."""
    import importlib

    answer: dict[str, Any]
    try:
        cls: Any = importlib.import_module(request["module"])
        for part in request["qualname"].split("."):
            cls = getattr(cls, part)
        environment: Environment = cls(**request["options"])
        answer = {
            "tasks": [to_json(task) for task in environment.tasks(request["split"])],
            "episodes": [
                [to_json(record) for record in _play(environment, from_json(Task, e["task"]), e["seed"], e["actions"])]
                for e in request["episodes"]
            ],
        }
        environment.close()
    except Exception as error:
        answer = {"error": _reason(error)}
    Path(request["answer"]).write_bytes(canonical(answer))
