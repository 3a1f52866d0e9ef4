"""The page of the sharpening tax, with a twin in JSON of every number beside it (:mod:`handoff.report.html`)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from handoff.report import format, html
from handoff.report.format import Json
from handoff.report.tax import figures, sentences, tables

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


def write(numbers: Json, path: Path, inputs: Collection[Path] = ()) -> tuple[Path, Path]:
    """Write the page of :func:`handoff.report.tax.document.document` to ``path`` (``tax.html`` in it, if it is a folder)
    and its twin beside it, over none of ``inputs``.  Returns both paths; raises as :mod:`handoff.report.html` does."""
    return html.write(render(numbers), numbers, path, NAME, inputs)


def render(numbers: Json) -> str:
    """The page as text.  Raises :class:`~handoff.errors.UsageError` if jinja2 is missing."""
    compared = numbers["comparison"]
    style, script = html.template("page.css"), html.template("save.js")
    return html.render(
        "tax.html.j2",
        numbers=numbers,
        compared=compared,
        title=format.arrow(numbers["names"]),
        sections=SECTIONS,
        tables=tables.sections(numbers),
        figures=figures.figures(numbers),
        headline=_headline(numbers),
        sources=[
            (style, name, sentences.source(compared[side]))
            for style, (side, name) in enumerate(zip(("base", "post"), numbers["names"], strict=True))
        ],
        style=style,
        script=script,
        style_digest=html.digest(style),
        script_digest=html.digest(script),
    )


def _headline(numbers: Json) -> list[Json]:
    """The cards at the top."""
    compared, (base, post) = numbers["comparison"], numbers["names"]
    k, one, other = compared["budget"], compared["base"], compared["post"]
    crossing = compared["crossover"]
    return [
        _card(
            "Sharpening tax Tax_S",
            sentences.number(compared["tax_s"]["point"]),
            "",
            sentences.ends(compared["tax_s"]),
            sentences.value(compared["tax_s"])["note"],
            f"S({k}): {sentences.number(one['calibrated']['point'])} for {base}, "
            f"{sentences.number(other['calibrated']['point'])} for {post}",
        ),
        _card(
            "Raw tax Tax_A",
            sentences.number(compared["tax_a"]["point"], 2),
            " attempts",
            sentences.ends(compared["tax_a"], 2),
            None,
            f"A({k}): {sentences.number(one['scalability']['point'], 2)} for {base}, "
            f"{sentences.number(other['scalability']['point'], 2)} for {post}",
        ),
        _card(
            "Efficiency gained",
            format.points(compared["efficiency_gained"]["point"]),
            " points",
            format.interval(compared["efficiency_gained"]),
            None,
            f"pass@1: {format.percent(one['pass_at_k'][0])} for {base}, "
            f"{format.percent(other['pass_at_k'][0])} for {post}",
        ),
        _card(
            "Coverage lost",
            format.points(compared["coverage_lost"]["point"]),
            " points",
            format.interval(compared["coverage_lost"]),
            None,
            f"pass@{k}: {format.percent(one['coverage']['point'])} for {base}, "
            f"{format.percent(other['coverage']['point'])} for {post}",
        ),
        _card(
            "Base overtakes",
            "never" if crossing is None else f"k = {crossing}",
            "",
            "",
            None,
            f"first k where {base}'s pass@k is greater; ahead within {k} in "
            f"{format.percent(compared['crossed_share'])} of the draws",
        ),
    ]


def _card(name: str, figure: str, unit: str, shown: str, note: str | None, told: str) -> Json:
    return {"name": name, "figure": figure, "unit": unit, "interval": shown, "note": note, "told": told}
