"""Verified-frontier handoff (sections 3.1 and 4.1 of the paper).

A reacher acts for at most ``reach_budget`` actions; at reset and after every action the environment is asked whether
the state lies on F_D.  The first arrival ends its turn.  For every arrival and every solver the state is cloned
(reset + replay, every record equal) and the solver goes on for ``solve_budget`` actions with the seeds of its
position, the same for every solver.  Non-arrivals stay in the table as failures.

The plan (which tasks, which slots, which cells) is fixed before anything runs; records are sealed in its order: all
trajectories by (task, slot, reacher), then all endpoints by (task, slot, reacher, solver).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from handoff import registry, signals
from handoff.environment import Environment
from handoff.episodes.batching import Batcher, by_policy
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Episode
from handoff.episodes.turns import decide_and_step
from handoff.policies import ModelOptions, Policy, Request, Turn
from handoff.policies.specs import introduce, make_policies
from handoff.progress import Tick
from handoff.protocols.frontier.config import ENDPOINT, TRAJECTORY, Config, plan
from handoff.protocols.frontier.records import Clone, Endpoint, Trajectory
from handoff.records import Step, Task, from_json, to_json
from handoff.replay import records_digest
from handoff.runs import identity as identities
from handoff.runs.chain import Key
from handoff.runs.launch import Prepared, Running
from handoff.runs.selection import draw_tasks
from handoff.seeds import REACH, SOLVE, SeedSchedule


def select_tasks(tasks: Sequence[Task], config: Config) -> list[Task]:
    """The tasks of the study, as :func:`handoff.runs.selection.draw_tasks` draws them."""
    return draw_tasks(tasks, config.split, config.tasks, config.types, config.selection_seed)


def identity(
    environment: Environment, config: Config, tasks: Sequence[Task], policies: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """All that the study is (:func:`handoff.runs.identity.identity`)."""
    return identities.identity(environment, config.to_json(), config.run_seed, tasks, policies)


def prepare(
    environment: str,
    options: Mapping[str, Any],
    config: Config,
    specs: Mapping[str, str],
    models: Mapping[str, ModelOptions] | None = None,
) -> Prepared:
    """Decide everything about a study: its tasks, its policies and its identity.

    ``specs`` are the policies' specs by name, ``models`` the options of those that are language models.  Raises
    :class:`~handoff.errors.UsageError` for whatever is wrong with the request.
    """
    instance = registry.create(environment, options)
    try:
        tasks = select_tasks(instance.tasks(config.split), config)
        policies = make_policies(specs, models)
        signals.run(lambda: introduce(policies.values()))
        described = {name: {"spec": specs[name], **policy.describe()} for name, policy in policies.items()}
        what = identity(instance, config, tasks, described)
    finally:
        instance.close()

    async def carry_out(running: Running) -> dict[str, float]:
        return await Frontier(config, tasks, policies, running).run()

    return Prepared(environment, options, tasks, policies, what, plan(tasks, config), carry_out)


@attrs.define
class Frontier:
    """One run of the protocol on ``tasks`` (with their sources), by policies by name."""

    config: Config
    tasks: Sequence[Task]
    policies: Mapping[str, Policy]
    running: Running

    async def run(self) -> dict[str, float]:
        """Run whatever the store does not hold yet.  Returns wall-clock seconds by phase."""
        seconds = {}
        for phase, job in ((TRAJECTORY, self._reach_all), (ENDPOINT, self._solve_all)):
            started = time.perf_counter()
            await job()
            seconds[phase] = time.perf_counter() - started
        return seconds

    async def _reach_all(self) -> None:
        batchers = {name: Batcher(self.policies[name]) for name in self.config.reachers}
        jobs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        cells = [
            (reacher, task, slot)
            for reacher in self.config.reachers
            for task in self.tasks
            for slot in range(self.config.slots)
        ]
        with self.running.progress.phase("reach", len(cells)) as tick:
            for reacher, task, slot in cells:
                if self.running.store.body((TRAJECTORY, task.id, str(slot), reacher)) is None:
                    jobs.append((reacher, partial(self._reach, task, slot, reacher, batchers[reacher], tick)))
                else:
                    tick(resumed=True)
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _reach(self, task: Task, slot: int, reacher: str, batcher: Batcher, tick: Tick) -> None:
        async with self.running.pool.episode() as episode:
            trajectory = await reach(episode, task, slot, reacher, batcher, self.config)
        self.running.store.finish((TRAJECTORY, task.id, str(slot), reacher), to_json(trajectory))
        tick()

    async def _solve_all(self) -> None:
        batchers = {name: Batcher(self.policies[name]) for name in self.config.solvers}
        jobs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        cells = [
            (solver, task, slot, reacher)
            for solver in self.config.solvers
            for task in self.tasks
            for slot in range(self.config.slots)
            for reacher in self.config.reachers
        ]
        arrived = {}
        for task in self.tasks:
            for slot in range(self.config.slots):
                for reacher in self.config.reachers:
                    body = self.running.store.body((TRAJECTORY, task.id, str(slot), reacher))
                    assert body is not None, "every trajectory is finished before a solver starts"
                    if body["arrival"] is not None:
                        arrived[task.id, slot, reacher] = body
                        continue
                    for solver in self.config.solvers:
                        row = Endpoint(task.id, slot, reacher, solver, arrived=False, won=False)
                        key = (ENDPOINT, task.id, str(slot), reacher, solver)
                        self.running.store.finish(key, to_json(row), durable=False)
        with self.running.progress.phase("solve", len(arrived) * len(self.config.solvers)) as tick:
            for solver, task, slot, reacher in cells:
                if (task.id, slot, reacher) not in arrived:
                    continue
                key = (ENDPOINT, task.id, str(slot), reacher, solver)
                if self.running.store.body(key) is None:
                    body = arrived[task.id, slot, reacher]
                    jobs.append((solver, partial(self._solve, key, task, body, solver, batchers[solver], tick)))
                else:
                    tick(resumed=True)
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _solve(self, key: Key, task: Task, body: Any, solver: str, batcher: Batcher, tick: Tick) -> None:
        trajectory = from_json(Trajectory, body, "/".join(key))
        async with self.running.pool.episode() as episode:
            endpoint = await solve(episode, task, trajectory, solver, batcher, self.config)
        self.running.store.finish(key, to_json(endpoint))
        tick()


async def reach(episode: Episode, task: Task, slot: int, reacher: str, batcher: Batcher, config: Config) -> Trajectory:
    """A reacher's turn: A_w(i, s) and tau_D."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(depth=config.depth, plan=batcher.policy.needs_plan, distances=config.distances)
    reset_seed = seeds.reset(task.id, slot)
    view = await episode.reset(task, reset_seed, ask)
    reset, reset_check, reset_distance = view.record, view.certificate, view.distance
    assert reset_check is not None
    steps: list[Step] = []
    history: tuple[Turn, ...] = ()
    outcome = _outcome(view)
    while outcome is None and len(steps) < config.reach_budget:
        request = Request(
            task=task,
            seed=seeds.decision(task.id, slot, REACH, len(steps)),
            reset=reset,
            history=history,
            remaining=config.reach_budget - len(steps),
            plan=view.plan,
            slot=slot,
        )
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record, view.certificate, view.distance))
        history += (Turn.of(steps[-1]),)
        outcome = _outcome(view)
    return Trajectory(
        task=task.id,
        slot=slot,
        reacher=reacher,
        reset_seed=reset_seed,
        reset=reset,
        reset_check=reset_check,
        steps=tuple(steps),
        arrival=len(steps) if outcome == "arrived" else None,
        outcome=outcome or "budget",
        reset_distance=reset_distance,
    )


