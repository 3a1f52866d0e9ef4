"""Figures of the tax page, drawn from :func:`handoff.report.tax.document.document` on :mod:`handoff.report.plots`.

The base policy has style 0 and the post-trained one style 1, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from handoff.report.format import Json, percent
from handoff.report.plots import WIDTH, Canvas, Figure, Row, ends_of, forest, plain, round_ticks
from handoff.report.tax.sentences import exact, number, percent_with_ends, points_with_ends, value, with_ends

LEFT, RIGHT = 40.0, WIDTH - 12.0


def figures(numbers: Json) -> dict[str, list[Figure]]:
    """The figures of every section."""
    compared = numbers["comparison"]
    found: dict[str, list[Figure | None]] = {
        "curves": [pass_at(numbers), pass_hat(numbers)],
        "scalability": [scalability(numbers), by_budget(compared)],
        "parts": [parts(compared)],
        "tasks": [contributions(numbers), success_rates(numbers)],
        "trade": [trade(numbers)],
        "early": [early(numbers)],
        "routing": [routing(numbers)],
    }
    return {section: [figure for figure in some if figure is not None] for section, some in found.items()}


# Curves over the number of rollouts.


@attrs.frozen
class _Curve:
    """Values at k = 1, 2, ... with a band (low, high) where there is one; ``None`` is not drawn."""

    name: str
    style: int
    points: Sequence[float | None]
    band: Sequence[tuple[float | None, float | None]]


@attrs.frozen
class _Axes:
    """A logarithmic axis of rollouts from ``first`` to ``last`` below a linear one from ``low`` to ``high``."""

    first: int
    last: int
    low: float
    high: float
    top: float
    bottom: float

    def x(self, k: float) -> float:
        return LEFT + math.log(k / self.first) / math.log(self.last / self.first) * (RIGHT - LEFT)

    def y(self, at: float) -> float:
        return self.bottom - (at - self.low) / (self.high - self.low) * (self.bottom - self.top)

    def draw(self, canvas: Canvas, scale: float) -> None:
        for tick in round_ticks(scale * self.low, scale * self.high, 5):
            y = self.y(tick / scale)
            canvas.line(LEFT, y, RIGHT, y, "zero" if tick == 0 and self.low < 0 else "grid")
            canvas.text(LEFT - 6, y + 4, plain(round(tick, 6)), "t soft", "end")
        doubling = [2**i for i in range(self.last.bit_length()) if self.first <= 2**i <= self.last]
        told = [k for k in doubling if self.x(self.last) - self.x(k) > 26 or k == self.last]
        for k in [*told, *({self.last} - set(told))]:
            canvas.text(self.x(k), self.bottom + 16, str(k), "t soft", "middle")
        canvas.text((LEFT + RIGHT) / 2, self.bottom + 31, "rollouts k", "t soft", "middle")


def _draw(canvas: Canvas, axes: _Axes, curve: _Curve, shown: Callable[[Json], str]) -> None:
    """A curve, and markers at k = 1, 2, 4, ... and at the last."""
    style = curve.style
    places = [(k, at) for k, at in enumerate(curve.points, start=1) if at is not None]
    canvas.path([(axes.x(k), axes.y(at)) for k, at in places], f"l c{style} d{style}")
    for k, at in places:
        if k & (k - 1) == 0 or k == axes.last:
            low, high = curve.band[k - 1]
            told = shown({**exact(at), "low": low, "high": high})
            canvas.marker(axes.x(k), axes.y(at), style, f"{curve.name} at k = {k}: {told}", 4)


def _band(canvas: Canvas, axes: _Axes, curve: _Curve) -> None:
    ends = [(k, *ends) for k, ends in enumerate(curve.band, start=1) if None not in ends]
    upper = [(axes.x(k), axes.y(high)) for k, _, high in ends if high is not None]
    lower = [(axes.x(k), axes.y(low)) for k, low, _ in ends if low is not None]
    if len(upper) > 1:
        canvas.path([*upper, *reversed(lower)], f"band c{curve.style}", close=True)


def _sides(numbers: Json, which: str) -> list[_Curve]:
    compared = numbers["comparison"]
    return [
        _Curve(name, style, compared[side][which], compared[side][f"{which}_band"])
        for style, (side, name) in enumerate(zip(("base", "post"), numbers["names"], strict=True))
    ]


def _curves(numbers: Json, which: str, crossing: int | None) -> Canvas:
    canvas = Canvas(286)
    curves = _sides(numbers, which)
    top = 18 + canvas.legend(14, [(curve.name, curve.style) for curve in curves], lines=True)
    axes = _Axes(1, numbers["comparison"]["budget"], 0.0, 1.0, top, canvas.height - 38)
    axes.draw(canvas, 100)
    for curve in curves:
        _band(canvas, axes, curve)
    if crossing is not None:
        canvas.line(axes.x(crossing), top, axes.x(crossing), axes.bottom, "link")
    for curve in curves:
        _draw(canvas, axes, curve, percent_with_ends)
    return canvas


def pass_at(numbers: Json) -> Figure:
    """pass@k of both, and where the base overtakes."""
    crossing = numbers["comparison"]["crossover"]
    told = (
        f"; at the dashed line (k = {crossing}) {numbers['names'][0]} first covers more" if crossing is not None else ""
    )
    caption = f"pass@k in percent of tasks, at least one of k rollouts succeeds{told}. Bands are pointwise intervals."
    return _curves(numbers, "pass_at_k", crossing).figure("fig-pass-at", caption, "pass@k of both policies")


def pass_hat(numbers: Json) -> Figure:
    """pass^k of both."""
    caption = "pass^k in percent of tasks: all of k rollouts succeed. Bands are pointwise intervals."
    return _curves(numbers, "pass_hat_k", None).figure("fig-pass-hat", caption, "pass^k of both policies")


def by_budget(compared: Json) -> Figure | None:
    """Tax_S at every budget from 2."""
    taxes = compared["tax_s_by_k"]
    points_K = [tax["point"] for tax in taxes]
    known = [tax for tax in taxes[1:] if tax["point"] is not None]
    if len(known) < 2:
        return None
    ends = [tax[end] for tax in known for end in ("point", "low", "high") if tax[end] is not None]
    low, high = min(0.0, *ends), max(0.0, *ends)
    margin = 0.06 * ((high - low) or 1.0)
    canvas = Canvas(240)
    axes = _Axes(2, compared["budget"], low - margin, high + margin, 10.0, canvas.height - 38)
    axes.draw(canvas, 1)
    curve = _Curve("Tax_S", 3, points_K, [(tax["low"], tax["high"]) for tax in taxes])
    _band(canvas, axes, curve)
    _draw(canvas, axes, curve, with_ends)
    caption = "The sharpening tax Tax_S at every budget of k rollouts; above zero retries lost. The band is pointwise."
    return canvas.figure("fig-tax-by-budget", caption, "Sharpening tax by budget")


# Points with intervals.


def scalability(numbers: Json) -> Figure:
    """S of both and its difference."""
    compared, (base, post) = numbers["comparison"], numbers["names"]
    rows = [
        Row(base, value(compared["base"]["calibrated"]), 0),
        Row(post, value(compared["post"]["calibrated"]), 1),
        Row("Tax_S", value(compared["tax_s"]), 3),
    ]
    caption = f"Calibrated scalability S of both at {compared['budget']} rollouts, and the tax, which is its loss."
    return forest([("", rows)], with_ends, None, 1.0).figure("fig-scalability", caption, "Calibrated scalability")


def routing(numbers: Json) -> Figure:
    """Coverage under every rule, with the whole budget for the chosen policy and at an equal cost."""
    found = numbers["routing"]
    styles = {"base": 0, "post": 1, "random": 5, "tax": 3, "oracle": 4}
    shown = _rule_names(numbers)
    rules = found["routes"]
    groups = [
        (
            f"pass@{found['budget']}, {found['budget']} rollouts of the chosen policy",
            [Row(shown[row["rule"]], exact(row["pass_k"]), styles[row["rule"]]) for row in rules],
        ),
        (
            f"At a cost of {found['budget']} rollouts a task in all",
            [Row(shown[row["rule"]], exact(row["equal_cost"]), styles[row["rule"]]) for row in rules],
        ),
        ("pass@1", [Row(shown[row["rule"]], exact(row["pass_1"]), styles[row["rule"]]) for row in rules]),
    ]
    caption = "Success in percent of tasks under five rules for who gets a task's rollouts."
    canvas = forest(groups, lambda one: percent(one["point"]), (0.0, 100.0))
    return canvas.figure("fig-routing", caption, "Routing rules")


def _rule_names(numbers: Json) -> dict[str, str]:
    base, post = numbers["names"]
    return {"base": f"{base} only", "post": f"{post} only", "random": "random", "tax": "by tax", "oracle": "oracle"}


# Parts of the tax.


def parts(compared: Json) -> Figure:
    """Tax_A as lost + gained + shape, a cascade."""
    rows: list[tuple[str, float, float, Json, str]] = []
    at = 0.0
    for name, key, kind in (
        (f"lost: {compared['tasks_lost']} tasks solved by the base only", "lost", "bar2"),
        (f"gained: {compared['tasks_gained']} solved by the post-trained only", "gained", "bar1"),
        (f"shape: {compared['tasks_both']} solved by both", "shape", "bar3"),
    ):
        step = compared[key]["point"]
        rows.append((name, at, at + step, compared[key], kind))
        at += step
    rows.append(("Tax_A, their sum", 0.0, at, compared["tax_a"], "bar0"))
    low = min(0.0, *(min(first, last) for _, first, last, _, _ in rows))
    high = max(0.0, *(max(first, last) for _, first, last, _, _ in rows))
    low, high = (low, high) if high > low else (low, low + 1.0)
    canvas = Canvas(54 * len(rows) + 8)

    def x(at: float) -> float:
        return 4 + (at - low) / (high - low) * (WIDTH - 8)

    for place, (_, _, last, _, _) in enumerate(rows[:-1]):
        canvas.line(x(last), 34 + 54 * place, x(last), 88 + 54 * place, "link")
    for place, (name, first, last, found, kind) in enumerate(rows):
        y = 4.0 + 54 * place
        told = with_ends(found, 2)
        canvas.text(4, y + 10, name, room=WIDTH - 8)
        canvas.text(4, y + 25, told, "t num")
        start, end = sorted((x(first), x(last)))
        canvas.box(start, y + 30, max(1.5, end - start), 12, kind, f"{name}: {told}")
        canvas.line(x(0), y + 28, x(0), y + 44, "zero")
    caption = "Tax_A in failed attempts, as the parts of the tasks that one policy only or both ever solve."
    return canvas.figure("fig-parts", caption, "Parts of the raw tax")


# Tasks.


def contributions(numbers: Json) -> Figure | None:
    """Every task's part of Tax_S, from the highest to the lowest."""
    rows = numbers["contributions"]
    if not rows:
        return None
    each: list[float] = [row["contribution"] for row in rows]
    low, high = min(0.0, *each), max(0.0, *each)
    margin = 0.05 * ((high - low) or 1.0)
    low, high = low - margin, high + margin
    canvas = Canvas(230)
    top, bottom = 8.0, canvas.height - 22

    def y(part: float) -> float:
        return bottom - (part - low) / (high - low) * (bottom - top)

    for tick in round_ticks(low, high, 5):
        canvas.line(LEFT, y(tick), RIGHT, y(tick), "zero" if abs(tick) < 1e-12 else "grid")
        canvas.text(LEFT - 6, y(tick) + 4, plain(round(tick, 6)), "t soft", "end")
    width = (RIGHT - LEFT) / len(rows)
    if len(rows) <= 400:
        for place, row in enumerate(rows):
            start, end = sorted((y(0), y(row["contribution"])))
            told = f"{row['name']}: {number(row['contribution'])}, {_of(row['base'])} and {_of(row['post'])}"
            kind = "bar2" if row["contribution"] > 0 else "bar1"
            gap = min(1.0, width / 5)
            canvas.box(LEFT + place * width + gap / 2, start, width - gap, max(0.8, end - start), kind, told)
    else:
        outline = [(LEFT + (place + 0.5) * width, y(part)) for place, part in enumerate(each)]
        canvas.path([(LEFT, y(0)), *outline, (RIGHT, y(0))], "bar4", close=True)
        canvas.path(outline, "l c3")
    canvas.text((LEFT + RIGHT) / 2, canvas.height - 4, f"{len(rows)} tasks, the highest first", "t soft", "middle")
    caption = "The tasks' parts of Tax_S, which average to it: above zero a task's retries pay more with the base."
    return canvas.figure("fig-contributions", caption, "Contributions of the tasks")


