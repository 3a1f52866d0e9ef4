"""Installed adapters, found by entry point and loaded when they are used."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any

import attrs

from handoff import signals
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
from handoff.errors import UsageError
from handoff.text import printable, reason, said

#: The optional abilities by name, as ``handoff envs`` shows them.
ABILITIES: Mapping[str, type] = {
    "snapshots": Snapshots,
    "frontier-oracle": FrontierOracle,
    "distance-oracle": DistanceOracle,
    "planner": Planner,
    "certified": Certified,
    "stochastic": Stochastic,
    "messages": Messages,
    "scored": Scored,
    "formatted": Formatted,
    "row-scorer": RowScorer,
}


@attrs.frozen
class Listed:
    """One installed adapter as ``handoff envs`` lists it; ``broken`` says why it cannot be loaded."""

    name: str
    implementation: str
    distribution: str
    summary: str = ""
    splits: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ()
    broken: str | None = None


def abilities(cls: type[Environment]) -> tuple[str, ...]:
    """Names of the optional abilities (keys of :data:`ABILITIES`) that the adapter class has."""
    return tuple(name for name, protocol in ABILITIES.items() if issubclass(cls.usual(), protocol))


def inventory() -> list[Listed]:
    """All installed adapters by name.  A broken plug-in is listed with its reason; it is never an error."""
    entries = []
    for name, point in registered().items():
        package = f"{point.dist.name} {point.dist.version}" if point.dist else ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                cls = load(name)
            summary = printable(str(cls.__doc__ or "").strip().split("\n")[0])
            splits = tuple(printable(str(split)) for split in cls.splits)
            entry = Listed(name, point.value, package, summary, splits, abilities(cls))
        except UsageError as error:
            entry = Listed(name, point.value, package, broken=printable(str(error)))
        except BaseException as error:
            if signals.from_user(error):
                raise
            entry = Listed(name, point.value, package, broken=reason(error))
        entries.append(entry)
    return entries


GROUP = "handoff.environments"


def registered() -> dict[str, metadata.EntryPoint]:
    """Entry points of all installed adapters by name, not loaded.

    Of two with one name, the first by value is kept, with a warning.
    """
    points: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        if point.name in points and points[point.name].value != point.value:
            warnings.warn(f"two environments are named {point.name!r}; {point.value} is ignored", stacklevel=2)
            continue
        points[point.name] = point
    return points


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
    except SystemExit as error:  # a plug-in that ends the program while it is imported
        raise UsageError(
            f"environment {name!r} cannot be loaded: importing it ends the program ({said(error, 300)})"
        ) from error
    except BaseException as error:
        if signals.from_user(error):
            raise
        raise UsageError(f"environment {name!r} ({points[name].value}) cannot be loaded: {reason(error)}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise UsageError(f"environment {name!r} ({points[name].value}) is not a subclass of handoff.Environment")
    return loaded


@lru_cache
def loaded(name: str) -> type[Environment]:
    """:func:`load`, which looks through all installed packages: many environments are made in one process."""
    return load(name)


def create(name: str, options: Mapping[str, Any] | None = None) -> Environment:
    """An instance of the adapter ``name``.  Raises :class:`~handoff.errors.UsageError` for an option it does not
    take."""
    cls = loaded(name)
    chosen = dict(options or {})
    parameters = inspect.signature(cls).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    unknown = (
        [] if any(one.kind is one.VAR_KEYWORD for one in parameters) else [key for key in chosen if key not in names]
    )
    if unknown:
        known = f"it takes {', '.join(names)}" if names else "it takes none"
        raise UsageError(f"environment {name!r} does not take these options: {', '.join(unknown)} ({known})")
    missing = [
        one.name for one in parameters if one.name in names and one.default is one.empty and one.name not in chosen
    ]
    if missing:
        raise UsageError(f"environment {name!r} needs these options: {', '.join(missing)}")
    try:
        return cls(**chosen)
    except TypeError as error:
        if not chosen:
            raise
        raise UsageError(f"environment {name!r} cannot use these options: {reason(error)}") from error
