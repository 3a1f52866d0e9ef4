"""What an audit checks from the records of a verified-frontier run alone: plan, seeds, inputs, the protocol's logic.

The audit trusts no statement of the run.  No policy is ever run.  :mod:`handoff.protocols.frontier.certify` replays the
episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handoff.auditing.checks import MOST_MISSING, Audit, check_statuses
from handoff.protocols.frontier.records import Cell, Endpoint, EndpointCell, Trajectory
from handoff.protocols.frontier.study import Study
from handoff.records import Record, Step, to_json
from handoff.replay import records_digest
from handoff.runs.run import requests_of
from handoff.seeds import REACH, SOLVE, SeedSchedule


def check_records(audit: Audit, study: Study) -> None:
    """The checks that need neither the environment nor time."""
    _check_plan(audit, study)
    _check_seeds(audit, study)
    _check_inputs(audit, study)
    _check_logic(audit, study)


def _check_plan(audit: Audit, study: Study) -> None:
    check = audit.check("crossing", "every planned trajectory and endpoint is there, non-arrivals included")
    # Every record has its place in the plan, each place at most one: what is missing is a matter of counts.
    if sum(study.owed) > MOST_MISSING:
        check.require(False, f"missing: {study.still_owed}")
    else:
        for cell in study.cells():
            check.require(cell in study.trajectories, f"missing trajectory: {study.label(cell)}")
            for solver in study.solvers:
                row = EndpointCell(*cell, solver)
                check.require(row in study.endpoints, f"missing endpoint: {study.label(row)}")
    if not check.failures:
        check.require(sum(study.owed) == 0, f"{-sum(study.owed)} records are not in the plan")
    stated = study.config.tasks  # none: all that the environment has
    check.require(
        stated in (None, len(study.tasks)), f"the protocol states {stated} tasks, the manifest lists {len(study.tasks)}"
    )
    names = {*study.reachers, *study.solvers}
    check.require(
        set(study.policies) == names, f"policies in the manifest: {sorted(study.policies)}, used: {sorted(names)}"
    )


def _check_seeds(audit: Audit, study: Study) -> None:
    check = audit.check("seeds", "every stated seed is the schedule's, which is the same for paired arms")
    seeds = SeedSchedule(study.config.run_seed)

    def require(cell: Cell | EndpointCell, steps: Sequence[Step], purpose: str) -> None:
        for position, step in enumerate(steps):
            expected = seeds.decision(cell.task, cell.slot, purpose, position)
            failure = f"{study.label(cell)}: seed of decision {position + 1} is not the schedule's"
            check.require(step.decision.seed == expected, failure)

    for cell, trajectory in study.trajectories.items():
        expected = seeds.reset(cell.task, cell.slot)
        failure = f"{study.label(cell)}: reset seed {trajectory.reset_seed}"
        check.require(trajectory.reset_seed == expected, failure)
        require(cell, trajectory.steps, REACH)
    for row, end in study.endpoints.items():
        require(row, end.steps, SOLVE)


def _check_inputs(audit: Audit, study: Study) -> None:
    check = audit.check(
        "inputs", "every input's digest is that of what the records show, one per clone for all solvers"
    )
    if not any(True for _ in study.decisions()):
        check.excuse("no policy had anything to decide")

    def require(
        cell: Cell | EndpointCell, reset: Record, before: Sequence[Step], steps: Sequence[Step], budget: int
    ) -> None:
        requests = requests_of(study.task(cell.task), reset, before, steps, budget)
        for position, (request, step) in enumerate(zip(requests, steps, strict=True), start=1):
            failure = f"{study.label(cell)}: input of decision {position} is not what the records show"
            check.require(step.decision.input_digest == request.input_digest(), failure)

    for cell, trajectory in study.trajectories.items():
        require(cell, trajectory.reset, (), trajectory.steps, study.config.reach_budget)
    for cell, start in study.trajectories.items():
        if not start.arrived:
            continue
        ends = [end for end in study.endpoints_of(cell) if end.arrived]
        for end in ends:
            require(end.cell, start.reset, start.steps, end.steps, study.config.solve_budget)
        first = {
            (end.clone.digest, end.clone.input_digest, end.steps[0].decision.input_digest)
            for end in ends
            if end.clone and end.steps
        }
        check.require(len(first) <= 1, f"{study.label(cell)}: its solvers did not get the same first input")


def _check_logic(audit: Audit, study: Study) -> None:
    check = audit.check("protocol", "arrivals, outcomes, budgets and endpoints follow from the steps")
    for cell, trajectory in study.trajectories.items():
        check.collect(study.label(cell), _trajectory_problems(trajectory, study))
    for row, end in study.endpoints.items():
        check.collect(study.label(row), _endpoint_problems(end, study.trajectories.get(row.cell), study))


def _trajectory_problems(trajectory: Trajectory, study: Study) -> Iterator[str]:
    if trajectory.slot not in range(study.slots) or trajectory.reacher not in study.reachers:
        yield "is not a cell of the plan"
    checks = [trajectory.reset_check, *(step.check for step in trajectory.steps)]
    records = trajectory.records()
    if any(check is None for check in checks):
        yield "a state was not checked for membership"
        return
    members = [index for index, check in enumerate(checks) if check is not None and check.member]
    if any(check is not None and check.depth != study.depth for check in checks):
        yield f"a check is not of depth {study.depth}"
    ended = [index for index, record in enumerate(records) if record.won or record.done]
    last = len(trajectory.steps)
    stops = sorted({*members, *ended})
    if stops and stops[0] != last:
        yield f"went on after it stood on the frontier or had ended at step {stops[0]}"
    if trajectory.arrival != (members[0] if members else None):
        yield f"arrival {trajectory.arrival} but the checks say {members[0] if members else None}"
    expected = "won" if records[-1].won else "terminal" if records[-1].done else "arrived" if members else "budget"
    if trajectory.outcome != expected:
        yield f"outcome {trajectory.outcome!r} but the records say {expected!r}"
    budget = study.config.reach_budget
    if last > budget or (expected == "budget" and last != budget):
        yield f"{last} actions of a budget of {budget}"
    yield from _decision_problems(records, trajectory.steps)


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
    recorded = trajectory.records()
    records = [recorded[-1], *(step.record for step in end.steps)]
    if end.won != any(record.won for record in records):
        yield f"won {end.won} but the records say {not end.won}"
    if any(record.won or record.done for record in records[:-1]):
        yield "went on after the episode had ended"
    if any(step.check is not None for step in end.steps):
        yield "a solver's step has a frontier check, which no solver's step has"
    budget = study.config.solve_budget
    if not end.steps or len(end.steps) > budget:
        yield f"{len(end.steps)} actions of a budget of {budget}"
        return
    if len(end.steps) < budget and not (records[-1].won or records[-1].done):
        yield f"stopped after {len(end.steps)} of {budget} actions though the episode had not ended"
    if end.bridge != (end.steps[0].decision.action in trajectory.certificate().bridges):
        yield f"bridge {end.bridge} contradicts the certificate"
    if end.clone is None or end.clone.records != len(recorded) or end.clone.digest != records_digest(recorded):
        yield "its clone is not the arrival state"
    elif end.clone.input_digest != end.steps[0].decision.input_digest:
        yield "its first input is not the clone's"
    yield from _decision_problems(records, end.steps)


def _decision_problems(records: Sequence[Record], steps: Sequence[Step]) -> Iterator[str]:
    for position, (before, step) in enumerate(zip(records, steps, strict=False), start=1):
        for problem in check_statuses(step.decision, before.admissible):
            yield f"decision {position} {problem}"
        if not step.decision.action and to_json(step.record) != to_json(before):
            yield f"decision {position} took no action, yet the state changed"
