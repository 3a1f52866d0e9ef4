"""Numbers as text: percent, points, intervals, counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

NONE = "–"
MINUS = "−"


def _tenths(number: float) -> str:
    text = f"{number:.1f}"
    return text.removeprefix("-") if float(text) == 0 else text  # no "-0.0"


def percent(rate: float | None) -> str:
    """A rate as a percentage; a dash where it is undefined."""
    return NONE if rate is None else f"{_tenths(100 * rate)}%"


def points(difference: float | None) -> str:
    """A difference of rates in signed percentage points."""
    if difference is None:
        return NONE
    text = _tenths(100 * difference)
    if text.startswith("-"):
        return MINUS + text[1:]
    return text if float(text) == 0 else f"+{text}"


def amount(mean: float | None) -> str:
    """A mean of counts."""
    return NONE if mean is None else _tenths(mean)


def interval(value: Json, scale: float = 100.0) -> str:
    """``[low, high]``; empty where there is none."""
    if value["low"] is None or value["high"] is None:
        return ""
    low, high = (_tenths(scale * value[end]).replace("-", MINUS) for end in ("low", "high"))
    return f"[{low}, {high}]"


def counted(value: Json) -> str:
    """``numerator/denominator`` of a rate."""
    return "" if value["denominator"] is None else f"{value['numerator']}/{value['denominator']}"


def rate_with_interval(value: Json) -> str:
    return f"{percent(value['point'])} {interval(value)}".strip()


def gap_with_interval(value: Json) -> str:
    """``+24.2 points [13.3, 35.0]``."""
    unit = "" if value["point"] is None else " points"
    return f"{points(value['point'])}{unit} {interval(value)}".strip()


def arrow(pair: Sequence[str]) -> str:
    return f"{pair[0]} → {pair[1]}"


def sign(value: Json) -> int:
    """1 if the whole interval is above zero, -1 if it is below, else 0 (also without an interval)."""
    if value["low"] is None or value["high"] is None:
        return 0
    return int(value["low"] > 0) - int(value["high"] < 0)


def plural(count: int, one: str) -> str:
    return (
        f"{count:,} {one}" if count == 1 else f"{count:,} {one.removesuffix('y')}{'ies' if one.endswith('y') else 's'}"
    )
