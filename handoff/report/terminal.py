"""Tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.audit import Audit
from handoff.report.numbers import summary
from handoff.report.wording import MINUS, Json, amount, arrow, counted, interval, percent, plural, points
from handoff.study import Study


def _grid(*columns: str) -> Grid:
    grid = Grid(header_style="")
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right")
    return grid


def _show(console: Console, title: str, grid: Grid) -> None:
    # Not the table's own title: that is folded to the table's width.
    console.print(title, style="bold", markup=False, highlight=False)
    console.print(grid)


def _row(grid: Grid, *cells: object) -> None:
    grid.add_row(*(Text(str(cell)) for cell in cells))  # Text: names are data, never markup


def show_plan(console: Console, identity: Mapping[str, Any], folder: Path) -> None:
    """What a run is going to do."""
    protocol, tasks = identity["protocol"], identity["tasks"]
    types = Counter(task["type"] for task in tasks)
    reachers, solvers = protocol["reachers"], protocol["solvers"]
    cells = len(tasks) * protocol["slots"] * len(reachers)
    drawn = ", ".join(f"{count} {name}" for name, count in sorted(types.items()))
    budgets = f"at most {protocol['reach_budget']} actions, until exactly {protocol['depth']} from success"
    for line in (
        f"{identity['environment']['name']}, split {protocol['split']}: {len(tasks)} tasks ({drawn})",
        f"reachers {', '.join(reachers)}: {cells} trajectories ({protocol['slots']} seed slots) of {budgets}",
        f"solvers {', '.join(solvers)}: {cells * len(solvers)} endpoints of at most {protocol['solve_budget']} actions",
        *(f"policy {name}: {described['spec']}" for name, described in identity["policies"].items()),
        f"run folder: {folder}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_study(console: Console, study: Study) -> None:
    """Endpoints, Reach and Solve per cell with counts, and what is owed: what a run prints at its end."""
    show_counts(console, summary(study), study.reachers, study.solvers)


def show_counts(console: Console, numbers: Json, reachers: Sequence[str], solvers: Sequence[str]) -> None:
    """The counts of :func:`~handoff.report.numbers.summary`."""
    endpoints = _grid("reacher", *solvers)
    cells = {(cell["reacher"], cell["solver"]): cell for cell in numbers["cells"]}
    for reacher in reachers:
        row = [cells[reacher, solver] for solver in solvers]
        _row(endpoints, reacher, *(f"{percent(cell['endpoint'])} ({cell['won']}/{cell['rows']})" for cell in row))
    _show(console, "Endpoint success, reacher x solver (non-arrivals are failures)", endpoints)
    reach = _grid("reacher", "Reach", "mean actions")
    for entry in numbers["reach"]:
        counted = f"{percent(entry['reach'])} ({entry['arrived']}/{entry['trajectories']})"
        _row(reach, entry["reacher"], counted, amount(entry["mean_actions"]))
    _show(console, f"Reach: arrival exactly {numbers['depth']} actions from success", reach)
    solve = _grid("reacher", *solvers)
    for reacher in reachers:
        row = [cells[reacher, solver] for solver in solvers]
        _row(solve, reacher, *(f"{percent(cell['solve'])} ({cell['won']}/{cell['arrived']})" for cell in row))
    _show(console, "Solve: success from the cloned arrival states", solve)
    owed, planned = numbers["owed"], numbers["planned"]
    console.print(
        f"planned {planned['trajectories']} trajectories and {planned['endpoints']} endpoints; "
        f"owed {owed['trajectories']} and {owed['endpoints']}",
        highlight=False,
    )
    if not numbers["complete"]:
        console.print("The run is not complete: type its command again to go on.", style="yellow")


def show_report(console: Console, numbers: Json) -> None:
    """The paper's Tables 1, 2, 3, 6 and 7 of :func:`~handoff.report.numbers.document`; of a run not done, counts."""
    run = numbers["run"]
    if numbers["tables"] is None:
        _say(console, numbers["incomplete"], style="yellow")
        show_counts(console, numbers, run["reachers"], run["solvers"])
        return
    tables, said = numbers["tables"], numbers["sentences"]
    console.print("Where does the gain come from?", style="bold")
    _say(console, *said["answer"])
    console.print()
    _show_endpoints(console, tables["endpoints"], run)
    _say(console, *said["interaction"])
    _show_reach(console, tables["reach"], run)
    _say(console, *said["reach"])
    _show_solve(console, tables["solve"], tables["stages"], run)
    _say(console, *said["solve"])
    _show_stages(console, tables["stages"])
    _say(console, *said["stages"])
    _show_types(console, tables["types"], run)
    _say(console, *said["types"])
    _show_budgets(console, tables["budgets"], run)
    _say(console, *said["budgets"])
    _say(console, *said["study"], *said["intervals"])