def _of(counts: Sequence[int]) -> str:
    return f"{counts[0]}/{counts[1]}"


def success_rates(numbers: Json) -> Figure:
    """How many tasks each policy solves how often: sharpened policies solve more tasks never or always."""
    rates = numbers["rates"]
    total = numbers["comparison"]["tasks"]
    canvas = Canvas(260)
    top = 14 + canvas.legend(14, list(zip(numbers["names"], (0, 1), strict=True)))
    bottom = canvas.height - 40
    highest = max(1, *rates["base"], *rates["post"])
    column = (RIGHT - LEFT) / len(rates["bins"])
    for tick in round_ticks(0, 100 * highest / total, 5):
        y = bottom - tick * total / 100 / highest * (bottom - top)
        canvas.line(LEFT, y, RIGHT, y, "grid")
        canvas.text(LEFT - 6, y + 4, plain(round(tick, 6)), "t soft", "end")
    for place, name in enumerate(rates["bins"]):
        left = LEFT + place * column
        for style, (side, kind) in enumerate((("base", "bar2"), ("post", "bar1"))):
            count = rates[side][place]
            height = count / highest * (bottom - top)
            told = f"{numbers['names'][style]}, {name}: {count} of {total} tasks"
            canvas.box(left + 5 + style * (column / 2 - 5), bottom - height, column / 2 - 6, height, kind, told)
        canvas.text(left + column / 2, bottom + 16, name, "t soft", "middle", room=column + 4)
    canvas.text((LEFT + RIGHT) / 2, canvas.height - 6, "of a task's rollouts succeed", "t soft", "middle")
    caption = "Tasks by success rate, in percent of tasks. Sharpening moves tasks to both ends."
    return canvas.figure("fig-rates", caption, "Tasks by success rate")


