"""The page of the sharpening tax, with a twin in JSON of every number beside it (:mod:`handoff.report.html`)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from handoff.report import html, tax_figures, tax_tables, tax_wording, wording
from handoff.report.wording import Json

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
    """Write the page of :func:`handoff.report.tax_numbers.document` to ``path`` (``tax.html`` in it, if it is a folder)
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
        title=wording.arrow(numbers["names"]),
        sections=SECTIONS,
        tables=tax_tables.sections(numbers),
        figures=tax_figures.figures(numbers),
        headline=_headline(numbers),
        sources=[
            (style, name, tax_wording.source(compared[side]))
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
            tax_wording.number(compared["tax_s"]["point"]),
            "",
            tax_wording.ends(compared["tax_s"]),
            tax_wording.value(compared["tax_s"])["note"],
            f"S({k}): {tax_wording.number(one['calibrated']['point'])} for {base}, "
            f"{tax_wording.number(other['calibrated']['point'])} for {post}",
        ),
        _card(
            "Raw tax Tax_A",
            tax_wording.number(compared["tax_a"]["point"], 2),
            " attempts",
            tax_wording.ends(compared["tax_a"], 2),
            None,
            f"A({k}): {tax_wording.number(one['scalability']['point'], 2)} for {base}, "
            f"{tax_wording.number(other['scalability']['point'], 2)} for {post}",
        ),
        _card(
            "Efficiency gained",
            wording.points(compared["efficiency_gained"]["point"]),
            " points",
            wording.interval(compared["efficiency_gained"]),
            None,
            f"pass@1: {wording.percent(one['pass_at_k'][0])} for {base}, "
            f"{wording.percent(other['pass_at_k'][0])} for {post}",
        ),
        _card(
            "Coverage lost",
            wording.points(compared["coverage_lost"]["point"]),
            " points",
            wording.interval(compared["coverage_lost"]),
            None,
            f"pass@{k}: {wording.percent(one['coverage']['point'])} for {base}, "
            f"{wording.percent(other['coverage']['point'])} for {post}",
        ),
        _card(
            "Base overtakes",
            "never" if crossing is None else f"k = {crossing}",
            "",
            "",
            None,
            f"first k where {base}'s pass@k is greater; ahead within {k} in "
            f"{wording.percent(compared['crossed_share'])} of the draws",
        ),
    ]


def _card(name: str, figure: str, unit: str, shown: str, note: str | None, told: str) -> Json:
    return {"name": name, "figure": figure, "unit": unit, "interval": shown, "note": note, "told": told}
