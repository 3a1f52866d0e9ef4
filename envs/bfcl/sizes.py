"""Calls whose result would be too large: refused beforehand, since no signal ends one long operation on numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: The most digits of a power, the most decimal places, and the highest precision.
MOST_DIGITS, MOST_PLACES, MOST_PRECISION = 4_000, 1_000, 1_000
#: Parameters of the functions whose results have any size.
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "power": ("base", "exponent"),
    "round_number": ("number", "decimal_places"),
    "logarithm": ("value", "base", "precision"),
    "square_root": ("number", "precision"),
}
#: A number in a string; one with an exponent is as large as its writer likes.
_PLAIN = re.compile(r"\s*[-+]?\d{1,40}(\.\d{0,40})?\s*", re.ASCII)


def too_large(name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Why the result of this call would be too large, to a model; empty: it would not."""
    if name not in _PARAMETERS:
        return ""
    arguments = {**dict(zip(_PARAMETERS[name], positional, strict=False)), **named}
    if name == "power":
        base, exponent = arguments.get("base"), arguments.get("exponent")
        if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
            digits = len(str(abs(base))) * exponent
            return f"the result would have more than {MOST_DIGITS:,} digits" if digits > MOST_DIGITS else ""
    elif name == "round_number":
        if _above(arguments.get("decimal_places"), MOST_PLACES):
            return f"decimal_places is at most {MOST_PLACES:,}"
    elif _above(arguments.get("precision"), MOST_PRECISION):
        return f"precision is at most {MOST_PRECISION:,}"
    elif any(isinstance(one, str) and not _PLAIN.fullmatch(one) for one in arguments.values()):
        return "an argument is not a number"
    return ""


def _above(value: Any, most: int) -> bool:
    try:
        return abs(float(value)) > most
    except (TypeError, ValueError, OverflowError):
        return isinstance(value, int)  # beyond all floats
