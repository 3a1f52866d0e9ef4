"""The one place where the toolkit calls an adapter.

Whatever a method raises (``SystemExit`` and ``KeyboardInterrupt`` too) and whatever else than its declared type it
returns becomes :class:`~handoff.errors.EnvironmentFault`: one sentence that names environment, task, method, field and
value.  Text of an adapter is untrusted and made safe to print.

Two kinds of errors keep their class, for they are part of the contract: ``UsageError`` and ``DataError`` of the
constructor, ``tasks``, ``describe`` and ``reference_options`` (a wrong option or split, missing data), and
``DataError`` of ``reset`` (:class:`~handoff.errors.TaskFault`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar, cast

import attrs

from handoff import registry, signals
from handoff.environment import (
    Certified,
    DistanceOracle,
    Environment,
    Formatted,
    FrontierOracle,
    Messages,
    Planner,
    RowScorer,
    Scored,
    Snapshots,
    Stochastic,
)
from handoff.errors import DataError, EnvironmentFault, HandoffError, TaskFault, UsageError
from handoff.guard.failures import failure, remedy, sentence, stated
from handoff.guard.host_state import Kept, handlers, kept
from handoff.guard.values import MOST_ITEMS, checker, described, json_object, problem
from handoff.guard.watch import Monitor, TimedOut, Watch, alarm
from handoff.records import AnswerVerdict, Certificate, Message, Record, Task
from handoff.text import class_name, printable

T = TypeVar("T")

_RECORD, _CERTIFICATE, _TASK, _PLAN = checker(Record), checker(Certificate), checker(Task), checker(tuple[str, ...])
_MESSAGES, _VERDICT = checker(tuple[Message, ...]), checker(AnswerVerdict)
_DISTANCE, _PROBABILITY = checker(int | None), checker(float)


class _Wrong(Exception):
    """A method returned something wrong.  The text says what, to be put after the method's name."""


class Guarded(Environment):
    """An adapter behind the boundary, with the abilities that it has itself."""

    def __init__(self, call: Call, inner: Environment) -> None:
        self.call, self.inner = call, inner

    def tasks(self, split: str) -> Sequence[Task]:
        return self.call(f"tasks({split!r:.40})", lambda: _tasks(self.inner.tasks(split)), contract=True)

    def reset(self, task: Task, seed: int) -> Record:
        self.call.start(task)
        return self.call("reset()", lambda: _checked(self.inner.reset(task, seed), _RECORD), contract=True)

    def step(self, action: str) -> Record:
        return self.call("step()", lambda: _checked(self.inner.step(action), _RECORD))

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return self.call("describe()", lambda: _facts(self.inner.describe(tasks), self.name), contract=True)

    def close(self) -> None:
        """Close the adapter.  A failure is a remark of :attr:`Call.remarks`."""
        try:
            self.call("close()", self.inner.close, contract=True)
        except HandoffError as error:
            self.call.remarks.append(str(error))


class _Shot:
    """A snapshot, whose own comparison and hash are calls of the adapter, too."""

    __slots__ = ("call", "hash", "value")

    def __init__(self, call: Call, value: Hashable) -> None:
        self.call, self.value, self.hash = call, value, hash(value)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Shot):
            return NotImplemented
        return self.call("snapshot()", lambda: bool(self.value == other.value))


class _Snapshots(Guarded):
    def snapshot(self) -> Hashable:
        inner: Any = self.inner
        return self.call("snapshot()", lambda: _Shot(self.call, inner.snapshot()))

    def restore(self, snapshot: Any) -> Record:
        inner: Any = self.inner

        def work() -> Record:
            record: Record = _checked(inner.restore(snapshot.value), _RECORD)
            return record

        return self.call("restore()", work)


class _FrontierOracle(Guarded):
    def certify(self, depth: int) -> Certificate:
        inner: Any = self.inner
        return self.call(f"certify({depth})", lambda: _certificate(inner.certify(depth), depth))


class _DistanceOracle(Guarded):
    def distance(self, limit: int) -> int | None:
        inner: Any = self.inner
        return self.call(f"distance({limit})", lambda: _distance(inner.distance(limit), limit))


class _Planner(Guarded):
    def plan(self) -> tuple[str, ...]:
        inner: Any = self.inner
        return self.call("plan()", lambda: _checked(inner.plan(), _PLAN))


class _Certified(Guarded):
    def reference_options(self) -> Mapping[str, Any]:
        inner: Any = self.inner
        return self.call("reference_options()", lambda: _json(inner.reference_options()), contract=True)


class _Stochastic(Guarded):
    def outcomes(self, action: str) -> tuple[tuple[float, Hashable], ...]:
        inner: Any = self.inner
        return self.call("outcomes()", lambda: _outcomes(inner.outcomes(action), self.call))


class _Messages(Guarded):
    def messages(self) -> Sequence[Message]:
        inner: Any = self.inner
        return self.call("messages()", lambda: _checked(tuple(inner.messages()), _MESSAGES))


