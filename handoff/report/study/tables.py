"""The tables of a report, once for the terminal and the page: the paper's Tables 1, 2, 3, 6 and 7 in its terms.

Each is built from :func:`handoff.report.study.document.document` and knows nothing of how it will be drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from handoff.report.format import MINUS, NONE, Json, amount, arrow, interval, percent, plural
from handoff.report.sheet import EMPTY, Cell, Row, Sheet, gap, mean, rate


def sections(numbers: Json) -> dict[str, list[Sheet]]:
    """The tables of every section of a complete run's report; an empty list where there is nothing to show."""
    tables, run = numbers["tables"], numbers["run"]
    return {
        "interaction": [endpoints(tables["endpoints"], run), *interactions(tables["endpoints"])],
        "reach": [reach(tables["reach"], run)],
        "solve": [solve(tables["solve"], run)],
        "stages": list(stages(tables["stages"])),
        "types": list(types(tables["types"], run)),
        "budgets": list(budgets(tables["budgets"], run)),
        "failures": list(failures(numbers["failures"])),
    }


def endpoints(table: Json, run: Json) -> Sheet:
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    effects = _distinct(effect["solvers"] for effect in table["solver_effects"])
    rows = []
    for reacher in run["reachers"]:
        found = [rate(cells[reacher, solver]) for solver in run["solvers"]]
        found += [gap(effect["value"]) for effect in table["solver_effects"] if effect["reacher"] == reacher]
        rows.append(Row(reacher, tuple(found)))
    for pair in _distinct(effect["reachers"] for effect in table["reacher_effects"]):
        found = [gap(effect["value"]) for effect in table["reacher_effects"] if effect["reachers"] == pair]
        rows.append(Row(arrow(pair), (*found, *(EMPTY for _ in effects)), divided=len(rows) == len(run["reachers"])))
    columns = ("reacher", *(f"solver {name}" for name in run["solvers"]), *map(arrow, effects))
    return Sheet("Table 1. Endpoint success (non-arrivals are failures), effects in points", columns, tuple(rows))


INTERACTIONS = (
    ("interaction I (Eq. 4)", "interaction"),
    ("arrival term (Eq. 9)", "arrival_term"),
    ("state term (Eq. 9)", "state_term"),
    ("survivor-only interaction", "survivor_only"),
    ("survivor-only minus I", "survivor_minus_interaction"),
)


def interactions(table: Json) -> Iterator[Sheet]:
    """Three contrasts a table."""
    found = table["interactions"]
    for first in range(0, len(found), 3):
        some = found[first : first + 3]
        rows = [Row(name, tuple(gap(row[key]) for row in some)) for name, key in INTERACTIONS]
        columns = ("points", *(crossing(row) for row in some))
        yield Sheet("Interaction of reacher and solver, in points", columns, tuple(rows))


def crossing(row: Json) -> str:
    """``sft → rl``, of both roles or of either."""
    if row["reachers"] == row["solvers"]:
        return arrow(row["reachers"])
    return f"{arrow(row['reachers'])} × {arrow(row['solvers'])}"


def reach(table: Json, run: Json) -> Sheet:
    rows = [Row(row["reacher"], (rate(row["reach"]), mean(row["mean_actions"]))) for row in table["rows"]]
    for number, found in enumerate(table["gaps"]):
        rows.append(Row(arrow(found["reachers"]), (gap(found["value"]), EMPTY), divided=number == 0))
    title = f"Table 2a. Reach: arrival exactly {plural(run['depth'], 'action')} from success"
    return Sheet(title, ("reacher", "Reach", "mean actions"), tuple(rows))


