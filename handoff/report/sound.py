"""What a report takes for granted of a run's records, checked: a run folder may come from anybody.

Digests and types are checked where records are read (:mod:`handoff.study`); this is about what records say of each
other.
"""

from __future__ import annotations

from handoff.errors import DataError
from handoff.records import Trajectory
from handoff.study import Study


def require(study: Study) -> None:
    """Raise :class:`~handoff.errors.DataError`, naming the record, where a run contradicts itself."""
    where = study.folder
    for key in ("slots", "depth", "reach_budget", "solve_budget"):
        if study.protocol[key] < 1:
            raise DataError(
                f"{where}: the manifest's protocol has {key} {study.protocol[key]}, and it must be at least 1"
            )
    for key in ("reachers", "solvers"):
        names = study.protocol[key]
        if not names or len(set(names)) != len(names):
            raise DataError(f"{where}: the manifest's protocol must name each of its {key} once")
    if not all(isinstance(facts, dict) for facts in study.policies.values()):
        raise DataError(f"{where}: the manifest describes a policy by something that is not an object")
    known = {task.id for task in study.tasks}
    if not study.tasks or len(known) != len(study.tasks):
        raise DataError(f"{where}: the manifest must list at least one task, and each once")
    for run in study.trajectories.values():
        cell = f"{where}: the trajectory of task {run.task}, seed slot {run.slot}, reacher {run.reacher}"
        if run.task not in known or run.reacher not in study.reachers or not 0 <= run.slot < study.slots:
            raise DataError(f"{cell} is not in the run's plan")
        _require_arrival(run, cell, study.depth)
    for end in study.endpoints.values():
        cell = f"task {end.task}, seed slot {end.slot}, reacher {end.reacher}, solver {end.solver}"
        if (end.task, end.slot, end.reacher) not in study.trajectories or end.solver not in study.solvers:
            raise DataError(f"{where}: the endpoint of {cell} has no trajectory in the run's plan")


def _require_arrival(run: Trajectory, cell: str, depth: int) -> None:
    if run.arrival is None:
        return
    if not 0 <= run.arrival <= len(run.steps):
        raise DataError(f"{cell} arrives after {run.arrival} actions, but it has {len(run.steps)}")
    check = run.reset_check if run.arrival == 0 else run.steps[run.arrival - 1].check
    if check is None or not check.member or check.depth != depth:
        raise DataError(f"{cell} arrives at a state that has no certificate of depth {depth}")
