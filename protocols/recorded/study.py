"""A recorded-history run read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from handoff.errors import DataError
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.recorded.config import RecordedConfig, cells, rows, size
from handoff.protocols.recorded.logic import problems_of
from handoff.protocols.recorded.records import (
    CONTINUATION,
    FORMATTING,
    REPAIR,
    TRAJECTORY,
    VERDICT,
    Continuation,
    Formatting,
    History,
    Scoring,
    row_key,
    trajectory_key,
)
from handoff.records import Offer, from_json
from handoff.runs.chain import Key
from handoff.runs.folder import read_records, require_key
from handoff.runs.run import RecordedDecision, Run, read_head

NAME = "recorded"

#: The class of each kind of record that a row has.
CLASSES: Mapping[str, type[Any]] = {
    CONTINUATION: Continuation, FORMATTING: Formatting, REPAIR: Formatting, VERDICT: Scoring,
}  # fmt: skip


#: What a conversation accepts: every reply.
ANY_REPLY = Offer.of((), free=True)


@attrs.frozen(kw_only=True)
class RecordedStudy(Run):
    """The records of a recorded-history run, as far as it has got."""

    config: RecordedConfig
    histories: Mapping[Cell, History] = attrs.field(repr=False)
    continuations: Mapping[EndpointCell, Continuation] = attrs.field(repr=False)
    formattings: Mapping[EndpointCell, Formatting] = attrs.field(repr=False)
    repairs: Mapping[EndpointCell, Formatting] = attrs.field(repr=False)
    scorings: Mapping[EndpointCell, Scoring] = attrs.field(repr=False)
    _keys: tuple[Key, ...] = attrs.field(repr=False)

    @property
    def reachers(self) -> tuple[str, ...]:
        return self.config.reachers

    @property
    def solvers(self) -> tuple[str, ...]:
        return self.config.solvers

    @property
    def planned(self) -> int:
        return size(self.tasks, self.config)

    @property
    def count(self) -> int:
        return len(self._keys)

    @property
    def still_owed(self) -> str:
        owed = self.planned - self.count
        return f"{owed} of {self.planned} records" if owed else ""

    def keys(self) -> Iterator[Key]:
        return iter(self._keys)

    def cells(self) -> list[Cell]:
        """Every (task, slot, reacher) of the plan."""
        return cells(self.tasks, self.config)

    def rows(self) -> list[EndpointCell]:
        """Every (task, slot, reacher, solver) of the plan."""
        return rows(self.tasks, self.config)

    def label(self, cell: Cell | EndpointCell) -> str:
        """A cell in words."""
        label = f"task {self.task(cell.task).name}, slot {cell.slot}, reacher {cell.reacher}"
        return f"{label}, solver {cell.solver}" if isinstance(cell, EndpointCell) else label

    def decisions(self) -> Iterator[RecordedDecision]:
        for cell, history in self.histories.items():
            for step in history.steps:
                yield RecordedDecision(self.label(cell), cell.reacher, step.decision, ANY_REPLY)
        for row, end in self.continuations.items():
            for step in end.steps:
                yield RecordedDecision(self.label(row), row.solver, step.decision, ANY_REPLY)
        for formatted in (self.formattings, self.repairs):
            for row, one in formatted.items():
                if one.decision is not None and self.config.formatter is not None:
                    yield RecordedDecision(self.label(row), self.config.formatter, one.decision, ANY_REPLY)

    def require_consistent(self) -> None:
        for label, problem in problems_of(self):
            raise DataError(f"{self.folder}: {label} contradicts itself: {problem}")

    def passed_at(self, row: EndpointCell, budget: int | None = None) -> bool:
        """Whether a row passes with ``budget`` decisions of its solver (``None``: all that it has)."""
        end = self.continuations[row]
        return self.scorings[row].passed and (budget is None or len(end.steps) <= budget)

    def table_at(self, budget: int | None = None) -> Table:
        """The table of ones and zeros at the solver budget ``budget``: the endpoint is the final pass.

        There is no arrival: every row has one, except where a trajectory never came to the cut.  Raises
        :class:`~handoff.errors.StoreError` while records are owed.
        """
        self.require_complete()
        self.require_consistent()
        tasks = sorted(self.tasks, key=lambda task: (task.type, task.id))
        wts = (len(self.reachers), len(tasks), self.config.slots)
        arrived_WTS = np.zeros(wts, bool)
        won_WRTS = np.zeros((wts[0], len(self.solvers), *wts[1:]), bool)
        for w, t, s in np.ndindex(*wts):
            for r, solver in enumerate(self.solvers):
                row = EndpointCell(tasks[t].id, s, self.reachers[w], solver)
                arrived_WTS[w, t, s] = self.continuations[row].cut is not None
                won_WRTS[w, r, t, s] = self.passed_at(row, budget)
        return Table(
            reachers=self.reachers,
            solvers=self.solvers,
            tasks=tuple(task.id for task in tasks),
            strata=tuple(task.type for task in tasks),
            slots=tuple(range(self.config.slots)),
            arrived_WTS=arrived_WTS,
            won_WRTS=won_WRTS,
        )

    @cached_property
    def table(self) -> Table:
        return self.table_at()

    def sample(self) -> Sample:
        """The run as :mod:`handoff.estimation.transport` sees it."""
        settings = {
            "the environment": self.identity["environment"],
            "the cut": self.config.cut,
            "the solver's budget": self.config.solve_budget,
        }
        names = {task.id: task.name for task in self.tasks}
        return Sample(str(self.folder), self.table, names, self.described, settings)


def load(path: str | Path) -> RecordedStudy:
    """Read the recorded-history run in ``path``, complete or not.

    Raises as :func:`handoff.protocols.frontier.study.load` does.
    """
    head = read_head(Path(path), NAME, RecordedConfig)
    folder, config = head["folder"], head["config"]
    formatter = () if config.formatter is None else (config.formatter,)
    named = {*config.reachers, *config.solvers, *formatter}
    others = sorted(named ^ {*head["manifest"]["identity"]["policies"]})
    if others:
        names = ", ".join(others)
        raise DataError(f"{folder}: the manifest's protocol names other policies than the manifest describes: {names}")
    known = {task.id for task in head["tasks"]}
    histories: dict[Cell, History] = {}
    of_rows: dict[str, dict[EndpointCell, Any]] = {kind: {} for kind in CLASSES}
    keys = []
    for line in read_records(folder, head["manifest"]):
        where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
        if len(line.key) < 2 or line.key[1] not in known:
            raise DataError(f"{where} is of no task that the manifest lists")
        kind = line.key[0]
        if kind == TRAJECTORY:
            history = from_json(History, line.body, where)
            require_key(line.key, trajectory_key(history.cell), where)
            _require_planned(history.cell, None, config, where)
            histories[history.cell] = history
        elif kind in config.kinds:
            one = from_json(CLASSES[kind], line.body, where)
            require_key(line.key, row_key(kind, one.row), where)
            _require_planned(one.row.cell, one.row.solver, config, where)
            of_rows[kind][one.row] = one
        else:
            raise DataError(f"{where} is of no known kind")
        keys.append(line.key)
    return RecordedStudy(
        **head,
        histories=histories,
        continuations=of_rows[CONTINUATION],
        formattings=of_rows[FORMATTING],
        repairs=of_rows[REPAIR],
        scorings=of_rows[VERDICT],
        keys=tuple(keys),
    )


def _require_planned(cell: Cell, solver: str | None, config: RecordedConfig, where: str) -> None:
    known = cell.reacher in config.reachers and (solver is None or solver in config.solvers)
    if not known or not 0 <= cell.slot < config.slots:
        raise DataError(f"{where} is not in the run's plan")
