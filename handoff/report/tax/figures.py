"""The figures of the sharpening tax.  The base policy has style 0 and the post-trained one style 1, everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from handoff.passk.comparison import TaxComparison
from handoff.passk.early import EarlyEstimate
from handoff.passk.estimators import TaxEstimate
from handoff.report import plots
from handoff.report.format import (
    Measure,
    arrow,
    decimal,
    decimal_with_interval,
    gap_with_interval,
    percent,
    rate_with_interval,
)
from handoff.report.plots import Axes, Canvas, Dot, Figure, Mark, Part, Series
from handoff.report.tax.tables import rule_names
from handoff.report.tax.values import TaxDocument, measure

#: Tasks that have a bar each; more are drawn as one outline.
MOST_BARS = 400


def figures(document: TaxDocument) -> dict[str, list[Figure]]:
    """The figures of every section; an empty list where there is nothing to draw."""
    every: dict[str, list[Figure | None]] = {
        "curves": [pass_at(document), pass_hat(document)],
        "scalability": [scalability(document), by_budget(document.comparison)],
        "parts": [parts(document.comparison)],
        "tasks": [contributions(document), success_rates(document)],
        "trade": [trade(document)],
        "early": [early(document.early)],
        "routing": [routing(document)],
    }
    return {section: [figure for figure in some if figure is not None] for section, some in every.items()}


def series(name: str, style: int, points: Sequence[float], bands: Sequence[tuple[float, float]]) -> Series:
    """A curve over k = 1 ... K with its band."""
    both = enumerate(zip(points, bands, strict=True), start=1)
    return Series(name, style, [(k, Measure(None, point, *ends)) for k, (point, ends) in both])


def curves(lines: Sequence[Series], dashed: int | None = None) -> Canvas:
    """Curves over k in percent, with a vertical line at ``dashed``."""
    return plots.curves(
        lines, rate_with_interval, y=(0, 100), below="rollouts k", at="at k = {}", log=True, dashed=dashed
    )


def pass_at(document: TaxDocument) -> Figure:
    """pass@k of both, and where the base overtakes."""
    crossing = document.comparison.crossover
    words = f"; at the dashed line (k = {crossing}) {document.names[0]} first covers more" if crossing else ""
    caption = f"pass@k in percent of tasks, at least one of k rollouts succeeds{words}. Bands are pointwise intervals."
    lines = [series(name, style, one.pass_at_k, one.pass_at_k_band) for style, (name, one) in enumerate(document.sides)]
    return curves(lines, crossing).figure("fig-pass-at", "pass@k of both policies", caption)


def pass_hat(document: TaxDocument) -> Figure:
    """pass^k of both."""
    caption = "pass^k in percent of tasks: all of k rollouts succeed. Bands are pointwise intervals."
    lines = [
        series(name, style, one.pass_hat_k, one.pass_hat_k_band) for style, (name, one) in enumerate(document.sides)
    ]
    return curves(lines).figure("fig-pass-hat", "pass^k of both policies", caption)


def by_budget(compared: TaxComparison) -> Figure | None:
    """Tax_S at every budget from 2."""
    points = [(k, measure(tax)) for k, tax in enumerate(compared.tax_s_by_k, start=1) if tax.point is not None]
    if len(points) < 2:
        return None
    canvas = plots.curves(
        [Series("Tax_S", 3, points)], decimal_with_interval, below="rollouts k", at="at k = {}", scale=1.0, log=True,
        legend=False,
    )  # fmt: skip
    caption = "The sharpening tax Tax_S at every budget of k rollouts; above zero retries lost. The band is pointwise."
    return canvas.figure("fig-tax-by-budget", "Sharpening tax by budget", caption)


def scalability(document: TaxDocument) -> Figure:
    """S of both and its difference."""
    marks = [Mark(name, measure(one.calibrated), style) for style, (name, one) in enumerate(document.sides)]
    marks.append(Mark("Tax_S", measure(document.comparison.tax_s), 3))
    caption = (
        f"Calibrated scalability S of both at {document.comparison.budget} rollouts, and the tax, which is its loss."
    )
    canvas = plots.forest([("", marks)], decimal_with_interval, scale=1.0)
    return canvas.figure("fig-scalability", "Calibrated scalability", caption)


def routing(document: TaxDocument) -> Figure:
    """Coverage under every rule, with the whole budget for the chosen policy and at an equal cost."""
    k, rules = document.routing.budget, document.routing.routes
    names, styles = rule_names(document), {"base": 0, "post": 1, "random": 5, "tax": 3, "oracle": 4}

    def marks(rates: Sequence[float | None]) -> list[Mark]:
        both = zip(rules, rates, strict=True)
        return [Mark(names[row.rule], Measure(None, point), styles[row.rule]) for row, point in both]

    groups = [
        (f"pass@{k}, {k} rollouts of the chosen policy", marks([row.pass_k for row in rules])),
        (f"At a cost of {k} rollouts per task in all", marks([row.equal_cost for row in rules])),
        ("pass@1", marks([row.pass_1 for row in rules])),
    ]
    caption = "Success in percent of tasks under five rules for who gets a task's rollouts."
    canvas = plots.forest(groups, lambda value: percent(value.point), (0, 100))
    return canvas.figure("fig-routing", "Routing rules", caption)


def parts(compared: TaxComparison) -> Figure:
    """Tax_A as lost + gained + shape, a cascade."""

    def part(name: str, estimate: TaxEstimate, kind: str, total: bool = False) -> Part:
        return Part(name, estimate.point or 0.0, decimal_with_interval(estimate, 2), kind, total)

    canvas = plots.cascade(
        [
            part(f"lost: {compared.tasks_lost} tasks, base only", compared.lost, "bar2"),
            part(f"gained: {compared.tasks_gained}, post-trained only", compared.gained, "bar1"),
            part(f"shape: {compared.tasks_both} solved by both", compared.shape, "bar3"),
            part("Tax_A, their sum", compared.tax_a, "bar0", total=True),
        ]
    )
    caption = "Tax_A in failed attempts, as the parts of the tasks that one policy only or both ever solve."
    return canvas.figure("fig-parts", "Parts of the raw tax", caption)


def contributions(document: TaxDocument) -> Figure | None:
    """Every task's part of Tax_S, from the highest to the lowest."""
    rows = document.contributions
    if not rows:
        return None
    canvas = Canvas(230)
    heights = plots.range_of([Measure(None, row.contribution) for row in rows], 1.0, 0.05)
    axes = Axes(canvas, (0, len(rows)), heights, top=8, foot=22)
    axes.rows()
    if len(rows) <= MOST_BARS:
        inset = min(0.5, (axes.right - axes.left) / len(rows) / 10)
        for place, row in enumerate(rows):
            (c, n), (d, m) = row.base, row.post
            title = f"{row.name}: {decimal(row.contribution, 3)}, {c}/{n} and {d}/{m}"
            kind = "bar2" if row.contribution > 0 else "bar1"
            axes.box(place, place + 1, row.contribution, kind, title, inset)
    else:
        outline = axes.places((place + 0.5, row.contribution) for place, row in enumerate(rows))
        canvas.path([(axes.left, axes.y(0)), *outline, (axes.right, axes.y(0))], "bar4", close=True)
        canvas.path(outline, "l c3")
    axes.below(f"{len(rows)} tasks, the highest first", 18)
    caption = "The tasks' parts of Tax_S, which average to it: above zero a task's retries pay more with the base."
    return canvas.figure("fig-contributions", "Contributions of the tasks", caption)


