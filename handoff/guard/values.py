"""Are values from outside of exactly the declared types?

A record must survive its JSON form, so nothing is converted: a ``numpy.bool_``, a subclass of ``str``, a set in the
place of a tuple, NaN and infinity are all refused, in words that name the field, its value and the right type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from handoff.canonical import canonical, parse
from handoff.text import class_name, printable, reason

#: What is wrong with a value, of which the second argument is the name; ``None``: nothing.
Checker = Callable[[Any, str], str | None]

#: The most characters of one text, items of one tuple, and bits of one number: more than any environment has.
MOST_CHARACTERS, MOST_ITEMS, MOST_BITS = 10_000_000, 1_000_000, 4_096


def problem(value: object, kind: Any, name: str = "it") -> str | None:
    """What is wrong with ``value``, called ``name``, as a ``kind``: a class of records, a plain type, a union or
    ``tuple[X, ...]``.  ``None``: nothing."""
    return checker(kind)(value, name)


@cache
def checker(kind: Any) -> Checker:
    """:func:`problem` for one ``kind``, made once."""
    if get_origin(kind) in (Union, UnionType):
        return _optional([option for option in get_args(kind) if option is not NoneType], kind)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind)[0])
    if attrs.has(kind):
        return _fields(kind)
    return {str: _text, float: _number, int: _whole}.get(kind) or _exact(kind)


def json_object(value: object) -> dict[str, Any]:
    """The JSON form of a mapping.  Raises ``ValueError`` that says what is wrong with it."""
    if not isinstance(value, Mapping):
        raise ValueError(f"it is {described(value)}, not a mapping")
    try:
        text = canonical(dict(value))
        facts: dict[str, Any] = parse(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON-safe ({reason(error)})") from None
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters as JSON; at most {MOST_CHARACTERS:,} are taken")
    return facts


def described(value: object) -> str:
    """``value`` in a few safe words: itself where it is plain, else its type.  Runs no code of its class."""
    kind = type(value)
    if kind in (bool, int, float, NoneType) or (kind is str and len(value) <= 60):  # type: ignore[arg-type]
        return repr(value)[:60]
    name, module = class_name(kind), type.__dict__["__module__"].__get__(kind)
    if type(module) is str and module != "builtins":
        name = f"{module}.{name}"
    return printable(f"a {name}"[:80])


def _exact(kind: type) -> Checker:
    def check(value: Any, name: str) -> str | None:
        return None if type(value) is kind else f"{name} is {described(value)}, not a {kind.__name__}"

    return check


def _text(value: Any, name: str) -> str | None:
    if type(value) is not str:
        return f"{name} is {described(value)}, not a str"
    if len(value) > MOST_CHARACTERS:
        return f"{name} has {len(value):,} characters; at most {MOST_CHARACTERS:,} are taken"
    return None


def _number(value: Any, name: str) -> str | None:
    if type(value) is not float:
        return f"{name} is {described(value)}, not a float"
    return None if math.isfinite(value) else f"{name} is {value}, not a finite float"


def _whole(value: Any, name: str) -> str | None:
    if type(value) is not int:
        return f"{name} is {described(value)}, not an int"
    return None if value.bit_length() <= MOST_BITS else f"{name} is an int of more than {MOST_BITS:,} bits"


def _optional(options: list[Any], kind: Any) -> Checker:
    checkers = [checker(option) for option in options]

    def check(value: Any, name: str) -> str | None:
        if value is None and NoneType in get_args(kind):
            return None
        problems = [one(value, name) for one in checkers]
        return None if None in problems else f"{problems[0]} or None"

    return check


def _tuple(item: Any) -> Checker:
    each = checker(item)

    def check(value: Any, name: str) -> str | None:
        if type(value) is not tuple:
            return f"{name} is {described(value)}, not a tuple"
        if len(value) > MOST_ITEMS:
            return f"{name} has {len(value):,} items; at most {MOST_ITEMS:,} are taken"
        if item is str and all(type(one) is str for one in value) and sum(map(len, value)) <= MOST_CHARACTERS:
            return None
        problems = (each(one, f"{name}[{place}]") for place, one in enumerate(value))
        first = next((one for one in problems if one is not None), None)
        if first is None and item is str:
            return f"{name} has more than {MOST_CHARACTERS:,} characters"
        return first

    return check


def _fields(cls: Any) -> Checker:
    types = get_type_hints(cls)
    checkers = [(field.name, checker(types[field.name])) for field in attrs.fields(cls)]

    def check(value: Any, name: str) -> str | None:
        if type(value) is not cls:
            return f"{name} is {described(value)}, not a {cls.__name__}"
        of = "" if name == "it" else f"{name}."
        problems = (one(getattr(value, field), f"{of}{field}") for field, one in checkers)
        return next((one for one in problems if one is not None), None)

    return check
