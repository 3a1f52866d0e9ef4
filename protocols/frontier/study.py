"""A run folder read back: what the records say, without the environment or the policies that made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff.errors import DataError, StoreError
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample
from handoff.policies import Request, Turn
from handoff.protocols.frontier.records import Endpoint, Trajectory
from handoff.protocols.frontier.table import table_of
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import Decision, Record, Step, Task, from_json
from handoff.runs.folder import read_manifest, read_records, read_seal, require_key
from handoff.text import require_printable

Cell = tuple[str, int, str]


@attrs.frozen
class Study:
    """The records of a verified-frontier run, as far as it has got.

    ``trajectories`` are keyed by (task, slot, reacher), ``endpoints`` by (task, slot, reacher, solver).
    """

    folder: Path
    manifest: Mapping[str, Any] = attrs.field(repr=False)
    tasks: tuple[Task, ...] = attrs.field(repr=False)
    trajectories: Mapping[Cell, Trajectory] = attrs.field(repr=False)
    endpoints: Mapping[tuple[str, int, str, str], Endpoint] = attrs.field(repr=False)
    sealed: bool

    @property
    def identity(self) -> Mapping[str, Any]:
        return _mapping(self.manifest, "identity")

    @property
    def protocol(self) -> Mapping[str, Any]:
        return _mapping(self.identity, "protocol")

    @property
    def policies(self) -> Mapping[str, Mapping[str, Any]]:
        return _mapping(self.identity, "policies")

    @property
    def reachers(self) -> tuple[str, ...]:
        return tuple(self.protocol["reachers"])

    @property
    def solvers(self) -> tuple[str, ...]:
        return tuple(self.protocol["solvers"])

    @property
    def slots(self) -> int:
        return int(self.protocol["slots"])

    @property
    def depth(self) -> int:
        return int(self.protocol["depth"])

    @property
    def planned(self) -> tuple[int, int]:
        """How many trajectories and endpoints the plan has."""
        cells = len(self.tasks) * self.slots * len(self.reachers)
        return cells, cells * len(self.solvers)

    @property
    def owed(self) -> tuple[int, int]:
        """How many trajectories and endpoints are not sealed yet."""
        return self.planned[0] - len(self.trajectories), self.planned[1] - len(self.endpoints)

    @property
    def count(self) -> int:
        """Sealed records."""
        return len(self.trajectories) + len(self.endpoints)

    @property
    def still_owed(self) -> str:
        """What is owed, in words."""
        return f"{self.owed[0]} trajectories and {self.owed[1]} endpoints"

    def task(self, id: str) -> Task:
        """The task called ``id``.  Raises :class:`~handoff.errors.DataError` if the manifest lists no such task."""
        for task in self.tasks:
            if task.id == id:
                return task
        raise DataError(f"{self.folder} has a record of task {id[:12]}..., which its manifest does not list")

    def table(self) -> Table:
        """The table of ones and zeros.  Raises :class:`~handoff.errors.StoreError` while records are owed."""
        if any(self.owed):
            raise StoreError(
                f"{self.folder} is not complete: {self.owed[0]} trajectories and {self.owed[1]} endpoints are owed; "
                "type the command that started it again"
            )
        return table_of(
            self.tasks,
            self.trajectories.values(),
            self.endpoints.values(),
            reachers=self.reachers,
            solvers=self.solvers,
            budget=int(self.protocol["reach_budget"]),
        )


def load(path: str | Path) -> Study:
    """Read the run in ``path``, complete or not.

    Every line's digest and place in the chain is verified.  Raises :class:`~handoff.errors.StoreError` or
    :class:`~handoff.errors.DataError`, naming the line, for a folder that is no run, a damaged line, or a record that
    is not what its key says.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    check_manifest(manifest, folder)
    tasks = tuple(from_json(Task, form, f"{folder}: task in manifest") for form in manifest["identity"]["tasks"])
    known = {task.id for task in tasks}
    trajectories: dict[Cell, Trajectory] = {}
    endpoints: dict[tuple[str, int, str, str], Endpoint] = {}
    require_printable("task", [word for task in tasks for word in (task.id, task.name, task.type, task.split)])
    require_printable("policy", [*manifest["identity"]["protocol"]["reachers"], *manifest["identity"]["policies"]])
    require_printable("policy", manifest["identity"]["protocol"]["solvers"])
    for line in read_records(folder, manifest):
        where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
        if len(line.key) < 2 or line.key[1] not in known:
            raise DataError(f"{where} is of no task that the manifest lists")
        if line.key[0] == "trajectory":
            trajectory = from_json(Trajectory, line.body, where)
            require_key(line.key, ("trajectory", trajectory.task, str(trajectory.slot), trajectory.reacher), where)
            trajectories[trajectory.task, trajectory.slot, trajectory.reacher] = trajectory
        elif line.key[0] == "endpoint":
            end = from_json(Endpoint, line.body, where)
            require_key(line.key, ("endpoint", end.task, str(end.slot), end.reacher, end.solver), where)
            endpoints[end.task, end.slot, end.reacher, end.solver] = end
        else:
            raise DataError(f"{where} is of no known kind")
    return Study(folder, manifest, tasks, trajectories, endpoints, sealed=read_seal(folder) is not None)


