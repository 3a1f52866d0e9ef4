"""Figures of a study's page, drawn from :func:`handoff.report.study.document.document` on :mod:`handoff.report.plots`.

A checkpoint's style is its place in the run's order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from handoff.report.format import Json, arrow, counted, gap_with_interval, interval, percent, points, rate_with_interval
from handoff.report.plots import STYLES, WIDTH, Canvas, Figure, Row, ends_of, forest, plain, round_ticks
from handoff.report.study.sentences import headline, split


def figures(numbers: Json) -> dict[str, list[Figure]]:
    """The figures of every section of a complete run's page."""
    styles = _styles(numbers)
    tables, run = numbers["tables"], numbers["run"]
    found: dict[str, list[Figure | None]] = {
        "interaction": [interaction(tables["endpoints"], run, styles), gain(tables["endpoints"])],
        "reach": [arrival(numbers["curves"]["arrival"], run, styles)],
        "solve": [reach_and_solve(tables, run, styles)],
        "stages": [stages(tables["stages"], styles), won_only(tables["stages"])],
        "types": [by_type(tables["types"]), prediction(tables["types"])],
        "budgets": [budgets(tables["budgets"], run, styles)],
        "failures": [failures(numbers["failures"], styles)],
        "effects": [effects(tables)],
    }
    return {section: [figure for figure in some if figure is not None] for section, some in found.items()}


def _styles(numbers: Json) -> dict[str, int]:
    run = numbers["run"]
    return {name: k for k, name in enumerate(dict.fromkeys((*run["reachers"], *run["solvers"])))}


def _gap_text(value: Json) -> str:
    return f"{points(value['point'])} {interval(value)}".strip()


def effects(tables: Json) -> Figure | None:
    """The leading gaps, the interaction and its parts, in points."""
    lead = headline(tables)
    rows = []
    if lead["reach"]:
        rows.append(Row("Reach gap", lead["reach"]["value"], 0, "e"))
    if lead["solve"]:
        rows.append(Row("Solve gap", lead["solve"]["value"], 1, "e"))
    if lead["interaction"]:
        found = lead["interaction"]
        rows += [
            Row("interaction", found["interaction"], 3),
            Row("arrival term", found["arrival_term"], 3),
            Row("state term", found["state_term"], 3),
            Row("survivor-only", found["survivor_only"], 4, "e"),
        ]
    if not rows:
        return None
    caption = "The gaps and the interaction with its two terms, in points with intervals."
    return forest([("", rows)], _gap_text).figure("fig-effects", caption, "Gaps and interaction with intervals")


def reach_and_solve(tables: Json, run: Json, styles: dict[str, int]) -> Figure:
    """Reach of every reacher, Solve of every solver on every reacher's states."""
    groups = [
        (
            "Reach, of all trajectories",
            [Row(r["reacher"], r["reach"], styles[r["reacher"]]) for r in tables["reach"]["rows"]],
        )
    ]
    for reacher in run["reachers"]:
        cells = [cell for cell in tables["solve"]["cells"] if cell["reacher"] == reacher]
        rows = [Row(cell["solver"], cell["value"], styles[cell["solver"]]) for cell in cells]
        groups.append((f"Solve, states that {reacher} reached", rows))
    if len(run["reachers"]) > 1:
        pooled = [Row(row["solver"], row["value"], styles[row["solver"]]) for row in tables["solve"]["pooled"]]
        groups.append(("Solve, all reached states", pooled))
    caption = "Reach and Solve in percent: point, interval, and marker of the checkpoint that acts."
    return forest(groups, rate_with_interval, (0, 100)).figure("fig-reach-solve", caption, "Reach and Solve")


def stages(table: Json, styles: dict[str, int]) -> Figure:
    """Bridge rate, finish rate and their product."""
    heads = (
        ("bridge", "First action is a bridge"),
        ("finish", "Finishes, given a bridge action"),
        ("completion", "Completes (the product)"),
    )
    groups = [
        (head, [Row(row["solver"], row[key], styles[row["solver"]]) for row in table["rows"]]) for key, head in heads
    ]
    caption = "Solve as two stages: choosing a bridge action, and finishing from it, in percent of reached states."
    return forest(groups, rate_with_interval, (0, 100)).figure("fig-stages", caption, "Bridge and finish")


