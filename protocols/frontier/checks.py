"""What an audit checks from the records of a verified-frontier run alone: plan, seeds, inputs, the protocol's logic.

The audit trusts no statement of the run.  No policy is ever run.  :mod:`handoff.protocols.frontier.certify` replays the
episodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from handoff.auditing.checks import MOST_MISSING, Audit
from handoff.protocols.frontier.logic import endpoint_problems, trajectory_problems
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.frontier.search import search_totals
from handoff.protocols.frontier.study import Study
from handoff.records import Record, Step
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
        check.collect(study.label(cell), trajectory_problems(trajectory, study.config))
    for row, end in study.endpoints.items():
        check.collect(study.label(row), endpoint_problems(end, study.trajectories.get(row.cell), study.config))
    totals = search_totals(study)
    for which, searched in (("accepted", totals.accepted), ("checked", totals.checked)):
        check.notes.append(f"tried by the search for the frontier, from {which} states: {searched.words}")
