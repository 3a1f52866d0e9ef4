"""The report of many pairs, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from handoff.report import html
from handoff.report.format import decimal, interval, percent, plural, points
from handoff.report.pairs import figures, tables
from handoff.report.pairs.sentences import crossing_words
from handoff.report.pairs.values import PairsDocument
from handoff.report.sheet import Card, Content, Fact, Section
from handoff.report.tax.page import CURVES, NAME

#: Sections in order: name, heading, and its short form.
SECTIONS = (
    ("pairs", "Pair by pair", "Pairs"),
    ("signs", "How often", "Signs"),
    ("curves", "Mean curves, and where they cross", "Means"),
    ("trade", "Coverage lost, efficiency gained", "Trade-off"),
    ("recovered", "Lost, then solved", "Lost, then solved"),
    ("early", "Told early", "Early estimate"),
    ("routing", "Who should get a task's rollouts", "Routing"),
)


def write(document: PairsDocument, path: Path, inputs: Collection[Path] = ()) -> tuple[Path, Path]:
    """Write the page to ``path`` (``tax.html`` in it, if it is a folder) and its twin beside it, over none of
    ``inputs``.  Returns both paths; raises as :func:`handoff.report.html.write` does."""
    return html.write(render(document), document.to_json(), path, NAME, inputs)


def render(document: PairsDocument) -> str:
    """The page as text."""
    return html.render(content(document), document.to_json(), name=NAME)


def content(document: PairsDocument) -> Content:
    """The report in sheets, figures and sentences."""
    words, means = document.sentences, document.means
    sheets_of, drawn = tables.sheets(document), figures.figures(document)
    title = plural(len(document.pairs), "pair")
    return Content(
        heading="What did post-training take from retries?",
        title=title,
        kicker=f"Sharpening tax · {title} of {plural(means.bases, 'base')} · K = {document.budget} rollouts",
        verdict=" ".join(words["verdict"]),
        cards=_cards(document),
        sections=[
            Section(name, heading, short, words.get(name, ()), sheets_of[name], drawn[name])
            for name, heading, short in SECTIONS
        ],
        facts=[
            Fact("Pairs", f"{title} of {plural(means.bases, 'base evaluation')}"),
            *(
                Fact(name, ", ".join(values))
                for name, values in (
                    ("Families", dict.fromkeys(row.family for row in document.pairs if row.family)),
                    ("Benchmarks", dict.fromkeys(row.benchmark for row in document.pairs if row.benchmark)),
                )
                if values
            ),
            Fact("Budget", f"K = {document.budget} rollouts per task, in every pair"),
        ],
        notes=[*words["intervals"], CURVES],
    )


def _cards(document: PairsDocument) -> list[Card]:
    means, every, k = document.means, document.signs[0], document.budget
    crossing = means.crossing
    text, _, ends = crossing_words(crossing, k).partition(" ")
    return [
        Card(
            "Pairs with Tax_S above zero",
            f"{every.tax_s.positive} of {every.tax_s.pairs}",
            about=f"resolved in {every.tax_s.above}; below zero in {every.tax_s.negative}",
        ),
        Card(
            "Mean Tax_S",
            decimal(means.tax_s.point, 3),
            interval=interval(means.tax_s, 1.0, 3),
            note=means.tax_s.reason or means.tax_s.interval_reason,
            about=f"Tax_A {decimal(means.tax_a.point, 2)} attempts {interval(means.tax_a, 1.0, 2)}".strip(),
        ),
        Card(
            "Efficiency gained",
            points(means.efficiency_gained.point),
            " points",
            interval(means.efficiency_gained),
            about=f"mean pass@1: {percent(means.base.pass_at_k[0])} and {percent(means.post.pass_at_k[0])}",
        ),
        Card(
            "Coverage lost",
            points(means.coverage_lost.point),
            " points",
            interval(means.coverage_lost),
            about=f"mean pass@{k}: {percent(means.base.pass_at_k[-1])} and {percent(means.post.pass_at_k[-1])}",
        ),
        Card(
            "Mean curves cross",
            "never" if crossing.k is None else f"k = {text}",
            interval="" if crossing.k is None else ends,
            about=f"the bases overtake in {every.overtaken} of {every.pairs} pairs",
        ),
    ]
