"""Tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.auditing.checks import Audit
from handoff.protocols.frontier.study import Study
from handoff.protocols.frontier.summary import summary
from handoff.report import sheet
from handoff.report.format import Json
from handoff.report.study import tables
from handoff.text import printable


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


def plan_lines(identity: Mapping[str, Any], folder: Path) -> list[str]:
    """What a run is going to do."""
    protocol, tasks = identity["protocol"], identity["tasks"]
    types = Counter(task["type"] for task in tasks)
    reachers, solvers = protocol["reachers"], protocol["solvers"]
    cells = len(tasks) * protocol["slots"] * len(reachers)
    drawn = ", ".join(f"{count} {name}" for name, count in sorted(types.items()))
    budgets = f"at most {protocol['reach_budget']} actions, until exactly {protocol['depth']} from success"
    return [
        f"{identity['environment']['name']}, split {protocol['split']}: {len(tasks)} tasks ({drawn})",
        f"reachers {', '.join(reachers)}: {cells} trajectories ({protocol['slots']} seed slots) of {budgets}",
        f"solvers {', '.join(solvers)}: {cells * len(solvers)} endpoints of at most {protocol['solve_budget']} actions",
        *(f"policy {name}: {_policy(name, described)}" for name, described in identity["policies"].items()),
        f"run folder: {folder}",
    ]


def _policy(name: str, described: Mapping[str, Any]) -> str:
    spec = str(described["spec"])
    if described.get("kind") != "builtin":
        return spec
    return f"{spec}, a small checkpoint that ships with handoff (another one: -p {name}=SPEC)"


def show_study(console: Console, study: Study) -> None:
    """Endpoints, Reach and Solve per cell with counts, and what is owed: what a run prints at its end."""
    show_counts(console, summary(study), study.reachers, study.solvers)


def show_counts(console: Console, numbers: Json, reachers: Sequence[str], solvers: Sequence[str]) -> None:
    """The counts of :func:`~handoff.protocols.frontier.summary.summary`."""
    for one in tables.counts(numbers, reachers, solvers):
        show_sheet(console, one)
    owed, planned = numbers["owed"], numbers["planned"]
    console.print(
        f"planned {planned['trajectories']} trajectories and {planned['endpoints']} endpoints; "
        f"owed {owed['trajectories']} and {owed['endpoints']}",
        highlight=False,
    )
    if not numbers["complete"]:
        _say(console, "The run is not complete: type its command again to go on.", style="yellow")


def show_report(console: Console, numbers: Json) -> None:
    """The tables and sentences of :func:`~handoff.report.study.document.document`; counts while records are owed."""
    run = numbers["run"]
    if numbers["tables"] is None:
        _say(console, numbers["incomplete"], style="yellow")
        show_counts(console, numbers, run["reachers"], run["solvers"])
        return
    said = numbers["sentences"]
    console.print("Where does the gain come from?", style="bold")
    _say(console, *(sentence for part in ("verdict", "gaps", "gain", "missing") for sentence in said[part]))
    for section, sheets in tables.sections(numbers).items():
        for one in sheets:
            console.print()
            show_sheet(console, one)
        _say(console, *said[section])
    console.print()
    _say(console, *said["study"], *said["intervals"])


def show_sheet(console: Console, sheet: sheet.Sheet) -> None:
    """A table with the reasons for what is missing from it, each once, numbered."""
    reasons: dict[str, int] = {}
    grid = _grid(*sheet.columns)
    for row in sheet.rows:
        if row.divided:
            grid.add_section()
        _row(grid, row.name, *(_cell(cell, reasons, lone=len(row.cells) == 1) for cell in row.cells))
    _show(console, sheet.title, grid)
    for reason, number in reasons.items():
        _say(console, f"({number}) {reason}", style="dim")


def _cell(cell: sheet.Cell, reasons: dict[str, int], lone: bool) -> str:
    first = f"{cell.text} ({cell.counts})" if cell.counts else cell.text
    mark = f"({reasons.setdefault(cell.note, len(reasons) + 1)})" if cell.note else ""
    below = cell.interval or mark
    return f"{first}{' ' if lone else chr(10)}{below}" if below else first


def _say(console: Console, *sentences: str, style: str = "") -> None:
    if sentences:
        console.print(" ".join(sentences), markup=False, highlight=False, style=style)


def show_audit(console: Console, audit: Audit, shown: int = 10) -> None:
    """The table of checks, with counts, and the first failures of each."""
    grid = Grid(header_style="")
    for column in ("check", "claim", "checked", "result"):
        grid.add_column(column, justify="right" if column == "checked" else "left")
    for check in audit.checks:
        result = Text("passed", "green") if check.passed else Text(f"{len(check.failures)} FAILED", "bold red")
        grid.add_row(check.name, check.claim, str(check.count), result)
    _show(console, f"Audit of {audit.folder}", grid)
    for check in audit.checks:
        for failure in check.failures[:shown]:
            console.print(
                f"{check.name}: {printable(failure)}", style="red", markup=False, highlight=False, soft_wrap=True
            )
        if len(check.failures) > shown:
            console.print(f"{check.name}: and {len(check.failures) - shown} more (--json lists all)", style="red")
        for note in check.notes:
            console.print(
                f"{check.name}: {printable(note)}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )
    verdict = "every check passed" if audit.passed else "the run does not pass"
    console.print(f"{verdict}", style="green" if audit.passed else "bold red")


def show_comparison(console: Console, compared: Json) -> None:
    """What :func:`handoff.report.study.comparison.compare` found."""
    first, second = compared["labels"]
    grid = _grid("differs", first, second)
    for row in compared["differing"]:
        _row(grid, row["key"], row["first"], row["second"])
    if grid.row_count:
        _show(console, f"{first} and {second} differ in", grid)
    else:
        _say(console, f"{first} and {second} are the same run: nothing that determines them differs.")
    for reason in compared["incomparable"]:
        _say(console, f"Not comparable: {reason}.", style="bold red")
    if compared["incomparable"] and all(row["difference"] is None for row in compared["rows"]):
        _say(console, "No differences are taken (--anyway takes them).", style="red")
    _say(console, *compared["remarks"])
    console.print()
    reasons: dict[str, int] = {}
    grid = _grid("estimand", first, second, f"{second} − {first}")
    for row in compared["rows"]:
        cells = [sheet.of_estimand(row["name"], row[run]) for run in ("first", "second")]
        cells.append(sheet.of_difference(row["name"], row["difference"]))
        _row(grid, row["label"], *(_cell(cell, reasons, lone=False) for cell in cells))
    _show(console, "The same estimands of both runs; rates in percent, contrasts and differences in points", grid)
    for reason, number in reasons.items():
        _say(console, f"({number}) {reason}", style="dim")
