"""Calls per turn, from anywhere, in the form that the checker takes: parsed to literals and written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handoff.canonical import parse
from handoff.envs.bfcl.calls import BenchmarkCall, NotACall, call_of, parse_call, parse_calls
from handoff.envs.bfcl.schemas import parameters

#: In the place of what is no call: the benchmark finds no such function, and says so.
NO_CALL = "no_such_tool()"


def as_rounds(id: str, answer: Sequence[Any]) -> list[list[list[str]]]:
    """``answer`` for the checker: every call parsed to literals and written again.

    A turn is a list of calls, or of rounds of calls.  A call is a text, ``{"name": ..., "arguments": {...}}``,
    ``{"function": {...}}`` with these, or ``{name: arguments}``; arguments may be JSON in a string.  What is no call of
    the task's classes is one that fails.
    """
    return [_turn([_round(id, one) for one in turn] if isinstance(turn, list) else [], turn) for turn in answer]


def as_rounds_of_replies(id: str, answer: Sequence[Any]) -> list[list[list[str]]]:
    """``answer`` in the benchmark's own form of results: per turn a list of replies, each a list of calls or a text.

    A text is a list of calls in Python.  As in the benchmark, a reply that cannot be read as calls is left out.
    """
    turns = []
    for turn in answer:
        rounds = []
        for reply in turn if isinstance(turn, list) else []:
            parsed = parse_calls(reply) if isinstance(reply, str) else [_parsed(one) for one in _list(reply)]
            if parsed and (isinstance(reply, str) or not any(isinstance(one, NotACall) for one in parsed)):
                rounds.append([_written(id, one) for one in parsed])
        turns.append(rounds)
    return turns


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _turn(rounds: list[list[str]], turn: Any) -> list[list[str]]:
    """``rounds``, joined to one where the turn is a plain list of calls."""
    if rounds and not any(isinstance(one, list) for one in turn):
        return [[call for calls in rounds for call in calls]]
    return rounds


def _round(id: str, calls: Any) -> list[str]:
    return [_written(id, _parsed(one)) for one in _list(calls)]


def _written(id: str, call: BenchmarkCall | NotACall) -> str:
    return NO_CALL if isinstance(call, NotACall) or call.name not in parameters(id) else call.text()


def _parsed(call: Any) -> BenchmarkCall | NotACall:
    try:
        if isinstance(call, str):
            return parse_call(call)
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call = call["function"]
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            return call_of(call["name"], _arguments(call.get("arguments", {})))
        if isinstance(call, dict) and len(call) == 1:
            ((name, arguments),) = call.items()
            return call_of(str(name), _arguments(arguments))
    except NotACall as error:
        return error
    return NotACall("it has no name and arguments")


def _arguments(value: Any) -> dict[str, Any]:
    try:
        arguments = parse(value) if isinstance(value, str) and value.strip() else value or {}
    except ValueError as error:
        raise NotACall("its arguments are not JSON") from error
    if not isinstance(arguments, dict):
        raise NotACall("its arguments are not an object")
    return arguments
