"""A sheet is one table: the terminal and the page both show it."""

from __future__ import annotations

import attrs

from handoff.estimation.estimands import DECLARED
from handoff.report.format import MINUS, Json, amount, counted, interval, percent, points


@attrs.frozen
class Cell:
    """``text``, the counts that it is made of, its interval, and why a number or an interval is missing."""

    text: str
    counts: str = ""
    interval: str = ""
    note: str | None = None


@attrs.frozen
class Row:
    """``divided``: the rows above are of another kind, so a line is drawn between."""

    name: str
    cells: tuple[Cell, ...]
    divided: bool = False


@attrs.frozen
class Sheet:
    """A table.  ``columns`` has one entry more than the rows have cells: the first is of their names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


EMPTY = Cell("")


def rate(value: Json) -> Cell:
    return Cell(percent(value["point"]), counted(value), interval(value), value["note"])


def mean(value: Json) -> Cell:
    return Cell(amount(value["point"]), "", interval(value, 1.0), value["note"])


def gap(value: Json) -> Cell:
    """A difference in points."""
    return Cell(points(value["point"]), "", interval(value), value["note"])


def of_estimand(name: str, found: Json) -> Cell:
    """A cell in the estimand's own unit, without its counts."""
    shown = {"mean": mean, "rate": rate, "contrast": gap}[DECLARED[name].kind]
    return attrs.evolve(shown(found), counts="")


def of_difference(name: str, found: Json | None) -> Cell:
    """A difference of two values of an estimand."""
    if found is None:
        return EMPTY
    if DECLARED[name].kind != "mean":
        return gap(found)
    text = amount(found["point"]).replace("-", MINUS)
    return Cell(text, "", interval(found, 1.0), found["note"])
