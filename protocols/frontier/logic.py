"""What follows from the steps of an episode: arrivals, outcomes, budgets and endpoints.

An audit names every contradiction; a run that goes on refuses a finished record with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from handoff.auditing.checks import check_statuses
from handoff.errors import DataError
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.frontier.records import TRAJECTORY, Endpoint, Trajectory
from handoff.records import Record, Step, from_json, to_json
from handoff.replay import records_digest
from handoff.runs.chain import Key
from handoff.runs.folder import require_key


def contradiction(config: FrontierConfig, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
    """The first contradiction of a finished record, as a clause; ``body_of`` gives the bodies of others by key."""
    try:
        if key[0] == TRAJECTORY:
            trajectory = from_json(Trajectory, body)
            require_key(key, trajectory.cell.key, "its place")
            return next(trajectory_problems(trajectory, config), None)
        end = from_json(Endpoint, body)
        require_key(key, end.cell.key, "its place")
        body = body_of(end.cell.cell.key)
        start = None if body is None else from_json(Trajectory, body)
        return next(endpoint_problems(end, start, config), None)
    except DataError as error:
        return str(error)


def trajectory_problems(trajectory: Trajectory, config: FrontierConfig) -> Iterator[str]:
    """Where a trajectory contradicts itself or the configuration, as clauses."""
    if trajectory.slot not in range(config.slots) or trajectory.reacher not in config.reachers:
        yield "is not a cell of the plan"
    checks = [trajectory.reset_check, *(step.check for step in trajectory.steps)]
    records = trajectory.records()
    if any(check is None for check in checks):
        yield "a state was not checked for membership"
        return
    members = [index for index, check in enumerate(checks) if check is not None and check.member]
    if any(check is not None and check.depth != config.depth for check in checks):
        yield f"a check is not of depth {config.depth}"
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
    budget = config.reach_budget
    if last > budget or (expected == "budget" and last != budget):
        yield f"{last} actions of a budget of {budget}"
    yield from _decision_problems(records, trajectory.steps)


def endpoint_problems(end: Endpoint, trajectory: Trajectory | None, config: FrontierConfig) -> Iterator[str]:
    """Where an endpoint contradicts itself, its trajectory or the configuration, as clauses."""
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
    budget = config.solve_budget
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
        for problem in check_statuses(step.decision, before.offer()):
            yield f"decision {position} {problem}"
        if not step.decision.action and to_json(step.record) != to_json(before):
            yield f"decision {position} took no action, yet the state changed"
