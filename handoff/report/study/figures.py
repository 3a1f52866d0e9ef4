"""The figures of a handoff study."""

from __future__ import annotations

import math

from handoff.report import plots
from handoff.report.format import (
    Measure,
    arrow,
    counted,
    gap_with_interval,
    percent,
    points_with_interval,
    rate_with_interval,
)
from handoff.report.plots import Axes, Bar, Canvas, Dot, Figure, Mark, Part, Series
from handoff.report.study import values
from handoff.report.study.values import StudyFacts

WHOLE = (0.0, 100.0)


def figures(run: StudyFacts, results: values.StudyResults) -> dict[str, list[Figure]]:
    """The figures of every section; an empty list where there is nothing to draw."""
    tables = results.tables
    every: dict[str, list[Figure | None]] = {
        "interaction": [interaction(tables.endpoints, run), gain(tables.endpoints)],
        "reach": [arrival(results.curves, run)],
        "solve": [reach_and_solve(tables, run)],
        "stages": [stages(tables.stages, run), won_only(tables.stages)],
        "types": [by_type(tables.types), prediction(tables.types)],
        "budgets": [budgets(tables.budgets, run)],
        "failures": [failures(results.failures, run)],
        "effects": [effects(tables)],
    }
    return {section: [figure for figure in some if figure is not None] for section, some in every.items()}


def effects(tables: values.StudyTables) -> Figure | None:
    """The leading gaps, the interaction and its parts, in points."""
    marks = []
    if tables.reach_gap:
        marks.append(Mark("Reach gap", tables.reach_gap.value, 0, "e"))
    if tables.solve_gap:
        marks.append(Mark("Solve gap", tables.solve_gap.value, 1, "e"))
    if tables.interaction:
        marks += [
            Mark("interaction", tables.interaction.interaction, 3),
            Mark("arrival term", tables.interaction.arrival_term, 3),
            Mark("state term", tables.interaction.state_term, 3),
            Mark("survivor-only", tables.interaction.survivor_only, 4, "e"),
        ]
    if not marks:
        return None
    caption = "The gaps and the interaction with its two terms, in points with intervals."
    canvas = plots.forest([("", marks)], points_with_interval)
    return canvas.figure("fig-effects", "Gaps and interaction with intervals", caption)


def reach_and_solve(tables: values.StudyTables, run: StudyFacts) -> Figure:
    """Reach of every reacher, Solve of every solver on every reacher's states."""
    styles = run.styles
    rows = [Mark(row.reacher, row.reach, styles[row.reacher]) for row in tables.reach.rows]
    groups = [("Reach, of all trajectories", rows)]
    for reacher in run.reachers:
        cells = [cell for cell in tables.solve.cells if cell.reacher == reacher]
        marks = [Mark(cell.solver, cell.value, styles[cell.solver]) for cell in cells]
        groups.append((f"Solve, states that {reacher} reached", marks))
    if len(run.reachers) > 1:
        pooled = [Mark(row.solver, row.value, styles[row.solver]) for row in tables.solve.pooled]
        groups.append(("Solve, all reached states", pooled))
    caption = "Reach and Solve in percent: point, interval, and marker of the checkpoint that acts."
    canvas = plots.forest(groups, rate_with_interval, WHOLE)
    return canvas.figure("fig-reach-solve", "Reach and Solve", caption)


def stages(table: values.StageTable, run: StudyFacts) -> Figure:
    """Bridge rate, finish rate and their product."""
    styles = run.styles
    groups = [
        ("First action is a bridge", [Mark(row.solver, row.bridge, styles[row.solver]) for row in table.rows]),
        ("Finishes, given a bridge action", [Mark(row.solver, row.finish, styles[row.solver]) for row in table.rows]),
        ("Completes (the product)", [Mark(row.solver, row.completion, styles[row.solver]) for row in table.rows]),
    ]
    caption = "Solve as two stages: choosing a bridge action, and finishing from it, in percent of reached states."
    canvas = plots.forest(groups, rate_with_interval, WHOLE)
    return canvas.figure("fig-stages", "Bridge and finish", caption)