def solve(table: Json, run: Json) -> Sheet:
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    rows = []
    for reacher in run["reachers"]:
        found = [rate(cells[reacher, solver]) for solver in run["solvers"]]
        found += [gap(effect["value"]) for effect in table["effects"] if effect["reacher"] == reacher]
        rows.append(Row(reacher, tuple(found)))
    if len(rows) > 1:
        pooled = [rate(row["value"]) for row in table["pooled"]] + [gap(row["value"]) for row in table["pooled_gaps"]]
        rows.append(Row("all", tuple(pooled), divided=True))
    contrasts = _distinct(row["solvers"] for row in table["pooled_gaps"])
    columns = ("states of", *(f"solver {name}" for name in run["solvers"]), *map(arrow, contrasts))
    return Sheet("Table 2b. Solve: completion from identical cloned states, effects in points", columns, tuple(rows))


STAGES = ("bridge", "finish", "completion")


def stages(table: Json) -> Iterator[Sheet]:
    rows = [Row(row["solver"], tuple(rate(row[stage]) for stage in STAGES)) for row in table["rows"]]
    for number, found in enumerate(table["gaps"]):
        cells = tuple(gap(found[stage]) for stage in STAGES)
        rows.append(Row(arrow(found["solvers"]), cells, divided=number == 0))
    title = f"Table 3. Solve as bridge × finish, of {plural(table['states'], 'reached state')}"
    yield Sheet(title, ("solver", "bridge", "finish given bridge", "completion"), tuple(rows))
    only = []
    for found in table["gaps"]:
        a, b = found["solvers"]
        only.append(Row(f"{b}, not {a}", (_states(found["won_by_second_only"]),)))
        only.append(Row(f"{a}, not {b}", (_states(found["won_by_first_only"]),)))
    if only:
        yield Sheet("Table 3, continued. States won by one solver only", ("won by", "states"), tuple(only))


def _states(value: Json) -> Cell:
    return Cell(str(value["numerator"]), f"of {value['denominator']}", interval(value), value["note"])


def types(table: Json, run: Json) -> Iterator[Sheet]:
    rows = table["rows"]
    contrasts = [found["reachers"] for found in rows[0]["reach_gaps"][:1]]
    yield Sheet(
        "Table 6a. Reach by task type",
        ("task type", *run["reachers"], *map(arrow, contrasts)),
        tuple(
            Row(
                row["type"],
                (
                    *(rate(found["value"]) for found in row["reach"]),
                    *(gap(found["value"]) for found in row["reach_gaps"][:1]),
                ),
            )
            for row in rows
        ),
    )
    contrasts = [found["solvers"] for found in rows[0]["completion_gaps"][:1]]
    yield Sheet(
        "Table 6b. Solve by task type, from all reached states",
        ("task type", *run["solvers"], *map(arrow, contrasts)),
        tuple(
            Row(
                row["type"],
                (
                    *(rate(found["value"]) for found in row["completion"]),
                    *(gap(found["value"]) for found in row["completion_gaps"][:1]),
                ),
            )
            for row in rows
        ),
    )
    if table["prediction"] is not None:
        yield _prediction(table["prediction"])
    elif rows[0]["interactions"]:
        each = [row["interactions"][0] for row in rows]
        yield Sheet(
            "Table 6c. Observed interaction by task type, in points",
            ("task type", crossing(each[0])),
            tuple(Row(row["type"], (gap(found["value"]),)) for row, found in zip(rows, each, strict=True)),
        )


def _prediction(prediction: Json) -> Sheet:
    shown = ("predicted", "observed", "residual")  # the Reach gaps stand in 6a
    rows = [Row(row["type"], tuple(gap(row[name]) for name in ("external_gap", *shown))) for row in prediction["rows"]]
    whole = tuple(gap(prediction["whole"][name]) for name in shown)
    rows.append(Row("all", (EMPTY, *whole), divided=True))
    columns = ("task type", "external Solve gap", *shown)
    return Sheet("Table 6c. Interaction by task type, predicted (Eq. 10) and observed, in points", columns, tuple(rows))


