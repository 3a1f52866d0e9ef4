"""Counts of a recorded-history run, as far as it has got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from handoff.protocols.frontier.records import EndpointCell
from handoff.protocols.recorded.records import Formatting
from handoff.protocols.recorded.study import RecordedStudy
from handoff.records import Record

Json = dict[str, Any]


def summary(study: RecordedStudy) -> Json:
    """Counts per reacher and per (reacher, solver).

    ``passed_at`` are the passes at each solver budget B, ``checks`` the rows that pass each check among those to which
    it applies, ``flags`` the episodes with each remark of the environment, ``formatting`` the formatter's calls, empty
    replies and repairs.
    """
    owed = study.planned - study.count
    form: Json = {
        "complete": study.complete,
        "planned": study.planned,
        "owed": owed,
        "cut": study.config.cut,
        "reach": [_reach(study, name) for name in study.reachers],
        "cells": [_cell(study, reacher, solver) for reacher in study.reachers for solver in study.solvers],
    }
    if study.config.formatter is not None:
        form["formatting"] = _formatting(study)
    return form


def _reach(study: RecordedStudy, name: str) -> Json:
    mine = [history for history in study.histories.values() if history.reacher == name]
    return {
        "reacher": name,
        "trajectories": len(mine),
        "decisions": sum(len(history.steps) for history in mine),
        "outcomes": _counted(history.outcome for history in mine),
        "closing": sum(history.closing for history in mine),
        "flags": _counted(flag for history in mine for flag in _flags(history.records())),
    }


def _cell(study: RecordedStudy, reacher: str, solver: str) -> Json:
    rows = [row for row in study.scorings if (row.reacher, row.solver) == (reacher, solver)]
    ends = [end for row, end in study.continuations.items() if (row.reacher, row.solver) == (reacher, solver)]
    passed = sum(study.scorings[row].passed for row in rows)
    form: Json = {
        "reacher": reacher,
        "solver": solver,
        "rows": len(ends),
        "scored": len(rows),
        "passed": passed,
        "endpoint": passed / len(rows) if rows else None,
        "outcomes": _counted(end.outcome for end in ends),
        "flags": _counted(flag for end in ends for flag in _flags([step.record for step in end.steps])),
        "checks": _checks(study, rows),
    }
    if study.config.budgets:
        budgets = study.config.budgets
        form["passed_at"] = {str(b): sum(study.passed_at(row, b) for row in rows) for b in budgets}
    return form


def _flags(records: Iterable[Record]) -> set[str]:
    """Remarks of the environment on one episode."""
    return {flag for record in records for flag in record.flags}


def _checks(study: RecordedStudy, rows: Iterable[EndpointCell]) -> Json:
    passed: Counter[str] = Counter()
    applied: Counter[str] = Counter()
    for row in rows:
        verdict = study.scorings[row].verdict
        for check in () if verdict is None else verdict.checks:
            applied[check.name] += check.passed is not None
            passed[check.name] += check.passed is True
    return {name: {"passed": passed[name], "of": applied[name]} for name in applied}


def _formatting(study: RecordedStudy) -> Json:
    """Unique calls, the rows that they serve, and what the rule for empty replies did."""
    empties = {one.call for one in study.formattings.values() if one.empty}
    affected = [row for row, one in study.formattings.items() if one.empty]
    repaired = [one for one in study.repairs.values() if one.call is not None]
    return {
        "formatter": study.config.formatter,
        "rows": sum(one.call is not None for one in study.formattings.values()),
        "calls": len({one.call for one in study.formattings.values() if one.call is not None}),
        "unread": _unread(study.formattings, study.repairs),
        "unique_empties": len(empties),
        "rows_affected": len(affected),
        "rows_unaffected": len(study.formattings) - len(affected),
        "repaired": sum(not one.empty for one in repaired),
    }


def _unread(formattings: Mapping[EndpointCell, Formatting], repairs: Mapping[EndpointCell, Formatting]) -> int:
    """Rows whose reply could not be read, after the repair if there was one."""
    last = {**formattings, **{row: one for row, one in repairs.items() if one.call is not None}}
    return sum(one.call is not None and one.answer is None for one in last.values())


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))