def budgets(table: Json, run: Json, styles: dict[str, int]) -> Figure | None:
    """Reach within each budget."""
    if not table["steps"]:
        return None
    groups = []
    for at in table["steps"]:
        levels = [level for level in table["levels"] if level["steps"] == at]
        rows = [Row(level["reacher"], level["value"], styles[level["reacher"]]) for level in levels]
        groups.append((f"Within {at} action{'' if at == 1 else 's'}", rows))
    caption = "Arrival at the frontier within each reacher budget, in percent of trajectories."
    return forest(groups, rate_with_interval, (0, 100)).figure("fig-budgets", caption, "Arrival by budget")


def by_type(table: Json) -> Figure | None:
    """Reach gap, Solve gap and interaction of each task type."""
    groups = []
    predicted = {row["type"]: row for row in (table["prediction"] or {"rows": []})["rows"]}
    for row in table["rows"]:
        rows = []
        if row["reach_gaps"]:
            rows.append(Row("Reach gap", row["reach_gaps"][0]["value"], 0, "e"))
        if row["completion_gaps"]:
            rows.append(Row("Solve gap", row["completion_gaps"][0]["value"], 1, "e"))
        if row["interactions"]:
            rows.append(Row("interaction", row["interactions"][0]["value"], 3))
        if row["type"] in predicted:
            rows.append(Row("predicted", predicted[row["type"]]["predicted"], 3, "hollow c3"))
        if rows:
            groups.append((f"{row['type']} ({row['tasks']} task{'' if row['tasks'] == 1 else 's'})", rows))
    if not groups:
        return None
    caption = (
        "By task type, in points: the two gaps, the observed interaction, and the predicted one where there is one."
    )
    return forest(groups, _gap_text).figure("fig-types", caption, "Gaps and interaction by task type")


# Curves and crossings.


