"""Success counts from a CSV or JSONL file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError, UsageError
from handoff.passk.counts import Counts
from handoff.text import from_csv

COLUMNS = ("task", "n", "c")
#: Rollouts of a task, at most: hypergeometric draws are limited to 10^9.
MOST = 100_000_000


def read_counts(path: str | Path, name: str | None = None) -> Counts:
    """The counts of a CSV or JSONL file.  ``name`` is the policy's (default: the file's name without ending).

    Raises :class:`~handoff.errors.DataError`, with the line, for anything but one row per task with whole numbers
    0 <= c <= n, and :class:`~handoff.errors.UsageError` if the file cannot be read.
    """
    path = Path(path)
    try:
        text = files.read_text(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {files.cause(error)}") from error
    rows = _jsonl(text, path) if text.lstrip().startswith("{") else _csv(text, path)
    counts: list[tuple[str, int, int]] = []
    for where, row in rows:
        n, c = _whole(where, row, "n"), _whole(where, row, "c")
        counts.append((_task(where, row), n, c))
        if n < 1 or not 0 <= c <= n:
            raise DataError(f"{where}: {c} successes in {n} rollouts; 0 <= c <= n and 1 <= n must hold")
    if not counts:
        raise DataError(f"{path} has no rows; each must give {','.join(COLUMNS)}")
    try:
        return Counts.of(name or path.stem, counts)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _csv(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in COLUMNS:
            if header.count(name) != 1:
                raise DataError(
                    f"{path}, line 1: the header needs the columns {','.join(COLUMNS)} once each, found {header!r:.80}"
                )
        for fields in reader:
            if not fields:
                continue
            where = f"{path}, line {reader.line_num}"
            if len(fields) != len(header):
                raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}")
            yield where, {name: from_csv(field.strip()) for name, field in zip(header, fields, strict=True)}
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def _jsonl(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = parse(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: an object with the keys {', '.join(COLUMNS)} is expected, found {row!r:.60}")
        for name in COLUMNS:
            if name not in row:
                raise DataError(f"{where}: no {name!r}; each line must give {', '.join(COLUMNS)}")
        yield where, row


def _task(where: str, row: Mapping[str, Any]) -> str:
    task = row["task"]
    if isinstance(task, bool) or not isinstance(task, (str, int)) or not str(task) or not str(task).isprintable():
        raise DataError(f"{where}: task is {task!r:.60}, not a name")
    return str(task)


def _whole(where: str, row: Mapping[str, Any], name: str) -> int:
    value = row[name]
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:1000])
    if type(value) is not int:
        raise DataError(f"{where}: {name} is {value!r:.60}, not a whole number")
    if value > MOST:
        raise DataError(f"{where}: {name} is {value!s:.60}, more than {MOST:,}")
    return value
