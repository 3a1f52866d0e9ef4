"""Everything about a run that can be checked again, checked again from its records alone.

The audit trusts nothing that the run states.  Here: chain, seal, plan, seeds, inputs and the protocol's own logic,
which need neither the environment nor time.  :mod:`handoff.certification` replays the episodes.  No policy is ever run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError, StoreError
from handoff.policies import Request, Turn
from handoff.records import STATUSES, Endpoint, Record, Step, Task, Trajectory, to_json
from handoff.replay import records_digest
from handoff.seeds import REACH, SOLVE, SeedSchedule
from handoff.store import read_seal
from handoff.study import Study


@attrs.define
class Check:
    """One claim, how many things were held against it, and every failure in words."""

    name: str
    claim: str
    count: int = 0
    failures: list[str] = attrs.Factory(list)
    #: What a reader should know of the check's reach.
    notes: list[str] = attrs.Factory(list)

    @property
    def passed(self) -> bool:
        return not self.failures

    def require(self, condition: bool, failure: str) -> bool:
        self.count += 1
        if not condition:
            self.failures.append(failure)
        return condition


@attrs.define
class Audit:
    """The checks of one run, in order.  ``passed`` says that none failed and the run is complete."""

    folder: Path
    checks: list[Check] = attrs.Factory(list)

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def check(self, name: str, claim: str) -> Check:
        check = Check(name, claim)
        self.checks.append(check)
        return check

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "checks": [
                {
                    "name": c.name,
                    "claim": c.claim,
                    "count": c.count,
                    "passed": c.passed,
                    "failures": c.failures,
                    "notes": c.notes,
                }
                for c in self.checks
            ],
        }


class SealedRun(Protocol):
    """What the integrity checks need of a run that was read."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...

    @property
    def count(self) -> int:
        """Sealed records."""

    @property
    def still_owed(self) -> str:
        """What is owed, in words."""


R = TypeVar("R", bound=SealedRun)


def read_run(folder: Path, load: Callable[[Path], R]) -> tuple[Audit, R | None]:
    """The checks of the folder's own integrity, and the run that ``load`` reads (``None`` if it cannot be read)."""
    audit = Audit(folder)
    chain = audit.check("chain", "every record has its digest, its place and follows the one before")
    try:
        run = load(folder)
    except (StoreError, DataError) as error:
        if not (folder / "manifest.json").exists():
            raise
        chain.require(False, str(error))
        return audit, None
    chain.count = 1 + run.count
    seal = audit.check("seal", "the run is complete and its last record is the one that was sealed")
    stated = read_seal(folder)
    if stated is None:
        seal.require(False, f"not complete: {run.still_owed} are owed")
    else:
        lines = files.read(folder / "records.jsonl").splitlines()
        head = str(parse(lines[-1])["digest"]) if lines else str(run.manifest["digest"])
        seal.require(stated["records"] == len(lines), f"{len(lines)} records, but {stated['records']!r} were sealed")
        seal.require(stated["head"] == head, "the last record is not the one that was sealed")
    return audit, run


def check_records(audit: Audit, study: Study) -> None:
    """The checks that need neither the environment nor time: plan, seeds, pairing, inputs, inner consistency."""
    _check_plan(audit, study)
    _check_seeds(audit, study)
    _check_inputs(audit, study)
    _check_logic(audit, study)


def cells(study: Study) -> Iterator[tuple[Task, int, str]]:
    for task in study.tasks:
        for slot in range(study.slots):
            for reacher in study.reachers:
                yield task, slot, reacher


def name_cell(task: Task, slot: int, reacher: str, solver: str | None = None) -> str:
    cell = f"task {task.name}, slot {slot}, reacher {reacher}"
    return cell if solver is None else f"{cell}, solver {solver}"


def _check_plan(audit: Audit, study: Study) -> None:
    check = audit.check("crossing", "every planned trajectory and endpoint is there once, non-arrivals included")
    for task, slot, reacher in cells(study):
        found = (task.id, slot, reacher) in study.trajectories
        check.require(found, f"missing trajectory: {name_cell(task, slot, reacher)}")
        for solver in study.solvers:
            found = (task.id, slot, reacher, solver) in study.endpoints
            check.require(found, f"missing endpoint: {name_cell(task, slot, reacher, solver)}")
    extra = len(study.trajectories) + len(study.endpoints) - check.count
    if not check.failures:
        check.require(extra == 0, f"{extra} records are not in the plan")
    stated = study.protocol.get("tasks")  # none: all that there are, which the environment knows
    check.require(
        stated in (None, len(study.tasks)), f"the protocol states {stated} tasks, the manifest lists {len(study.tasks)}"
    )
    names = {*study.reachers, *study.solvers}
    check.require(
        set(study.policies) == names, f"policies in the manifest: {sorted(study.policies)}, used: {sorted(names)}"
    )


