"""The page: one self-contained HTML file, with a twin in JSON of every number beside it.

A page opens from disk and asks for nothing: style, script, figures and data are in it, and its content security policy
lets nothing else in (the style sheet and the script are named by their digests).  The templates escape all data, or the
script shows data as text.
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

import jinja2
import markupsafe

from handoff import files
from handoff.errors import StoreError, UsageError
from handoff.report.format import Json
from handoff.report.sheet import Content, Sheet
from handoff.runs.folder import JOURNAL, MANIFEST, RECORDS, SEAL, TIMINGS

#: What the templates put at the head of every page.
GENERATOR = b'<meta name="generator" content="handoff">'
#: Files of a run folder.
OWN = frozenset({MANIFEST, SEAL, TIMINGS, RECORDS, JOURNAL})


def write(page: str, numbers: Json, path: Path, name: str, inputs: Collection[Path] = ()) -> tuple[Path, Path]:
    """Write ``page`` to ``path`` (to ``name`` in it, if it is a folder) and ``numbers`` beside it.

    Returns both paths.  Raises :class:`~handoff.errors.UsageError` if the two would replace anything but an earlier
    page and its twin, and :class:`~handoff.errors.StoreError` if the files cannot be written.
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
                    raise UsageError(f"{there} exists, and handoff did not write it; choose another --html")
        # The page first: after an interruption between the two, the same command replaces its own page.
        files.write_atomically(path, page.encode("utf-8", "replace"))  # "replace": lone surrogates have no UTF-8 form
        files.write_atomically(twin, json.dumps(numbers, indent=1, allow_nan=False).encode() + b"\n")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {files.cause(error)}") from error
    return path, twin


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return GENERATOR in file.read(1000)


def render(
    content: Content,
    numbers: Json,
    *,
    template: str = "page.html.j2",
    script: str = "save.js",
    name: str,
    **values: Any,
) -> str:
    """The page as text; ``name`` is the file name under which the reader saves ``numbers``."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    markup = markupsafe.Markup
    environment.filters["svg"] = lambda figure: markup(figure.svg)
    environment.filters["breakable"] = lambda words: markup("_<wbr>").join(words.split("_"))
    environment.filters["data"] = lambda form: markup(inert(json.dumps(form, allow_nan=False)))
    environment.filters["own"] = markup  # style and script of ours, never data
    environment.globals["notes"] = _notes
    style, code = read("page.css"), read(script)
    page: str = environment.get_template(template).render(
        content=content,
        numbers=numbers,
        twin=Path(name).with_suffix(".json").name,
        style=style,
        script=code,
        style_digest=digest(style),
        script_digest=digest(code),
        **values,
    )
    return page


def inert(form: str) -> str:
    """JSON that can neither end the script element around it nor start a comment there."""
    return form.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def read(name: str) -> str:
    """The text of a file among the templates."""
    return (resources.files("handoff.report") / "templates" / name).read_text("utf-8")


def digest(text: str) -> str:
    """The name of an inline style sheet or script in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _notes(sheet: Sheet) -> list[str]:
    """Why numbers or intervals are missing from a table, each reason once."""
    return list(dict.fromkeys(cell.note for row in sheet.rows for cell in row.cells if cell.note))
