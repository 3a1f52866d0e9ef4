"""The sheets of the sharpening tax."""

from __future__ import annotations

import attrs

from handoff.passk.comparison import Contribution
from handoff.passk.early import EarlyEstimate
from handoff.passk.estimators import TaxEstimate
from handoff.passk.routing import RoutedCoverage
from handoff.report import sheet
from handoff.report.format import Measure, arrow, decimal, interval, percent
from handoff.report.sheet import EMPTY, Sheet, SheetCell, SheetRow
from handoff.report.tax.values import TaxDocument, budgets, measure


def sheets(document: TaxDocument) -> dict[str, list[Sheet]]:
    """The sheets of every section; an empty list where there is nothing to show."""
    return {
        "curves": [curves(document)],
        "scalability": [at_budget(document), by_budget(document)],
        "parts": [parts(document)],
        "tasks": [*extremes(document), rates(document)],
        "trade": [trade(document)],
        "early": early(document.early),
        "routing": [routing(document), *routed(document)],
    }


def quantity(estimate: TaxEstimate, digits: int = 3) -> SheetCell:
    return _flagged(sheet.quantity(measure(estimate), digits), estimate)


def rate(estimate: TaxEstimate) -> SheetCell:
    return _flagged(sheet.rate(measure(estimate)), estimate)


def gap(estimate: TaxEstimate) -> SheetCell:
    return _flagged(sheet.gap(measure(estimate)), estimate)


def _flagged(cell: SheetCell, estimate: TaxEstimate) -> SheetCell:
    """An interval without width is no sign of certainty."""
    return attrs.evolve(cell, counts="all draws alike") if estimate.degenerate else cell


def curves(document: TaxDocument) -> Sheet:
    sides = [policy for _, policy in document.sides]
    rows = []
    for k in budgets(document.comparison.budget):
        at_k = [(side.pass_at_k[k - 1], side.pass_at_k_band[k - 1]) for side in sides]
        hat_k = [(side.pass_hat_k[k - 1], side.pass_hat_k_band[k - 1]) for side in sides]
        cells = (sheet.rate(Measure(None, point, *ends)) for point, ends in (*at_k, *hat_k))
        rows.append(SheetRow(str(k), tuple(cells)))
    columns = ("k", *(f"{metric} {name}" for metric in ("pass@k", "pass^k") for name in document.names))
    return Sheet("Success of k rollouts, in percent of tasks", columns, tuple(rows))


def at_budget(document: TaxDocument) -> Sheet:
    one, base, post = document.comparison, document.comparison.base, document.comparison.post
    raw = (quantity(base.scalability, 2), quantity(post.scalability, 2), quantity(one.tax_a, 2))
    rows = (
        SheetRow("raw scalability A", raw),
        SheetRow("calibrated S", (quantity(base.calibrated), quantity(post.calibrated), quantity(one.tax_s))),
        SheetRow("coverage pass@K", (rate(base.coverage), rate(post.coverage), gap(one.coverage_lost))),
        SheetRow("budget-averaged coverage", (rate(base.mean_coverage), rate(post.mean_coverage), EMPTY)),
    )
    title = f"At K = {one.budget} rollouts; the tax is the base less the other, coverage lost in points"
    return Sheet(title, ("", *document.names, "tax"), rows)


def by_budget(document: TaxDocument) -> Sheet:
    taxes = list(zip(document.comparison.tax_a_by_k, document.comparison.tax_s_by_k, strict=True))
    rows = []
    for k in budgets(document.comparison.budget)[1:]:
        raw, calibrated = taxes[k - 1]
        rows.append(SheetRow(str(k), (quantity(raw, 2), quantity(calibrated))))
    return Sheet("The tax by budget", ("k", "Tax_A", "Tax_S"), tuple(rows))


def parts(document: TaxDocument) -> Sheet:
    one, (base, post) = document.comparison, document.names
    total = f"of {one.tasks}"
    rows = (
        SheetRow(f"lost: {base} only", (SheetCell(str(one.tasks_lost), total), quantity(one.lost, 2))),
        SheetRow(f"gained: {post} only", (SheetCell(str(one.tasks_gained), total), quantity(one.gained, 2))),
        SheetRow("shape: both", (SheetCell(str(one.tasks_both), total), quantity(one.shape, 2))),
        SheetRow("Tax_A", (EMPTY, quantity(one.tax_a, 2)), divided=True),
        SheetRow("K × gap of coverage", (EMPTY, quantity(one.ceiling, 2)), divided=True),
        SheetRow("less K × gap of averaged coverage", (EMPTY, quantity(one.averaged, 2))),
    )
    return Sheet("Tax_A by who ever solves a task (Table 6) and by Eq. 8", ("part", "tasks", "Tax_A"), rows)


