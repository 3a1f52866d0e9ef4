"""The adapter class that an environment's author writes, its optional abilities, and the registry.

An adapter has four required things: ``name``, ``tasks(split)``, ``reset(task, seed)`` and ``step(action)``.  Everything
else is an optional ability, a small protocol that an adapter may also have; without it the toolkit falls back to
reset + replay, which is always right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from handoff.records import AnswerVerdict, Certificate, Message, Record, Task


class Environment(ABC):
    """One instance plays one episode at a time; ``reset`` may be called any number of times, for any task.

    The contract, checked by ``handoff check``: after equal ``reset`` calls and equal actions, two instances (in any
    two processes) show records with equal canonical JSON.  An action that is not admissible still is a step: it must
    not raise.  The constructor takes keyword options only, all of them JSON-safe.
    """

    name: ClassVar[str]
    #: The splits that ``tasks`` knows, the default one first.
    splits: ClassVar[tuple[str, ...]] = ("default",)
    #: What a policy's name means where nothing is bound to it: specs by name.
    policies: ClassVar[Mapping[str, str]] = {}
    #: Options of further places where tasks may lie: an audit looks there for the tasks of a run, by their digests.
    places: ClassVar[Sequence[Mapping[str, Any]]] = ()
    #: For an environment of :class:`Messages`: it replaces the last message where the conversation no longer fits in a
    #: model's context, and asks for the last reply.  Empty: such an episode ends.
    last_request: ClassVar[str] = ""

    @classmethod
    def usual(cls) -> type[Environment]:
        """The class of an instance made without options: another one where engines have classes of their own."""
        return cls

    @abstractmethod
    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of ``split``, in an order that does not depend on the machine."""

    @abstractmethod
    def reset(self, task: Task, seed: int) -> Record:
        """Start an episode.  Raises :class:`~handoff.errors.DataError` if the task cannot be loaded."""

    @abstractmethod
    def step(self, action: str) -> Record:
        """Take one action, admissible or not."""

    def close(self) -> None:  # noqa: B027 - optional
        """Free what the instance holds.  May be called twice."""

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        """JSON-safe facts that identify the environment in the manifest of a run of ``tasks``: versions and digests,
        no paths."""
        return {}


@runtime_checkable
class Snapshots(Protocol):
    """Exact in-memory clones: ``restore(snapshot())`` leaves an environment that behaves identically ever after.

    Two equal (and equally hashed) snapshots of one task must have the same futures.
    """

    def snapshot(self) -> Hashable: ...

    def restore(self, snapshot: Hashable) -> Record: ...


@runtime_checkable
class FrontierOracle(Protocol):
    """A faster exhaustive search from the current state, with the certificate that the plain one would give."""

    def certify(self, depth: int) -> Certificate: ...


@runtime_checkable
class DistanceOracle(Protocol):
    """Knows the least number of actions from the current state to success, if it is at most ``limit``."""

    def distance(self, limit: int) -> int | None: ...


@runtime_checkable
class Planner(Protocol):
    """Knows actions that lead from the current state to success (empty if it knows none)."""

    def plan(self) -> tuple[str, ...]: ...


@runtime_checkable
class Messages(Protocol):
    """Its state is a list of messages, and an action is a whole reply (:mod:`handoff.messages`).

    The record of its reset holds the first messages.  ``messages()`` is the whole list now: what
    :func:`handoff.messages.history.conversation` makes of the records.
    """

    def messages(self) -> Sequence[Message]: ...


@runtime_checkable
class Scored(Protocol):
    """Its success is scored when the episode has ended.

    ``answer()`` is what the episode has come to, JSON-safe: ``None`` without one.  ``score`` depends on its arguments
    alone, and never raises for an answer that a model has given.
    """

    def answer(self) -> Any: ...

    def score(self, task: Task, answer: Any) -> AnswerVerdict: ...


@runtime_checkable
class Formatted(Protocol):
    """Its answers are text, which a formatter turns into what is scored.

    ``formatting`` are the messages that ask a chat model for it, of which the last is the answer alone.
    ``read_formatted`` is what the model's reply comes to, JSON-safe; ``None`` where it cannot be read.
    """

    def formatting(self, task: Task, answer: str) -> Sequence[Message]: ...

    def read_formatted(self, reply: str) -> Any: ...


@runtime_checkable
class RowScorer(Protocol):
    """Scores replies that were made elsewhere, one JSON object each (``handoff score``).

    The row comes back with the verdict's fields filled in, and all others as they were.  Raises
    :class:`~handoff.errors.DataError` for a row that cannot be read.
    """

    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]: ...


@runtime_checkable
class Certified(Protocol):
    """Has a reference implementation, against which recorded episodes are certified.

    It is the same adapter under the options that :meth:`reference_options` returns.
    """

    def reference_options(self) -> Mapping[str, Any]: ...


@runtime_checkable
class Stochastic(Protocol):
    """Its steps are random, and it can list their outcomes.

    ``outcomes(action)`` are the possible next states, as pairs (probability, snapshot) with positive
    probabilities that sum to 1, each state once.  Listing draws nothing.  The adapter must have
    :class:`~handoff.environment.Snapshots`, with the random state inside.
    """

    def outcomes(self, action: str) -> tuple[tuple[float, Hashable], ...]: ...
