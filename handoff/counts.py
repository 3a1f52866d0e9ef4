"""Success counts per task, the only thing that the pass@k family and the sharpening tax need to know.

A file holds one row a task, ``task,n,c``: ``c`` successes out of ``n`` independent rollouts.  As CSV the columns stand
in any order beside others; as JSONL each line is an object with these keys.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError, UsageError
from handoff.names import require_printable
from handoff.passk import IntArray

COLUMNS = ("task", "n", "c")
#: Rollouts of a task: more are not what anybody makes, and what is drawn from is below 10^9.
MOST = 100_000_000


@attrs.frozen(eq=False)
class Counts:
    """``c_T[i]`` successes out of ``n_T[i]`` rollouts of task ``tasks[i]``, of one policy called ``name``.

    ``remark`` says what the rollouts are, where that is not plain; ``names`` how people call the tasks, where that is
    not what identifies them.
    """

    name: str
    tasks: tuple[str, ...]
    n_T: IntArray
    c_T: IntArray
    remark: str = ""
    names: Mapping[str, str] = attrs.Factory(dict)

    def __attrs_post_init__(self) -> None:
        if not len(self.tasks) == len(self.n_T) == len(self.c_T):
            raise UsageError(f"{self.name}: give n and c for every task, and no more")
        require_printable("task", self.tasks)
        require_printable("policy", [self.name])
        if not self.tasks:
            raise DataError(f"{self.name} has no tasks")
        if len(set(self.tasks)) != len(self.tasks):
            twice = next(task for task in self.tasks if self.tasks.count(task) > 1)
            raise DataError(f"{self.name}: task {twice!r} stands twice; give one row a task, with all its rollouts")
        for task, n, c in zip(self.tasks, self.n_T, self.c_T, strict=True):
            if n < 1 or not 0 <= c <= n:
                raise DataError(f"{self.name}: task {task!r} has {c} successes in {n} rollouts; 0 <= c <= n, 1 <= n")

    @classmethod
    def of(cls, name: str, rows: Sequence[tuple[str, int, int]]) -> Counts:
        """From rows (task, n, c)."""
        tasks, n, c = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(name, tuple(tasks), np.array(n, dtype=np.int64), np.array(c, dtype=np.int64))

    @property
    def rollouts(self) -> int:
        """The fewest rollouts that a task has: the greatest budget that can be spoken of."""
        return int(self.n_T.min())

    def in_order_of(self, tasks: Sequence[str]) -> Counts:
        """The same counts with the tasks in another order."""
        place = {task: i for i, task in enumerate(self.tasks)}
        order = [place[task] for task in tasks]
        return attrs.evolve(self, tasks=tuple(tasks), n_T=self.n_T[order], c_T=self.c_T[order])


def matched(base: Counts, post: Counts) -> tuple[Counts, Counts]:
    """Both policies' counts with the tasks in the base's order.

    Raises :class:`~handoff.errors.DataError`, naming some, unless both have the same tasks: a comparison over what two
    policies happen to share would drop tasks without saying so.
    """
    for one, other in ((base, post), (post, base)):
        missing = [task for task in one.tasks if task not in set(other.tasks)]
        if missing:
            shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise DataError(
                f"{other.name} lacks {len(missing)} of the {len(one.tasks)} tasks of {one.name} ({shown}); "
                "compare two policies on the same tasks"
            )
    return base, post.in_order_of(base.tasks)


def read_counts(path: str | Path, name: str | None = None) -> Counts:
    """The counts that a CSV or JSONL file holds, or a rollouts run (``RUN``, or ``RUN#POLICY`` if it has several).

    ``name`` is the policy's (default: the file's name without ending, or the run's name for it).

    Raises :class:`~handoff.errors.DataError`, with the line, for anything but one row a task with whole numbers
    0 <= c <= n, and :class:`~handoff.errors.UsageError` if the file cannot be read.
    """
    folder, _, policy = str(path).partition("#")
    if Path(folder).is_dir():
        from handoff import rollout_study  # it reads counts out as this module's class

        counts = rollout_study.load(folder).counts(policy or None)
        return counts if name is None else attrs.evolve(counts, name=name)
    path = Path(path)
    try:
        text = files.read_input(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from error
    rows = _jsonl(text, path) if text.lstrip().startswith("{") else _csv(text, path)
    found: list[tuple[str, int, int]] = []
    for where, row in rows:
        found.append((_task(where, row), _whole(where, row, "n"), _whole(where, row, "c")))
        n, c = found[-1][1:]
        if n < 1 or not 0 <= c <= n:
            raise DataError(f"{where}: {c} successes in {n} rollouts; 0 <= c <= n and 1 <= n must hold")
    if not found:
        raise DataError(f"{path} has no rows; each must give {','.join(COLUMNS)}")
    try:
        return Counts.of(name or path.stem, found)
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
            yield where, {name: field.strip() for name, field in zip(header, fields, strict=True)}
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