class _Scored(Guarded):
    def answer(self) -> Any:
        inner: Any = self.inner
        return self.call("answer()", lambda: _value(inner.answer()))

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        inner: Any = self.inner

        def work() -> AnswerVerdict:
            verdict: AnswerVerdict = _checked(inner.score(task, answer), _VERDICT)
            return verdict

        return self.call("score()", work, contract=True)


class _Formatted(Guarded):
    def formatting(self, task: Task, answer: str) -> Sequence[Message]:
        inner: Any = self.inner
        return self.call("formatting()", lambda: _checked(tuple(inner.formatting(task, answer)), _MESSAGES))

    def read_formatted(self, reply: str) -> Any:
        inner: Any = self.inner
        return self.call("read_formatted()", lambda: _value(inner.read_formatted(reply)))


class _RowScorer(Guarded):
    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        inner: Any = self.inner
        return self.call("score_row()", lambda: _json(inner.score_row(row)), contract=True)


#: The guard of each ability.
_ABILITIES: Mapping[type, type[Guarded]] = {
    Snapshots: _Snapshots,
    FrontierOracle: _FrontierOracle,
    DistanceOracle: _DistanceOracle,
    Planner: _Planner,
    Certified: _Certified,
    Stochastic: _Stochastic,
    Messages: _Messages,
    Scored: _Scored,
    Formatted: _Formatted,
    RowScorer: _RowScorer,
}


class Call:
    """Calls the methods of one adapter instance and turns its failures into sentences."""

    def __init__(self, name: str, watch: Watch, timeout: float | None, shared: bool) -> None:
        self.name, self._watch, self._timeout, self._shared = name, watch, timeout, shared
        self._handlers = handlers() if shared else None
        self._where = f"environment {name!r:.60}"
        self._task = ""
        #: Failures that stop nothing.
        self.remarks: list[str] = []

    def start(self, task: Task) -> None:
        """An episode of ``task`` begins."""
        self._task = f", task {printable(task.name[:80])}"

    def __call__(self, method: str, work: Callable[[], T], contract: bool = False) -> T:
        """``work()``, which calls ``method``.  ``contract``: errors in the request or the data keep their class."""
        words = f"{self._where}{self._task}: {method}"
        if self._watch.expired is not None:  # of another episode: this call would be waited for as long
            raise EnvironmentFault(self._watch.expired)
        self._watch.begin(words)
        try:
            if not self._shared:
                return work()
            with Kept(self._handlers if contract else None):
                if self._timeout is None:
                    return work()
                with alarm(self._timeout):
                    return work()
        except BaseException as error:
            fault = self._fault(words, error, contract)
            if fault is error:
                raise
            raise fault from error
        finally:
            self._watch.end()

    def _fault(self, words: str, error: BaseException, contract: bool) -> BaseException:
        if signals.from_user(error):
            return error
        kind = type(error)  # asking the object for its class may run its code
        if issubclass(kind, TimedOut) and self._timeout is not None:
            self._watch.expired = f"{words} has not returned for {self._timeout:g} s (--step-timeout)"
            return EnvironmentFault(self._watch.expired)
        advice = f"`handoff check {printable(self.name)}` looks for such faults"
        if issubclass(kind, _Wrong):
            return EnvironmentFault(f"{words} returned what it must not: {error}; {advice}")
        if not issubclass(kind, HandoffError):
            return EnvironmentFault(f"{words} raised {failure(error)}; {remedy(error) or advice}")
        own = cast(HandoffError, error)
        if contract and issubclass(kind, UsageError | DataError):
            if not self._task:
                return stated(own)
            if issubclass(kind, DataError):
                return TaskFault(f"{words} refused the task: {sentence(own)}")
        return EnvironmentFault(f"{words} raised {class_name(kind)}: {sentence(own)}")


def load(name: str) -> type[Environment]:
    """The class of the installed adapter ``name``, whose splits and policies are what they must be.

    Raises :class:`~handoff.errors.UsageError` if there is none or its package is broken.
    """
    with kept():
        cls = registry.load(name)
    wrong = problem(cls.splits, tuple[str, ...], "splits") or problem(cls.last_request, str, "last_request")
    if wrong is None and not cls.splits:
        wrong = "splits is empty, not the names of the splits"
    policies: Any = cls.policies
    if wrong is None and not (
        isinstance(policies, Mapping) and all(type(one) is str for pair in policies.items() for one in pair)
    ):
        wrong = f"policies is {described(policies)}, not a mapping from names to specs"
    places: Any = cls.places
    if wrong is None and not (type(places) in (tuple, list) and all(isinstance(one, Mapping) for one in places)):
        wrong = f"places is {described(places)}, not a tuple of mappings"
    if wrong is not None:
        raise EnvironmentFault(f"environment {name!r:.60}: its class attribute {wrong}")
    return cls


