"""The records of a recorded-history run as flat tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.canonical import canonical
from handoff.messages.replies import read_reply
from handoff.protocols.export import ExportTable
from handoff.protocols.recorded.study import RecordedStudy
from handoff.records import Step

Row = dict[str, Any]

_CELL = {"task": str, "name": str, "type": str, "seed": int, "reacher": str}
_ROW = {**_CELL, "solver": str}
_ENDPOINTS = {**_ROW, "arrived": int, "won": int, "cut": int, "outcome": str, "decisions": int, "answer": str}
_CHECKS = {**_ROW, "check": str, "passed": int}
_CALLS = {**_ROW, "call": str, "status": str, "text": str, "answer": str}
_TOOL_CALLS = {**_ROW, "position": int, "number": int, "tool": str, "arguments": str, "problem": str, "raw": str}
_STEPS = {
    **_ROW, "position": int, "action": str, "status": str, "flags": str, "text": str, "observation": str,
    "problem": str,
}  # fmt: skip


def tables(study: RecordedStudy) -> Mapping[str, ExportTable]:
    """``endpoints`` (all that ``handoff estimate`` reads), ``checks``, ``formattings``, ``repairs``, ``steps`` and
    ``calls`` (of tools, raw and read)."""
    base = {task.id: {"task": task.id, "name": task.name, "type": task.type} for task in study.tasks}
    endpoints: list[Row] = []
    checks: list[Row] = []
    for row, scoring in study.scorings.items():
        end = study.continuations[row]
        cell = {**base[row.task], "seed": row.slot, "reacher": row.reacher, "solver": row.solver}
        endpoints.append(
            {
                **cell,
                "arrived": int(end.cut is not None),
                "won": int(scoring.passed),
                "cut": end.cut,
                "outcome": end.outcome,
                "decisions": len(end.steps),
                "answer": _json(end.answer),
            }
        )
        for check in () if scoring.verdict is None else scoring.verdict.checks:
            checks.append({**cell, "check": check.name, "passed": None if check.passed is None else int(check.passed)})
    calls: dict[str, list[Row]] = {"formattings": [], "repairs": []}
    for name, formatted in (("formattings", study.formattings), ("repairs", study.repairs)):
        for row, one in formatted.items():
            if one.decision is not None:
                cell = {**base[row.task], "seed": row.slot, "reacher": row.reacher, "solver": row.solver}
                said = {"status": one.decision.status, "text": one.decision.text, "answer": _json(one.answer)}
                calls[name].append({**cell, "call": one.call, **said})
    steps: list[Row] = []
    for place, history in study.histories.items():
        cell = {**base[place.task], "seed": place.slot, "reacher": place.reacher, "solver": None}
        steps += _steps(cell, history.steps)
    for row, end in study.continuations.items():
        cell = {**base[row.task], "seed": row.slot, "reacher": row.reacher, "solver": row.solver}
        steps += _steps(cell, end.steps)
    return {
        "calls": ExportTable(_TOOL_CALLS, [call for step in steps for call in _tool_calls(step)]),
        "endpoints": ExportTable(_ENDPOINTS, endpoints),
        "checks": ExportTable(_CHECKS, checks),
        "formattings": ExportTable(_CALLS, calls["formattings"]),
        "repairs": ExportTable(_CALLS, calls["repairs"]),
        "steps": ExportTable(_STEPS, steps),
    }


def _tool_calls(step: Row) -> list[Row]:
    """The calls in one reply, as they were written and as they were read."""
    place = {key: step[key] for key in (*_ROW, "position")}
    return [
        {
            **place,
            "number": number,
            "tool": call.name,
            "arguments": canonical(dict(call.arguments)).decode(),
            "problem": call.problem,
            "raw": call.raw,
        }
        for number, call in enumerate(read_reply(step["action"] or "").calls)
    ]


def _json(answer: Any) -> str | None:
    return answer if answer is None or isinstance(answer, str) else canonical(answer).decode()


def _steps(cell: Row, steps: tuple[Step, ...]) -> list[Row]:
    return [
        {
            **cell,
            "position": position,
            "action": step.decision.action,
            "status": step.decision.status,
            "flags": " ".join(step.decision.flags),
            "text": step.decision.text,
            "observation": step.record.observation,
            "problem": step.record.problem,
        }
        for position, step in enumerate(steps)
    ]