def _check_seeds(audit: Audit, study: Study) -> None:
    check = audit.check("seeds", "every seed is the schedule's, so that paired arms drew equal seeds")
    seeds = SeedSchedule(study.protocol["run_seed"])
    for (task, slot, reacher), run in study.trajectories.items():
        cell = name_cell(study.task(task), slot, reacher)
        check.require(run.reset_seed == seeds.reset(task, slot), f"{cell}: reset seed {run.reset_seed}")
        for position, step in enumerate(run.steps):
            expected = seeds.decision(task, slot, REACH, position)
            check.require(
                step.decision.seed == expected, f"{cell}: seed of decision {position + 1} is not the schedule's"
            )
    for (task, slot, reacher, solver), end in study.endpoints.items():
        cell = name_cell(study.task(task), slot, reacher, solver)
        for position, step in enumerate(end.steps):
            expected = seeds.decision(task, slot, SOLVE, position)
            check.require(
                step.decision.seed == expected, f"{cell}: seed of decision {position + 1} is not the schedule's"
            )


def requests_of(
    task: Task, reset: Record, before: Sequence[Step], steps: Sequence[Step], budget: int
) -> Iterator[Request]:
    """What was shown at each decision in ``steps``, from the records; ``before`` is an earlier policy's turn."""
    history = [Turn.of(step) for step in before]
    for position, step in enumerate(steps):
        yield Request(task, step.decision.seed, reset, tuple(history), budget - position)
        history.append(Turn.of(step))


def _check_inputs(audit: Audit, study: Study) -> None:
    check = audit.check("inputs", "every recorded input is what the records show; solvers of one clone got the same")
    for (id, slot, reacher), run in study.trajectories.items():
        task = study.task(id)
        budget = study.protocol["reach_budget"]
        for position, request in enumerate(requests_of(task, run.reset, (), run.steps, budget)):
            check.require(
                run.steps[position].decision.input_digest == request.input_digest(),
                f"{name_cell(task, slot, reacher)}: input of decision {position + 1} is not what the records show",
            )
    for task, slot, reacher in cells(study):
        trajectory = study.trajectories.get((task.id, slot, reacher))
        ends = [e for s in study.solvers if (e := study.endpoints.get((task.id, slot, reacher, s))) and e.arrived]
        if trajectory is None or not trajectory.arrived:
            continue
        budget = study.protocol["solve_budget"]
        for end in ends:
            asked = requests_of(task, trajectory.reset, trajectory.steps, end.steps, budget)
            for position, request in enumerate(asked):
                check.require(
                    end.steps[position].decision.input_digest == request.input_digest(),
                    f"{name_cell(task, slot, reacher, end.solver)}: input of decision {position + 1} is not what the "
                    "records show",
                )
        first = {
            (end.clone.digest, end.clone.input_digest, end.steps[0].decision.input_digest)
            for end in ends
            if end.clone and end.steps
        }
        check.require(
            len(first) <= 1, f"{name_cell(task, slot, reacher)}: its solvers did not get the same first input"
        )


def _check_logic(audit: Audit, study: Study) -> None:
    check = audit.check("protocol", "arrivals, outcomes, budgets and endpoints follow from the steps")
    for (id, slot, reacher), run in study.trajectories.items():
        cell = name_cell(study.task(id), slot, reacher)
        for problem in _trajectory_problems(run, study):
            check.failures.append(f"{cell}: {problem}")
        check.count += 1
    for (id, slot, reacher, solver), end in study.endpoints.items():
        cell = name_cell(study.task(id), slot, reacher, solver)
        trajectory = study.trajectories.get((id, slot, reacher))
        for problem in _endpoint_problems(end, trajectory, study):
            check.failures.append(f"{cell}: {problem}")
        check.count += 1