def budgets(table: values.BudgetTable, run: StudyFacts) -> Figure | None:
    """Reach within each budget."""
    if not table.steps:
        return None
    groups = []
    for at in table.steps:
        levels = [level for level in table.levels if level.steps == at]
        marks = [Mark(level.reacher, level.value, run.styles[level.reacher]) for level in levels]
        groups.append((f"Within {at} action{'' if at == 1 else 's'}", marks))
    caption = "Arrival at the frontier within each reacher budget, in percent of trajectories."
    canvas = plots.forest(groups, rate_with_interval, WHOLE)
    return canvas.figure("fig-budgets", "Arrival by budget", caption)


def by_type(table: values.TypeTable) -> Figure | None:
    """Reach gap, Solve gap and interaction of each task type."""
    predicted = {row.type: row.predicted for row in table.prediction.rows} if table.prediction else {}
    groups = []
    for row in table.rows:
        marks = [
            *(Mark("Reach gap", gap.value, 0, "e") for gap in row.reach_gaps[:1]),
            *(Mark("Solve gap", gap.value, 1, "e") for gap in row.completion_gaps[:1]),
            *(Mark("interaction", one.value, 3) for one in row.interactions[:1]),
            *([Mark("predicted", predicted[row.type], 3, "hollow c3")] if row.type in predicted else []),
        ]
        if marks:
            groups.append((f"{row.type} ({row.tasks} task{'' if row.tasks == 1 else 's'})", marks))
    if not groups:
        return None
    caption = (
        "By task type, in points: the two gaps, the observed interaction, and the predicted one where there is one."
    )
    canvas = plots.forest(groups, points_with_interval)
    return canvas.figure("fig-types", "Gaps and interaction by task type", caption)


def arrival(curves: values.StudyCurves, run: StudyFacts) -> Figure:
    """Cumulative arrival over reacher actions, with bands."""
    series = [
        Series(
            curve.reacher,
            run.styles[curve.reacher],
            [(point.steps, Measure(None, point.point, point.low, point.high)) for point in curve.points],
        )
        for curve in curves.arrival
    ]
    caption = "Arrival at the frontier over reacher actions, in percent of trajectories; bands are pointwise intervals."
    canvas = plots.curves(
        series, rate_with_interval, y=WHOLE, below="reacher actions", at="within {} actions", stairs=True
    )
    return canvas.figure("fig-arrival", "Arrival curves", caption)


def interaction(table: values.EndpointTable, run: StudyFacts) -> Figure:
    """Endpoint success by reacher, one line per solver: the gap between two lines is the solver effect."""
    canvas, cells = Canvas(268), table.by_cell
    top = canvas.legend((f"solver {name}", run.styles[name]) for name in run.solvers)
    highest = max([0.1, *(at for value in cells.values() for at in (value.point, value.high) if at is not None)])
    roof = 100 * min(1.0, math.ceil(highest * 10) / 10)
    axes = Axes(canvas, (0, len(run.reachers)), (0, roof), left=34, right=10, top=top, foot=34)
    axes.rows()
    column = (axes.right - axes.left) / len(run.reachers)
    for place, reacher in enumerate(run.reachers):
        canvas.text(axes.x(place + 0.5), axes.bottom + 16, f"reacher {reacher}", "t", "middle", room=column - 8)
    for number, solver in enumerate(run.solvers):
        style = run.styles[solver]
        shift = (number - (len(run.solvers) - 1) / 2) * min(10, column / 8) / column
        points = []
        for place, reacher in enumerate(run.reachers):
            value, x = cells[reacher, solver], place + 0.5 + shift
            points.append((x, 100 * (value.point or 0.0), value, reacher))
            axes.whiskers(x, 0.0, None, plots.ends_of(value), f"bar c{style % plots.STYLES}")
        canvas.path(axes.places((x, y) for x, y, _, _ in points), plots.stroke(style))
        for x, y, value, reacher in points:
            title = f"reacher {reacher}, solver {solver}: {rate_with_interval(value)} ({counted(value)})"
            canvas.marker(axes.x(x), axes.y(y), style, title)
    caption = (
        "Endpoint success in percent. The vertical gap between two lines is the solver effect; lines that are not "
        "parallel are an interaction."
    )
    return canvas.figure("fig-interaction", "Interaction plot", caption)


