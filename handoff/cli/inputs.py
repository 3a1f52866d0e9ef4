"""Tables from paths on the command line: a run folder, or a CSV file from anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from handoff.errors import DataError, UsageError
from handoff.estimation.table import Table
from handoff.estimation.table_csv import read_csv
from handoff.estimation.transport import Sample
from handoff.passk.counts import Counts
from handoff.passk.counts_file import read_counts
from handoff.passk.pairs import Pair
from handoff.passk.pairs_file import PairEntry
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.study import DEPTH, Study
from handoff.protocols.recorded.study import RecordedStudy
from handoff.protocols.registry import load
from handoff.protocols.rollouts import ROLLOUTS


def load_table(path: str | Path) -> Table:
    """The table of a run folder, or of a CSV file (:func:`~handoff.estimation.table_csv.read_csv`).

    Raises :class:`~handoff.errors.DataError` or :class:`~handoff.errors.StoreError` for what cannot be read, is no run,
    or is not complete.
    """
    return load_sample(path).table


def load_sample(path: str | Path) -> Sample:
    """The same with what :mod:`handoff.estimation.transport` compares.

    Of a run these are its tasks, checkpoints, environment, depth and budget; of a CSV its task names alone.
    """
    path = Path(path)
    if path.is_dir():
        run = load(path)
        if isinstance(run, Study | RecordedStudy):
            return run.sample()
        return FRONTIER.read(path).sample()  # says what the folder holds, and which command shows it
    if not path.exists():
        raise DataError(f"{path} does not exist; give a run folder or a CSV file")
    return Sample(str(path), read_csv(path))


def labelled(arguments: tuple[str, ...]) -> dict[str, Table]:
    """Tables by label from ``PATH`` or ``LABEL=PATH`` (a run folder's own label is its depth, "D=2", if that is
    enough to tell them apart, else the path).  Raises :class:`~handoff.errors.UsageError` for a label used twice."""
    samples: list[tuple[str | None, Sample]] = []
    for argument in arguments:
        label, equals, path = argument.partition("=")
        named = bool(equals) and not Path(argument).exists()
        if named and not label:
            raise UsageError(f"write LABEL=PATH with a label, or the path alone (got {argument!r})")
        samples.append((label if named else None, load_sample(path if named else argument)))
    depths = [sample.settings.get(DEPTH) for given, sample in samples if given is None]
    by_depth = None not in depths and len(set(depths)) == len(depths)
    tables: dict[str, Table] = {}
    for given, sample in samples:
        name = given or (f"D={sample.settings[DEPTH]}" if by_depth else sample.label)
        if name in tables:
            raise UsageError(f"two tables are called {name!r}; write LABEL=PATH to tell them apart")
        tables[name] = sample.table
    return tables


def counts(path: str | Path) -> Counts:
    """Success counts of a CSV or JSONL file, or of a rollouts run (``RUN``, or ``RUN#POLICY`` if it has several).

    Raises as :func:`~handoff.passk.counts_file.read_counts` and
    :meth:`~handoff.protocols.rollouts.study.RolloutStudy.counts` do.
    """
    folder, _, policy = str(path).partition("#")
    return ROLLOUTS.read(Path(folder)).counts(policy or None) if Path(folder).is_dir() else read_counts(path)


def pairs(entries: Sequence[PairEntry]) -> list[Pair]:
    """The pairs of a study.  Every path is read once.

    A policy whose name another path has, too, gets its path as part of its name.  Raises as :func:`counts` and
    :func:`~handoff.passk.counts.matched` do.
    """
    paths = dict.fromkeys(path for entry in entries for path in (entry.base, entry.post))
    read = {path: counts(path) for path in paths}
    names = Counter(one.name for one in read.values())
    for path, one in read.items():
        if names[one.name] > 1:
            read[path] = attrs.evolve(one, name=f"{one.name} ({path.partition('#')[0]})")
    runs = Counter((entry.base, entry.recipe) for entry in entries)
    return [_pair(one, read[one.base], read[one.post], runs[one.base, one.recipe] == 1) for one in entries]


def _pair(entry: PairEntry, base: Counts, post: Counts, lone: bool) -> Pair:
    """``lone``: no other run has its recipe."""
    name = entry.name
    if name and entry.several:
        name += f", {entry.recipe if entry.recipe and lone else post.name}"
    return Pair(base, post, name, entry.family, entry.benchmark, entry.recipe)
