"""Terminal tables of estimates, of a transport prediction and of a planning curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.estimation.bootstrap import Estimate, Estimates
from handoff.estimation.differences import SideBySide
from handoff.estimation.table import Table
from handoff.estimation.transport import Transport
from handoff.planning.power import Curve
from handoff.report import format


def _show(console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    grid = Grid(header_style="")
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))  # Text: names are data, never markup
    console.print(title, style="bold", markup=False, highlight=False)
    console.print(grid)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _value(found: Estimate) -> str:
    shown = {"mean": format.amount, "rate": format.percent, "contrast": format.points}
    return shown[found.estimand.kind](found.point)


def _ends(found: Estimate) -> str:
    return format.interval({"low": found.low, "high": found.high}, 1 if found.estimand.kind == "mean" else 100)


def _counts(found: Estimate) -> str:
    return f"{found.ratios[0].numerator}/{found.ratios[0].denominator}" if len(found.ratios) == 1 else ""


def _remarks(console: Console, made: Iterable[Estimate]) -> None:
    """Every reason and note once, with what it is about."""
    about: dict[str, list[str]] = {}
    for found in made:
        where = f" [{found.estimand.type}]" if found.estimand.type is not None else ""
        for text in dict.fromkeys((*filter(None, (found.reason, found.interval_reason)), *found.notes)):
            about.setdefault(text, []).append(found.estimand.label + where)
    for text, names in about.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        _say(console, f"{', '.join(names[:3])}{more}: {text}")


def _method(made: Estimates) -> str:
    one = made.intervals
    how = "the paper's" if one.method == "paper" else one.method
    return f"{one.level:.0%} intervals: {how} bootstrap, {one.draws:,} draws, seed {one.seed}"


def show_estimates(console: Console, table: Table, made: Estimates) -> None:
    """All estimates with counts; the per-type ones type by type."""
    _say(
        console,
        f"{table.rows} endpoint rows: {len(table.tasks)} tasks of {len(table.types)} types, {len(table.slots)} seeds, "
        f"reachers {', '.join(table.reachers)}, solvers {', '.join(table.solvers)}",
    )
    for type, group in groupby(made.estimates, key=lambda found: found.estimand.type):
        rows = [(found.estimand.label, _value(found), _ends(found), _counts(found)) for found in group]
        _show(
            console, "All tasks" if type is None else f"Type {type}", ("estimand", "value", "interval", "counts"), rows
        )
    _say(console, _method(made))
    _remarks(console, made.estimates)


def show_side_by_side(console: Console, found: SideBySide) -> None:
    """Every estimate by table, with the paired differences from the first table."""
    labels = list(found.estimates)
    by = {label: {str(one.estimand): one for one in made.estimates} for label, made in found.estimates.items()}
    gaps = {
        label: {str(dict(one.estimand.arguments)["of"]): one for one in made.estimates}
        for label, made in found.differences.items()
    }
    keys = dict.fromkeys(key for made in by.values() for key in made)
    rows = []
    for key in keys:
        first = next(made[key] for made in by.values() if key in made)
        row = [first.estimand.label]
        for label in labels:
            one = by[label].get(key)
            row.append(f"{_value(one)} {_ends(one)}".strip() if one is not None else format.NONE)
        for made in gaps.values():
            gap = made.get(key)
            scale = 1.0 if first.estimand.kind == "mean" else 100.0
            shown = format.NONE
            if gap is not None and gap.point is not None:
                shown = f"{format.points(gap.point * scale / 100)} {format.interval(vars_of(gap), scale)}".strip()
            row.append(shown)
        rows.append(row)
    _show(console, "Side by side", ("estimand", *labels, *(f"{label} − {labels[0]}" for label in gaps)), rows)
    _say(console, _method(found.estimates[labels[0]]))
    for label, reason in found.unpaired.items():
        _say(console, f"{label} is not compared with {labels[0]}: {reason}")


def vars_of(found: Estimate) -> dict[str, Any]:
    return {"low": found.low, "high": found.high}


def show_transport(console: Console, found: Transport) -> None:
    """Per-type prediction against observation, then the whole with the residual (Eq. 10)."""
    rows = []
    for type in (*found.types, None):
        cells = {
            one.estimand.name.removeprefix("transport_"): one
            for one in found.estimates.estimates
            if one.estimand.type == type
        }
        row = ["all" if type is None else type]
        for name in ("reach_gap", "external_gap", "predicted", "observed", "residual"):
            one = cells.get(name)
            row.append("" if one is None else f"{format.points(one.point)} {_ends(one)}".strip())
        rows.append(row)
    a, b, c, d = found.pair
    title = (
        f"Interaction of reachers {a} → {b} and solvers {c} → {d}, predicted from the external split (Eq. 10), points"
    )
    _show(console, title, ("type", "Reach gap here", "Solve gap there", "predicted", "observed", "residual"), rows)
    _say(console, _method(found.estimates))
    for type in found.without_states:
        _say(console, f"type {type}: the external split reached no state of it, so it has no prediction")
    _remarks(console, [one for one in found.estimates.estimates if one.estimand.type is None and one.point is not None])


def show_curve(console: Console, found: Curve) -> None:
    """The planning curve, and the smallest study that reaches the goal."""
    rows = [
        (
            str(point.tasks),
            str(point.total_tasks),
            str(point.slots),
            f"{point.trajectories:,}",
            format.NONE if point.half_width is None else f"±{100 * point.half_width:.1f}",
            f"{point.power:.0%}",
            format.NONE if point.coverage is None else f"{point.coverage:.0%}",
            f"{point.refused:.0%}",
        )
        for point in found.points
    ]
    columns = ("tasks a type", "tasks", "seeds", "trajectories", "half-width", "power", "coverage", "refused")
    title = f"{found.question.name} (true value {format.points(found.truth)} points), {found.repeats} studies a size"
    _show(console, title, columns, rows)
    if found.needed is None:
        last = found.points[-1].tasks
        _say(console, f"{found.goal}: not reached with {last} tasks a type and {found.points[-1].slots} seeds")
    else:
        best = found.needed
        _say(
            console,
            f"{found.goal}: {best.tasks} tasks of each type ({best.total_tasks} in all) with {best.slots} seeds, "
            f"{best.trajectories:,} trajectories",
        )
