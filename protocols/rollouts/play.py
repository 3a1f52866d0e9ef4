"""N independent rollouts per task: what pass@k, the sharpening tax and PTGS are computed from.

Every (task, policy, index) is one episode of at most ``budget`` actions from reset, with seeds of its own: derived from
(run seed, task, index, position), spaced by the hash, and equal for every policy at the same place.  Success is *won at
some step*, and the episode ends there.  Records are sealed by (task, policy, index).

Under PTGS (:class:`handoff.passk.ptgs.EstimateThenSample`) the first rollouts of a task are pilots.  A scored rollout starts
when all pilots of its task and policy are finished, at the temperature that follows from them; every request of the run
says what it is to be sampled at.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from handoff import registry, signals
from handoff.episodes.batching import Batcher, by_policy
from handoff.episodes.host import Ask
from handoff.episodes.pool import Episode
from handoff.episodes.turns import decide_and_step
from handoff.errors import UsageError
from handoff.policies import ModelOptions, Policy, Request, Turn
from handoff.policies.specs import introduce, make_policies
from handoff.progress import Tick
from handoff.protocols.rollouts.config import KIND, Config, _key, plan
from handoff.protocols.rollouts.records import Rollout
from handoff.records import Step, Task, to_json
from handoff.replay import records_digest
from handoff.runs import identity
from handoff.runs.launch import Prepared, Running
from handoff.runs.selection import draw_tasks
from handoff.seeds import ROLLOUT, SeedSchedule


def prepare(
    environment: str,
    options: Mapping[str, Any],
    config: Config,
    specs: Mapping[str, str],
    models: Mapping[str, ModelOptions] | None = None,
) -> Prepared:
    """Decide everything about a run; as :func:`handoff.protocols.frontier.play.prepare`."""
    instance = registry.create(environment, options)
    try:
        available = instance.tasks(config.split)
        tasks = draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        policies = make_policies({name: specs[name] for name in config.policies}, models)
        config = _with_references(config, policies)
        signals.run(lambda: introduce(policies.values()))
        described = {name: {"spec": specs[name], **policy.describe()} for name, policy in policies.items()}
        what = identity.identity(instance, config.to_json(), config.run_seed, tasks, described)
    finally:
        instance.close()

    async def carry_out(running: Running) -> dict[str, float]:
        started = time.perf_counter()
        await run_all(tasks, policies, config, running)
        return {KIND: time.perf_counter() - started}

    return Prepared(environment, options, tasks, policies, what, plan(tasks, config), carry_out)


def _with_references(config: Config, policies: Mapping[str, Policy]) -> Config:
    """``config`` with the temperature of every policy's pilots."""
    if config.ptgs is None:
        return config
    references = {}
    for name, policy in policies.items():
        if policy.temperature is None:
            raise UsageError(
                f"policy {name!r} has no temperature that PTGS could set: take a language model, or tempered:T"
            )
        references[name] = float(policy.temperature)
    return attrs.evolve(config, ptgs=attrs.evolve(config.ptgs, references=references))


async def run_all(tasks: Sequence[Task], policies: Mapping[str, Policy], config: Config, running: Running) -> None:
    """Run every rollout that the store does not hold yet."""
    batchers = {name: Batcher(policies[name]) for name in config.policies}
    jobs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
    # Jobs start in order: with all pilots before the first scored rollout, nothing waits for what cannot start.
    pilots = 0 if config.ptgs is None else config.ptgs.pilots
    parts = [(index, name, task) for name in config.policies for task in tasks for index in range(pilots)]
    parts += [
        (index, name, task) for name in config.policies for task in tasks for index in range(pilots, config.rollouts)
    ]
    owed = [(index, name, task) for index, name, task in parts if running.store.body(_key(task, name, index)) is None]
    waiting = _Pilots(config, running, [(name, task) for index, name, task in owed if index < pilots])
    with running.progress.phase("rollouts", len(parts)) as tick:
        for _ in range(len(parts) - len(owed)):
            tick(resumed=True)
        for index, name, task in owed:
            jobs.append((name, partial(_one, task, index, name, batchers[name], config, running, waiting, tick)))
        await by_policy(jobs, policies, running.concurrency)


class _Pilots:
    """Says at which temperature a rollout is to be made, as soon as that is known."""

    def __init__(self, config: Config, running: Running, owed: Sequence[tuple[str, Task]]) -> None:
        self._config, self._store = config, running.store
        self._left = Counter((name, task.id) for name, task in owed)
        self._finished = {cell: asyncio.Event() for cell in self._left}

    async def temperature(self, task: Task, policy: str, index: int) -> float | None:
        """Of rollout ``index``; waits for the pilots of a scored one."""
        ptgs = self._config.ptgs
        if ptgs is None:
            return None
        if index < ptgs.pilots:
            return ptgs.references[policy]
        if (policy, task.id) in self._finished:
            await self._finished[policy, task.id].wait()
        bodies = [self._store.body(_key(task, policy, pilot)) for pilot in range(ptgs.pilots)]
        successes = sum(body is not None and body["won"] is True for body in bodies)
        return ptgs.temperature(policy, successes, SeedSchedule(self._config.run_seed).temperature(task.id))

    def finished(self, task: Task, policy: str, index: int) -> None:
        """To be told of every rollout that is in the store now."""
        if self._config.ptgs is None or index >= self._config.ptgs.pilots:
            return
        self._left[policy, task.id] -= 1
        if not self._left[policy, task.id]:
            self._finished[policy, task.id].set()


async def _one(
    task: Task,
    index: int,
    policy: str,
    batcher: Batcher,
    config: Config,
    running: Running,
    pilots: _Pilots,
    tick: Tick,
) -> None:
    temperature = await pilots.temperature(task, policy, index)
    async with running.pool.episode() as episode:
        rollout = await roll(episode, task, index, policy, batcher, config, temperature)
    running.store.finish(_key(task, policy, index), to_json(rollout))
    pilots.finished(task, policy, index)
    tick()


async def roll(
    episode: Episode,
    task: Task,
    index: int,
    policy: str,
    batcher: Batcher,
    config: Config,
    temperature: float | None = None,
) -> Rollout:
    """One rollout, sampled at ``temperature`` (``None``: the policy's own)."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(plan=batcher.policy.needs_plan)
    reset_seed = seeds.reset(task.id, index)
    view = await episode.reset(task, reset_seed, ask)
    reset = view.record
    steps: list[Step] = []
    history: tuple[Turn, ...] = ()
    while len(steps) < config.budget and not (view.record.won or view.record.done):
        request = Request(
            task=task,
            seed=seeds.decision(task.id, index, ROLLOUT, len(steps)),
            reset=reset,
            history=history,
            remaining=config.budget - len(steps),
            plan=view.plan,
            slot=index,
            temperature=temperature,
        )
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record))
        history += (Turn.of(steps[-1]),)
    records = [reset, *(step.record for step in steps)]
    won = view.record.won
    return Rollout(
        task=task.id,
        index=index,
        policy=policy,
        reset_seed=reset_seed,
        decisions=tuple(step.decision for step in steps),
        records=len(records),
        digest=records_digest(records),
        won=won,
        outcome="won" if won else "terminal" if view.record.done else "budget",
        temperature=temperature,
    )
