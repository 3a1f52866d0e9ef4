"""One self-contained HTML page of a run, with a twin in JSON of every number beside it.

The page opens from disk and asks for nothing: style, script, figures and data are in it, and its content security
policy lets nothing else in (the style sheet and the script are named by their digests).  Whatever comes from the run is
escaped, or is data that the script shows as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from handoff.errors import StoreError, UsageError
from handoff.report import episodes, figures, tables, wording
from handoff.report.numbers import Json
from handoff.store import JOURNAL, MANIFEST, RECORDS, SEAL, TIMINGS, write_atomically
from handoff.study import Study

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

    Returns both paths.  Raises :class:`~handoff.errors.UsageError` if jinja2 is missing or ``path`` would put the twin
    in the place of a run's own file, :class:`~handoff.errors.StoreError` if the files cannot be written.
    """
    path = study.folder / NAME if path is None else path / NAME if path.is_dir() else path
    twin = path.with_suffix(".json")
    own = {MANIFEST, SEAL, TIMINGS, RECORDS, JOURNAL}
    if path == twin or {path.name, twin.name} & own:
        raise UsageError(f"--html {path} would write {twin}; choose a name such as {NAME}")
    page = render(study, numbers)
    try:
        write_atomically(twin, _json(numbers, indent=1) + b"\n")
        write_atomically(path, page.encode("utf-8", "replace"))  # "replace": lone surrogates have no UTF-8 form
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return path, twin


def render(study: Study, numbers: Json) -> str:
    """The page as text.  Raises :class:`~handoff.errors.UsageError` if jinja2 is missing."""
    jinja2 = _jinja2()
    complete = numbers["tables"] is not None
    style, script = _template("page.css"), _template("browser.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    markup = jinja2.utils.markupsafe.Markup
    environment.filters["svg"] = lambda figure: markup(figure.svg)
    environment.filters["breakable"] = lambda name: markup("_<wbr>").join(name.split("_"))
    run = numbers["run"]
    styles = {name: k for k, name in enumerate(dict.fromkeys((*run["reachers"], *run["solvers"])))}
    packed = episodes.pack(study)
    page: str = environment.get_template("page.html.j2").render(
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
        styles=styles,
        policies={name: _facts(facts) for name, facts in run["policies"].items()},
        environment=_facts(run["environment"]),
        packed=packed,
        empty=tables.EMPTY,
        style=markup(style),
        script=markup(script),
        style_digest=_digest(style),
        script_digest=_digest(script),
        data=markup(inert(_json(numbers).decode())),
        notes=_notes,
    )
    return page


def inert(form: str) -> str:
    """JSON that cannot end the script element that it stands in, nor start a comment there."""
    return form.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _jinja2() -> Any:
    try:
        import jinja2
    except ImportError:
        raise UsageError("the page needs jinja2: pip install 'checkpoint-handoff[report]'") from None
    return jinja2


def _template(name: str) -> str:
    return (resources.files("handoff.report") / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(numbers: Json, indent: int | None = None) -> bytes:
    return json.dumps(numbers, indent=indent, allow_nan=False).encode()


def _headline(numbers: Json) -> list[Json]:
    """The cards at the top: the leading gaps, the interaction, and the whole gain."""
    found, lead = numbers["tables"], wording.headline(numbers["tables"])
    reached = {row["reacher"]: row["reach"] for row in found["reach"]["rows"]}
    solved = {row["solver"]: row["value"] for row in found["solve"]["pooled"]}
    effects = {(row["reacher"], *row["solvers"]): row["value"] for row in found["endpoints"]["solver_effects"]}
    cells = {(row["reacher"], row["solver"]): row["value"] for row in found["endpoints"]["cells"]}
    cards = []
    if lead["reach"]:
        a, b = lead["reach"]["reachers"]
        told = f"{b} arrives in {wording.percent(reached[b]['point'])}, {a} in {wording.percent(reached[a]['point'])}"
        cards.append(_card("Reach gap", lead["reach"]["value"], told))
    if lead["solve"]:
        a, b = lead["solve"]["solvers"]
        told = (
            f"from the same states {b} completes {wording.percent(solved[b]['point'])}, "
            f"{a} {wording.percent(solved[a]['point'])}"
        )
        cards.append(_card("Same-state Solve gap", lead["solve"]["value"], told))
    if lead["interaction"]:
        (a, b), (c, d) = lead["interaction"]["reachers"], lead["interaction"]["solvers"]
        told = (
            f"solver effect {wording.points(effects[b, c, d]['point'])} under reacher {b}, "
            f"{wording.points(effects[a, c, d]['point'])} under {a}"
        )
        cards.append(_card("Interaction", lead["interaction"]["value"], told))
    for row in found["endpoints"]["gains"][:1]:
        a, b = row["checkpoints"]
        told = f"endpoint {wording.percent(cells[a, a]['point'])} to {wording.percent(cells[b, b]['point'])}"
        cards.append(_card("Whole gain", row["value"], f"{told}, {a} to {b} in both roles"))
    return cards


def _card(name: str, value: Json, told: str) -> Json:
    shown = wording.interval(value)
    return {
        "name": name,
        "points": wording.points(value["point"]),
        "interval": shown,
        "note": None if shown else value["note"],
        "told": told,
    }


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts of the manifest, shown as text."""
    return [(str(key), value if isinstance(value, str) else json.dumps(value)) for key, value in facts.items()]


def _notes(sheet: tables.Sheet) -> list[str]:
    """Why numbers or intervals are missing from a table, each reason once."""
    return list(dict.fromkeys(cell.note for row in sheet.rows for cell in row.cells if cell.note))
