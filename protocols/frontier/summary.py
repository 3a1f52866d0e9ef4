"""Counts of a verified-frontier run, as far as it has got."""

from __future__ import annotations

from typing import Any

from handoff.protocols.frontier.study import Study

Json = dict[str, Any]


def summary(study: Study) -> Json:
    """Counts of a run as far as it has got.

    ``reach`` per reacher: arrivals of trajectories, and mean actions to arrival or stopping.  ``cells`` per (reacher,
    solver): wins, Solve (of the arrived) and endpoint (Eq. 2, of all).  A rate without a denominator is ``null``.
    While records are owed, rates are of the sealed records and ``owed`` says how many are missing.
    """
    return {
        "complete": study.complete,
        "planned": {"trajectories": study.planned[0], "endpoints": study.planned[1]},
        "owed": {"trajectories": study.owed[0], "endpoints": study.owed[1]},
        "depth": study.depth,
        "reach": [_reach(study, name) for name in study.reachers],
        "cells": [_cell(study, reacher, solver) for reacher in study.reachers for solver in study.solvers],
    }


def _reach(study: Study, name: str) -> Json:
    mine = [run for run in study.trajectories.values() if run.reacher == name]
    arrived = sum(run.arrived for run in mine)
    return {
        "reacher": name,
        "trajectories": len(mine),
        "arrived": arrived,
        "reach": _rate(arrived, len(mine)),
        "mean_actions": _rate(sum(run.actions for run in mine), len(mine)),
        "outcomes": {
            outcome: count
            for outcome in ("arrived", "won", "terminal", "budget")
            if (count := sum(run.outcome == outcome for run in mine))
        },
    }


def _cell(study: Study, reacher: str, solver: str) -> Json:
    rows = [end for end in study.endpoints.values() if (end.reacher, end.solver) == (reacher, solver)]
    arrived, won = sum(end.arrived for end in rows), sum(end.won for end in rows)
    return {
        "reacher": reacher,
        "solver": solver,
        "rows": len(rows),
        "arrived": arrived,
        "won": won,
        "bridges": sum(bool(end.bridge) for end in rows),
        "solve": _rate(won, arrived),
        "endpoint": _rate(won, len(rows)),
    }


def _rate(count: int, of: int) -> float | None:
    return count / of if of else None
