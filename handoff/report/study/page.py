"""The page of a study, with a twin in JSON of every number beside it (:mod:`handoff.report.html`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff.protocols.frontier.study import Study
from handoff.report import format, html
from handoff.report.study import episodes, figures, sentences, tables
from handoff.report.study.document import Json

NAME = "report.html"

#: Sections of the page in order: name, heading, and its short form.
SECTIONS = (
    ("interaction", "Who reaches × who solves", "Interaction"),
    ("reach", "Reach: who arrives", "Reach"),
    ("solve", "Solve: from identical states", "Solve"),
    ("stages", "Bridge, then finish", "Bridge and finish"),
    ("types", "By task type", "Task types"),
    ("budgets", "By reacher budget", "Budgets"),
    ("failures", "Those that never arrive", "Non-arrivals"),
)


def write(study: Study, numbers: Json, path: Path | None = None) -> tuple[Path, Path]:
    """Write the page to ``path`` (``report.html`` in the run folder by default) and its twin beside it.

    Returns both paths; raises as :func:`render` and :func:`handoff.report.html.write` do.
    """
    return html.write(render(study, numbers), numbers, study.folder if path is None else path, NAME)


def render(study: Study, numbers: Json) -> str:
    """The page as text.  Raises :class:`~handoff.errors.UsageError` if jinja2 is missing."""
    complete = numbers["tables"] is not None
    style, script = html.template("page.css"), html.template("browser.js")
    run = numbers["run"]
    return html.render(
        "page.html.j2",
        numbers=numbers,
        run=run,
        complete=complete,
        title=f"{run['environment'].get('name', 'run')}, {run['split']}",
        sections=SECTIONS,
        tables=tables.sections(numbers) if complete else {},
        figures=figures.figures(numbers) if complete else {},
        headline=_headline(numbers) if complete else [],
        verdict=" ".join(numbers["sentences"]["verdict"] or numbers["sentences"]["missing"]) if complete else "",
        counts=None if complete else tables.counts(numbers, run["reachers"], run["solvers"]),
        styles={name: k for k, name in enumerate(dict.fromkeys((*run["reachers"], *run["solvers"])))},
        policies={name: _facts(facts) for name, facts in run["policies"].items()},
        environment=_facts(run["environment"]),
        packed=episodes.pack(study),
        style=style,
        script=script,
        style_digest=html.digest(style),
        script_digest=html.digest(script),
    )


def _headline(numbers: Json) -> list[Json]:
    """The cards at the top: the leading gaps, the interaction, and the whole gain."""
    found, lead = numbers["tables"], sentences.headline(numbers["tables"])
    reached = {row["reacher"]: row["reach"] for row in found["reach"]["rows"]}
    solved = {row["solver"]: row["value"] for row in found["solve"]["pooled"]}
    effects = {(row["reacher"], *row["solvers"]): row["value"] for row in found["endpoints"]["solver_effects"]}
    cells = {(row["reacher"], row["solver"]): row["value"] for row in found["endpoints"]["cells"]}
    cards = []
    if lead["reach"]:
        a, b = lead["reach"]["reachers"]
        told = f"{b} arrives in {format.percent(reached[b]['point'])}, {a} in {format.percent(reached[a]['point'])}"
        cards.append(_card("Reach gap", lead["reach"]["value"], told))
    if lead["solve"]:
        a, b = lead["solve"]["solvers"]
        told = (
            f"from the same states {b} completes {format.percent(solved[b]['point'])}, "
            f"{a} {format.percent(solved[a]['point'])}"
        )
        cards.append(_card("Same-state Solve gap", lead["solve"]["value"], told))
    if lead["interaction"]:
        (a, b), (c, d) = lead["interaction"]["reachers"], lead["interaction"]["solvers"]
        told = (
            f"solver effect {format.points(effects[b, c, d]['point'])} under reacher {b}, "
            f"{format.points(effects[a, c, d]['point'])} under {a}"
        )
        cards.append(_card("Interaction", lead["interaction"]["value"], told))
    for row in found["endpoints"]["gains"][:1]:
        a, b = row["checkpoints"]
        told = f"endpoint {format.percent(cells[a, a]['point'])} to {format.percent(cells[b, b]['point'])}"
        cards.append(_card("Whole gain", row["value"], f"{told}, {a} to {b} in both roles"))
    return cards


def _card(name: str, value: Json, told: str) -> Json:
    shown = format.interval(value)
    return {
        "name": name,
        "points": format.points(value["point"]),
        "interval": shown,
        "note": None if shown else value["note"],
        "told": told,
    }


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts of the manifest, shown as text."""
    return [(str(key), value if isinstance(value, str) else json.dumps(value)) for key, value in facts.items()]
