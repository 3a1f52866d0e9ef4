"""Everything about a run that can be checked again, checked again from its records alone.

The audit trusts nothing that the run states.  Here: chain, seal, plan, seeds, inputs and the protocol's own logic,
which need neither the environment nor time.  :mod:`handoff.protocols.frontier.certify` replays the episodes.  No policy is ever run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from handoff.auditing.checks import Audit, _check_identity, _check_order, _stated, read_run
from handoff.auditing.policies import check_policies
from handoff.auditing.reference import _Place, _Reference
from handoff.progress import Progress
from handoff.protocols.frontier import config as frontier_config
from handoff.protocols.frontier import study
from handoff.protocols.frontier.certify import certify
from handoff.protocols.frontier.prompt_audit import check_prompts
from handoff.protocols.frontier.records import Endpoint, Trajectory
from handoff.protocols.frontier.study import Study, cells, name_cell, requests_of
from handoff.records import STATUSES, Record, Step, Task, from_json, to_json
from handoff.replay import records_digest
from handoff.seeds import REACH, SOLVE, SeedSchedule


def check_records(audit: Audit, study: Study) -> None:
    """The checks that need neither the environment nor time: plan, seeds, pairing, inputs, inner consistency."""
    _check_plan(audit, study)
    _check_seeds(audit, study)
    _check_inputs(audit, study)
    _check_logic(audit, study)


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


def _audit_frontier(folder: Path, place: _Place, progress: Progress, replay: bool, templates: Sequence[str]) -> Audit:
    result, run = read_run(folder, study.load)
    if run is None:
        return result
    config = from_json(frontier_config.Config, _stated(run), f"{folder}: the manifest's protocol")
    _check_identity(result, run)
    # Mappings keep the order in which lines were read.
    found = (
        *(("trajectory", task, str(slot), reacher) for task, slot, reacher in run.trajectories),
        *(("endpoint", task, str(slot), *names) for task, slot, *names in run.endpoints),
    )
    _check_order(result, frontier_config.plan(run.tasks, config), found)
    check_records(result, run)
    check_prompts(result, run, templates)
    check_policies(result, run)
    if replay:
        with _Reference(result, run, place, config) as reference:
            reference.run(lambda pool, tasks, lanes: certify(result, run, pool, tasks, progress, lanes))
    return result
