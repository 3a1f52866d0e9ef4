"""Installed protocols, found by name and loaded when they are used, and the protocol of a run folder.

A plug-in names its protocol, an instance of :class:`~handoff.protocols.protocol.Protocol`, under the entry point group
``handoff.protocols``.
"""

from __future__ import annotations

import difflib
from importlib import metadata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from handoff import signals
from handoff.errors import UsageError
from handoff.protocols.guard import plugin
from handoff.protocols.protocol import Protocol
from handoff.runs.folder import read_manifest
from handoff.runs.run import Run, protocol_of
from handoff.text import reason

GROUP = "handoff.protocols"

#: The toolkit's own protocols.
OWN = {
    "frontier": "handoff.protocols.frontier:FRONTIER",
    "recorded": "handoff.protocols.recorded:RECORDED",
    "rollouts": "handoff.protocols.rollouts:ROLLOUTS",
}


def plugins() -> dict[str, metadata.EntryPoint]:
    """Entry points of the plug-ins' protocols by name, not loaded.  A name of the toolkit's own is left out."""
    points = sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return {point.name: point for point in reversed(points) if point.name not in OWN}


def load_protocol(name: str) -> Protocol[Any, Any]:
    """The protocol called ``name``.

    Raises :class:`~handoff.errors.UsageError` if there is none (with the nearest name) or if its package is broken
    (with the reason).
    """
    if name in OWN:
        protocol = resolve_name(OWN[name])
        assert isinstance(protocol, Protocol)
        return protocol
    points = plugins()
    if name not in points:
        known = sorted({*OWN, *points})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise UsageError(f"no protocol is named {name!r:.60} ({hint}); install the package that brings it")
    try:
        protocol = points[name].load()
    except BaseException as error:  # a plug-in that ends the program while it is imported is broken, too
        if signals.from_user(error):
            raise
        raise UsageError(f"protocol {name!r} ({points[name].value}) cannot be loaded: {reason(error)}") from error
    if not isinstance(protocol, Protocol) or protocol.name != name:
        raise UsageError(
            f"protocol {name!r} ({points[name].value}) is no instance of handoff.protocols.protocol.Protocol "
            "with this name"
        )
    return plugin(protocol)


def protocol_of_run(folder: Path) -> Protocol[Any, Any]:
    """The protocol of the run in ``folder``.

    Raises :class:`~handoff.errors.StoreError` for a folder that is no run and :class:`~handoff.errors.UsageError` for a
    protocol that is not installed.
    """
    name = protocol_of(read_manifest(folder)["identity"]).get("name")
    return load_protocol(str(name))


def load(folder: str | Path) -> Run:
    """Read the run in ``folder``, of any protocol, complete or not (:meth:`Protocol.read`)."""
    run = protocol_of_run(Path(folder)).read(Path(folder))
    assert isinstance(run, Run)
    return run