def check_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise :class:`~handoff.errors.DataError` unless the manifest has the form of a frontier run's."""
    identity = manifest["identity"]
    protocol = identity.get("protocol") if isinstance(identity, dict) else None
    if not isinstance(protocol, dict) or protocol.get("name") != "frontier":
        raise DataError(f"{folder} is not a handoff run; of rollouts, `handoff tax` and `handoff audit` tell more")
    kinds: dict[str, type] = {
        "reachers": list, "solvers": list, "slots": int, "depth": int, "reach_budget": int, "solve_budget": int,
        "run_seed": int, "selection_seed": int, "split": str,
    }  # fmt: skip
    for key, kind in kinds.items():
        if type(protocol.get(key)) is not kind:
            raise DataError(f"{folder}: the manifest's protocol has no valid {key!r}")
    for key in ("reachers", "solvers"):
        if not all(isinstance(name, str) for name in protocol[key]):
            raise DataError(f"{folder}: the manifest's protocol has no valid {key!r}")
    for key, kind in (("tasks", list), ("policies", dict), ("environment", dict)):
        if type(identity.get(key)) is not kind:
            raise DataError(f"{folder}: the manifest has no valid {key!r}")
    if not {*protocol["reachers"], *protocol["solvers"]} <= set(identity["policies"]):
        raise DataError(f"{folder}: the manifest does not describe every policy that its protocol names")


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = data[key]
    return value


def cells(study: Study) -> Iterator[tuple[Task, int, str]]:
    for task in study.tasks:
        for slot in range(study.slots):
            for reacher in study.reachers:
                yield task, slot, reacher


def name_cell(task: Task, slot: int, reacher: str, solver: str | None = None) -> str:
    cell = f"task {task.name}, slot {slot}, reacher {reacher}"
    return cell if solver is None else f"{cell}, solver {solver}"


def requests_of(
    task: Task, reset: Record, before: Sequence[Step], steps: Sequence[Step], budget: int
) -> Iterator[Request]:
    """What was shown at each decision in ``steps``, from the records; ``before`` is an earlier policy's turn."""
    history = [Turn.of(step) for step in before]
    for position, step in enumerate(steps):
        yield Request(task, step.decision.seed, reset, tuple(history), budget - position)
        history.append(Turn.of(step))


DEPTH = "the depth D"


def sample_of(run: Study, table: Table | None = None) -> Sample:
    """A run as transport sees it (``table``: its table, where that is at hand already)."""
    settings = {
        "the environment": run.identity["environment"],
        DEPTH: run.depth,
        "the solver's budget": run.protocol["solve_budget"],
    }
    names = {task.id: task.name for task in run.tasks}
    return Sample(str(run.folder), table or run.table(), names, run.policies, settings)


def _decisions(run: Study | RolloutStudy) -> Iterator[tuple[str, str, Decision, Sequence[str] | None]]:
    """Every decision: its cell, whose it is, and the admissible actions of what it was shown, where these are known."""
    if isinstance(run, RolloutStudy):
        for (task, policy, index), one in run.rollouts.items():
            for decision in one.decisions:
                yield f"task {task[:12]}, policy {policy}, rollout {index}", policy, decision, None
        return
    for (task, slot, reacher), trajectory in run.trajectories.items():
        cell = name_cell(run.task(task), slot, reacher)
        for before, step in zip(trajectory.records(), trajectory.steps, strict=False):
            yield cell, reacher, step.decision, before.admissible
    for (task, slot, reacher, solver), end in run.endpoints.items():
        cell = name_cell(run.task(task), slot, reacher, solver)
        arrived = run.trajectories.get((task, slot, reacher))
        shown = arrived.records()[-1].admissible if arrived is not None else None
        for step in end.steps:
            yield cell, solver, step.decision, shown
            shown = step.record.admissible


def require_consistent(study: Study) -> None:
    """Raise :class:`~handoff.errors.DataError`, naming the record, where a run contradicts itself."""
    where = study.folder
    for key in ("slots", "depth", "reach_budget", "solve_budget"):
        if study.protocol[key] < 1:
            raise DataError(
                f"{where}: the manifest's protocol has {key} {study.protocol[key]}, and it must be at least 1"
            )
    for key in ("reachers", "solvers"):
        names = study.protocol[key]
        if not names or len(set(names)) != len(names):
            raise DataError(f"{where}: the manifest's protocol must name each of its {key} once")
    if not all(isinstance(facts, dict) for facts in study.policies.values()):
        raise DataError(f"{where}: the manifest describes a policy by something that is not an object")
    known = {task.id for task in study.tasks}
    if not study.tasks or len(known) != len(study.tasks):
        raise DataError(f"{where}: the manifest must list at least one task, and each once")
    for run in study.trajectories.values():
        cell = f"{where}: the trajectory of task {run.task}, seed slot {run.slot}, reacher {run.reacher}"
        if run.task not in known or run.reacher not in study.reachers or not 0 <= run.slot < study.slots:
            raise DataError(f"{cell} is not in the run's plan")
        _require_arrival(run, cell, study.depth)
    for end in study.endpoints.values():
        cell = f"task {end.task}, seed slot {end.slot}, reacher {end.reacher}, solver {end.solver}"
        if (end.task, end.slot, end.reacher) not in study.trajectories or end.solver not in study.solvers:
            raise DataError(f"{where}: the endpoint of {cell} has no trajectory in the run's plan")


def _require_arrival(run: Trajectory, cell: str, depth: int) -> None:
    if run.arrival is None:
        return
    if not 0 <= run.arrival <= len(run.steps):
        raise DataError(f"{cell} arrives after {run.arrival} actions, but it has {len(run.steps)}")
    check = run.reset_check if run.arrival == 0 else run.steps[run.arrival - 1].check
    if check is None or not check.member or check.depth != depth:
        raise DataError(f"{cell} arrives at a state that has no certificate of depth {depth}")
