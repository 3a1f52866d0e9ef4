"""What a report consists of: sheets, sections of sheets, sentences and figures, and cards with the main numbers.

A sheet is one table.  The terminal and the page show the same sheets.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from handoff.estimation.bootstrap import Estimate
from handoff.estimation.estimands import DECLARED
from handoff.report.format import NONE, Measure, counted, decimal, interval, percent, places, points
from handoff.report.plots import Figure

#: Columns for which the half of a page has room.
COLUMNS_OF_HALF_A_PAGE = 5


@attrs.frozen
class SheetCell:
    """One cell of a sheet."""

    text: str
    #: Counts that the text is made of.
    counts: str = ""
    interval: str = ""
    #: Why a number or an interval is missing, or a remark on it.
    note: str | None = None
    #: ``good`` or ``bad``, where the terminal shows a colour.
    tone: str = ""


EMPTY = SheetCell("")


@attrs.frozen
class SheetRow:
    """One row of a sheet."""

    name: str
    cells: tuple[SheetCell, ...]
    #: The rows above are of another kind: a line is drawn between.
    divided: bool = False


@attrs.frozen
class Sheet:
    """One table."""

    title: str
    #: One entry more than the rows have cells: the first is the heading of their names.
    columns: tuple[str, ...]
    rows: tuple[SheetRow, ...]
    #: The cells are words, not numbers.
    wordy: bool = False
    #: The most rows that the terminal shows; the page shows all.
    most: int | None = None


@attrs.frozen
class Section:
    """One part of a report."""

    #: Also the element's id on the page.
    name: str
    heading: str
    #: Short heading for the page's navigation.
    short: str
    sentences: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()
    figures: Sequence[Figure] = ()
    #: The page shows the heading only, until the reader opens the section.
    folded: bool = False

    @property
    def wide(self) -> bool:
        """A sheet has too many columns for the half of a page."""
        return any(len(sheet.columns) > COLUMNS_OF_HALF_A_PAGE for sheet in self.sheets)

    @property
    def shown(self) -> bool:
        """There is anything to show."""
        return bool(self.sentences or self.sheets or self.figures)


@attrs.frozen
class Card:
    """A main number at the top of the page."""

    name: str
    figure: str
    unit: str = ""
    interval: str = ""
    #: Why there is no interval.
    note: str | None = None
    #: One line below the number.
    about: str = ""


@attrs.frozen
class Fact:
    """A line of the page's last section, with the marker of ``style``, if any."""

    name: str
    text: str
    style: int | None = None


@attrs.frozen
class Content:
    """A whole report, for the terminal and the page."""

    #: The question that the report answers.
    heading: str
    #: Data that it is about, such as environment and split.
    title: str
    kicker: str
    #: The answer, first.
    verdict: str
    #: The run is not complete.
    warn: bool = False
    cards: Sequence[Card] = ()
    #: Sentences that the terminal shows below the verdict, in the place of the cards.
    lead: Sequence[str] = ()
    sections: Sequence[Section] = ()
    facts: Sequence[Fact] = ()
    #: How the numbers were computed.
    notes: Sequence[str] = ()


def measure(estimate: Estimate) -> Measure:
    """An estimate in short."""
    only = estimate.ratios[0] if len(estimate.ratios) == 1 else None
    return Measure(
        str(estimate.estimand),
        estimate.point,
        estimate.low,
        estimate.high,
        only.numerator if only else None,
        only.denominator if only else None,
        estimate.reason or estimate.interval_reason or estimate.mark,
    )


def rate(value: Measure) -> SheetCell:
    return SheetCell(percent(value.point, places(value)), counted(value), interval(value), value.note)


def mean(value: Measure) -> SheetCell:
    return SheetCell(decimal(value.point, places(value, 1.0)), "", interval(value, 1.0), value.note)


def gap(value: Measure) -> SheetCell:
    """A difference in points."""
    return SheetCell(points(value.point, places(value)), "", interval(value), value.note)


def quantity(value: Measure, digits: int = 3) -> SheetCell:
    """A number without a unit."""
    return SheetCell(decimal(value.point, places(value, 1.0, digits)), "", interval(value, 1.0, digits), value.note)


def of_type(cell: SheetCell, value: Measure, width: float) -> SheetCell:
    """The cell of one task type; a dash where the interval is as wide as the whole range of values, ``width``."""
    if value.low is None or value.high is None or value.high - value.low < width - 1e-9:
        return cell
    return SheetCell(NONE, note="too few tasks of this type: the interval holds every possible value (--more, --json)")


def of_estimand(name: str, value: Measure) -> SheetCell:
    """A cell in the unit of the estimand called ``name``."""
    kind = DECLARED[name].kind
    return (mean if kind == "mean" else rate if kind == "rate" else gap)(value)


def of_difference(name: str, value: Measure | None) -> SheetCell:
    """A difference of two values of an estimand."""
    return EMPTY if value is None else (mean if DECLARED[name].kind == "mean" else gap)(value)
