"""The sheets of estimates, of a prediction and of a planning curve, for any table of endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import attrs
from rich.console import Console

from handoff.estimation.bootstrap import Estimate, Estimates
from handoff.estimation.differences import SideBySide
from handoff.estimation.estimands import PAPER
from handoff.estimation.table import Table
from handoff.estimation.transport import QUANTITIES, Transport
from handoff.planning.power import Curve
from handoff.report import sheet
from handoff.report.format import MINUS, NONE, numbered_as_in, percent, plural, points
from handoff.report.sheet import EMPTY, Sheet, SheetCell, SheetRow, measure
from handoff.report.terminal import line, show_sheet


def cell(estimate: Estimate) -> SheetCell:
    """An estimate with its counts, interval and all remarks."""
    shown = sheet.of_estimand(estimate.estimand.name, measure(estimate))
    return attrs.evolve(shown, note=shown.note or "; ".join(estimate.notes) or None)


def _of_type(estimate: Estimate) -> SheetCell:
    one = estimate.estimand
    return sheet.of_type(cell(estimate), measure(estimate), one.limit if one.kind == "rate" else 2 * one.limit)


def method(estimates: Estimates) -> str:
    how = estimates.intervals
    name = "the paper's" if how.method == "paper" else how.method
    return f"{how.level:.0%} intervals: {name} bootstrap, {how.draws:,} draws, seed {how.seed}"


def show_estimates(console: Console, table: Table, estimates: Estimates) -> None:
    """All estimates with counts; the per-type ones type by type."""
    line(
        console,
        f"{plural(table.rows, 'endpoint row')}: {plural(len(table.tasks), 'task')} of "
        f"{plural(len(table.types), 'type')}, {plural(len(table.slots), 'seed')}, "
        f"reachers {', '.join(table.reachers)}, solvers {', '.join(table.solvers)}",
    )
    for type, group in groupby(estimates.estimates, key=lambda one: one.estimand.type):
        rows = tuple(SheetRow(one.estimand.label, (cell(one) if type is None else _of_type(one),)) for one in group)
        show_sheet(console, Sheet("All tasks" if type is None else f"Type {type}", ("estimand", "estimate"), rows))
    line(console, method(estimates))


def show_side_by_side(console: Console, several: SideBySide) -> None:
    """Every estimate by table, with the paired differences from the first table."""
    labels = list(several.estimates)
    by_table = [{one.estimand: one for one in estimates.estimates} for estimates in several.estimates.values()]
    differences = [
        {dict(one.estimand.arguments)["of"]: measure(one) for one in estimates.estimates}
        for estimates in several.differences.values()
    ]
    rows = []
    for estimand in dict.fromkeys(estimand for table in by_table for estimand in table):
        cells = [cell(table[estimand]) if estimand in table else SheetCell(NONE) for table in by_table]
        gaps = [sheet.of_difference(estimand.name, gap.get(str(estimand))) for gap in differences]
        rows.append(SheetRow(estimand.label, (*cells, *gaps)))
    columns = ("estimand", *labels, *(f"{name} {MINUS} {labels[0]}" for name in several.differences))
    show_sheet(console, Sheet("Side by side", columns, tuple(rows)))
    line(console, method(several.estimates[labels[0]]))
    for name, reason in several.unpaired.items():
        line(console, f"{name} is not compared with {labels[0]}: {reason}")


def show_transport(console: Console, transported: Transport) -> None:
    """Per-type prediction against observation, then the whole with the residual (Eq. 10)."""
    rows = []
    for type in (*transported.types, None):
        by_name = {
            one.estimand.name.removeprefix("transport_"): sheet.gap(measure(one))
            for one in transported.estimates.estimates
            if one.estimand.type == type
        }
        cells = tuple(by_name.get(name, EMPTY) for name in QUANTITIES)
        rows.append(SheetRow("all" if type is None else type, cells, divided=type is None))
    a, b, c, d = transported.pair
    title = (
        f"Interaction of reachers {a} → {b} and solvers {c} → {d}, predicted from the external split (Eq. 10), points"
    )
    columns = ("type", "Reach gap here", "Solve gap there", "predicted", "observed", "residual")
    show_sheet(console, Sheet(title, columns, tuple(rows)))
    line(console, method(transported.estimates))
    line(console, numbered_as_in(PAPER))


def show_curve(console: Console, curve: Curve) -> None:
    """A planning curve, and the smallest study that reaches the goal."""
    rows = tuple(SheetRow(str(texts[0]), tuple(map(SheetCell, texts[1:]))) for texts in _sizes(curve))
    columns = ("tasks per type", "tasks", "seeds", "trajectories", "half-width", "power", "coverage", "refused")
    title = f"{curve.question.name} (true value {points(curve.truth)} points), {curve.repeats} studies per size"
    show_sheet(console, Sheet(title, columns, rows))
    if curve.needed is None:
        last = curve.points[-1]
        line(console, f"{curve.goal}: not reached with {last.tasks} tasks per type and {last.slots} seeds")
        return
    best = curve.needed
    line(
        console,
        f"{curve.goal}: {best.tasks} tasks of each type ({best.total_tasks} in all) with {best.slots} seeds, "
        f"{best.trajectories:,} trajectories",
    )


def _sizes(curve: Curve) -> Iterator[tuple[str, ...]]:
    for size in curve.points:
        width = NONE if size.half_width is None else f"±{percent(size.half_width).removesuffix('%')}"
        coverage = NONE if size.coverage is None else f"{size.coverage:.0%}"
        rates = (f"{size.power:.0%}", coverage, f"{size.refused:.0%}")
        yield str(size.tasks), str(size.total_tasks), str(size.slots), f"{size.trajectories:,}", width, *rates