def _trajectory_problems(run: Trajectory, study: Study) -> Iterator[str]:
    if run.slot not in range(study.slots) or run.reacher not in study.reachers:
        yield "is not a cell of the plan"
    checks = [run.reset_check, *(step.check for step in run.steps)]
    records = run.records()
    if any(check is None for check in checks):
        yield "a state was not checked for membership"
        return
    members = [index for index, check in enumerate(checks) if check is not None and check.member]
    if any(check is not None and check.depth != study.depth for check in checks):
        yield f"a check is not of depth {study.depth}"
    ended = [index for index, record in enumerate(records) if record.won or record.done]
    last = len(run.steps)
    stops = sorted({*members, *ended})
    if stops and stops[0] != last:
        yield f"went on after it stood on the frontier or had ended at step {stops[0]}"
    if run.arrival != (members[0] if members else None):
        yield f"arrival {run.arrival} but the checks say {members[0] if members else None}"
    expected = "won" if records[-1].won else "terminal" if records[-1].done else "arrived" if members else "budget"
    if run.outcome != expected:
        yield f"outcome {run.outcome!r} but the records say {expected!r}"
    if last > study.protocol["reach_budget"] or (expected == "budget" and last != study.protocol["reach_budget"]):
        yield f"{last} actions of a budget of {study.protocol['reach_budget']}"
    yield from _decision_problems(records, run.steps)


def _endpoint_problems(end: Endpoint, trajectory: Trajectory | None, study: Study) -> Iterator[str]:
    if trajectory is None:
        yield "has no trajectory"
        return
    if end.arrived != trajectory.arrived:
        yield f"arrived {end.arrived} but its reacher's trajectory says {trajectory.arrived}"
        return
    if not end.arrived:
        if end.won or end.steps or end.clone is not None or end.bridge is not None:
            yield "did not arrive, yet has a continuation"
        return
    records = [trajectory.records()[-1], *(step.record for step in end.steps)]
    if end.won != any(record.won for record in records):
        yield f"won {end.won} but the records say {not end.won}"
    if any(record.won or record.done for record in records[:-1]):
        yield "went on after the episode had ended"
    budget = study.protocol["solve_budget"]
    if not end.steps or len(end.steps) > budget:
        yield f"{len(end.steps)} actions of a budget of {budget}"
        return
    if len(end.steps) < budget and not (records[-1].won or records[-1].done):
        yield f"stopped after {len(end.steps)} of {budget} actions though the episode had not ended"
    if end.bridge != (end.steps[0].decision.action in trajectory.certificate().bridges):
        yield f"bridge {end.bridge} contradicts the certificate"
    recorded = trajectory.records()
    if end.clone is None or end.clone.records != len(recorded) or end.clone.digest != records_digest(recorded):
        yield "its clone is not the arrival state"
    elif end.clone.input_digest != end.steps[0].decision.input_digest:
        yield "its first input is not the clone's"
    yield from _decision_problems(records, end.steps)


def _decision_problems(records: Sequence[Record], steps: Sequence[Step]) -> Iterator[str]:
    for position, step in enumerate(steps, start=1):
        decision = step.decision
        shown = records[position - 1]
        if decision.status not in STATUSES:
            yield f"decision {position} has the unknown status {decision.status!r}"
        if decision.status == "parsed" and decision.action not in shown.admissible:
            yield f"decision {position} is called parsed, but {decision.action!r} was not admissible"
        if decision.status == "inadmissible" and decision.action in shown.admissible:
            yield f"decision {position} is called inadmissible, but {decision.action!r} was admissible"
        if decision.action and decision.status not in ("parsed", "inadmissible"):
            yield f"decision {position} is called {decision.status}, yet has the action {decision.action!r}"
        if not decision.action and to_json(step.record) != to_json(shown):
            yield f"decision {position} took no action, yet the state changed"


def check_selection(audit: Audit, study: Study, available: Sequence[Task], drawn: Sequence[Task] | None) -> None:
    """That the tasks are there and are the ones that the selection seed draws from the split."""
    check = audit.check("tasks", "the tasks are the selection seed's draw from the split, each with its digest")
    by_id = {task.id: task for task in available}
    for task in study.tasks:
        found = by_id.get(task.id)
        if not check.require(found is not None, f"no game of digest {task.id[:12]}... (task {task.name}) is there"):
            continue
        assert found is not None
        same = (found.type, found.split) == (task.type, task.split)
        check.require(
            same, f"task {task.name} is stated as {task.type} of {task.split}, but is {found.type} of {found.split}"
        )
    if drawn is not None and check.passed:
        check.require([t.id for t in drawn] == [t.id for t in study.tasks], "the selection seed draws other tasks")
