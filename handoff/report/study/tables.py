"""The sheets of a handoff study: the paper's Tables 1, 2, 3, 6 and 7 in its terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from handoff.protocols.frontier.failures import Failures
from handoff.report.format import MINUS, NONE, Json, Measure, arrow, decimal, interval, percent, plural
from handoff.report.sheet import EMPTY, Sheet, SheetCell, SheetRow, gap, mean, of_type, rate
from handoff.report.study import values
from handoff.report.study.values import Pair, StudyFacts


def sheets(run: StudyFacts, results: values.StudyResults) -> dict[str, list[Sheet]]:
    """The sheets of every section; an empty list where there is nothing to show."""
    tables = results.tables
    return {
        "interaction": [endpoints(tables.endpoints, run), *interactions(tables.endpoints)],
        "reach": [reach(tables.reach, run)],
        "solve": [solve(tables.solve, run)],
        "stages": list(stages(tables.stages)),
        "types": list(types(tables.types, run)),
        "budgets": list(budgets(tables.budgets, run)),
        "failures": list(failures(results.failures)),
    }


def endpoints(table: values.EndpointTable, run: StudyFacts) -> Sheet:
    rows = _crossing(run, table.cells, table.solver_effects)
    solver_pairs = _distinct(effect.solvers for effect in table.solver_effects)
    for place, pair in enumerate(_distinct(effect.reachers for effect in table.reacher_effects)):
        cells = [gap(effect.value) for effect in table.reacher_effects if effect.reachers == pair]
        rows.append(SheetRow(arrow(pair), (*cells, *(EMPTY for _ in solver_pairs)), divided=place == 0))
    title = "Table 1. Endpoint success (non-arrivals are failures), effects in points"
    return Sheet(title, _columns("reacher", run, solver_pairs), tuple(rows))


def _crossing(
    run: StudyFacts, cells: Iterable[values.CellMeasure], effects: Sequence[values.SolverEffect]
) -> list[SheetRow]:
    """A row per reacher: its cells, then the solver effects."""
    by_cell = {(cell.reacher, cell.solver): cell.value for cell in cells}
    rows = []
    for reacher in run.reachers:
        rates = [rate(by_cell[reacher, solver]) for solver in run.solvers]
        rows.append(SheetRow(reacher, (*rates, *(gap(one.value) for one in effects if one.reacher == reacher))))
    return rows


def _columns(first: str, run: StudyFacts, solver_pairs: Iterable[Pair]) -> tuple[str, ...]:
    return (first, *(f"solver {name}" for name in run.solvers), *map(arrow, solver_pairs))


def interactions(table: values.EndpointTable) -> Iterator[Sheet]:
    """Three contrasts per sheet."""
    for first in range(0, len(table.interactions), 3):
        some = table.interactions[first : first + 3]
        quantities = (
            ("interaction I (Eq. 4)", [one.interaction for one in some]),
            ("arrival term (Eq. 9)", [one.arrival_term for one in some]),
            ("state term (Eq. 9)", [one.state_term for one in some]),
            ("survivor-only interaction", [one.survivor_only for one in some]),
            ("survivor-only minus I", [one.survivor_minus_interaction for one in some]),
        )
        rows = tuple(SheetRow(name, tuple(map(gap, numbers))) for name, numbers in quantities)
        columns = ("points", *(one.label for one in some))
        yield Sheet("Interaction of reacher and solver, in points", columns, rows)


def reach(table: values.ReachTable, run: StudyFacts) -> Sheet:
    rows = [SheetRow(row.reacher, (rate(row.reach), mean(row.mean_actions))) for row in table.rows]
    for place, row in enumerate(table.gaps):
        rows.append(SheetRow(arrow(row.reachers), (gap(row.value), EMPTY), divided=place == 0))
    title = f"Table 2a. Reach: arrival exactly {plural(run.depth, 'action')} from success"
    return Sheet(title, ("reacher", "Reach", "mean actions"), tuple(rows))


def solve(table: values.SolveTable, run: StudyFacts) -> Sheet:
    rows = _crossing(run, table.cells, table.effects)
    if len(rows) > 1:
        pooled = [rate(row.value) for row in table.pooled] + [gap(row.value) for row in table.pooled_gaps]
        rows.append(SheetRow("all", tuple(pooled), divided=True))
    title = "Table 2b. Solve: completion from identical cloned states, effects in points"
    return Sheet(title, _columns("states of", run, (row.solvers for row in table.pooled_gaps)), tuple(rows))


def stages(table: values.StageTable) -> Iterator[Sheet]:
    rows = [SheetRow(row.solver, (rate(row.bridge), rate(row.finish), rate(row.completion))) for row in table.rows]
    only = []
    for place, one in enumerate(table.gaps):
        cells = (gap(one.bridge), gap(one.finish), gap(one.completion))
        rows.append(SheetRow(arrow(one.solvers), cells, divided=place == 0))
        a, b = one.solvers
        only.append(SheetRow(f"{b}, not {a}", (_states(one.won_by_second_only),)))
        only.append(SheetRow(f"{a}, not {b}", (_states(one.won_by_first_only),)))
    title = f"Table 3. Solve as bridge × finish, of {plural(table.states, 'reached state')}"
    yield Sheet(title, ("solver", "bridge", "finish given bridge", "completion"), tuple(rows))
    if only:
        yield Sheet("Table 3, continued. States won by one solver only", ("won by", "states"), tuple(only))


def _states(value: Measure) -> SheetCell:
    return SheetCell(str(value.numerator), f"of {value.denominator}", interval(value), value.note)


def types(table: values.TypeTable, run: StudyFacts) -> Iterator[Sheet]:
    """The leading contrast of each role by task type."""
    first = table.rows[0]
    yield Sheet(
        "Table 6a. Reach by task type",
        ("task type", *run.reachers, *(arrow(one.reachers) for one in first.reach_gaps[:1])),
        tuple(
            SheetRow(row.type, (*(_rate(one) for one in row.reach), *(_gap(g.value) for g in row.reach_gaps[:1])))
            for row in table.rows
        ),
    )
    yield Sheet(
        "Table 6b. Solve by task type, from all reached states",
        ("task type", *run.solvers, *(arrow(one.solvers) for one in first.completion_gaps[:1])),
        tuple(
            SheetRow(
                row.type,
                (*(_rate(one) for one in row.completion), *(_gap(g.value) for g in row.completion_gaps[:1])),
            )
            for row in table.rows
        ),
    )
    if table.prediction is not None:
        yield _prediction(table.prediction)
    elif first.interactions:
        rows = tuple(SheetRow(row.type, (_gap(row.interactions[0].value, 4.0),)) for row in table.rows)
        title = "Table 6c. Observed interaction by task type, in points"
        yield Sheet(title, ("task type", first.interactions[0].label), rows)


def _rate(one: values.ReacherMeasure | values.SolverMeasure) -> SheetCell:
    """A rate of one task type."""
    return of_type(rate(one.value), one.value, 1.0)


def _gap(value: Measure, width: float = 2.0) -> SheetCell:
    """A contrast of one task type, whose values lie in a range of this width."""
    return of_type(gap(value), value, width)


def _prediction(table: values.PredictionTable) -> Sheet:
    rows = []
    for row in (*table.rows, table.whole):
        external = EMPTY if row.external_gap is None else gap(row.external_gap)  # Table 6a has the Reach gaps
        cells = (external, gap(row.predicted), gap(row.observed), gap(row.residual))
        rows.append(SheetRow(row.type or "all", cells, divided=row.type is None))
    columns = ("task type", "external Solve gap", "predicted", "observed", "residual")
    return Sheet("Table 6c. Interaction by task type, predicted (Eq. 10) and observed, in points", columns, tuple(rows))


def budgets(table: values.BudgetTable, run: StudyFacts) -> Iterator[Sheet]:
    if not table.steps:
        return
    levels = {(level.reacher, level.steps): level.value for level in table.levels}
    rows = [SheetRow(reacher, tuple(rate(levels[reacher, at]) for at in table.steps)) for reacher in run.reachers]
    for place, pair in enumerate(_distinct(one.reachers for one in table.gaps)):
        same = {one.steps: one.value for one in table.gaps if one.reachers == pair}
        rows.append(SheetRow(arrow(pair), tuple(gap(same[at, at]) for at in table.steps), divided=place == 0))
    columns = ("reacher", *(plural(at, "action") for at in table.steps))
    yield Sheet("Table 7. Arrival by reacher budget", columns, tuple(rows))
    across = []
    for one in table.gaps:
        (a, b), (first, second) = one.reachers, one.steps
        if first != second:
            across.append(SheetRow(f"{b} at {second} {MINUS} {a} at {first}", (gap(one.value),)))
    if across:
        yield Sheet("Table 7, continued. Arrival across budgets", ("contrast", "points"), tuple(across))


def failures(table: values.FailureTable) -> Iterator[Sheet]:
    reachers = table.reachers
    if not any(one.trajectories for one in reachers):
        return
    columns = ("label", *(f"{one.reacher} (n = {one.trajectories})" for one in reachers))
    rows = [
        SheetRow(label.replace("_", " "), tuple(_label(one, label) for one in reachers)) for label in reachers[0].labels
    ]
    for row in table.loop_gaps:
        a, b = row.reachers
        filler = tuple(EMPTY for _ in reachers[1:])
        rows.append(SheetRow(f"loop, {b} {MINUS} {a}, points", (gap(row.value), *filler), divided=True))
    yield Sheet("Non-arrivals by label", columns, tuple(rows))
    shares = [
        ("repeats the action before", [percent(one.repeats) for one in reachers]),
        ("revisits an earlier state", [percent(one.revisits) for one in reachers]),
        ("leaves the state unchanged", [percent(one.unchanged) for one in reachers]),
        ("distinct actions (median)", [decimal(one.median_distinct) for one in reachers]),
    ]
    if any(one.refused for one in reachers):
        shares.append(("refused by model or filter", [_share(one.refused or 0, one.steps) for one in reachers]))
    steps = tuple(SheetRow(name, tuple(map(SheetCell, texts))) for name, texts in shares)
    yield Sheet("Steps of the non-arrivals", ("share of steps", *(one.reacher for one in reachers)), steps)


def _share(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)


def _label(one: Failures, label: str) -> SheetCell:
    share = one.share(label)
    return SheetCell(str(one.labels[label]), NONE if share is None else percent(share))


def counts(summary: Json, reachers: Sequence[str], solvers: Sequence[str]) -> list[Sheet]:
    """Counts without intervals, of :func:`handoff.protocols.frontier.summary.summary`: a run as far as it has got."""
    cells = {(cell["reacher"], cell["solver"]): cell for cell in summary["cells"]}
    columns = ("reacher", *(f"solver {name}" for name in solvers))

    def crossing(rate_of: str, of: str) -> tuple[SheetRow, ...]:
        return tuple(
            SheetRow(reacher, tuple(_so_far(cells[reacher, solver], rate_of, of) for solver in solvers))
            for reacher in reachers
        )

    reach_rows = tuple(
        SheetRow(
            row["reacher"],
            (
                SheetCell(percent(row["reach"]), f"{row['arrived']}/{row['trajectories']}"),
                SheetCell(decimal(row["mean_actions"])),
            ),
        )
        for row in summary["reach"]
    )
    reach_title = f"Reach: arrival exactly {plural(summary['depth'], 'action')} from success"
    return [
        Sheet("Endpoint success (non-arrivals are failures)", columns, crossing("endpoint", "rows")),
        Sheet(reach_title, ("reacher", "Reach", "mean actions"), reach_rows),
        Sheet("Solve: completion from identical cloned states", columns, crossing("solve", "arrived")),
    ]


def _so_far(cell: Json, rate_of: str, of: str) -> SheetCell:
    return SheetCell(percent(cell[rate_of]), f"{cell['won']}/{cell[of]}")


def _distinct(pairs: Iterable[Pair]) -> list[Pair]:
    return list(dict.fromkeys(pairs))
