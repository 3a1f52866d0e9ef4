"""Calls as the benchmark writes them, ``name(argument=value)``: parsed to literals, and written again from these.

The benchmark evaluates the text of a call as Python.  So a text is never handed on: it is parsed to a name and literal
arguments, nothing is evaluated on the way, and only what was written again from the parse reaches the benchmark.

Before it evaluates, the benchmark rewrites every name in front of a parenthesis, inside strings too: "sort (by line)"
would become another text.  So strings are written without parentheses, as escapes.
"""

from __future__ import annotations

import ast
import keyword
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff.envs.bfcl.sizes import too_large

#: The most characters of a call, and its deepest nesting.
MOST_CHARACTERS, MOST_DEPTH = 100_000, 20
#: The most digits of a whole number.
MOST_DIGITS = 300
#: What a text that is no call is told.
FORM = "it is not written name(argument=value)"


class NotACall(ValueError):
    """A text that is no call.  The message says why, to a model."""


@attrs.frozen
class BenchmarkCall:
    """A call with literal arguments."""

    name: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = attrs.Factory(dict)

    def text(self) -> str:
        """The call as Python, from literals alone."""
        arguments = [_written(value) for value in self.positional]
        arguments += [f"{name}={_written(value)}" for name, value in self.named.items()]
        return f"{self.name}({', '.join(arguments)})"


def parse_call(text: str) -> BenchmarkCall:
    """The call in ``text``.  Raises :class:`NotACall`."""
    return _call(_expression(text))


def parse_calls(text: str) -> list[BenchmarkCall | NotACall]:
    """The calls in a text such as ``[cd(folder='a'), ls()]`` or ``ls()``, or why one is none; empty: it is talk."""
    try:
        tree = _expression(text)
    except NotACall:
        return []
    calls: list[BenchmarkCall | NotACall] = []
    for one in tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]:
        if not isinstance(one, ast.Call):
            return []
        try:
            calls.append(_call(one))
        except NotACall as error:
            calls.append(error)
    return calls


def _expression(text: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise NotACall(f"a call has at most {MOST_CHARACTERS:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in strings
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotACall(FORM) from error


def _call(tree: ast.expr) -> BenchmarkCall:
    if not isinstance(tree, ast.Call):
        raise NotACall(FORM)
    if not isinstance(tree.func, ast.Name):
        raise NotACall("it names an attribute, not a tool; write name(argument=value)")
    if any(one.arg is None for one in tree.keywords) or any(isinstance(one, ast.Starred) for one in tree.args):
        raise NotACall("its arguments are unpacked")
    names = [str(one.arg) for one in tree.keywords]
    if len(set(names)) != len(names):
        raise NotACall("an argument is given twice")
    values = [_literal(one.value) for one in tree.keywords]
    positional = tuple(_literal(one) for one in tree.args)
    return _checked(BenchmarkCall(tree.func.id, positional, dict(zip(names, values, strict=True))))


def call_of(name: str, arguments: Mapping[str, Any]) -> BenchmarkCall:
    """A call from JSON arguments.  Raises :class:`NotACall`."""
    return _checked(BenchmarkCall(name, (), dict(arguments)))


def _checked(call: BenchmarkCall) -> BenchmarkCall:
    """``call``, if its names and values are plain and small.  Raises :class:`NotACall`."""
    if not _is_name(call.name):
        raise NotACall(f"{call.name[:60]!r} is no name of a tool")
    if not all(_is_name(name) for name in call.named):
        raise NotACall("an argument has a name that is none")
    for value in (*call.positional, *call.named.values()):
        _check(value, 0)
    if problem := too_large(call.name, call.positional, call.named):
        raise NotACall(problem)
    return call


def _is_name(name: str) -> bool:
    """Whether Python reads ``name`` as it is written: it rewrites letters beyond ASCII."""
    return name.isascii() and name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return repr(value).replace("(", r"\x28")
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, tuple):
        return f"({''.join(f'{_written(one)}, ' for one in value)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(key)}: {_written(one)}" for key, one in value.items()) + "}"
    return repr(value)


def _check(value: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise NotACall(f"its arguments are nested more than {MOST_DEPTH} deep")
    if type(value) in (list, tuple):
        for one in value:
            _check(one, depth + 1)
    elif type(value) is dict:
        for key, one in value.items():
            _check(key, MOST_DEPTH)
            _check(one, depth + 1)
    elif type(value) is int:
        if abs(value) >= 10**MOST_DIGITS:
            raise NotACall(f"a number has at most {MOST_DIGITS} digits")
    elif type(value) is float:
        if not math.isfinite(value):
            raise NotACall("a number is finite")
    elif type(value) not in (str, bool, type(None)):
        raise NotACall("an argument is no plain value")


def _literal(tree: ast.expr) -> Any:
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise NotACall("its arguments are not literal values") from error


def bound(call: BenchmarkCall, parameters: Sequence[str]) -> Mapping[str, Any]:
    """The arguments by name, positional ones by the order of ``parameters``.  Raises :class:`NotACall`."""
    if len(call.positional) > len(parameters):
        raise NotACall(f"{call.name} takes {len(parameters)} arguments, not {len(call.positional)}")
    by_place = dict(zip(parameters, call.positional, strict=False))
    twice = sorted(set(by_place) & set(call.named))
    if twice:
        raise NotACall(f"the argument {twice[0]} is given twice")
    return {**by_place, **call.named}
