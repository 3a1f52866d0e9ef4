"""The tables of the tax page, built from :func:`handoff.report.tax.document.document`."""

from __future__ import annotations

from collections.abc import Sequence

from handoff.report.format import Json, interval, percent, points
from handoff.report.sheet import EMPTY, Cell, Row, Sheet
from handoff.report.tax.sentences import ends, number, value


def sections(numbers: Json) -> dict[str, list[Sheet]]:
    """The tables of every section; an empty list where there is nothing to show."""
    return {
        "curves": [curves(numbers)],
        "scalability": [at_budget(numbers), by_budget(numbers)],
        "parts": [parts(numbers)],
        "tasks": [*extremes(numbers), rates(numbers)],
        "trade": [trade(numbers)],
        "early": early(numbers),
        "routing": [routing(numbers)],
    }


def budgets(budget: int) -> list[int]:
    """1, 2, 4, ... and K."""
    return sorted({*(2**i for i in range(budget.bit_length()) if 2**i <= budget), budget})


def figure(found: Json, digits: int = 3) -> Cell:
    return Cell(number(found["point"], digits), _alike(found), ends(found, digits), value(found)["note"])


def rate(found: Json) -> Cell:
    return Cell(percent(found["point"]), _alike(found), interval(found), value(found)["note"])


def gap(found: Json) -> Cell:
    return Cell(points(found["point"]), _alike(found), interval(found), value(found)["note"])


def _alike(found: Json) -> str:
    """An interval without width is no sign of certainty."""
    return "all draws alike" if found["degenerate"] else ""


def curves(numbers: Json) -> Sheet:
    compared = numbers["comparison"]
    rows = []
    for k in budgets(compared["budget"]):
        cells = []
        for which in ("pass_at_k", "pass_hat_k"):
            for side in ("base", "post"):
                low, high = compared[side][f"{which}_band"][k - 1]
                shown = interval({"low": low, "high": high})
                cells.append(Cell(percent(compared[side][which][k - 1]), "", shown))
        rows.append(Row(str(k), tuple(cells)))
    columns = ("k", *(f"{metric} {name}" for metric in ("pass@k", "pass^k") for name in numbers["names"]))
    return Sheet("Success of k rollouts, in percent of tasks", columns, tuple(rows))


def at_budget(numbers: Json) -> Sheet:
    compared = numbers["comparison"]
    sides = [compared[side] for side in ("base", "post")]
    rows = (
        Row("raw scalability A", (*(figure(side["scalability"], 2) for side in sides), figure(compared["tax_a"], 2))),
        Row("calibrated S", (*(figure(side["calibrated"]) for side in sides), figure(compared["tax_s"]))),
        Row("coverage pass@K", (*(rate(side["coverage"]) for side in sides), gap(compared["coverage_lost"]))),
        Row("budget-averaged coverage", (*(rate(side["mean_coverage"]) for side in sides), EMPTY)),
    )
    title = f"At K = {compared['budget']} rollouts; the tax is the base less the other, coverage lost in points"
    return Sheet(title, ("", *numbers["names"], "tax"), rows)


def by_budget(numbers: Json) -> Sheet:
    compared = numbers["comparison"]
    rows = [
        Row(str(k), (figure(compared["tax_a_by_k"][k - 1], 2), figure(compared["tax_s_by_k"][k - 1])))
        for k in budgets(compared["budget"])
        if k > 1
    ]
    return Sheet("The tax by budget", ("k", "Tax_A", "Tax_S"), tuple(rows))