def extremes(document: TaxDocument) -> list[Sheet]:
    columns = ("task", "part of Tax_S", *(f"{name}, c/n" for name in document.names))
    return [
        Sheet(f"The {title} parts of Tax_S", columns, tuple(map(_contribution, rows)))
        for title, rows in (("highest", document.comparison.highest), ("lowest", document.comparison.lowest))
        if rows
    ]


def _contribution(row: Contribution) -> SheetRow:
    counts = (SheetCell(f"{c}/{n}") for c, n in (row.base, row.post))
    return SheetRow(row.name, (SheetCell(decimal(row.contribution, 3)), *counts))


def rates(document: TaxDocument) -> Sheet:
    each, total = document.rates, document.comparison.tasks
    rows = tuple(
        SheetRow(name, tuple(SheetCell(percent(count / total), str(count)) for count in counts))
        for name, *counts in zip(each.bins, each.base, each.post, strict=True)
    )
    return Sheet("Tasks by their success rate", ("successes", *document.names), rows)


def trade(document: TaxDocument) -> Sheet:
    rows = tuple(
        SheetRow(
            f"{place} {arrow((row.base, row.post))}",
            (SheetCell(str(row.budget)), gap(row.efficiency_gained), gap(row.coverage_lost), quantity(row.tax_s)),
        )
        for place, row in enumerate(document.trade, start=1)
    )
    columns = ("pair", "K", "efficiency gained", "coverage lost", "Tax_S")
    return Sheet("What was lost in coverage and gained in efficiency, in points", columns, rows)


def early(one: EarlyEstimate | None) -> list[Sheet]:
    """Early and late taxes of every pair, and their rank correlation."""
    if one is None:
        return []
    rows = [
        SheetRow(f"{place} {name}", (SheetCell(decimal(first, 3)), SheetCell(decimal(second, 3))))
        for place, (name, first, second) in enumerate(one.pairs, start=1)
    ]
    over_splits = Measure(None, one.rho, one.low, one.high, note=one.reason)
    over_pairs = Measure(None, one.rho, one.pairs_low, one.pairs_high)
    rows += [
        SheetRow("rank correlation, over splits", (sheet.quantity(over_splits, 2), EMPTY), divided=True),
        SheetRow("over splits and pairs", (SheetCell("", interval=interval(over_pairs, 1.0, 2)), EMPTY)),
        SheetRow("of the same rollouts (foretells nothing)", (SheetCell(decimal(one.rho_of_same_rollouts, 2)), EMPTY)),
    ]
    columns = ("pair", f"Tax_S({one.early})", f"Tax_S({one.late})")
    return [Sheet("Early and late estimates, from different rollouts", columns, tuple(rows))]


def routing(document: TaxDocument) -> Sheet:
    routed, rules, k = document.routing, rule_names(document), document.routing.budget
    rows = tuple(
        SheetRow(
            rules[row.rule],
            (
                SheetCell(percent(row.pass_1)),
                SheetCell(percent(row.pass_k), f"±{100 * row.deviation:.1f}" if row.deviation else ""),
                SheetCell(percent(row.to_base)),
                SheetCell(str(row.rollouts)),
                SheetCell(percent(row.equal_cost), note=row.reason),
            ),
        )
        for row in routed.routes
    )
    title = (
        f"Routing: rules for who gets a task's {k} rollouts; pilots of {routed.pilot}, cost in rollouts per task, and "
        f"the coverage that {k} rollouts in all would buy"
    )
    return Sheet(title, ("rule", "pass@1", f"pass@{k}", "to base", "cost", "equal cost"), rows)


#: Headings of :func:`routing_gains`.
ROUTING_GAINS = ("less base", "less post", "less random", "less post, equal cost")


def routing_gains(one: RoutedCoverage) -> tuple[SheetCell, ...]:
    """What the tax rule gains over other rules, in points."""
    equal = one.equal_cost_over_post
    return (*map(gap, (one.over_base, one.over_post, one.over_random)), EMPTY if equal is None else gap(equal))


def routed(document: TaxDocument) -> list[Sheet]:
    """The coverage of the tax rule with intervals, where it is wanted."""
    one = document.routed
    if one is None:
        return []
    row = SheetRow("by tax", (rate(one.tax), *routing_gains(one)))
    title = f"pass@{one.budget} by tax, and less that of other rules in points, with intervals over tasks"
    return [Sheet(title, ("rule", f"pass@{one.budget}", *ROUTING_GAINS), (row,))]


def rule_names(document: TaxDocument) -> dict[str, str]:
    base, post = document.names
    return {"base": f"{base} only", "post": f"{post} only", "random": "random", "tax": "by tax", "oracle": "oracle"}
