"""A table as CSV, one row per endpoint, for studies made with any tool.

The columns ``task,type,seed,reacher,solver,arrived,won`` are required, in any order.  ``bridge``, ``arrival`` and
``actions`` are read where they are present (see :class:`~handoff.estimation.table.Table`); every other column is
ignored.  ``seed`` is the seed slot.  It only pairs the rows of one task, so tasks may call their slots differently, but
every task needs equally many.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import attrs
import numpy as np

from handoff import files
from handoff.errors import DataError
from handoff.estimation.table import Table
from handoff.text import from_csv

REQUIRED = ("task", "type", "seed", "reacher", "solver", "arrived", "won")
OPTIONAL = ("bridge", "arrival", "actions")


@attrs.frozen
class _CsvRow:
    line: int
    task: str
    type: str
    seed: str
    reacher: str
    solver: str
    arrived: bool
    won: bool
    bridge: bool | None
    arrival: int | None
    actions: int | None


def read_csv(path: str | Path) -> Table:
    """The table in the file ``path``.  Reachers and solvers keep the order in which they first appear.

    Raises :class:`~handoff.errors.DataError`, with the line, for anything that is not one complete crossing of zeros
    and ones: a missing column or cell, a repeated cell, another value than 0 and 1, a win without arrival, an
    ``arrived`` or a type that contradicts an earlier row, unequal numbers of seeds.
    """
    path = Path(path)
    try:
        rows = list(_rows(io.StringIO(files.read_text(path), newline=""), path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {files.cause(error)}") from error
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    return _assemble(rows, path)


def _rows(file: TextIO, path: Path) -> Iterator[_CsvRow]:
    reader = csv.reader(file, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in REQUIRED if name not in header]
        if missing:
            raise DataError(
                f"{path}, line 1: no column {', '.join(missing)}; the header must have {','.join(REQUIRED)}"
            )
        for name in (*REQUIRED, *OPTIONAL):
            if header.count(name) > 1:
                raise DataError(f"{path}, line 1: column {name} occurs twice")
        at = {name: header.index(name) for name in (*REQUIRED, *OPTIONAL) if name in header}
        for fields in reader:
            if not fields:
                continue  # a blank line
            where = f"{path}, line {reader.line_num}"
            if len(fields) != len(header):
                raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}")
            yield _row(where, reader.line_num, {name: fields[i].strip() for name, i in at.items()})
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def _row(where: str, line: int, text: dict[str, str]) -> _CsvRow:
    for name in REQUIRED[:5]:
        if not text[name]:
            raise DataError(f"{where}: {name} is empty")
        if not text[name].isprintable():
            raise DataError(f"{where}: {name} is {text[name]!r:.40}, which has control characters")
    arrived, won = _bit(where, "arrived", text["arrived"]), _bit(where, "won", text["won"])
    if won and not arrived:
        raise DataError(f"{where}: won is 1 where arrived is 0; a reacher that never arrives has no endpoint to win")
    bridge = arrival = actions = None
    if "bridge" in text:
        bridge = _bit(where, "bridge", text["bridge"]) if text["bridge"] or arrived else False
        if bridge and not arrived:
            raise DataError(f"{where}: bridge is 1 where arrived is 0")
    if "arrival" in text:
        arrival = _steps(where, "arrival", text["arrival"]) if text["arrival"] not in ("", "-1") else -1
        if (arrival >= 0) != arrived:
            raise DataError(f"{where}: arrival is {text['arrival'] or 'empty'} where arrived is {int(arrived)}")
    if "actions" in text:
        actions = _steps(where, "actions", text["actions"])
    keys = {name: from_csv(text[name]) for name in REQUIRED[:5]}
    return _CsvRow(line, **keys, arrived=arrived, won=won, bridge=bridge, arrival=arrival, actions=actions)


def _bit(where: str, name: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise DataError(f"{where}: {name} is {text!r:.40}; write 0 or 1")
    return text == "1"


def _steps(where: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"{where}: {name} is {text!r:.40}; write a number of actions")
    return int(text)


def _assemble(rows: list[_CsvRow], path: Path) -> Table:
    types: dict[str, _CsvRow] = {}
    reached: dict[tuple[str, str, str], _CsvRow] = {}
    cells: dict[tuple[str, str, str, str], _CsvRow] = {}
    for row in rows:
        where = f"{path}, line {row.line}"
        first = types.setdefault(row.task, row)
        if first.type != row.type:
            raise DataError(
                f"{where}: task {row.task} has type {row.type} here and type {first.type} in line {first.line}"
            )
        first = reached.setdefault((row.task, row.seed, row.reacher), row)
        for name in ("arrived", "arrival", "actions"):
            if getattr(first, name) != getattr(row, name):
                raise DataError(
                    f"{where}: {name} of task {row.task}, seed {row.seed}, reacher {row.reacher} contradicts line "
                    f"{first.line}; it belongs to the reacher, so it is the same for every solver"
                )
        first = cells.setdefault((row.task, row.seed, row.reacher, row.solver), row)
        if first is not row:
            raise DataError(
                f"{where}: task {row.task}, seed {row.seed}, reacher {row.reacher}, solver {row.solver} "
                f"occurs already in line {first.line}"
            )
    reachers = tuple(dict.fromkeys(row.reacher for row in rows))
    solvers = tuple(dict.fromkeys(row.solver for row in rows))
    tasks = sorted(types, key=lambda task: (types[task].type, task))
    seeds: dict[str, list[str]] = {task: [] for task in tasks}
    for task, seed in dict.fromkeys((row.task, row.seed) for row in rows):
        seeds[task].append(seed)
    numbers = Counter(len(labels) for labels in seeds.values())
    if len(numbers) > 1:
        usual = numbers.most_common(1)[0][0]
        odd = next(task for task in tasks if len(seeds[task]) != usual)
        raise DataError(
            f"{path}: task {odd} has {len(seeds[odd])} seeds and others have {usual}; every task needs equally many"
        )
    labels = {task: sorted(seeds[task], key=_natural) for task in tasks}
    shape = (len(reachers), len(solvers), len(tasks), numbers.most_common(1)[0][0])
    missing = []
    won_WRTS, bridge_WRTS = np.zeros(shape, bool), np.zeros(shape, bool)
    wts = (shape[0], *shape[2:])
    arrived_WTS = np.zeros(wts, bool)
    arrival_WTS, actions_WTS = np.full(wts, -1, np.int64), np.zeros(wts, np.int64)
    for w, r, t, s in np.ndindex(*shape):
        key = (tasks[t], labels[tasks[t]][s], reachers[w], solvers[r])
        cell = cells.get(key)
        if cell is None:
            missing.append(key)
            continue
        won_WRTS[w, r, t, s], bridge_WRTS[w, r, t, s] = cell.won, bool(cell.bridge)
        arrived_WTS[w, t, s] = cell.arrived
        arrival_WTS[w, t, s] = -1 if cell.arrival is None else cell.arrival
        actions_WTS[w, t, s] = cell.actions or 0
    if missing:
        raise DataError(
            f"{path}: no row for task {missing[0][0]}, seed {missing[0][1]}, reacher {missing[0][2]}, solver "
            f"{missing[0][3]} ({len(missing)} of {won_WRTS.size} cells of the crossing are missing); "
            "a reacher that never arrived has rows too, with arrived 0 and won 0"
        )
    first = rows[0]
    return Table(
        reachers=reachers,
        solvers=solvers,
        tasks=tuple(tasks),
        strata=tuple(types[task].type for task in tasks),
        slots=_slots(labels),
        arrived_WTS=arrived_WTS,
        won_WRTS=won_WRTS,
        bridge_WRTS=None if first.bridge is None else bridge_WRTS,
        arrival_WTS=None if first.arrival is None else arrival_WTS,
        actions_WTS=None if first.actions is None else actions_WTS,
    )


def _natural(label: str) -> tuple[bool, int, str]:
    whole = label.isascii() and label.isdigit() and len(label) < 19
    return (not whole, int(label) if whole else 0, label)


def _slots(labels: dict[str, list[str]]) -> tuple[int, ...]:
    """The seeds' own numbers where every task has the same ones, else their ranks."""
    first, *others = labels.values()
    if all(other == first for other in others) and all(not _natural(label)[0] for label in first):
        numbers = tuple(int(label) for label in first)
        if len(set(numbers)) == len(numbers):  # "1" and "01" are two labels
            return numbers
    return tuple(range(len(first)))