def success_rates(document: TaxDocument) -> Figure:
    """How many tasks each policy solves how often: sharpened policies solve more tasks never or always."""
    rates, total = document.rates, document.comparison.tasks
    canvas = Canvas(260)
    top = canvas.legend(zip(document.names, (0, 1), strict=True), lines=False)
    axes = Axes(canvas, (0, len(rates.bins)), (0, 100 * max(1, *rates.base, *rates.post) / total), top=top, foot=40)
    axes.rows()
    for place, name in enumerate(rates.bins):
        for policy, count, left, kind in zip(
            document.names, (rates.base[place], rates.post[place]), (0.08, 0.5), ("bar2", "bar1"), strict=True
        ):
            title = f"{policy}, {name}: {count} of {total} tasks"
            axes.box(place + left, place + left + 0.42, 100 * count / total, kind, title, 0.5)
        room = (axes.right - axes.left) / len(rates.bins) + 4
        canvas.text(axes.x(place + 0.5), axes.bottom + 16, name, "t soft", "middle", room=room)
    axes.below("of a task's rollouts succeed", 34)
    caption = "Tasks by success rate, in percent of tasks. Sharpening moves tasks to both ends."
    return canvas.figure("fig-rates", "Tasks by success rate", caption)


def trade(document: TaxDocument) -> Figure:
    """Coverage lost against efficiency gained, a numbered point per pair."""
    dots = [
        Dot(arrow((row.base, row.post)), measure(row.efficiency_gained), measure(row.coverage_lost))
        for row in document.trade
    ]
    canvas = plots.scatter(dots, ("efficiency gained", "coverage lost"), gap_with_interval, unit=", points")
    caption = (
        "Coverage lost (pass@K of the base less the other's) against efficiency gained (mean success rate), in points, "
        "with intervals: up and to the right is sharpening."
    )
    return canvas.figure("fig-trade", "Coverage lost against efficiency gained", caption)


def early(one: EarlyEstimate | None) -> Figure | None:
    """Tax_S at few rollouts against Tax_S at many others, a numbered point per pair."""
    if one is None:
        return None
    dots = [
        Dot(name, Measure(None, first), Measure(None, second))
        for name, first, second in one.pairs
        if first is not None and second is not None
    ]
    if not dots:
        return None
    names = (f"Tax_S at {one.early} rollouts", f"Tax_S at {one.late} others")
    caption = (
        f"Early and late estimates of Tax_S from different rollouts, means over splits, a point per pair; on the "
        f"dashed line they agree ({names[1]} upwards)."
    )
    canvas = plots.scatter(dots, names, decimal_with_interval, scale=1.0, diagonal=True)
    return canvas.figure("fig-early", "Early estimates", caption)