def _say(console: Console, *sentences: str, style: str = "") -> None:
    if sentences:
        console.print(" ".join(sentences), markup=False, highlight=False, style=style)


class _Notes:
    """Numbers the reasons why intervals are missing, for one table."""

    def __init__(self) -> None:
        self._reasons: dict[str, int] = {}

    def mark(self, value: Json) -> str:
        return f"({self._reasons.setdefault(value['note'], len(self._reasons) + 1)})" if value["note"] else ""

    def show(self, console: Console) -> None:
        for reason, number in self._reasons.items():
            console.print(f"({number}) {reason}", style="dim", markup=False, highlight=False)

    def rate(self, value: Json, text: Callable[[float | None], str] = percent, scale: float = 100.0) -> str:
        """``82.5% (99/120)`` over its interval, or over the mark of why there is none."""
        of = counted(value)
        first = f"{text(value['point'])} ({of})" if of and scale != 1 else text(value["point"])
        return f"{first}\n{interval(value, scale) or self.mark(value)}"

    def gap(self, value: Json) -> str:
        """``+24.2`` over its interval."""
        return f"{points(value['point'])}\n{interval(value) or self.mark(value)}"


def _show_endpoints(console: Console, table: Json, run: Json) -> None:
    notes = _Notes()
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    effects = [effect["solvers"] for effect in table["solver_effects"] if effect["reacher"] == run["reachers"][0]]
    grid = _grid("reacher", *(f"solver {name}" for name in run["solvers"]), *map(arrow, effects))
    for reacher in run["reachers"]:
        changes = [effect["value"] for effect in table["solver_effects"] if effect["reacher"] == reacher]
        rates = (notes.rate(cells[reacher, solver]) for solver in run["solvers"])
        _row(grid, reacher, *rates, *map(notes.gap, changes))
    grid.add_section()
    for pair in _pairs(table["reacher_effects"], "reachers"):
        changes = [effect["value"] for effect in table["reacher_effects"] if effect["reachers"] == pair]
        _row(grid, arrow(pair), *map(notes.gap, changes), *([""] * len(effects)))
    _show(console, "Table 1. Endpoint success (non-arrivals are failures), solver effects in points", grid)
    notes.show(console)
    notes = _Notes()
    for some in _chunks(table["interactions"], 3):
        grid = _grid("points", *(_crossing(row) for row in some))
        for name, key in INTERACTIONS:
            _row(
                grid,
                name,
                *(f"{points(row[key]['point'])} {interval(row[key]) or notes.mark(row[key])}" for row in some),
            )
        _show(console, "Interaction of reacher and solver", grid)
    notes.show(console)
    if table["missing"]:
        _say(console, table["missing"], style="yellow")


INTERACTIONS = (
    ("interaction I (Eq. 4)", "interaction"),
    ("  arrival term (Eq. 9)", "arrival_term"),
    ("  state term (Eq. 9)", "state_term"),
    ("survivor-only interaction", "survivor_only"),
    ("  minus I", "survivor_minus_interaction"),
)