def gain(table: values.EndpointTable) -> Figure | None:
    """The whole gain as a cascade: solver alone, reacher alone, interaction."""
    parts = table.parts()
    if parts is None:
        return None
    a, b = parts.checkpoints
    first, last = table.by_cell[a, a].point, table.by_cell[b, b].point
    steps = (
        (f"solver alone: {arrow((a, b))}", parts.solver, "bar1"),
        (f"reacher alone: {arrow((a, b))}", parts.reacher, "bar2"),
        ("both together (interaction)", parts.interaction, "bar3"),
    )
    canvas = plots.cascade(
        [
            Part(f"{a} in both roles", 100 * (first or 0.0), percent(first), "bar0"),
            *(Part(name, 100 * (value.point or 0.0), points_with_interval(value), kind) for name, value, kind in steps),
            Part(f"{b} in both roles", 0.0, percent(last), "bar0", total=True),
        ]
    )
    caption = f"The whole gain of {b} over {a} in endpoint success, as parts that add up, in points."
    return canvas.figure("fig-gain", "Parts of the gain", caption)


def prediction(table: values.TypeTable) -> Figure | None:
    """Predicted against observed interaction, a numbered point per task type."""
    if table.prediction is None:
        return None
    dots = [
        Dot(row.type or "all types", row.predicted, row.observed, *((1,) if row.type else (3, "all")))
        for row in (*table.prediction.rows, table.prediction.whole)
        if row.predicted.point is not None and row.observed.point is not None
    ]
    caption = (
        "Interaction by task type: predicted from Reach gaps here and Solve gaps elsewhere, against observed. On the "
        "dashed line they agree; the diamond is the whole."
    )
    canvas = plots.scatter(dots, ("predicted", "observed"), gap_with_interval, unit=", points", diagonal=True)
    return canvas.figure("fig-prediction", "Prediction against observation by task type", caption)


def won_only(table: values.StageTable) -> Figure | None:
    """Reached states by which of two solvers wins them."""
    if not table.gaps or not table.states:
        return None
    gap, total = table.gaps[0], table.states
    a, b = gap.solvers
    rows = [
        Bar("both win", gap.won_by_both, total, "bar0"),
        Bar(f"only {b}", gap.won_by_second_only.numerator or 0, total, "bar1"),
        Bar(f"only {a}", gap.won_by_first_only.numerator or 0, total, "bar2"),
        Bar("neither", gap.won_by_neither, total, "bar4"),
    ]
    canvas = plots.bars([("", rows)], total)
    return canvas.figure(
        "fig-won-only", "States won by one solver only", "Reached states by which solver wins from the clone."
    )


def failures(table: values.FailureTable, run: StudyFacts) -> Figure | None:
    """Labels of the non-arrivals, of each reacher."""
    groups = []
    for one in table.reachers:
        style = run.styles[one.reacher]
        rows = [
            Bar(label.replace("_", " "), count, one.trajectories, style=style)
            for label, count in one.labels.items()
            if count
        ]
        if rows:
            groups.append((f"{one.reacher}, {one.trajectories} non-arrivals", rows))
    if not groups:
        return None
    canvas = plots.bars(groups, max(bar.count for _, rows in groups for bar in rows))
    caption = "Trajectories that never arrive, by label; labels without any are left out."
    return canvas.figure("fig-failures", "Failure labels", caption)
