"""Installed protocols, and the protocol of a run folder."""

from __future__ import annotations

from pathlib import Path

from handoff.runs.folder import read_manifest


def protocol_name(folder: Path) -> str:
    """The name of the protocol of the run in ``folder``."""
    identity = read_manifest(folder)["identity"]
    protocol = identity.get("protocol") if isinstance(identity, dict) else None
    return str(protocol.get("name")) if isinstance(protocol, dict) else "unknown"
