"""Starts the place where environments live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.children import usable_cores
from handoff.episodes.places import Here, Workers
from handoff.episodes.processes import Processes
from handoff.settings import setting


@attrs.frozen
class Where:
    """Where environments live."""

    #: Processes (0: this one), or actors on a cluster; ``None``: one per usable core.
    workers: int | None = setting(
        "Environment processes; 0 for none but this one.",
        kind=int,
        default=None,
        least=0,
        most=1024,
        shown="one per core",
        group="execution",
    )
    #: Address of a Ray cluster; ``None``: this machine.
    ray: str | None = setting(
        "Environments on the Ray cluster there (auto: the one that is found), not here.",
        kind=str,
        default=None,
        metavar="ADDRESS",
        group="execution",
    )
    #: The longest time that one call of the environment may take, in seconds; ``None``: any.
    step_timeout: float | None = setting(
        "End the work if one call of the environment takes longer (a step, a reset).",
        kind=float,
        default=None,
        least=0.1,
        most=86_400,
        metavar="SECONDS",
        shown="never",
        group="execution",
    )


def start(name: str, options: Mapping[str, Any], where: Where) -> Workers:
    """Workers for environments ``name``, each made with ``options``."""
    if where.ray is not None:
        from handoff.episodes.ray import RayWorkers

        return RayWorkers(name, options, where.ray, where.workers, timeout=where.step_timeout)
    count = usable_cores() if where.workers is None else where.workers
    return Processes(name, options, count, where.step_timeout) if count else Here(name, options, where.step_timeout)