def _crossing(row: Json) -> str:
    if row["reachers"] == row["solvers"]:
        return arrow(row["reachers"])
    return f"{arrow(row['reachers'])} x {arrow(row['solvers'])}"


def _show_reach(console: Console, table: Json, run: Json) -> None:
    notes = _Notes()
    grid = _grid("reacher", "Reach", "mean actions")
    for row in table["rows"]:
        _row(grid, row["reacher"], notes.rate(row["reach"]), notes.rate(row["mean_actions"], amount, 1.0))
    grid.add_section()
    for gap in table["gaps"]:
        _row(grid, arrow(gap["reachers"]), notes.gap(gap["value"]), "")
    _show(console, f"Table 2a. Reach: arrival exactly {run['depth']} actions from success", grid)
    notes.show(console)


def _show_solve(console: Console, table: Json, stages: Json, run: Json) -> None:
    notes = _Notes()
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    contrasts = [row["solvers"] for row in table["pooled_gaps"]]
    grid = _grid("states of reacher", *(f"solver {name}" for name in run["solvers"]), *map(arrow, contrasts))
    for reacher in run["reachers"]:
        changes = [row["value"] for row in table["effects"] if row["reacher"] == reacher]
        rates = (notes.rate(cells[reacher, solver]) for solver in run["solvers"])
        _row(grid, reacher, *rates, *map(notes.gap, changes))
    if len(run["reachers"]) > 1:
        grid.add_section()
        rates = (notes.rate(row["value"]) for row in table["pooled"])
        _row(grid, "all", *rates, *(notes.gap(row["value"]) for row in table["pooled_gaps"]))
    _show(console, "Table 2b. Solve: completion from identical cloned states", grid)
    notes.show(console)


def _show_stages(console: Console, table: Json) -> None:
    notes = _Notes()
    grid = _grid("solver", "bridge", "finish | bridge", "completion")
    for row in table["rows"]:
        _row(grid, row["solver"], *(notes.rate(row[stage]) for stage in STAGES))
    grid.add_section()
    for gap in table["gaps"]:
        _row(grid, arrow(gap["solvers"]), *(notes.gap(gap[stage]) for stage in STAGES))
    _show(console, f"Table 3. Solve as bridge x finish (n = {table['states']} reached states)", grid)
    notes.show(console)
    grid = _grid("won by one only", "states")
    for gap in table["gaps"]:
        for (winner, loser), key in (
            (gap["solvers"][::-1], "won_by_second_only"),
            (gap["solvers"], "won_by_first_only"),
        ):
            _row(grid, f"{winner}, not {loser}", counted(gap[key]))
    if table["gaps"]:
        console.print(grid)


STAGES = ("bridge", "finish", "completion")


def _show_types(console: Console, table: Json, run: Json) -> None:
    notes = _Notes()
    pair = table["rows"][0]["reach_gaps"][:1]
    grid = _grid("task type", *run["reachers"], *(arrow(gap["reachers"]) for gap in pair))
    for row in table["rows"]:
        gaps = [gap["value"] for gap in row["reach_gaps"][:1]]
        _row(grid, row["type"], *(notes.rate(each["value"]) for each in row["reach"]), *map(notes.gap, gaps))
    _show(console, "Table 6a. Reach by task type", grid)
    notes.show(console)
    notes = _Notes()
    pair = table["rows"][0]["completion_gaps"][:1]
    grid = _grid("task type", *run["solvers"], *(arrow(gap["solvers"]) for gap in pair))
    for row in table["rows"]:
        gaps = [gap["value"] for gap in row["completion_gaps"][:1]]
        _row(grid, row["type"], *(notes.rate(each["value"]) for each in row["completion"]), *map(notes.gap, gaps))
    _show(console, "Table 6b. Same-state completion by task type", grid)
    notes.show(console)
    _show_prediction(console, table)