def _outcome(view: View) -> str | None:
    """What ended a reacher's turn, if anything did."""
    assert view.certificate is not None
    if view.record.won:
        return "won"
    if view.record.done:
        return "terminal"
    return "arrived" if view.certificate.member else None


async def solve(
    episode: Episode, task: Task, trajectory: Trajectory, solver: str, batcher: Batcher, config: Config
) -> Endpoint:
    """A solver's turn from the clone of an arrival state: Y_{w,r}(i, s).

    Raises :class:`~handoff.errors.ReplayMismatch` if the clone is not exact.
    """
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(plan=batcher.policy.needs_plan, distances=config.distances)
    recorded = trajectory.records()
    actions = [step.decision.action or "" for step in trajectory.steps]
    view = await episode.replay(task, trajectory.reset_seed, actions, recorded, ask)
    first_input = ""
    steps: list[Step] = []
    history = tuple(Turn.of(step) for step in trajectory.steps)
    while len(steps) < config.solve_budget and not (view.record.won or view.record.done):
        request = Request(
            task=task,
            seed=seeds.decision(task.id, trajectory.slot, SOLVE, len(steps)),
            reset=trajectory.reset,
            history=history,
            remaining=config.solve_budget - len(steps),
            plan=view.plan,
            slot=trajectory.slot,
        )
        first_input = first_input or request.input_digest()
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record, distance=view.distance))
        history += (Turn.of(steps[-1]),)
    return Endpoint(
        task=task.id,
        slot=trajectory.slot,
        reacher=trajectory.reacher,
        solver=solver,
        arrived=True,
        won=view.record.won,
        bridge=steps[0].decision.action in trajectory.certificate().bridges,
        clone=Clone(records=len(recorded), digest=records_digest(recorded), input_digest=first_input),
        steps=tuple(steps),
    )
