"""The adapter under test, and the short episodes that the conformance checks share."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import attrs

from handoff.canonical import canonical
from handoff.environment import Environment, Messages, Planner, Stochastic
from handoff.errors import UsageError
from handoff.guard.watch import Watch, alarm
from handoff.messages.replies import as_text
from handoff.records import BLANK, Record, Task, from_json, to_json
from handoff.replay import difference
from handoff.seeds import derive
from handoff.settings import require
from handoff.text import reason

#: Methods of adapters, whose calls are watched.
METHODS = (
    "tasks", "reset", "step", "describe", "close", "snapshot", "restore", "plan", "certify", "distance", "outcomes",
    "reference_options", "messages", "answer", "score", "formatting", "read_formatted", "score_row",
)  # fmt: skip
#: Replies of a walk through a conversation: talk, and calls that are none.
REPLIES = (
    "Let me think.",
    "<tool_call>{</tool_call>",
    as_text("", [("no such tool", {})]),
    as_text("I try.", [("__class__", {"x": "__globals__"})]),
)
#: Number of actions after which a plan is followed no further.
LONGEST_PLAN = 100


@attrs.frozen
class Settings:
    """The extent of the checks."""

    #: Split of the played tasks, or None for the adapter's first one.  The task lists of all splits are checked.
    split: str | None = None
    #: Number of tasks played.
    tasks: int = 2
    #: Actions per random walk.
    steps: int = 6
    #: Greatest depth of the frontier searches.
    depth: int = 2
    seed: int = 0
    #: Action sequences that searches by reset and replay may try in all.
    replays: int = 60
    #: Action sequences that searches by snapshots may try in all.
    sequences: int = 20_000

    def __attrs_post_init__(self) -> None:
        for name in ("tasks", "steps", "depth"):
            require(name, getattr(self, name), int, least=1)
        for name in ("seed", "replays", "sequences"):
            require(name, getattr(self, name), int, least=0)


class Failed(Exception):
    """A check found a fault.  ``detail`` says which, and ``advice`` says how to mend it."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.detail, self.advice = detail, advice


class Skipped(Exception):
    """A check does not apply, for this reason."""


def fail(detail: str, advice: str) -> NoReturn:
    raise Failed(detail, advice)


@attrs.frozen
class PlayedEpisode:
    """A recorded episode."""

    task: Task
    seed: int
    actions: tuple[str, ...]
    #: The record after reset, then one record per action.
    records: tuple[Record, ...]


def record_faults(record: object, talks: bool = False) -> list[str]:
    """The faults of ``record``: a complete, JSON-safe Record has none.

    ``talks``: the environment's state is a conversation, where any reply is an action and none is listed.
    """
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
        elif not (record.admissible or record.open_actions or record.done or talks):
            faults.append("admissible is empty though the episode is not done")
    if not faults:
        try:
            plain = canonical(to_json(record))
            if canonical(to_json(from_json(Record, json.loads(plain)))) != plain:
                faults.append("it does not survive a JSON round trip")
        except (ValueError, TypeError) as error:
            faults.append(f"it has no canonical JSON ({reason(error)})")
    return faults


def differs(expected: Record, actual: Record) -> str | None:
    unequal = difference(expected, actual)
    return None if unequal is None else f"{unequal[0]} {unequal[1]!r:.120} against {unequal[2]!r:.120}"


def play(environment: Environment, task: Task, seed: int, actions: Sequence[str]) -> tuple[Record, ...]:
    return (environment.reset(task, seed), *(environment.step(action) for action in actions))


def compare(episode: PlayedEpisode, records: Sequence[Record], where: str, advice: str) -> None:
    for position, (expected, actual) in enumerate(zip(episode.records, records, strict=True)):
        unequal = differs(expected, actual)
        if unequal:
            after = "reset" if position == 0 else f"action {position} ({episode.actions[position - 1]!r:.60})"
            fail(f"task {episode.task.name}, after {after}, {where}: {unequal}", advice)


