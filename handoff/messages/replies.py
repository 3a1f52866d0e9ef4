"""Whole replies as actions: the calls and the answer in a reply, by one rule for every environment.

A reply is text.  A call of a tool is a block ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, an answer a
block ``<answer>...</answer>``, and everything else is talk.  A reply is searched for complete calls first: if there is
one, an answer beside it does not count.  An answer that is not closed reaches to the end of the reply.

A server that gives calls apart from the text, and a policy whose model writes calls in another form, write them in this
form (:func:`as_text`), so that all policies share one history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import attrs

from handoff.canonical import canonical, parse
from handoff.records import Tool

#: The most characters of one call, and its deepest nesting.
MOST_CHARACTERS, MOST_DEPTH = 100_000, 32

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


@attrs.frozen
class ToolCall:
    """One call in a reply, as it was written and as it was read."""

    raw: str
    #: Empty where it could not be read.
    name: str = ""
    #: By name; JSON values.
    arguments: Mapping[str, Any] = attrs.Factory(dict)
    #: Why it is no call, for the model; empty: it is one.
    problem: str = ""

    @property
    def valid(self) -> bool:
        return not self.problem


@attrs.frozen
class ReadReply:
    """What a reply says."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    #: ``None``: there is none.
    answer: str | None = None


def read_reply(text: str) -> ReadReply:
    """The calls of ``text``, else its answer.  Never raises: what is no call says why."""
    calls = tuple(read_call(match.group(1)) for match in _CALL.finditer(text))
    if calls:
        return ReadReply(text, calls)
    answer = _ANSWER.search(text)
    return ReadReply(text, (), None if answer is None else answer.group(1).strip())


def read_call(raw: str) -> ToolCall:
    """The call in the JSON text ``raw``; ``arguments`` may be an object, or a string that holds one."""
    if len(raw) > MOST_CHARACTERS:
        return ToolCall(raw, problem=f"a call has at most {MOST_CHARACTERS:,} characters, not {len(raw):,}")
    try:
        value = parse(raw)
        arguments = value.get("arguments", value.get("parameters", {})) if isinstance(value, dict) else None
        if isinstance(arguments, str):
            arguments = parse(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return ToolCall(raw, problem='the call is not valid JSON; write {"name": ..., "arguments": {...}}')
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"].strip():
        return ToolCall(raw, problem='the call names no tool; write {"name": ..., "arguments": {...}}')
    name = value["name"].strip()
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return ToolCall(raw, name, problem="the arguments are not a JSON object")
    if _depth(arguments) > MOST_DEPTH:
        return ToolCall(raw, name, problem=f"the arguments are nested more than {MOST_DEPTH} deep")
    return ToolCall(raw, name, arguments)


def as_text(content: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """``content`` followed by ``calls`` (name and arguments), in the form that :func:`read_reply` reads."""
    blocks = [call_text(name, dict(arguments)) for name, arguments in calls]
    return "\n".join([*([content] if content else []), *blocks])


def call_text(name: str, arguments: Any) -> str:
    """One call as a block.  No "<" of its JSON is written as such, so none ends the block."""
    form = canonical({"arguments": arguments, "name": name}).decode().replace("<", "\\u003c")
    return f"<tool_call>\n{form}\n</tool_call>"


def problem_of(call: ToolCall, tools: Sequence[Tool], types: bool = True) -> str:
    """Why ``call`` is no valid call of one of ``tools``, as a sentence for the model; empty: it is one.

    The name must be a tool's, every required argument must be there, no other may be, and with ``types`` each must have
    the type that the tool's schema states.
    """
    if call.problem:
        return call.problem
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in tools)
        return f"there is no tool {call.name[:80]!r}; the tools are {known}"
    schema = schema_of(tool)
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in call.arguments]
    if missing:
        return f"{tool.name} needs {', '.join(missing)}"
    unknown = [name for name in call.arguments if name not in properties]
    if unknown:
        return f"{tool.name} has no argument {unknown[0][:80]!r}; its arguments are {', '.join(properties) or 'none'}"
    for name, value in call.arguments.items() if types else ():
        expected = properties[name].get("type")
        if not _is_of(value, expected):
            return f"the argument {name} of {tool.name} must be of the type {expected}"
        if "enum" in properties[name] and value not in properties[name]["enum"]:
            return f"the argument {name} of {tool.name} must be one of {json.dumps(properties[name]['enum'])}"
    return ""


def schema_of(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of the arguments of ``tool``."""
    return _schema(tool.parameters)


def tool_of(name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
    """A :class:`~handoff.records.Tool` from the JSON Schema of its arguments."""
    return Tool(name, description, canonical(dict(parameters)).decode())


def functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """``tools`` as the ``tools`` of the OpenAI interface."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": schema_of(tool)},
        }
        for tool in tools
    ]


@cache
def _schema(parameters: str) -> dict[str, Any]:
    schema: dict[str, Any] = parse(parameters.encode())
    return schema


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _is_of(value: Any, expected: Any) -> bool:
    kinds = expected if isinstance(expected, list) else [expected]
    known = [_TYPES[kind] for kind in kinds if isinstance(kind, str) and kind in _TYPES]
    return not known or any(type(value) in one for one in known)


def _depth(value: Any) -> int:
    """How deeply ``value`` is nested; the search stops at the limit."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner = [child for one in level if isinstance(one, dict) for child in one.values()]
        inner += [child for one in level if isinstance(one, list) for child in one]
        level, depth = [child for child in inner if isinstance(child, dict | list)], depth + 1
    return depth
