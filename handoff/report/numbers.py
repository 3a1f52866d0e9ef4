"""The numbers of a run, as plain JSON: what the terminal and the page show is generated from these."""

from __future__ import annotations

from typing import Any

from handoff.study import Study


def _rate(count: int, of: int) -> float | None:
    return count / of if of else None


def summary(study: Study) -> dict[str, Any]:
    """Counts of a run as far as it has got.

    ``reach`` per reacher: arrivals of trajectories, and mean actions to arrival or stopping.  ``cells`` per (reacher,
    solver): wins, Solve (of the arrived) and endpoint (Eq. 2, of all).  A rate without a denominator is ``null``.
    While records are owed, rates are of the sealed records and ``owed`` says how many are missing.
    """
    trajectories = list(study.trajectories.values())
    endpoints = list(study.endpoints.values())
    reach = []
    for name in study.reachers:
        mine = [run for run in trajectories if run.reacher == name]
        arrived = sum(run.arrived for run in mine)
        actions = sum(len(run.steps) for run in mine)
        reach.append(
            {
                "reacher": name,
                "trajectories": len(mine),
                "arrived": arrived,
                "reach": _rate(arrived, len(mine)),
                "mean_actions": _rate(actions, len(mine)),
                "outcomes": {
                    outcome: count
                    for outcome in ("arrived", "won", "terminal", "budget")
                    if (count := sum(run.outcome == outcome for run in mine))
                },
            }
        )
    cells = []
    for reacher in study.reachers:
        for solver in study.solvers:
            rows = [end for end in endpoints if (end.reacher, end.solver) == (reacher, solver)]
            arrived, won = sum(end.arrived for end in rows), sum(end.won for end in rows)
            bridges = sum(bool(end.bridge) for end in rows)
            cells.append(
                {
                    "reacher": reacher,
                    "solver": solver,
                    "rows": len(rows),
                    "arrived": arrived,
                    "won": won,
                    "bridges": bridges,
                    "solve": _rate(won, arrived),
                    "endpoint": _rate(won, len(rows)),
                }
            )
    return {
        "complete": study.sealed and not any(study.owed),
        "planned": {"trajectories": study.planned[0], "endpoints": study.planned[1]},
        "owed": {"trajectories": study.owed[0], "endpoints": study.owed[1]},
        "depth": study.depth,
        "reach": reach,
        "cells": cells,
    }
