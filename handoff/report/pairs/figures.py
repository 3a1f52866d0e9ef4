"""The figures of many pairs.  Bases have style 0 and post-trained policies style 1, everywhere."""

from __future__ import annotations

from itertools import groupby

from handoff.report import plots
from handoff.report.format import arrow, decimal_with_interval, gap_with_interval, rate_with_interval
from handoff.report.pairs.tables import numbered
from handoff.report.pairs.values import PairsDocument
from handoff.report.plots import Dot, Figure, Mark
from handoff.report.tax.figures import curves, early, series
from handoff.report.tax.values import measure


def figures(document: PairsDocument) -> dict[str, list[Figure]]:
    """The figures of every section; an empty list where there is nothing to draw."""
    told = early(document.early)
    return {
        "pairs": [taxes(document)],
        "signs": [],
        "curves": [pass_at(document), pass_hat(document)],
        "trade": [trade(document)],
        "recovered": [recovered(document)] if document.lost_then_solved else [],
        "early": [] if told is None else [told],
        "routing": [] if document.pairs[0].routing is None else [routing(document)],
    }


def taxes(document: PairsDocument) -> Figure:
    """Tax_S of every pair."""
    groups = [
        (benchmark, [Mark(f"{place} {row.name}", measure(row.tax_s), 3) for place, row in group])
        for benchmark, group in groupby(numbered(document), key=lambda one: one[1].benchmark)
    ]
    canvas = plots.forest(groups, decimal_with_interval, scale=1.0)
    caption = f"Tax_S at K = {document.budget} of every pair; above zero post-training took from retries."
    return canvas.figure("fig-taxes", "Sharpening tax of every pair", caption)


def pass_at(document: PairsDocument) -> Figure:
    """Mean pass@k of the bases and of the post-trained policies, and where the first overtake."""
    means = document.means
    sides = (("bases", means.base), ("post-trained", means.post))
    lines = [series(name, style, one.pass_at_k, one.pass_at_k_band) for style, (name, one) in enumerate(sides)]
    at = means.crossing.k
    words = f"; at the dashed line (k = {at}) the bases first cover more" if at is not None else ""
    caption = f"Mean pass@k in percent of tasks{words}. Bands are pointwise intervals over pairs and tasks."
    return curves(lines, at).figure("fig-pass-at", "Mean pass@k of bases and post-trained policies", caption)


def pass_hat(document: PairsDocument) -> Figure:
    """Mean pass^k of both."""
    sides = (("bases", document.means.base), ("post-trained", document.means.post))
    lines = [series(name, style, one.pass_hat_k, one.pass_hat_k_band) for style, (name, one) in enumerate(sides)]
    caption = "Mean pass^k in percent of tasks: all of k rollouts succeed. Bands as above."
    return curves(lines).figure("fig-pass-hat", "Mean pass^k of bases and post-trained policies", caption)


def trade(document: PairsDocument) -> Figure:
    """Coverage lost against efficiency gained, a numbered point per pair."""
    dots = [Dot(row.name, measure(row.efficiency_gained), measure(row.coverage_lost)) for row in document.pairs]
    canvas = plots.scatter(dots, ("efficiency gained", "coverage lost"), gap_with_interval, unit=", points")
    caption = (
        f"Coverage lost (pass@{document.budget} of the base less the other's) against efficiency gained (mean success "
        "rate), in points, with intervals: up and to the right is sharpening."
    )
    return canvas.figure("fig-trade", "Coverage lost against efficiency gained", caption)


def recovered(document: PairsDocument) -> Figure:
    """The share of lost tasks that another policy solves."""
    groups = [
        (
            f"{base}, {benchmark}" if benchmark else base,
            [Mark(arrow((row.loser, row.solver)), measure(row.share), 1) for row in group],
        )
        for (benchmark, base), group in groupby(document.lost_then_solved, key=lambda row: (row.benchmark, row.base))
    ]
    canvas = plots.forest(groups, rate_with_interval, (0, 100))
    caption = "Of the tasks that the base solves and the first policy loses, the percentage that the second solves."
    return canvas.figure("fig-recovered", "Lost, then solved", caption)


def routing(document: PairsDocument) -> Figure:
    """What the tax rule gains over the post-trained policy alone."""
    groups = [
        (
            benchmark,
            [
                Mark(f"{place} {row.name}", measure(row.routing.over_post), 3)
                for place, row in group
                if row.routing is not None
            ],
        )
        for benchmark, group in groupby(numbered(document), key=lambda one: one[1].benchmark)
    ]
    canvas = plots.forest(groups, gap_with_interval)
    caption = f"pass@{document.budget} by tax less that of the post-trained policy alone, in points."
    return canvas.figure("fig-routing", "What routing by tax gains", caption)
