"""The records of a run as flat tables: Parquet, CSV, JSONL.

A CSV may be opened in a spreadsheet, so text in it is made safe (:func:`handoff.text.csv_text`); Parquet and JSONL hold
every text exactly.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.errors import MissingExtra, StoreError, UsageError
from handoff.runs.folder import MANIFEST
from handoff.text import csv_text

Rows = Sequence[Mapping[str, Any]]
FORMATS = ("parquet", "csv", "jsonl")


@attrs.frozen
class ExportTable:
    """One flat table."""

    #: Type of each column, in order: str, int or float.  A value may be ``None`` in any column.
    columns: Mapping[str, type]
    #: One mapping per row, with every column.
    rows: Rows


@attrs.frozen
class Exported:
    """What an export wrote."""

    #: Path and number of rows of each file.
    written: Sequence[tuple[Path, int]]
    #: A sentence on what was left out, if anything was.
    skipped: str | None


def export(
    run: Path, tables: Mapping[str, ExportTable], folder: Path, formats: Sequence[str] | None = None
) -> Exported:
    """Write the ``tables`` of the run in folder ``run`` to ``folder``, in each of ``formats`` (default: all possible).

    Raises :class:`~handoff.errors.UsageError` if Parquet was asked for and pyarrow is not installed, or if ``folder``
    is a run's own, a link inside it, or holds a file of a table's name that no export wrote;
    :class:`~handoff.errors.StoreError` if the folder cannot be written.
    """
    if folder.is_symlink() and run in folder.parents:
        raise UsageError(f"{folder} is a link that came with the run; give a folder by --out")
    if (folder / MANIFEST).exists():
        raise UsageError(f"{folder} holds a run or generated games, not tables; choose another --out")
    skipped = None
    chosen = list(dict.fromkeys(formats or FORMATS))
    if "parquet" in chosen and not _has_pyarrow():
        reason = MissingExtra("pyarrow", "report", "it is not installed", "Parquet")
        if formats:
            raise reason
        chosen.remove("parquet")
        skipped = f"no Parquet was written: {reason}"
    for kind in chosen:
        # An export writes all tables: a file that is there alone is somebody else's.
        present = [path for name in tables if os.path.lexists(path := folder / f"{name}.{kind}")]
        if present and len(present) < len(tables):
            raise UsageError(f"{present[0]} is not of a whole export; move it away, or choose another --out")
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            for kind in chosen:
                path = folder / f"{name}.{kind}"
                files.write_atomically(path, _ENCODERS[kind](table))
                written.append((path, len(table.rows)))
    except OSError as error:
        raise StoreError(f"cannot write tables to {folder}: {files.cause(error)}") from error
    return Exported(written, skipped)


def _has_pyarrow() -> bool:
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def _csv(table: ExportTable) -> bytes:
    text = io.StringIO()
    if table.rows:
        writer = csv.DictWriter(text, fieldnames=list(table.columns), lineterminator="\n")
        writer.writeheader()
        texts = {name for name, kind in table.columns.items() if kind is str}
        writer.writerows(
            {name: csv_text(value) if name in texts and value else value for name, value in row.items()}
            for row in table.rows
        )
    return text.getvalue().encode("utf-8", "backslashreplace")


def _jsonl(table: ExportTable) -> bytes:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in table.rows).encode()


def _parquet(table: ExportTable) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    arrays = {
        name: pa.array(
            [v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for v in values],
            kinds[kind],
        )
        for name, kind in table.columns.items()
        for values in [[row[name] for row in table.rows]]
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()


_ENCODERS: Mapping[str, Callable[[ExportTable], bytes]] = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}