def budgets(table: Json, run: Json) -> Iterator[Sheet]:
    steps = table["steps"]
    if not steps:
        return
    levels = {(level["reacher"], level["steps"]): level["value"] for level in table["levels"]}
    rows = [Row(reacher, tuple(rate(levels[reacher, at]) for at in steps)) for reacher in run["reachers"]]
    for number, pair in enumerate(_distinct(found["reachers"] for found in table["gaps"])):
        same = {
            found["steps"][0]: found["value"]
            for found in table["gaps"]
            if found["reachers"] == pair and found["steps"][0] == found["steps"][1]
        }
        rows.append(Row(arrow(pair), tuple(gap(same[at]) for at in steps), divided=number == 0))
    columns = ("reacher", *(plural(at, "action") for at in steps))
    yield Sheet("Table 7. Arrival by reacher budget", columns, tuple(rows))
    across = []
    for found in table["gaps"]:
        (a, b), (first, second) = found["reachers"], found["steps"]
        if first != second:
            across.append(Row(f"{b} at {second} {MINUS} {a} at {first}", (gap(found["value"]),)))
    if across:
        yield Sheet("Table 7, continued. Arrival across budgets", ("contrast", "points"), tuple(across))


SHARES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("repeats the action before", "repeats", percent),
    ("revisits an earlier state", "revisits", percent),
    ("leaves the state unchanged", "unchanged", percent),
    ("distinct actions (median)", "median_distinct", amount),
)


def failures(table: Json) -> Iterator[Sheet]:
    found = table["reachers"]
    if not any(one["trajectories"] for one in found):
        return
    columns = ("label", *(f"{one['reacher']} (n = {one['trajectories']})" for one in found))
    rows = [Row(label.replace("_", " "), tuple(_label(one, label) for one in found)) for label in found[0]["labels"]]
    for gap_row in table["loop_gaps"]:
        a, b = gap_row["reachers"]
        filler = tuple(EMPTY for _ in found[1:])
        rows.append(Row(f"loop, {b} {MINUS} {a}, points", (gap(gap_row["value"]), *filler), divided=True))
    yield Sheet("Non-arrivals by label", columns, tuple(rows))
    shares = [Row(name, tuple(Cell(shown(one[key])) for one in found)) for name, key, shown in SHARES]
    yield Sheet("Steps of the non-arrivals", ("share of steps", *(one["reacher"] for one in found)), tuple(shares))


def _label(one: Json, label: str) -> Cell:
    count = one["labels"][label]
    return Cell(str(count), percent(count / one["trajectories"]) if one["trajectories"] else NONE)


def counts(numbers: Json, reachers: Sequence[str], solvers: Sequence[str]) -> list[Sheet]:
    """Counts without intervals, of :func:`handoff.protocols.frontier.summary.summary`: a run as far as it has got."""
    cells = {(cell["reacher"], cell["solver"]): cell for cell in numbers["cells"]}
    columns = ("reacher", *(f"solver {name}" for name in solvers))

    def crossing_of(rate_of: str, of: str) -> tuple[Row, ...]:
        return tuple(
            Row(reacher, tuple(_so_far(cells[reacher, solver], rate_of, of) for solver in solvers))
            for reacher in reachers
        )

    arrived = [
        Row(
            one["reacher"],
            (Cell(percent(one["reach"]), f"{one['arrived']}/{one['trajectories']}"), Cell(amount(one["mean_actions"]))),
        )
        for one in numbers["reach"]
    ]
    reach_title = f"Reach: arrival exactly {plural(numbers['depth'], 'action')} from success"
    return [
        Sheet("Endpoint success (non-arrivals are failures)", columns, crossing_of("endpoint", "rows")),
        Sheet(reach_title, ("reacher", "Reach", "mean actions"), tuple(arrived)),
        Sheet("Solve: completion from identical cloned states", columns, crossing_of("solve", "arrived")),
    ]


def _so_far(cell: Json, rate_of: str, of: str) -> Cell:
    return Cell(percent(cell[rate_of]), f"{cell['won']}/{cell[of]}")


def _distinct(pairs: Sequence[list[str]] | Iterator[list[str]]) -> list[list[str]]:
    found: list[list[str]] = []
    for pair in pairs:
        if pair not in found:
            found.append(pair)
    return found
