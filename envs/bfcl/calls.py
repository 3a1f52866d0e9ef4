"""Calls as the benchmark writes them, ``name(argument=value)``: parsed to literals, and written again from these.

The benchmark evaluates the text of a call as Python.  So a text is never handed on: it is parsed to a name and literal
arguments, nothing is evaluated on the way, and only what was written again from the parse reaches the benchmark.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

#: The most characters of a call, and its deepest nesting.
MOST_CHARACTERS, MOST_DEPTH = 100_000, 20
#: The largest number of digits that a whole number may have, and of what a power may.
MOST_DIGITS, MOST_DIGITS_OF_POWER, MOST_PRECISION = 300, 4_000, 1_000


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
        arguments = [repr(value) for value in self.positional]
        arguments += [f"{name}={value!r}" for name, value in self.named.items()]
        return f"{self.name}({', '.join(arguments)})"


def parse_call(text: str) -> BenchmarkCall:
    """The call in ``text``.  Raises :class:`NotACall`."""
    if len(text) > MOST_CHARACTERS:
        raise NotACall(f"a call has at most {MOST_CHARACTERS:,} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotACall("it is not written name(argument=value)") from error
    if not isinstance(tree, ast.Call):
        raise NotACall("it is not written name(argument=value)")
    name = tree.func.id if isinstance(tree.func, ast.Name) else None
    if isinstance(tree.func, ast.Attribute) and isinstance(tree.func.value, ast.Name):
        name = tree.func.attr  # a class and its method, such as MathAPI.add
    if name is None or name.startswith("_"):
        raise NotACall("it names no tool")
    if any(keyword.arg is None for keyword in tree.keywords) or any(isinstance(one, ast.Starred) for one in tree.args):
        raise NotACall("its arguments are unpacked")
    names = [str(keyword.arg) for keyword in tree.keywords]
    if len(set(names)) != len(names):
        raise NotACall("an argument is given twice")
    positional = tuple(_literal(one) for one in tree.args)
    return checked(
        BenchmarkCall(
            name, positional, {name: _literal(one.value) for name, one in zip(names, tree.keywords, strict=True)}
        )
    )


def call_of(name: str, arguments: Mapping[str, Any]) -> BenchmarkCall:
    """A call from JSON arguments.  Raises :class:`NotACall`."""
    if not name.isidentifier() or name.startswith("_"):
        raise NotACall(f"{name[:60]!r} is no name of a tool")
    if any(not key.isidentifier() or key.startswith("_") for key in arguments):
        raise NotACall("an argument has a name that is none")
    return checked(BenchmarkCall(name, (), dict(arguments)))


def checked(call: BenchmarkCall) -> BenchmarkCall:
    """``call``, if its values are plain and small.  Raises :class:`NotACall`."""
    values = [*call.positional, *call.named.values()]
    for value in values:
        _check(value, 0)
    if call.name == "power":
        base, exponent = (*(one for one in values if type(one) in (int, float)), 1, 1)[:2]
        if type(base) is int and type(exponent) is int and abs(exponent) * len(str(abs(base))) > MOST_DIGITS_OF_POWER:
            raise NotACall("the result would be too large")
    if abs(call.named.get("precision", 0) if type(call.named.get("precision", 0)) is int else 0) > MOST_PRECISION:
        raise NotACall(f"the precision is at most {MOST_PRECISION}")
    if call.name in ("logarithm", "square_root") and any(
        type(one) is int and abs(one) > MOST_PRECISION for one in call.positional[1:]
    ):
        raise NotACall(f"the precision is at most {MOST_PRECISION}")
    return call


def _check(value: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise NotACall(f"its arguments are nested more than {MOST_DEPTH} deep")
    if type(value) in (list, tuple):
        for one in value:
            _check(one, depth + 1)
    elif type(value) is dict:
        for key, one in value.items():
            if type(key) not in (str, int, float, bool, type(None)):
                raise NotACall("a key of an argument is no plain value")
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
