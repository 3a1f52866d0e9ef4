"""The report of the sharpening tax, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from handoff.passk.estimators import TaxEstimate
from handoff.passk.tax import PAPER
from handoff.report import html
from handoff.report.format import arrow, decimal, interval, numbered_as_in, percent, points
from handoff.report.sheet import Card, Content, Fact, Section
from handoff.report.tax import figures, sentences, tables
from handoff.report.tax.values import TaxDocument

NAME = "tax.html"

#: Sections in order: name, heading, and its short form.
SECTIONS = (
    ("curves", "Coverage and consistency", "Curves"),
    ("scalability", "What retries gain", "Scalability"),
    ("parts", "Where the raw tax comes from", "Parts"),
    ("tasks", "Which tasks pay", "Tasks"),
    ("trade", "Coverage lost, efficiency gained", "Trade-off"),
    ("early", "Told early", "Early estimate"),
    ("routing", "Who should get a task's rollouts", "Routing"),
)

CURVES = (
    "pass@k and pass^k are unbiased averages over all k of a task's rollouts. A(K) is the sum over k < K of pass@K "
    "less pass@k; S(K) divides it by (K−1)(1 − pass@1). At K = n the coverage of a task is 0 or 1, so the last point "
    "of a curve is its noisiest."
)


def write(document: TaxDocument, path: Path, inputs: Collection[Path] = ()) -> tuple[Path, Path]:
    """Write the page to ``path`` (``tax.html`` in it, if it is a folder) and its twin beside it, over none of
    ``inputs``.  Returns both paths; raises as :func:`handoff.report.html.write` does."""
    return html.write(render(document), document.to_json(), path, NAME, inputs)


def render(document: TaxDocument) -> str:
    """The page as text."""
    return html.render(content(document), document.to_json(), name=NAME)


def content(document: TaxDocument) -> Content:
    """The report in sheets, figures and sentences."""
    compared, words = document.comparison, document.sentences
    sheets_of, drawn = tables.sheets(document), figures.figures(document)
    title, size = arrow(document.names), f"{compared.tasks} tasks, K = {compared.budget} rollouts"
    return Content(
        heading="What did post-training take from retries?",
        title=title,
        kicker=f"Sharpening tax · {title} · {size}",
        verdict=" ".join(words["verdict"]),
        cards=_cards(document),
        sections=[
            Section(name, heading, short, words[name], sheets_of[name], drawn[name])
            for name, heading, short in SECTIONS
        ],
        facts=[
            Fact("Tasks", f"{compared.tasks}, of equal weight, the same for both policies"),
            Fact("Budget", f"K = {compared.budget} rollouts per task"),
            *(Fact(name, sentences.source(side), style) for style, (name, side) in enumerate(document.sides)),
        ],
        notes=[*words["intervals"], CURVES, numbered_as_in(PAPER)],
    )


def _cards(document: TaxDocument) -> list[Card]:
    one, (base, post) = document.comparison, document.names
    k, before, after = one.budget, one.base, one.post

    def sides(name: str, first: str, second: str) -> str:
        return f"{name}: {first} for {base}, {second} for {post}"

    def decimals(first: TaxEstimate, second: TaxEstimate, digits: int) -> tuple[str, str]:
        return decimal(first.point, digits), decimal(second.point, digits)

    return [
        Card(
            "Sharpening tax Tax_S",
            decimal(one.tax_s.point, 3),
            interval=interval(one.tax_s, 1.0, 3),
            note=one.tax_s.reason or one.tax_s.interval_reason,
            about=sides(f"S({k})", *decimals(before.calibrated, after.calibrated, 3)),
        ),
        Card(
            "Raw tax Tax_A",
            decimal(one.tax_a.point, 2),
            " attempts",
            interval(one.tax_a, 1.0, 2),
            about=sides(f"A({k})", *decimals(before.scalability, after.scalability, 2)),
        ),
        Card(
            "Efficiency gained",
            points(one.efficiency_gained.point),
            " points",
            interval(one.efficiency_gained),
            about=sides("pass@1", percent(before.pass_at_k[0]), percent(after.pass_at_k[0])),
        ),
        Card(
            "Coverage lost",
            points(one.coverage_lost.point),
            " points",
            interval(one.coverage_lost),
            about=sides(f"pass@{k}", percent(before.coverage.point), percent(after.coverage.point)),
        ),
        Card(
            "Base overtakes",
            "never" if one.crossover is None else f"k = {one.crossover}",
            about=f"first k where {base}'s pass@k is greater; ahead within {k} in "
            f"{percent(one.crossed_share)} of the draws",
        ),
    ]
