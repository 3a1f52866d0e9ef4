"""The adapter class that an environment's author writes, its optional abilities, and the registry.

An adapter has four required things: ``name``, ``tasks(split)``, ``reset(task, seed)`` and ``step(action)``.  Everything
else is an optional ability, a small protocol that an adapter may also have; without it the toolkit falls back to
reset + replay, which is always right.
"""

from __future__ import annotations

import difflib
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any, ClassVar, Protocol, runtime_checkable

from handoff.errors import UsageError
from handoff.records import Certificate, Record, Task

GROUP = "handoff.environments"


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
class Certified(Protocol):
    """Has a reference implementation of itself, against which recorded episodes are certified: the same adapter under
    the options that this gives."""

    def reference_options(self) -> Mapping[str, Any]: ...


def registered() -> dict[str, metadata.EntryPoint]:
    """Entry points of all installed adapters by name, nothing of them loaded yet.  Of two with one name the first by
    distribution name is kept, with a warning."""
    found: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        if point.name in found and found[point.name].value != point.value:
            warnings.warn(f"two environments are named {point.name!r}; {point.value} is ignored", stacklevel=2)
            continue
        found[point.name] = point
    return found


def load(name: str) -> type[Environment]:
    """The adapter class called ``name``.

    Raises :class:`~handoff.errors.UsageError` if there is none (with the nearest names) or if its package is broken
    (with the reason).
    """
    points = registered()
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(points)) or 'none'}"
        raise UsageError(f"no environment is named {name!r} ({hint}; `handoff envs` lists them)")
    try:
        loaded = points[name].load()
    except Exception as error:
        raise UsageError(
            f"environment {name!r} ({points[name].value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise UsageError(f"environment {name!r} ({points[name].value}) is not a subclass of handoff.Environment")
    return loaded


@lru_cache
def _loaded(name: str) -> type[Environment]:
    """:func:`load`, which looks through all installed packages: many environments are made in one process."""
    return load(name)


def create(name: str, options: Mapping[str, Any] | None = None) -> Environment:
    """An instance of the adapter ``name``.  Raises :class:`~handoff.errors.UsageError` for an option it does not
    take."""
    cls = _loaded(name)
    given = dict(options or {})
    taken = inspect.signature(cls).parameters.values()
    names = [one.name for one in taken if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    unknown = [] if any(one.kind is one.VAR_KEYWORD for one in taken) else [key for key in given if key not in names]
    if unknown:
        known = f"it takes {', '.join(names)}" if names else "it takes none"
        raise UsageError(f"environment {name!r} does not take these options: {', '.join(unknown)} ({known})")
    missing = [one.name for one in taken if one.name in names and one.default is one.empty and one.name not in given]
    if missing:
        raise UsageError(f"environment {name!r} needs these options: {', '.join(missing)}")
    try:
        return cls(**given)
    except TypeError as error:
        raise UsageError(f"environment {name!r} cannot use these options: {error}") from error
