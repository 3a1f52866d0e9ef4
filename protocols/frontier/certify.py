"""Certification: every episode of a run again, on the environment's reference implementation.

A trajectory is replayed once together with its first continuation, and once more for every other one; each pass
compares every record on the way (:mod:`handoff.replay`).  Every frontier check, at reset and after every action, is
searched again and must give the same certificate.  Scripted policies decide again on the way
(:mod:`handoff.auditing.scripted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from handoff.auditing import scripted
from handoff.auditing.checks import Audit, Check
from handoff.auditing.scripted import Redecided
from handoff.episodes.batching import gather
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Pool
from handoff.errors import DataError, ReplayMismatch
from handoff.progress import Progress, Tick
from handoff.protocols.frontier.records import Endpoint, Trajectory
from handoff.protocols.frontier.study import Study
from handoff.records import Certificate, Task, to_json
from handoff.runs.run import requests_of

CLAIMS = {
    "replay": "every trajectory's records are equal on the reference engine",
    "continuations": "every continuation's records are equal on the reference engine",
    "frontier": "every membership check and distance, searched again, is the same",
    "decisions": scripted.CLAIM,
}


@attrs.frozen
class _Pass:
    """One pass over an episode: a trajectory, then (if given) a continuation of it.  ``first`` is the pass that also
    searches the frontiers."""

    task: Task
    trajectory: Trajectory
    endpoint: Endpoint | None
    first: bool
    #: The episode in words.
    label: str


@attrs.frozen
class _Checks:
    runs: Check
    ends: Check
    frontier: Check
    decisions: Check

    def distances(self, cell: str, first: int, stated: Sequence[int | None], views: Sequence[View]) -> None:
        """Compare recorded distances with those views (nothing was asked and nothing recorded: no difference)."""
        for position, (theirs, view) in enumerate(zip(stated, views, strict=True), start=first):
            if theirs != view.distance:
                self.frontier.failures.append(
                    f"{cell}: state after action {position}: distance was recorded as {theirs} and is {view.distance}"
                )


async def certify(
    audit: Audit, study: Study, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
) -> None:
    """Add the checks ``replay``, ``continuations``, ``frontier`` and ``decisions`` to ``audit``.

    ``pool`` holds reference environments and ``tasks`` the study's tasks by id, with their sources; a missing task
    was already reported.
    """
    checks = _Checks(*(audit.check(name, claim) for name, claim in CLAIMS.items()))
    if not any(trajectory.arrived for trajectory in study.trajectories.values()):
        checks.ends.excuse("no trajectory arrived")
    passes = []
    for cell, trajectory in study.trajectories.items():
        if cell.task not in tasks:
            continue
        followers: list[Endpoint | None] = [end for end in study.endpoints_of(cell) if end.arrived]
        for index, endpoint in enumerate(followers or [None]):
            label = study.label(cell if endpoint is None else endpoint.cell)
            passes.append(_Pass(tasks[cell.task], trajectory, endpoint, first=index == 0, label=label))
    again = Redecided(study.described, checks.decisions)
    with progress.phase("replay", len(passes)) as tick:
        await gather([partial(_run, job, pool, study, checks, again, tick) for job in passes], concurrency)
    for check in (checks.runs, checks.ends, checks.frontier, checks.decisions):
        check.failures.sort()


async def _run(job: _Pass, pool: Pool, study: Study, checks: _Checks, again: Redecided, tick: Tick) -> None:
    run = job.trajectory
    distances = study.config.distances
    actions = [step.decision.action or "" for step in run.steps]
    more = [step.decision.action or "" for step in job.endpoint.steps] if job.endpoint else []
    after = [step.record for step in job.endpoint.steps] if job.endpoint else []
    checks.runs.count += job.first
    checks.ends.count += job.endpoint is not None
    solver = () if job.endpoint is None else (job.endpoint.solver,)
    plan = again.needs_plan(run.reacher, *solver) if job.first else again.needs_plan(*solver)
    async with pool.episode() as episode:
        try:
            if job.first:
                ask = Ask(depth=study.depth, plan=plan, distances=distances)
                views = await episode.certify_along(job.task, run.reset_seed, actions, run.records(), ask)
                stated = [run.reset_check, *(step.check for step in run.steps)]
                for position, (theirs, view) in enumerate(zip(stated, views, strict=True)):
                    mine = view.certificate
                    where = f"{job.label}: state after action {position}"
                    checks.frontier.require(theirs == mine, f"{where}: {_compare(theirs, mine)}")
                curve = [run.reset_distance, *(step.distance for step in run.steps)]
                checks.distances(job.label, 0, curve, views)
                _decide_again(again, study, study.label(run.cell), run, None, views)
                clone = views[-1]
            else:
                clone = await episode.replay(job.task, run.reset_seed, actions, run.records(), Ask(plan=plan))
        except (ReplayMismatch, DataError) as error:
            checks.runs.failures.append(f"{job.label}: {error}")
        else:
            try:
                ask = Ask(plan=plan, distances=distances)
                views = await episode.follow(more, [run.records()[-1], *after], len(actions), ask)
                curve = [step.distance for step in job.endpoint.steps] if job.endpoint else []
                checks.distances(job.label, len(actions) + 1, curve, views)
                if job.endpoint is not None:
                    _decide_again(again, study, job.label, run, job.endpoint, [clone, *views])
            except (ReplayMismatch, DataError) as error:
                checks.ends.failures.append(f"{job.label}: {error}")
    tick()


def _decide_again(
    again: Redecided, study: Study, label: str, run: Trajectory, end: Endpoint | None, views: Sequence[View]
) -> None:
    """Hold the reacher's decisions, or those of ``end``, against what its policy decides in the states of ``views``."""
    config, task = study.config, study.task(run.task)
    if end is None:
        name, steps = run.reacher, run.steps
        requests = requests_of(task, run.reset, (), steps, config.reach_budget)
    else:
        name, steps = end.solver, end.steps
        requests = requests_of(task, run.reset, run.steps, steps, config.solve_budget)
    for position, (request, step, view) in enumerate(zip(requests, steps, views, strict=False), start=1):
        again.require(name, label, position, request, view.plan, step.decision)


def _compare(stated: Certificate | None, actual: Certificate | None) -> str:
    if stated is None or actual is None:
        return "it was not checked"
    left, right = to_json(stated), to_json(actual)
    field = next(name for name in left if left[name] != right[name]) if left != right else "nothing"
    return f"{field} was recorded as {left.get(field)!r:.120} and is {right.get(field)!r:.120}"
