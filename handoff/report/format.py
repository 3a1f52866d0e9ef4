"""Numbers as text: percent, points, intervals, counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attr
import attrs

from handoff.estimation.estimands import PAPER as TITLE

Json = dict[str, Any]

#: Metadata of a field that JSON leaves out where it has no value.
OPTIONAL = {"optional": True}

#: Whose equations and tables the report of a handoff study counts.
PAPER = f'"{TITLE}"'

NONE = "–"
MINUS = "−"
#: Digits that an interval may have more than asked for.
FINER = 6


@attrs.frozen
class Measure:
    """One estimate in short.  Rates and differences are fractions here and percentages in print."""

    #: Estimand, under which the document's ``estimates`` have it in full.
    key: str | None
    #: ``None`` where it is undefined.
    point: float | None
    #: Ends of the interval; ``None`` where there is none.
    low: float | None = None
    high: float | None = None
    #: Counts, where the estimand is one ratio.
    numerator: int | None = None
    denominator: int | None = None
    #: Why the point or the interval is missing, or what to bear in mind with it.
    note: str | None = None


def plain(value: Any) -> Json:
    """A value class as JSON: each field a key, tuples as lists."""
    return attr.asdict(
        value,
        filter=lambda field, entry: entry is not None or not field.metadata.get("optional"),
        retain_collection_types=False,
    )


class Ends(Protocol):
    """A value with an interval."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Estimated(Ends, Protocol):
    """A value with a point and an interval."""

    @property
    def point(self) -> float | None: ...


def decimal(number: float | None, digits: int = 1) -> str:
    """A number with fixed digits and a typographic minus; a dash where it is undefined."""
    if number is None:
        return NONE
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)  # no "-0.0"


def percent(rate: float | None, digits: int = 1) -> str:
    """A rate as a percentage."""
    return NONE if rate is None else f"{decimal(100 * rate, digits)}%"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference of rates in signed percentage points."""
    if difference is None:
        return NONE
    text = decimal(100 * difference, digits)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def places(value: Ends, scale: float = 100.0, digits: int = 1) -> int:
    """The digits of an estimate: ``digits``, or as many more as tell the ends of its interval apart."""
    if value.low is None or value.high is None or value.low == value.high:
        return digits
    finer = range(digits, digits + FINER)
    low, high = scale * value.low, scale * value.high
    return next((many for many in finer if decimal(low, many) != decimal(high, many)), digits + FINER)


def interval(value: Ends, scale: float = 100.0, digits: int = 1) -> str:
    """``[low, high]`` with the digits of :func:`places`; empty where there is none."""
    if value.low is None or value.high is None:
        return ""
    many = places(value, scale, digits)
    return f"[{decimal(scale * value.low, many)}, {decimal(scale * value.high, many)}]"


def counted(value: Measure) -> str:
    """``numerator/denominator`` of a rate."""
    return "" if value.denominator is None else f"{value.numerator}/{value.denominator}"


def rate_with_interval(value: Estimated) -> str:
    """``13.3% [4.2, 26.0]``."""
    return f"{percent(value.point, places(value))} {interval(value)}".strip()


def points_with_interval(value: Estimated) -> str:
    """``+24.2 [13.3, 35.0]``."""
    return f"{points(value.point, places(value))} {interval(value)}".strip()


def gap_with_interval(value: Estimated) -> str:
    """``+24.2 points [13.3, 35.0]``."""
    unit = "" if value.point is None else " points"
    return f"{points(value.point, places(value))}{unit} {interval(value)}".strip()


def decimal_with_interval(value: Estimated, digits: int = 3) -> str:
    """``0.123 [0.045, 0.201]``."""
    return f"{decimal(value.point, places(value, 1.0, digits))} {interval(value, 1.0, digits)}".strip()


def arrow(pair: Sequence[str]) -> str:
    return f"{pair[0]} → {pair[1]}"


def sign(value: Ends) -> int:
    """1 if the whole interval is above zero, -1 if it is below, else 0 (also without an interval)."""
    if value.low is None or value.high is None:
        return 0
    return int(value.low > 0) - int(value.high < 0)


def told(value: Ends, above: str, below: str, open: str) -> str:
    """The words for a difference: a direction is claimed only where the whole interval lies on one side of zero.

    ``open`` are the words where it does not, or where there is no interval.
    """
    return {1: above, -1: below}.get(sign(value), open)


def numbered_as_in(*papers: str) -> str:
    """Whose equations and tables the printed numbers are: two papers' Eq. 10 are different things."""
    titles = " and ".join(f"“{paper}”" for paper in papers)
    return f"Equations and tables are numbered as in {titles}."


def plural(count: int, noun: str) -> str:
    """``1 task``, ``2 tasks``, ``3 trajectories``."""
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun.removesuffix('y')}{'ies' if noun.endswith('y') else 's'}"