# Pairs of policies.


def trade(numbers: Json) -> Figure:
    """Coverage lost against efficiency gained, a numbered point a pair."""
    rows = numbers["trade"]
    caption = (
        "Coverage lost (pass@K of the base less the other's) against efficiency gained (mean success rate), in points, "
        "with intervals: up and to the right is sharpening."
    )
    canvas = _scatter(
        [
            (f"{row['base']} → {row['post']}", value(row["efficiency_gained"]), value(row["coverage_lost"]))
            for row in rows
        ],
        ("efficiency gained, points", "coverage lost, points"),
        100.0,
        points_with_ends,
        diagonal=False,
    )
    return canvas.figure("fig-trade", caption, "Coverage lost against efficiency gained")


def early(numbers: Json) -> Figure | None:
    """Tax_S at few rollouts against Tax_S at many, a numbered point a pair."""
    found = numbers["early"]
    if found is None:
        return None
    rows = [
        (name, exact(first), exact(second))
        for name, first, second in found["pairs"]
        if first is not None and second is not None
    ]
    if not rows:
        return None
    axes = (f"Tax_S at {found['early']} rollouts", f"Tax_S at {found['late']}")
    caption = f"Early and late estimates of Tax_S, a point a pair; on the dashed line they agree ({axes[1]} upwards)."
    return _scatter(rows, axes, 1.0, with_ends, diagonal=True).figure("fig-early", caption, "Early estimates")


