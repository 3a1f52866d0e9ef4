"""Canonical JSON and digests: the only notion of "the same" in this toolkit.

Two values are equal when their canonical JSON is equal byte for byte: keys sorted, no spaces, ASCII escapes, no NaN
or infinity.  ASCII is deliberate: text of a model may hold lone surrogates, which UTF-8 cannot carry.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

#: Digits of an integer, with its sign: every one of that length is a float, too.
_MOST_DIGITS = 300


def canonical(value: Any) -> bytes:
    """Canonical JSON of a JSON-safe ``value``.

    Raises ``ValueError`` for NaN and infinities and ``TypeError`` for a value that JSON cannot hold.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def digest(value: Any) -> str:
    """sha256 of ``canonical(value)`` in hexadecimal (64 characters)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is beyond all that is counted")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.40} is beyond the range of floats")
    return number


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} occurs twice in one object")
    return result


def parse(data: bytes | str) -> Any:
    """Parse untrusted JSON strictly: no NaN or infinity, no number beyond floats, no repeated keys, UTF-8 only.

    Raises ``ValueError`` with the reason (``json.JSONDecodeError`` and ``UnicodeDecodeError`` are ``ValueError``s;
    a nesting too deep for the parser is turned into one).
    """
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    try:
        return json.loads(
            text,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
            object_pairs_hook=_no_repeats,
        )
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def differing_keys(left: Any, right: Any, prefix: str = "") -> list[str]:
    """Dotted names of the entries in which two JSON values differ, sorted (a list counts as one entry)."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        names: list[str] = []
        for key in sorted({*left, *right}):
            name = f"{prefix}.{key}" if prefix else str(key)
            if key not in left or key not in right:
                names.append(name)
            else:
                names.extend(differing_keys(left[key], right[key], name))
        return names
    return [] if canonical(left) == canonical(right) else [prefix or "all"]