def parts(numbers: Json) -> Sheet:
    compared, (base, post) = numbers["comparison"], numbers["names"]
    total = f"of {compared['tasks']}"
    rows = (
        Row(f"lost: {base} only", (_tasks(compared["tasks_lost"], total), figure(compared["lost"], 2))),
        Row(f"gained: {post} only", (_tasks(compared["tasks_gained"], total), figure(compared["gained"], 2))),
        Row("shape: both", (_tasks(compared["tasks_both"], total), figure(compared["shape"], 2))),
        Row("Tax_A", (EMPTY, figure(compared["tax_a"], 2)), divided=True),
        Row("K × gap of coverage", (EMPTY, figure(compared["ceiling"], 2)), divided=True),
        Row("K × gap of averaged coverage", (EMPTY, figure(compared["averaged"], 2))),
    )
    return Sheet("Tax_A by who ever solves a task (Table 6) and by Eq. 8", ("part", "tasks", "Tax_A"), rows)


def _tasks(count: int, total: str) -> Cell:
    return Cell(str(count), total)


def extremes(numbers: Json) -> list[Sheet]:
    compared = numbers["comparison"]
    columns = ("task", "part of Tax_S", *(f"{name}, c/n" for name in numbers["names"]))
    return [
        Sheet(f"The {title} parts of Tax_S", columns, tuple(_contribution(row) for row in rows))
        for title, rows in (("highest", compared["highest"]), ("lowest", compared["lowest"]))
        if rows
    ]


def _contribution(row: Json) -> Row:
    cells = (Cell(number(row["contribution"])), _counts(row["base"]), _counts(row["post"]))
    return Row(row["name"], cells)


def _counts(counts: Sequence[int]) -> Cell:
    return Cell(f"{counts[0]}/{counts[1]}")


def rates(numbers: Json) -> Sheet:
    found, total = numbers["rates"], numbers["comparison"]["tasks"]
    rows = []
    for place, name in enumerate(found["bins"]):
        counts = [found[side][place] for side in ("base", "post")]
        rows.append(Row(name, tuple(Cell(percent(count / total), str(count)) for count in counts)))
    return Sheet("Tasks by their success rate", ("successes", *numbers["names"]), tuple(rows))


def trade(numbers: Json) -> Sheet:
    rows = tuple(
        Row(
            f"{place} {row['base']} → {row['post']}",
            (Cell(str(row["budget"])), gap(row["efficiency_gained"]), gap(row["coverage_lost"]), figure(row["tax_s"])),
        )
        for place, row in enumerate(numbers["trade"], start=1)
    )
    columns = ("pair", "K", "efficiency gained", "coverage lost", "Tax_S")
    return Sheet("What was lost in coverage and gained in efficiency, in points", columns, rows)


def early(numbers: Json) -> list[Sheet]:
    found = numbers["early"]
    if found is None:
        return []
    rows = [
        Row(f"{place} {name}", (Cell(number(first)), Cell(number(second))))
        for place, (name, first, second) in enumerate(found["pairs"], start=1)
    ]
    rows.append(Row("rank correlation", (Cell(number(found["rho"]), "", "", found["reason"]), EMPTY), divided=True))
    columns = ("pair", f"Tax_S({found['early']})", f"Tax_S({found['late']})")
    return [Sheet("Early and late estimates", columns, tuple(rows))]


def routing(numbers: Json) -> Sheet:
    found, (base, post) = numbers["routing"], numbers["names"]
    shown = {"base": f"{base} only", "post": f"{post} only", "random": "random", "tax": "by tax", "oracle": "oracle"}
    rows = tuple(
        Row(
            shown[row["rule"]],
            (
                Cell(percent(row["pass_1"])),
                Cell(percent(row["pass_k"]), f"±{100 * row['deviation']:.1f}" if row["deviation"] else ""),
                Cell(percent(row["to_base"])),
                Cell(str(row["rollouts"])),
                Cell(percent(row["equal_cost"]), "", "", row["reason"]),
            ),
        )
        for row in found["routes"]
    )
    k = found["budget"]
    columns = ("rule", "pass@1", f"pass@{k}", "to base", "cost", "equal cost")
    title = (
        f"Rules for who gets a task's {k} rollouts; pilots of {found['pilot']}, cost in rollouts a task, and the "
        f"coverage that {k} rollouts in all would buy"
    )
    return Sheet(title, columns, rows)
