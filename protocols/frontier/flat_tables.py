"""The records of a verified-frontier run as flat tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.protocols.export import ExportTable
from handoff.protocols.frontier.search import certificates
from handoff.protocols.frontier.study import Study

Row = dict[str, Any]

_CELL = {"task": str, "name": str, "type": str, "seed": int, "reacher": str}
_ENDPOINTS = {
    **_CELL, "solver": str, "arrived": int, "won": int, "bridge": int, "arrival": int, "actions": int,
    "solver_actions": int,
}  # fmt: skip
_TRAJECTORIES = {**_CELL, "arrived": int, "arrival": int, "outcome": str, "actions": int}
_SEARCHES = {**_CELL, "position": int, "accepted": int, "member": int, "length": int, "tried": int}
_STEPS = {
    **_CELL, "solver": str, "position": int, "action": str, "status": str, "flags": str, "text": str,
    "observation": str, "won": int, "distance": int, "member": int,
}  # fmt: skip


def tables(study: Study) -> Mapping[str, ExportTable]:
    """``endpoints``, ``trajectories``, ``steps`` and ``searches``."""
    return {
        "endpoints": ExportTable(_ENDPOINTS, _endpoint_rows(study)),
        "trajectories": ExportTable(_TRAJECTORIES, _trajectory_rows(study)),
        "steps": ExportTable(_STEPS, _step_rows(study)),
        "searches": ExportTable(_SEARCHES, _search_rows(study)),
    }


def _base(study: Study) -> dict[str, Row]:
    return {task.id: {"task": task.id, "name": task.name, "type": task.type} for task in study.tasks}


def _endpoint_rows(study: Study) -> list[Row]:
    """One row an endpoint, with all columns that ``handoff estimate`` reads: ``arrival`` and ``actions`` are the
    reacher's, ``solver_actions`` its own."""
    base = _base(study)
    rows: list[Row] = []
    for end in study.endpoints.values():
        run = study.trajectories[end.cell.cell]
        rows.append(
            {
                **base[end.task],
                "seed": end.slot,
                "reacher": end.reacher,
                "solver": end.solver,
                "arrived": int(end.arrived),
                "won": int(end.won),
                "bridge": None if end.bridge is None else int(end.bridge),
                "arrival": run.arrival,
                "actions": len(run.steps),
                "solver_actions": len(end.steps),
            }
        )
    return rows


def _trajectory_rows(study: Study) -> list[Row]:
    """One row a trajectory."""
    base = _base(study)
    return [
        {
            **base[run.task],
            "seed": run.slot,
            "reacher": run.reacher,
            "arrived": int(run.arrived),
            "arrival": run.arrival,
            "outcome": run.outcome,
            "actions": len(run.steps),
        }
        for run in study.trajectories.values()
    ]


def _search_rows(study: Study) -> list[Row]:
    """One row per certificate and length of the action sequences tried: their sums are the totals of the search."""
    base = _base(study)
    return [
        {
            **base[run.task],
            "seed": run.slot,
            "reacher": run.reacher,
            "position": position,
            "accepted": int(position == run.arrival),
            "member": int(check.member),
            "length": length,
            "tried": tried,
        }
        for run in study.trajectories.values()
        for position, check in certificates(run)
        for length, tried in enumerate(check.tried, start=1)
    ]


def _step_rows(study: Study) -> list[Row]:
    """One row a decision, of reachers (``solver`` null) and of solvers."""
    base = _base(study)
    rows: list[Row] = []
    turns: list[tuple[Any, str | None]] = [
        *((run, None) for run in study.trajectories.values()),
        *((end, end.solver) for end in study.endpoints.values()),
    ]
    for turn, solver in turns:
        for position, step in enumerate(turn.steps):
            rows.append(
                {
                    **base[turn.task],
                    "seed": turn.slot,
                    "reacher": turn.reacher,
                    "solver": solver,
                    "position": position,
                    "action": step.decision.action,
                    "status": step.decision.status,
                    "flags": " ".join(step.decision.flags),
                    "text": step.decision.text,
                    "observation": step.record.observation,
                    "won": int(step.record.won),
                    "distance": step.distance if step.check is None else step.check.distance or step.distance,
                    "member": None if step.check is None else int(step.check.member),
                }
            )
    return rows