def _show_prediction(console: Console, table: Json) -> None:
    prediction = table["prediction"]
    notes = _Notes()
    if prediction is None:
        contrasts = [row["interactions"][:1] for row in table["rows"]]
        if contrasts[0]:
            grid = _grid("task type", "interaction")
            for row, contrast in zip(table["rows"], contrasts, strict=True):
                _row(grid, row["type"], notes.gap(contrast[0]["value"]))
            _show(console, "Table 6c. Interaction by task type, in points", grid)
            notes.show(console)
            _say(console, "A prediction to set beside it needs a run of other tasks: --external RUN.", style="dim")
        return
    shown = ("predicted", "observed", "residual")
    grid = _grid("task type", "external Solve gap", *shown)  # the Reach gaps stand in 6a
    for row in prediction["rows"]:
        _row(grid, row["type"], *(notes.gap(row[name]) for name in ("external_gap", *shown)))
    grid.add_section()
    _row(grid, "all", "", *(notes.gap(prediction["whole"][name]) for name in shown))
    _show(console, "Table 6c. Interaction, predicted (Eq. 10) and observed, in points", grid)
    notes.show(console)


def _show_budgets(console: Console, table: Json, run: Json) -> None:
    if not table["steps"]:
        return
    notes = _Notes()
    levels = {(level["reacher"], level["steps"]): level["value"] for level in table["levels"]}
    grid = _grid("reacher", *(plural(steps, "action") for steps in table["steps"]))
    for reacher in run["reachers"]:
        _row(grid, reacher, *(notes.rate(levels[reacher, steps]) for steps in table["steps"]))
    grid.add_section()
    for pair in _pairs(table["gaps"], "reachers"):
        same = {
            gap["steps"][0]: gap["value"]
            for gap in table["gaps"]
            if gap["reachers"] == pair and len({*gap["steps"]}) == 1
        }
        _row(grid, arrow(pair), *(notes.gap(same[steps]) for steps in table["steps"]))
    _show(console, "Table 7. Arrival by reacher budget", grid)
    notes.show(console)
    notes = _Notes()
    grid = _grid("across budgets", "points")
    for gap in table["gaps"]:
        (a, b), (first, second) = gap["reachers"], gap["steps"]
        if first != second:
            told = interval(gap["value"]) or notes.mark(gap["value"])
            _row(grid, f"{b} at {second} {MINUS} {a} at {first}", f"{points(gap['value']['point'])} {told}")
    if grid.row_count:
        console.print(grid)
        notes.show(console)


def _pairs(rows: Sequence[Json], key: str) -> list[list[str]]:
    found: list[list[str]] = []
    for row in rows:
        if row[key] not in found:
            found.append(row[key])
    return found


def _chunks(rows: Sequence[Json], size: int) -> Iterator[Sequence[Json]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def show_audit(console: Console, audit: Audit, shown: int = 10) -> None:
    """The table of checks, with counts, and the first failures of each."""
    grid = Grid(header_style="")
    for column, justify in (("check", "left"), ("claim", "left"), ("checked", "right"), ("result", "left")):
        grid.add_column(column, justify=justify)  # type: ignore[arg-type]
    for check in audit.checks:
        result = Text("passed", "green") if check.passed else Text(f"{len(check.failures)} FAILED", "bold red")
        grid.add_row(check.name, check.claim, str(check.count), result)
    _show(console, f"Audit of {audit.folder}", grid)
    for check in audit.checks:
        for failure in check.failures[:shown]:
            console.print(f"{check.name}: {failure}", style="red", markup=False, highlight=False, soft_wrap=True)
        if len(check.failures) > shown:
            console.print(f"{check.name}: and {len(check.failures) - shown} more (--json lists all)", style="red")
    verdict = "every check passed" if audit.passed else "the run does not pass"
    console.print(f"{verdict}", style="green" if audit.passed else "bold red")