def arrival(curves: Sequence[Json], run: Json, styles: dict[str, int]) -> Figure:
    """Cumulative arrival over reacher actions, with bands."""
    canvas = Canvas(268)
    top = 18 + canvas.legend(14, [(curve["reacher"], styles[curve["reacher"]]) for curve in curves], lines=True)
    left, right, bottom = 34.0, WIDTH - 10.0, canvas.height - 34
    last = float(max(1, max(point["steps"] for curve in curves for point in curve["points"])))

    def x(steps: float) -> float:
        return left + steps / last * (right - left)

    def y(share: float) -> float:
        return bottom - share * (bottom - top)

    for tick in (0, 25, 50, 75, 100):
        canvas.line(left, y(tick / 100), right, y(tick / 100), "grid")
        canvas.text(left - 6, y(tick / 100) + 4, str(tick), "t soft", "end")
    for step in round_ticks(0, last, 7):
        canvas.text(x(step), bottom + 16, plain(step), "t soft", "middle")
    canvas.text((left + right) / 2, canvas.height - 3, "reacher actions", "t soft", "middle")
    for curve in curves:
        banded = [point for point in curve["points"] if point["low"] is not None]
        if banded:
            upper = _staircase([(x(p["steps"]), y(p["high"])) for p in banded])
            lower = _staircase([(x(p["steps"]), y(p["low"])) for p in banded])
            canvas.path([*upper, *reversed(lower)], f"band c{styles[curve['reacher']] % STYLES}", close=True)
    for curve in curves:
        style = styles[curve["reacher"]]
        places = [(x(p["steps"]), y(p["point"])) for p in curve["points"] if p["point"] is not None]
        canvas.path(_staircase(places), f"l c{style % STYLES} d{style % STYLES}")
        every = max(1, len(places) // 6)
        for number, (px, py) in enumerate(places):
            if number % every == 0 or number == len(places) - 1:
                point = curve["points"][number]
                told = f"{curve['reacher']} within {point['steps']} actions: {rate_with_interval(point)}"
                canvas.marker(px, py, style, told, 4)
    caption = "Arrival at the frontier over reacher actions, in percent of trajectories; bands are pointwise intervals."
    return canvas.figure("fig-arrival", caption, "Arrival curves")


def _staircase(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    steps = list(places[:1])
    for (_, before), (x, y) in pairwise(places):
        steps += [(x, before), (x, y)]
    return steps


def interaction(table: Json, run: Json, styles: dict[str, int]) -> Figure:
    """Endpoint success by reacher, one line a solver: the gap between two lines is the solver effect."""
    canvas = Canvas(268)
    solvers, reachers = run["solvers"], run["reachers"]
    top = 18 + canvas.legend(14, [(f"solver {name}", styles[name]) for name in solvers], lines=True)
    left, right, bottom = 34.0, WIDTH - 10.0, canvas.height - 34
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    highest = max([0.1, *(v for value in cells.values() for v in (value["point"], value["high"]) if v is not None)])
    roof: float = min(1.0, math.ceil(highest * 10) / 10)
    column = (right - left) / len(reachers)

    def y(share: float) -> float:
        return bottom - share / roof * (bottom - top)

    for tick in round_ticks(0, 100 * roof, 5):
        canvas.line(left, y(tick / 100), right, y(tick / 100), "grid")
        canvas.text(left - 6, y(tick / 100) + 4, plain(tick), "t soft", "end")
    for k, reacher in enumerate(reachers):
        canvas.text(left + (k + 0.5) * column, bottom + 16, f"reacher {reacher}", "t", "middle", room=column - 8)
    for n, solver in enumerate(solvers):
        style = styles[solver]
        shift = (n - (len(solvers) - 1) / 2) * min(10, column / 8)
        places = []
        for k, reacher in enumerate(reachers):
            value = cells[reacher, solver]
            px = left + (k + 0.5) * column + shift
            if value["low"] is not None:
                canvas.line(px, y(value["low"]), px, y(value["high"]), f"bar c{style % STYLES}")
            places.append((px, y(value["point"]), value, reacher))
        canvas.path([(px, py) for px, py, _, _ in places], f"l c{style % STYLES} d{style % STYLES}")
        for px, py, value, reacher in places:
            told = f"reacher {reacher}, solver {solver}: {rate_with_interval(value)} ({counted(value)})"
            canvas.marker(px, py, style, told)
    caption = (
        "Endpoint success in percent. The vertical gap between two lines is the solver effect; lines that are not "
        "parallel are an interaction."
    )
    return canvas.figure("fig-interaction", caption, "Interaction plot")


def gain(table: Json) -> Figure | None:
    """The whole gain as a cascade: solver alone, reacher alone, interaction."""
    parts = split(table)
    if parts is None:
        return None
    a, b = parts["checkpoints"]
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in table["cells"]}
    base = 100 * cells[a, a]["point"]
    rows: list[tuple[str, float, float, str, str]] = [
        (f"{a} in both roles", 0.0, base, percent(cells[a, a]["point"]), "bar0")
    ]
    at = base
    for name, key, kind in (
        (f"solver alone: {arrow((a, b))}", "solver", "bar1"),
        (f"reacher alone: {arrow((a, b))}", "reacher", "bar2"),
        ("both together (interaction)", "interaction", "bar3"),
    ):
        step = 100 * parts[key]["point"]
        rows.append((name, at, at + step, _gap_text(parts[key]), kind))
        at += step
    rows.append((f"{b} in both roles", 0.0, at, percent(cells[b, b]["point"]), "bar0"))
    canvas = Canvas(44 * len(rows) + 8)
    low = min(0.0, *(min(first, last) for _, first, last, _, _ in rows))
    high = max(1.0, *(max(first, last) for _, first, last, _, _ in rows))

    def x(value: float) -> float:
        return 4 + (value - low) / (high - low) * (WIDTH - 8)

    for number, (_, _, last, _, _) in enumerate(rows[:-1]):
        canvas.line(x(last), 22 + 44 * number, x(last), 66 + 44 * number, "link")  # under the words
    for number, (name, first, last, told, kind) in enumerate(rows):
        y = 4.0 + 44 * number
        canvas.text(4, y + 12, name, room=240)
        canvas.text(WIDTH - 4, y + 12, told, "t num", "end")
        start, end = sorted((x(first), x(last)))
        canvas.box(start, y + 18, max(1.5, end - start), 14, kind, f"{name}: {told}")
    caption = f"The whole gain of {b} over {a} in endpoint success, as parts that add up, in points."
    return canvas.figure("fig-gain", caption, "Parts of the gain")


def prediction(table: Json) -> Figure | None:
    """Predicted against observed interaction, a numbered point a task type."""
    found = table["prediction"]
    if found is None:
        return None
    shown = [
        row for row in found["rows"] if row["predicted"]["point"] is not None and row["observed"]["point"] is not None
    ]
    key = [(f"{number} {row['type']}", row) for number, row in enumerate(shown, start=1)]
    canvas = Canvas(330 + 16 * len(key))
    whole = found["whole"] if found["whole"]["predicted"]["point"] is not None else None
    every = [row for _, row in key] + ([whole] if whole else [])
    ends = [0.0]
    for row in every:
        for name in ("predicted", "observed"):
            ends += [100 * row[name]["point"], *(ends_of(row[name]) or ())]
    low, high = min(ends), max(ends)
    low, high = low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1)
    left, right, top, bottom = 44.0, WIDTH - 12.0, 10.0, 280.0

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    for tick in round_ticks(low, high, 5):
        canvas.line(left, y(tick), right, y(tick), "grid")
        canvas.line(x(tick), top, x(tick), bottom, "grid")
        canvas.text(left - 6, y(tick) + 4, plain(tick), "t soft", "end")
        canvas.text(x(tick), bottom + 16, plain(tick), "t soft", "middle")
    canvas.line(x(low), y(low), x(high), y(high), "link")
    canvas.text(left + 4, top + 10, "observed, points", "t soft")
    canvas.text(right, bottom + 32, "predicted, points", "t soft", "end")
    for row in every:
        style = 3 if row is whole else 1
        px, py = x(100 * row["predicted"]["point"]), y(100 * row["observed"]["point"])
        across, along = ends_of(row["predicted"]), ends_of(row["observed"])
        if across:
            canvas.line(x(across[0]), py, x(across[1]), py, f"thin c{style}")
        if along:
            canvas.line(px, y(along[0]), px, y(along[1]), f"thin c{style}")
    for number, row in enumerate(every, start=1):
        px, py = x(100 * row["predicted"]["point"]), y(100 * row["observed"]["point"])
        name = "all types" if row is whole else row["type"]
        told = f"{name}: predicted {gap_with_interval(row['predicted'])}, observed {gap_with_interval(row['observed'])}"
        canvas.marker(px, py, 3 if row is whole else 1, told, 5)
        if row is whole:
            canvas.text(px + 8, py - 6, "all", "t head")
        else:
            canvas.text(px - 8, py - 6, str(number), "t head", "end")
    for number, (name, _) in enumerate(key):
        canvas.text(left, bottom + 50 + 16 * number, name, room=WIDTH - left)
    caption = (
        "Interaction by task type: predicted from Reach gaps here and Solve gaps elsewhere, against observed. On the "
        "dashed line they agree; the diamond is the whole."
    )
    return canvas.figure("fig-prediction", caption, "Prediction against observation by task type")


