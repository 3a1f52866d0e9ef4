"""The calls in a reply: the first outermost [...] of the text, as a list of calls with literal arguments.

The text is untrusted.  It is parsed to names and literals; nothing is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import attrs

#: The most characters that are read.
MOST_CHARACTERS = 200_000


@attrs.frozen
class AceCall:
    """One call with keyword arguments."""

    name: str
    arguments: Mapping[str, Any]


def bracketed(text: str) -> str | None:
    """The first outermost [...] of ``text``; ``None``: there is none that closes."""
    start = text.find("[")
    if start < 0:
        return None
    depth = 0
    for place in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return text[start : place + 1]
    return None


def read_calls(text: str) -> list[AceCall] | None:
    """The calls in ``text``; ``None``: it holds no list of calls.  Never raises."""
    if len(text) > MOST_CHARACTERS:
        return None
    part = bracketed(text)
    if part is None:
        return None
    try:
        tree = ast.parse(part, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.List):
        return None
    calls = [_call(one) for one in tree.elts]
    return None if any(call is None for call in calls) else [call for call in calls if call is not None]


def _call(tree: ast.expr) -> AceCall | None:
    if not isinstance(tree, ast.Call) or tree.args:
        return None
    name = _name(tree.func)
    if name is None or any(keyword.arg is None for keyword in tree.keywords):
        return None
    try:
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return None
    return AceCall(name, arguments) if len(arguments) == len(tree.keywords) else None


def _name(tree: ast.expr) -> str | None:
    """A plain or dotted name."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute):
        inner = _name(tree.value)
        return None if inner is None else f"{inner}.{tree.attr}"
    return None
