"""What every page is made with: one self-contained HTML file, with a twin in JSON of every number beside it.

A page opens from disk and asks for nothing: style, script, figures and data are in it, and its content security policy
lets nothing else in (the style sheet and the script are named by their digests).  Whatever comes from data is escaped
by the templates, or is data that the script shows as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any

from handoff import files
from handoff.errors import StoreError, UsageError
from handoff.report import sheet
from handoff.report.format import Json
from handoff.runs.folder import JOURNAL, MANIFEST, RECORDS, SEAL, TIMINGS

#: What the templates put at the head of every page.
GENERATOR = b'<meta name="generator" content="handoff">'
OWN = frozenset({MANIFEST, SEAL, TIMINGS, RECORDS, JOURNAL})


def write(page: str, numbers: Json, path: Path, name: str, inputs: Collection[Path] = ()) -> tuple[Path, Path]:
    """Write ``page`` to ``path`` (to ``name`` in it, if it is a folder) and ``numbers`` beside it.

    Returns both paths.  Raises :class:`~handoff.errors.UsageError` if anything but an earlier page and its twin stands
    where the two would, and :class:`~handoff.errors.StoreError` if the files cannot be written.
    """
    try:
        path = path / name if path.is_dir() else path
        twin = path.with_suffix(".json")
        taken = {other.resolve() for other in inputs}
        if path == twin or {path.name, twin.name} & OWN or {path.resolve(), twin.resolve()} & taken:
            raise UsageError(f"--html {path} would write {twin}; choose a name such as {name}")
        if not _is_page(path):
            for there in (path, twin):
                if os.path.lexists(there):
                    raise UsageError(f"{there} exists and is not of a page that handoff wrote; choose another --html")
        # The page first: cut short between the two, the same command finds a page of its own and goes on.
        files.write_atomically(path, page.encode("utf-8", "replace"))  # "replace": lone surrogates have no UTF-8 form
        files.write_atomically(twin, as_json(numbers, indent=1) + b"\n")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return path, twin


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return GENERATOR in file.read(1000)


def render(name: str, **values: Any) -> str:
    """The template ``name`` with ``values``.  Raises :class:`~handoff.errors.UsageError` if jinja2 is missing."""
    try:
        import jinja2
        import markupsafe
    except ImportError:
        raise UsageError("the page needs jinja2: pip install 'checkpoint-handoff[report]'") from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    markup = markupsafe.Markup
    environment.filters["svg"] = lambda figure: markup(figure.svg)
    environment.filters["breakable"] = lambda words: markup("_<wbr>").join(words.split("_"))
    environment.filters["data"] = lambda form: markup(inert(as_json(form).decode()))
    environment.filters["own"] = markup  # style and script of ours, never what comes from data
    environment.globals["notes"] = _notes
    page: str = environment.get_template(name).render(**values)
    return page


def inert(form: str) -> str:
    """JSON that cannot end the script element that it stands in, nor start a comment there."""
    return form.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def template(name: str) -> str:
    """The text of a file among the templates."""
    return (resources.files("handoff.report") / "templates" / name).read_text("utf-8")


def digest(text: str) -> str:
    """What a content security policy names an inline style sheet or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def as_json(numbers: Json, indent: int | None = None) -> bytes:
    """JSON without NaN."""
    return json.dumps(numbers, indent=indent, allow_nan=False).encode()


def _notes(sheet: sheet.Sheet) -> list[str]:
    """Why numbers or intervals are missing from a table, each reason once."""
    return list(dict.fromkeys(cell.note for row in sheet.rows for cell in row.cells if cell.note))