def make(
    name: str, options: Mapping[str, Any], watch: Watch, timeout: float | None = None, shared: bool = True
) -> Guarded:
    """An instance of the installed adapter ``name`` behind the boundary.

    ``watch`` shows its current call.  ``shared`` says that the process is the toolkit's own: what the adapter changes
    in it is put back, and a call that takes longer than ``timeout`` seconds is ended where that is possible.
    Raises :class:`~handoff.errors.UsageError` for an unknown name or option.
    """
    with kept() if shared else contextlib.nullcontext():
        registry.loaded(name)  # an import may take longer than any call
    call = Call(name, watch, timeout, shared)

    def create() -> tuple[Environment, tuple[type, ...], object]:
        inner = registry.create(name, options)
        return inner, tuple(kind for kind in _ABILITIES if isinstance(inner, kind)), type(inner).name

    inner, abilities, stated = call("the constructor", create, contract=True)
    if stated != name:
        raise EnvironmentFault(
            f"environment {name!r:.60}: its class attribute `name` is {described(stated)}; set it to the name of the "
            "entry point"
        )
    return _class_of(name, abilities)(call, inner)


@cache
def _class_of(name: str, abilities: tuple[type, ...]) -> type[Guarded]:
    bases = tuple(_ABILITIES[kind] for kind in abilities) or (Guarded,)
    return type("GuardedAdapter", bases, {"name": name})


@contextlib.contextmanager
def opened(name: str, options: Mapping[str, Any], timeout: float | None = None) -> Iterator[Guarded]:
    """An instance of the adapter in this process, closed at the end."""
    watch = Watch()
    with Monitor([watch]):
        environment = make(name, options, watch, timeout)
        try:
            yield environment
        finally:
            environment.close()


def _checked(value: T, check: Callable[[Any, str], str | None]) -> T:
    """``value``, as an object that the adapter does not hold: it cannot be changed later."""
    wrong = check(value, "it")
    if wrong is not None:
        raise _Wrong(wrong)
    whole: Any = value
    copied: T = attrs.evolve(whole) if attrs.has(type(whole)) else whole
    return copied


def _tasks(value: Any) -> Sequence[Task]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _Wrong(f"it is {described(value)}, not a list of tasks")
    tasks = tuple(islice(value, MOST_ITEMS + 1))
    if not 0 < len(tasks) <= MOST_ITEMS:
        raise _Wrong(f"it lists {'no task' if not tasks else f'more than {MOST_ITEMS:,} tasks'}")
    known: set[str] = set()
    for number, task in enumerate(tasks, start=1):
        wrong = _TASK(task, f"task {number}")
        if wrong is not None:
            raise _Wrong(wrong)
        for field in ("id", "name", "type", "split"):
            text = getattr(task, field)
            if not text.isprintable():
                raise _Wrong(f"the {field} of task {number} contains an unprintable character: {text[:80]!r}")
        if task.id in known:
            raise _Wrong(f"two tasks have the id {task.id[:80]!r}; make it a digest of the task's content")
        known.add(task.id)
    return tuple(map(attrs.evolve, tasks))


def _certificate(value: Any, depth: int) -> Certificate:
    certificate: Certificate = _checked(value, _CERTIFICATE)
    if certificate.depth != depth:
        raise _Wrong(f"depth is {certificate.depth}, not the {depth} that was asked for")
    return certificate


def _distance(value: Any, limit: int) -> int | None:
    distance: int | None = _checked(value, _DISTANCE)
    if distance is not None and not 0 <= distance <= limit:
        raise _Wrong(f"it is {distance}, not None or a number from 0 to the limit {limit}")
    return distance


def _outcomes(value: Any, call: Call) -> tuple[tuple[float, Hashable], ...]:
    if type(value) is not tuple or not all(type(pair) is tuple and len(pair) == 2 for pair in value):
        raise _Wrong(f"it is {described(value)}, not a tuple of pairs (probability, snapshot)")
    for number, (probability, _) in enumerate(value, start=1):
        wrong = _PROBABILITY(probability, f"probability {number}")
        if wrong is not None or probability <= 0:
            raise _Wrong(wrong or f"probability {number} is {probability}, not more than 0")
    total = sum(probability for probability, _ in value)
    if abs(total - 1) > 1e-9:
        raise _Wrong(f"the probabilities sum to {total}, not to 1")
    return tuple((probability, _Shot(call, snapshot)) for probability, snapshot in value)


def _value(value: Any) -> Any:
    return _json({"value": value})["value"]


def _json(value: Any) -> dict[str, Any]:
    try:
        return json_object(value)
    except ValueError as error:
        raise _Wrong(str(error)) from None


def _facts(value: Any, name: str) -> dict[str, Any]:
    facts = _json(value)
    if facts.get("name", name) != name:
        raise _Wrong(f"its key 'name' is {described(facts['name'])}, but the environment's name is {name!r}")
    return facts