class Subject:
    """The adapter under test, with the episodes that the checks share.

    ``cls`` is the adapter class and ``options`` its constructor's keyword options.  Instances are made as needed and
    closed by :meth:`close`.  A call that takes longer than ``timeout`` seconds is ended.
    """

    def __init__(
        self,
        cls: type[Environment],
        options: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> None:
        settings = settings or Settings()
        splits: Any = getattr(cls, "splits", ())
        splits = splits if isinstance(splits, tuple) else ()
        if settings.split is not None and settings.split not in splits:
            raise UsageError(f"{cls.__name__} has no split {settings.split!r}; it has {', '.join(map(str, splits))}")
        self.cls = cls
        self.options = dict(options or {})
        self.settings = settings
        self.name = name or str(getattr(cls, "name", cls.__name__))
        self.timeout, self.watch = timeout, Watch()
        self._instances: list[Environment] = []
        self._episodes: list[PlayedEpisode] | None = None
        self._shared: Environment | None = None

    def make(self) -> Environment:
        self.watch.begin(f"environment {self.name!r:.60}: the constructor")
        try:
            with alarm(self.timeout):
                environment = self.cls(**self.options)
        finally:
            self.watch.end()
        watch_calls(environment, self.name, self.watch, self.timeout)
        self._instances.append(environment)
        return environment

    @property
    def shared(self) -> Environment:
        """The instance of all checks that need no fresh one."""
        if self._shared is None:
            self._shared = self.make()
        return self._shared

    @property
    def talks(self) -> bool:
        """Whether the state is a conversation."""
        return isinstance(self.shared, Messages)

    def faults(self, record: object) -> list[str]:
        """:func:`record_faults` of a record of this adapter."""
        return record_faults(record, self.talks)

    def choices(self, record: Record) -> Sequence[str]:
        """Actions to take: the admissible ones, the open ones filled, or replies of a conversation that end nothing."""
        filled = [one.replace(BLANK, "a word") for one in record.open_actions]
        return [*record.admissible, *filled] or (REPLIES if self.talks else [])

    @property
    def split(self) -> str:
        return self.settings.split or self.cls.splits[0]

    def tasks(self) -> list[Task]:
        """The played tasks: spread evenly over the split, so that their types differ."""
        everything = list(self.shared.tasks(self.split))
        if not everything:
            raise Skipped(f"split {self.split!r} has no tasks")
        wanted = min(self.settings.tasks, len(everything))
        return [everything[i * len(everything) // wanted] for i in range(wanted)]

    def seed_of(self, task: Task) -> int:
        return derive(self.settings.seed, task.id, "check")

    def episodes(self) -> list[PlayedEpisode]:
        """A random walk per task, then the episode of each task's plan, if it has one."""
        if self._episodes is None:
            walks = [self._walk(task) for task in self.tasks()]
            plans = [self._planned(task) for task in self.tasks()] if isinstance(self.shared, Planner) else []
            self._episodes = walks + [episode for episode in plans if episode.actions]
        return self._episodes

    def walks(self) -> list[PlayedEpisode]:
        return self.episodes()[: len(self.tasks())]

    def _walk(self, task: Task) -> PlayedEpisode:
        seed = self.seed_of(task)
        records, actions = [self.shared.reset(task, seed)], list[str]()
        while len(actions) < self.settings.steps and not self.faults(records[-1]) and not over(records[-1]):
            choices = self.choices(records[-1])
            actions.append(choices[derive(seed, "walk", len(actions)) % len(choices)])
            records.append(self.shared.step(actions[-1]))
        return PlayedEpisode(task, seed, tuple(actions), tuple(records))

    def _planned(self, task: Task) -> PlayedEpisode:
        """Follow the plan made at reset.  A stochastic environment plans again after each step."""
        environment, seed = self.shared, self.seed_of(task)
        assert isinstance(environment, Planner)
        records, actions = [environment.reset(task, seed)], list[str]()
        plan = environment.plan()
        while plan and len(actions) < LONGEST_PLAN and not self.faults(records[-1]) and not over(records[-1]):
            actions.append(plan[0])
            records.append(environment.step(plan[0]))
            plan = environment.plan() if isinstance(environment, Stochastic) else plan[1:]
        return PlayedEpisode(task, seed, tuple(actions), tuple(records))

    def close(self) -> None:
        while self._instances:
            with contextlib.suppress(Exception, SystemExit, GeneratorExit):
                self._instances.pop().close()


def over(record: Record) -> bool:
    return record.done or record.won


def watch_calls(environment: Environment, name: str, watch: Watch, timeout: float | None) -> None:
    """Let ``watch`` show the calls of ``environment``, and end one that takes longer than ``timeout`` seconds."""

    def watched(method: str, call: Any) -> Any:
        def work(*arguments: Any, **named: Any) -> Any:
            watch.begin(f"environment {name!r:.60}: {method}()")
            try:
                with alarm(timeout):
                    return call(*arguments, **named)
            finally:
                watch.end()

        return work

    for method in METHODS:
        if hasattr(environment, method):
            with contextlib.suppress(AttributeError, TypeError):  # an instance that takes no attributes
                setattr(environment, method, watched(method, getattr(environment, method)))
