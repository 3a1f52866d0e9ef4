"""Calls per turn, from anywhere, in the form that the checker takes: parsed to literals and written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handoff.envs.bfcl.calls import NotACall, call_of, parse_call
from handoff.envs.bfcl.schemas import parameters

#: In the place of what is no call: the benchmark finds no such function, and says so.
NO_CALL = "no_such_tool()"


def as_rounds(id: str, answer: Sequence[Any]) -> list[list[list[str]]]:
    """``answer`` for the checker: every call parsed to literals and written again.

    A turn is a list of calls, or of rounds of calls; a call is a text, or ``{"name": {...}}``, or ``{"name": ...,
    "arguments": {...}}``.  What is no call of the task's classes is one that fails.
    """
    turns = []
    for turn in answer:
        entries = turn if isinstance(turn, list) else []
        rounds = entries if any(isinstance(one, list) for one in entries) else ([entries] if entries else [])
        turns.append([[_written(id, call) for call in (one if isinstance(one, list) else [one])] for one in rounds])
    return turns


def _written(id: str, call: Any) -> str:
    try:
        if isinstance(call, str):
            parsed = parse_call(call)
        elif isinstance(call, dict) and isinstance(call.get("name"), str):
            arguments = call.get("arguments", {})
            parsed = call_of(call["name"], arguments if isinstance(arguments, dict) else {})
        elif isinstance(call, dict) and len(call) == 1:
            ((name, arguments),) = call.items()
            parsed = call_of(str(name), arguments if isinstance(arguments, dict) else {})
        else:
            return NO_CALL
    except NotACall:
        return NO_CALL
    return parsed.text() if parsed.name in parameters(id) else NO_CALL