# Counts as bars.


def won_only(table: Json) -> Figure | None:
    """Reached states by which of two solvers wins them."""
    if not table["gaps"] or not table["states"]:
        return None
    found = table["gaps"][0]
    a, b = found["solvers"]
    bars = (
        ("both win", found["won_by_both"], "bar0"),
        (f"only {b}", found["won_by_second_only"]["numerator"], "bar1"),
        (f"only {a}", found["won_by_first_only"]["numerator"], "bar2"),
        ("neither", found["won_by_neither"], "bar4"),
    )
    return _bars(bars, table["states"]).figure(
        "fig-won-only", "Reached states by which solver wins from the clone.", "States won by one solver only"
    )


def failures(table: Json, styles: dict[str, int]) -> Figure | None:
    """Labels of the non-arrivals, of each reacher."""
    rows = [
        (one["reacher"], label.replace("_", " "), count, styles[one["reacher"]], one["trajectories"])
        for one in table["reachers"]
        for label, count in one["labels"].items()
        if count
    ]
    if not rows:
        return None
    most = max(count for _, _, count, _, _ in rows)
    heads = list(dict.fromkeys(reacher for reacher, *_ in rows))
    canvas = Canvas(26 * len(rows) + 24 * len(heads) + 8)
    left, right = 128.0, WIDTH - 90.0
    y = 0.0
    for head in heads:
        y += 24
        total = next(one["trajectories"] for one in table["reachers"] if one["reacher"] == head)
        canvas.text(0, y - 6, f"{head}, {total} non-arrivals", "t head", room=WIDTH)
        for reacher, label, count, style, of in rows:
            if reacher != head:
                continue
            y += 26
            middle = y - 13
            canvas.text(0, middle + 4, label, room=left - 8)
            end = left + count / most * (right - left)
            canvas.line(left, middle, end, middle, f"bar c{style % STYLES}")
            canvas.marker(end, middle, style, f"{reacher}: {label}, {count} of {of}")
            canvas.text(WIDTH, middle + 4, f"{count} ({percent(count / of)})", "t num", "end")
    return canvas.figure(
        "fig-failures", "Trajectories that never arrive, by label; labels without any are left out.", "Failure labels"
    )


def _bars(bars: Sequence[tuple[str, int, str]], total: int) -> Canvas:
    canvas = Canvas(30 * len(bars) + 8)
    left, right = 128.0, WIDTH - 90.0
    for number, (name, count, kind) in enumerate(bars):
        y = 4 + 30 * number
        canvas.text(0, y + 16, name, room=left - 8)
        canvas.box(left, y + 4, (count / total) * (right - left), 16, kind, f"{name}: {count} of {total}")
        canvas.text(WIDTH, y + 16, f"{count} ({percent(count / total)})", "t num", "end")
    return canvas
