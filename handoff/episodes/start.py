"""Starts the place where environments live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.cores import usable_cores
from handoff.episodes.places import Here, Workers
from handoff.episodes.processes import Processes


def start(name: str, options: Mapping[str, Any], count: int | None, ray: str | None = None) -> Workers:
    """Workers for environments ``name`` with ``options``: ``count`` processes (0: this one), or as many actors of the
    Ray cluster at the address ``ray`` (``None``: one per free core there)."""
    if ray is not None:
        from handoff.episodes.ray import RayWorkers

        return RayWorkers(name, options, ray, count)
    if count is None:
        count = usable_cores()
    return Processes(name, options, count) if count else Here(name, options)