def _scatter(
    rows: Sequence[tuple[str, Json, Json]],
    axes: tuple[str, str],
    scale: float,
    shown: Callable[[Json], str],
    diagonal: bool,
) -> Canvas:
    """Named points (across, along) with their intervals; the names stand below, numbered.  With a ``diagonal`` both
    axes have one range."""
    ranges = [_range([across for _, across, _ in rows], scale), _range([along for _, _, along in rows], scale)]
    if diagonal:
        ranges = [(min(low for low, _ in ranges), max(high for _, high in ranges))] * 2
    (first, last), (low, high) = ranges
    canvas = Canvas(312 + 16 * len(rows))
    left, right, top, bottom = 44.0, WIDTH - 12.0, 22.0, 262.0

    def x(at: float) -> float:
        return left + (at - first) / (last - first) * (right - left)

    def y(at: float) -> float:
        return bottom - (at - low) / (high - low) * (bottom - top)

    for tick in round_ticks(first, last, 5):
        canvas.line(x(tick), top, x(tick), bottom, "zero" if abs(tick) < 1e-12 else "grid")
        canvas.text(x(tick), bottom + 16, plain(round(tick, 6)), "t soft", "middle")
    for tick in round_ticks(low, high, 5):
        canvas.line(left, y(tick), right, y(tick), "zero" if abs(tick) < 1e-12 else "grid")
        canvas.text(left - 6, y(tick) + 4, plain(round(tick, 6)), "t soft", "end")
    if diagonal:
        canvas.line(x(low), y(low), x(high), y(high), "link")
    canvas.text(0, 10, axes[1], "t soft")
    canvas.text(right, bottom + 32, axes[0], "t soft", "end")
    for place, (name, across, along) in enumerate(rows, start=1):
        px, py = x(scale * across["point"]), y(scale * along["point"])
        for found, horizontal in ((across, True), (along, False)):
            limits = ends_of(found, scale)
            if limits and horizontal:
                canvas.line(x(limits[0]), py, x(limits[1]), py, "thin c3")
            elif limits:
                canvas.line(px, y(limits[0]), px, y(limits[1]), "thin c3")
        canvas.marker(px, py, 3, f"{name}: {axes[0]} {shown(across)}; {axes[1]} {shown(along)}", 5)
        canvas.text(px + 8, py - 6, str(place), "t head")
        canvas.text(left, bottom + 50 + 16 * (place - 1), f"{place} {name}", room=WIDTH - left)
    return canvas


def _range(values: Sequence[Json], scale: float) -> tuple[float, float]:
    """From the least to the greatest point or end of an interval, zero among them, and a margin."""
    ends = [0.0]
    for found in values:
        ends += [scale * found["point"], *(ends_of(found, scale) or ())]
    low, high = min(ends), max(ends)
    margin = 0.07 * ((high - low) or 1.0)
    return low - margin, high + margin
