"""The table of ones and zeros of a verified-frontier run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from handoff.errors import DataError
from handoff.estimation.table import Table
from handoff.protocols.frontier.records import Endpoint, Trajectory
from handoff.records import Task

K = TypeVar("K", bound=tuple[object, ...])
V = TypeVar("V")


def table_of(
    tasks: Iterable[Task],
    trajectories: Iterable[Trajectory],
    endpoints: Iterable[Endpoint],
    *,
    reachers: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    budget: int | None = None,
) -> Table:
    """The table of a run's records.

    ``reachers`` and ``solvers`` fix the order of the names (as they first appear otherwise); ``budget`` is the
    reacher's budget where it is known.  Raises :class:`~handoff.errors.DataError` for a missing or a second
    trajectory or endpoint, an unknown task, or an endpoint whose ``arrived`` contradicts its trajectory.
    """
    kept = sorted(tasks, key=lambda task: (task.type, task.id))
    runs: dict[tuple[str, int, str], Trajectory] = {}
    for run in trajectories:
        _once(runs, (run.task, run.slot, run.reacher), run, "trajectory")
    ends: dict[tuple[str, int, str, str], Endpoint] = {}
    for end in endpoints:
        _once(ends, (end.task, end.slot, end.reacher, end.solver), end, "endpoint")
    known = {task.id for task in kept}
    for stray in (key[0] for key in (*runs, *ends) if key[0] not in known):
        raise DataError(f"a record of task {stray}, which is not among the study's tasks")
    names_W = tuple(reachers) if reachers is not None else tuple(dict.fromkeys(key[2] for key in runs))
    names_R = tuple(solvers) if solvers is not None else tuple(dict.fromkeys(key[3] for key in ends))
    slots = tuple(sorted({key[1] for key in runs}))
    wts = (len(names_W), len(kept), len(slots))
    arrived_WTS = np.zeros(wts, bool)
    arrival_WTS = np.full(wts, -1, np.int64)
    actions_WTS = np.zeros(wts, np.int64)
    won_WRTS = np.zeros((wts[0], len(names_R), *wts[1:]), bool)
    bridge_WRTS = np.zeros_like(won_WRTS)
    for w, t, s in np.ndindex(*wts):
        cell = (kept[t].id, slots[s], names_W[w])
        trajectory = runs.get(cell)
        if trajectory is None:
            raise DataError(f"no trajectory of task {cell[0]}, seed {cell[1]}, reacher {cell[2]}: the run is owed it")
        arrived_WTS[w, t, s] = trajectory.arrived
        if trajectory.arrival is not None:
            arrival_WTS[w, t, s] = trajectory.arrival
        actions_WTS[w, t, s] = len(trajectory.steps) if trajectory.arrival is None else trajectory.arrival
        for r, solver in enumerate(names_R):
            endpoint = ends.get((*cell, solver))
            where = f"task {cell[0]}, seed {cell[1]}, reacher {cell[2]}, solver {solver}"
            if endpoint is None:
                raise DataError(f"no endpoint of {where}: the run is owed it")
            if endpoint.arrived != trajectory.arrived:
                raise DataError(f"{where}: the endpoint and the trajectory disagree on whether it arrived")
            won_WRTS[w, r, t, s] = endpoint.won
            bridge_WRTS[w, r, t, s] = bool(endpoint.bridge)
    return Table(
        reachers=names_W,
        solvers=names_R,
        tasks=tuple(task.id for task in kept),
        strata=tuple(task.type for task in kept),
        slots=slots,
        arrived_WTS=arrived_WTS,
        won_WRTS=won_WRTS,
        bridge_WRTS=bridge_WRTS,
        arrival_WTS=arrival_WTS,
        actions_WTS=actions_WTS,
        budget=budget,
    )


def _once(cells: dict[K, V], key: K, value: V, what: str) -> None:
    if key in cells:
        raise DataError(f"two {what} records of one cell: {', '.join(map(str, key))}")
    cells[key] = value
