"""The audit of a run: its records against themselves, then against the environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import __version__, interrupts, launch, rollout_study, study
from handoff import environment as registry
from handoff import workers as places
from handoff.audit import Audit, check_records, read_run
from handoff.certification import certify, certify_rollouts, reference_options
from handoff.errors import UsageError
from handoff.policy_audit import check_policies
from handoff.progress import Progress
from handoff.prompt_audit import check_prompts
from handoff.protocols import frontier, rollouts
from handoff.protocols.temperatures import check_temperatures
from handoff.records import STATUSES, Task, from_json
from handoff.rollout import Pool
from handoff.rollout_study import RolloutStudy
from handoff.seeds import ROLLOUT, SeedSchedule
from handoff.store import Damage, Key, differing_keys
from handoff.study import Study


def audit(
    folder: Path,
    overrides: Mapping[str, Any],
    workers: int | None,
    progress: Progress,
    replay: bool = True,
    ray: str | None = None,
    templates: Sequence[str] = (),
) -> Audit:
    """Audit the run in ``folder``, of whichever protocol.

    ``overrides`` are environment options that take the place of those that the run was made with (where its data lies
    now); ``replay`` false leaves out what needs the environment; ``workers`` and ``ray`` say where that lives
    (:func:`handoff.workers.start`); ``templates`` are prompt templates, by file, that may be rendered beside the
    toolkit's own.  Raises :class:`~handoff.errors.StoreError` if
    ``folder`` is no run and :class:`~handoff.errors.UsageError` if its environment or data cannot be found.
    """
    try:
        name = rollout_study.protocol_name(folder)
    except Damage:
        name = frontier.NAME  # reading the run fails the first check, with the reason
    if name == rollouts.NAME:
        return _audit_rollouts(folder, _Place(overrides, workers, ray), progress, replay)
    return _audit_frontier(folder, _Place(overrides, workers, ray), progress, replay, templates)


@attrs.frozen
class _Place:
    """Where the environments of the replays live, and the options that they are given there."""

    overrides: Mapping[str, Any]
    workers: int | None
    ray: str | None


def _audit_frontier(folder: Path, place: _Place, progress: Progress, replay: bool, templates: Sequence[str]) -> Audit:
    result, run = read_run(folder, study.load)
    if run is None:
        return result
    config = from_json(frontier.Config, _stated(run), f"{folder}: the manifest's protocol")
    _check_identity(result, run)
    # Mappings keep the order in which lines were read.
    found = (
        *(("trajectory", task, str(slot), reacher) for task, slot, reacher in run.trajectories),
        *(("endpoint", task, str(slot), *names) for task, slot, *names in run.endpoints),
    )
    _check_order(result, frontier.plan(run.tasks, config), found)
    check_records(result, run)
    check_prompts(result, run, templates)
    check_policies(result, run)
    if replay:
        with _Reference(result, run, place, config) as reference:
            reference.run(lambda pool, tasks, lanes: certify(result, run, pool, tasks, progress, lanes))
    return result


def _audit_rollouts(folder: Path, place: _Place, progress: Progress, replay: bool) -> Audit:
    result, run = read_run(folder, rollout_study.load)
    if run is None:
        return result
    config = from_json(rollouts.Config, _stated(run), f"{folder}: the manifest's protocol")
    _check_identity(result, run)
    found = (("rollout", task, policy, str(index)) for task, policy, index in run.rollouts)
    _check_order(result, rollouts.plan(run.tasks, config), found)
    complete = result.check("rollouts", "every planned rollout is there once")
    for key in rollouts.plan(run.tasks, config):
        complete.require((key[1], key[2], int(key[3])) in run.rollouts, f"missing: {'/'.join(key)}")
    check_temperatures(result, run, config)
    check_policies(result, run)
    seeds, schedule = result.check("seeds", "every seed is the schedule's"), SeedSchedule(config.run_seed)
    logic = result.check("protocol", "successes, outcomes and budgets follow from the decisions")
    for (task, policy, index), one in run.rollouts.items():
        cell = f"task {task[:12]}, policy {policy}, rollout {index}"
        seeds.require(one.reset_seed == schedule.reset(task, index), f"{cell}: reset seed")
        for position, decision in enumerate(one.decisions):
            expected = schedule.decision(task, index, ROLLOUT, position)
            seeds.require(decision.seed == expected, f"{cell}: seed of decision {position + 1} is not the schedule's")
        known = all(decision.status in STATUSES for decision in one.decisions)
        logic.require(known, f"{cell}: a decision has an unknown status")
        actions = len(one.decisions)
        whole = one.outcome in ("won", "terminal") or (one.outcome == "budget" and actions == config.budget)
        right = (one.outcome == "won") == one.won and one.records == actions + 1 and actions <= config.budget
        logic.require(whole and right, f"{cell}: outcome {one.outcome!r} after {actions} of {config.budget} actions")
    if replay:
        with _Reference(result, run, place, config) as reference:
            reference.run(lambda pool, tasks, lanes: certify_rollouts(result, run, pool, tasks, progress, lanes))
    return result


def _check_identity(result: Audit, run: Study | RolloutStudy) -> None:
    check = result.check("identity", "the manifest states this version of the toolkit and the seeds that were used")
    made_by = run.identity.get("handoff")
    check.require(made_by == __version__, f"made by handoff {made_by!r:.40}; this is {__version__}")
    seeds = launch.stated_seeds(run.protocol["run_seed"])
    check.require(run.identity.get("seeds") == seeds, f"seeds {run.identity.get('seeds')!r:.200} instead of {seeds}")


def _stated(run: Study | RolloutStudy) -> dict[str, Any]:
    return {key: value for key, value in run.protocol.items() if key != "name"}


def _check_order(result: Audit, planned: Sequence[Key], found: Iterator[Key] | Sequence[Key]) -> None:
    check = result.check("order", "records are sealed in the plan's order")
    for mine, theirs in zip(planned, found, strict=False):
        check.require(mine == theirs, f"{'/'.join(theirs)} stands where {'/'.join(mine)} belongs")


@attrs.define
class _Reference:
    """The environment's reference implementation, with the run's tasks found in it and checked."""

    result: Audit
    study: Study | RolloutStudy
    place: _Place
    config: frontier.Config | rollouts.Config
    tasks: dict[str, Task] = attrs.Factory(dict)
    pool: Pool | None = None

    def __enter__(self) -> _Reference:
        identity = self.study.identity
        name = str(identity["environment"].get("name"))
        # Options of an untrusted folder: they choose data and engine, never trust.
        host = self.study.manifest.get("host")
        stated = host.get("options") if isinstance(host, dict) else None
        recorded = dict(stated) if isinstance(stated, dict) else {}
        recorded.pop("trust_games", None)
        environment = registry.create(name, {**recorded, **self.place.overrides})
        try:
            options = reference_options(environment, {**recorded, **self.place.overrides})
            available = list(environment.tasks(self.config.split))
            self.tasks = {task.id: task for task in available}
            self._check_tasks(available)
            chosen = [self.tasks[task.id] for task in self.study.tasks if task.id in self.tasks]
            described = {"name": environment.name, **environment.describe(chosen)}
        finally:
            environment.close()
        claim = "versions and digests of the environment are those that the run recorded"
        different = differing_keys(dict(identity["environment"]), described)
        self.result.check("environment", claim).require(not different, f"these differ here: {', '.join(different)}")
        self.pool = Pool(places.start(name, options, self.place.workers, self.place.ray))
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.close()

    def run(self, job: Callable[[Pool, Mapping[str, Task], int], Awaitable[None]]) -> None:
        async def main() -> None:
            assert self.pool is not None
            await job(self.pool, self.tasks, 4 * self.pool.workers)

        interrupts.run(main)

    def _check_tasks(self, available: Sequence[Task]) -> None:
        check = self.result.check("tasks", "the tasks are what the selection seed draws from the split")
        for task in self.study.tasks:
            found = self.tasks.get(task.id)
            if not check.require(found is not None, f"no game of digest {task.id[:12]}... (task {task.name}) is there"):
                continue
            assert found is not None
            stated, there = f"{task.type} of {task.split}", f"{found.type} of {found.split}"
            check.require(stated == there, f"task {task.name} is stated as {stated}, but is {there}")
            if "data" not in self.place.overrides:  # elsewhere files may have other names
                check.require(task.name == found.name, f"task {task.id[:12]} is called {task.name}, not {found.name}")
        if not check.passed:
            return
        config = self.config
        try:
            drawn = launch.draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        except UsageError as error:
            check.require(False, str(error))
            return
        check.require([t.id for t in drawn] == [t.id for t in self.study.tasks], "the selection seed draws other tasks")
