"""A verified-frontier run read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from handoff.errors import DataError
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample
from handoff.protocols.frontier.config import FrontierConfig, cells
from handoff.protocols.frontier.records import ENDPOINT, TRAJECTORY, Cell, Endpoint, EndpointCell, Trajectory
from handoff.protocols.frontier.table import table_of
from handoff.records import from_json
from handoff.runs.chain import Key
from handoff.runs.folder import read_records, require_key
from handoff.runs.run import RecordedDecision, Run, read_head

NAME = "frontier"
DEPTH = "the depth D"


@attrs.frozen(kw_only=True)
class Study(Run):
    """The records of a verified-frontier run, as far as it has got."""

    config: FrontierConfig
    trajectories: Mapping[Cell, Trajectory] = attrs.field(repr=False)
    endpoints: Mapping[EndpointCell, Endpoint] = attrs.field(repr=False)

    @property
    def policies(self) -> Mapping[str, Mapping[str, Any]]:
        return self.described

    @property
    def reachers(self) -> tuple[str, ...]:
        return self.config.reachers

    @property
    def solvers(self) -> tuple[str, ...]:
        return self.config.solvers

    @property
    def slots(self) -> int:
        return self.config.slots

    @property
    def depth(self) -> int:
        return self.config.depth

    @property
    def planned(self) -> tuple[int, int]:
        """Trajectories and endpoints of the plan."""
        count = len(self.tasks) * self.slots * len(self.reachers)
        return count, count * len(self.solvers)

    @property
    def owed(self) -> tuple[int, int]:
        """Trajectories and endpoints that are not sealed yet."""
        return self.planned[0] - len(self.trajectories), self.planned[1] - len(self.endpoints)

    @property
    def count(self) -> int:
        return len(self.trajectories) + len(self.endpoints)

    @property
    def still_owed(self) -> str:
        return f"{self.owed[0]} trajectories and {self.owed[1]} endpoints" if any(self.owed) else ""

    def keys(self) -> Iterator[Key]:
        # Mappings keep the order in which lines were read.
        yield from (cell.key for cell in self.trajectories)
        yield from (cell.key for cell in self.endpoints)

    def cells(self) -> list[Cell]:
        """Every cell of the plan."""
        return cells(self.tasks, self.config)

    def label(self, cell: Cell | EndpointCell) -> str:
        """A cell in words."""
        label = f"task {self.task(cell.task).name}, slot {cell.slot}, reacher {cell.reacher}"
        return f"{label}, solver {cell.solver}" if isinstance(cell, EndpointCell) else label

    def endpoints_of(self, cell: Cell) -> list[Endpoint]:
        """The sealed endpoints of one trajectory, in the order of the solvers."""
        rows = [self.endpoints.get(EndpointCell(*cell, solver)) for solver in self.solvers]
        return [row for row in rows if row is not None]

    def decisions(self) -> Iterator[RecordedDecision]:
        for cell, trajectory in self.trajectories.items():
            label = self.label(cell)
            for before, step in zip(trajectory.records(), trajectory.steps, strict=False):
                yield RecordedDecision(label, cell.reacher, step.decision, before.offer())
        for row, end in self.endpoints.items():
            label, start = self.label(row), self.trajectories.get(row.cell)
            admissible = start.records()[-1].offer() if start is not None else None
            for step in end.steps:
                yield RecordedDecision(label, row.solver, step.decision, admissible)
                admissible = step.record.offer()

    def require_consistent(self) -> None:
        where = self.folder
        if not all(isinstance(facts, dict) for facts in self.policies.values()):
            raise DataError(f"{where}: the manifest describes a policy by something that is not an object")
        known = {task.id for task in self.tasks}
        if not self.tasks or len(known) != len(self.tasks):
            raise DataError(f"{where}: the manifest must list at least one task, and each once")
        for trajectory in self.trajectories.values():
            cell = f"{where}: the trajectory of {_words(trajectory.cell)}"
            if trajectory.reacher not in self.reachers or not 0 <= trajectory.slot < self.slots:
                raise DataError(f"{cell} is not in the run's plan")
            _require_arrival(trajectory, cell, self.depth)
        for end in self.endpoints.values():
            if end.cell.cell not in self.trajectories or end.solver not in self.solvers:
                words = f"{_words(end.cell.cell)}, solver {end.solver}"
                raise DataError(f"{where}: the endpoint of {words} has no trajectory in the run's plan")

    @cached_property
    def table(self) -> Table:
        """The table of ones and zeros.

        Raises :class:`~handoff.errors.StoreError` while records are owed, and :class:`~handoff.errors.DataError` for a
        run that contradicts itself.
        """
        self.require_complete()
        self.require_consistent()
        return table_of(
            self.tasks,
            self.trajectories.values(),
            self.endpoints.values(),
            reachers=self.reachers,
            solvers=self.solvers,
            budget=self.config.reach_budget,
        )

    def sample(self) -> Sample:
        """The run as :mod:`handoff.estimation.transport` sees it."""
        settings = {
            "the environment": self.identity["environment"],
            DEPTH: self.depth,
            "the solver's budget": self.config.solve_budget,
        }
        return Sample(
            str(self.folder), self.table, {task.id: task.name for task in self.tasks}, self.policies, settings
        )


def load(path: str | Path) -> Study:
    """Read the run in ``path``, complete or not.

    Every line's digest and place in the chain is verified.  Raises :class:`~handoff.errors.StoreError` or
    :class:`~handoff.errors.DataError`, naming the line, for a folder that is no run, a damaged line, or a record that
    is not what its key says.
    """
    head = read_head(Path(path), NAME, FrontierConfig)
    folder, config = head["folder"], head["config"]
    if not {*config.reachers, *config.solvers} <= set(head["manifest"]["identity"]["policies"]):
        raise DataError(f"{folder}: the manifest does not describe every policy that its protocol names")
    known = {task.id for task in head["tasks"]}
    trajectories: dict[Cell, Trajectory] = {}
    endpoints: dict[EndpointCell, Endpoint] = {}
    for line in read_records(folder, head["manifest"]):
        where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
        if len(line.key) < 2 or line.key[1] not in known:
            raise DataError(f"{where} is of no task that the manifest lists")
        if line.key[0] == TRAJECTORY:
            trajectory = from_json(Trajectory, line.body, where)
            require_key(line.key, trajectory.cell.key, where)
            _require_planned(trajectory.cell, config, where)
            trajectories[trajectory.cell] = trajectory
        elif line.key[0] == ENDPOINT:
            end = from_json(Endpoint, line.body, where)
            require_key(line.key, end.cell.key, where)
            _require_planned(end.cell.cell, config, where, end.solver)
            endpoints[end.cell] = end
        else:
            raise DataError(f"{where} is of no known kind")
    return Study(**head, trajectories=trajectories, endpoints=endpoints)


def _require_planned(cell: Cell, config: FrontierConfig, where: str, solver: str | None = None) -> None:
    known = cell.reacher in config.reachers and (solver is None or solver in config.solvers)
    if not known or not 0 <= cell.slot < config.slots:
        raise DataError(f"{where} is not in the run's plan")


def _words(cell: Cell) -> str:
    return f"task {cell.task}, seed slot {cell.slot}, reacher {cell.reacher}"


def _require_arrival(trajectory: Trajectory, cell: str, depth: int) -> None:
    arrival = trajectory.arrival
    if arrival is None:
        return
    if not 0 <= arrival <= len(trajectory.steps):
        raise DataError(f"{cell} arrives after {arrival} actions, but it has {len(trajectory.steps)}")
    check = trajectory.reset_check if arrival == 0 else trajectory.steps[arrival - 1].check
    if check is None or not check.member or check.depth != depth:
        raise DataError(f"{cell} arrives at a state that has no certificate of depth {depth}")
