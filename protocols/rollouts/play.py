"""Plays N independent rollouts per task and policy; pass@k, the sharpening tax and PTGS are computed from them.

Every (task, policy, index) is one episode of at most ``budget`` actions from reset.  Its seeds derive from (run seed,
task, index, position), so they are independent per rollout and equal for every policy at the same place.  Success is
*won at some step*, and the episode ends there.  Records are sealed by (task, policy, index).

Under PTGS (:class:`handoff.passk.ptgs.EstimateThenSample`) the first rollouts of a task are pilots.  A scored rollout
starts when all pilots of its task and policy are finished, at the temperature that follows from them.  Every request
states its temperature.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import attrs

from handoff.episodes.batching import Batcher, by_policy
from handoff.episodes.host import Ask
from handoff.episodes.pool import Episode
from handoff.episodes.turns import Situation, act, is_over
from handoff.errors import UsageError
from handoff.policies.policy import Policy
from handoff.progress import Tick
from handoff.protocols.rollouts.config import RolloutsConfig
from handoff.protocols.rollouts.records import Rollout, RolloutCell, outcome_of
from handoff.records import Task, to_json
from handoff.replay import records_digest
from handoff.runs.launch import Running
from handoff.seeds import ROLLOUT, SeedSchedule


def with_references(config: RolloutsConfig, policies: Mapping[str, Policy]) -> RolloutsConfig:
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


async def roll_all(
    tasks: Sequence[Task], policies: Mapping[str, Policy], config: RolloutsConfig, running: Running
) -> None:
    """Run every rollout that the store does not hold yet."""
    batchers = {name: Batcher(policies[name], name) for name in config.policies}
    jobs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
    # Jobs start in order: with all pilots before the first scored rollout, nothing waits for what cannot start.
    pilots = 0 if config.ptgs is None else config.ptgs.pilots
    parts = [(index, name, task) for name in config.policies for task in tasks for index in range(pilots)]
    parts += [
        (index, name, task) for name in config.policies for task in tasks for index in range(pilots, config.rollouts)
    ]
    owed = [
        (index, name, task)
        for index, name, task in parts
        if running.store.body(RolloutCell(task.id, name, index).key) is None
    ]
    waiting = _Pilots(config, running, [(name, task) for index, name, task in owed if index < pilots])
    with running.progress.phase("rollouts", len(parts)) as tick:
        for _ in range(len(parts) - len(owed)):
            tick(resumed=True)
        for index, name, task in owed:
            jobs.append((name, partial(_one, task, index, name, batchers[name], config, running, waiting, tick)))
        await by_policy(jobs, policies, running.concurrency)


class _Pilots:
    """Says at which temperature a rollout is to be made, as soon as that is known."""

    def __init__(self, config: RolloutsConfig, running: Running, owed: Sequence[tuple[str, Task]]) -> None:
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
        bodies = [self._store.body(RolloutCell(task.id, policy, pilot).key) for pilot in range(ptgs.pilots)]
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
    config: RolloutsConfig,
    running: Running,
    pilots: _Pilots,
    tick: Tick,
) -> None:
    temperature = await pilots.temperature(task, policy, index)
    async with running.pool.episode() as episode:
        rollout = await roll(episode, task, index, policy, batcher, config, temperature)
    running.store.finish(RolloutCell(task.id, policy, index).key, to_json(rollout))
    pilots.finished(task, policy, index)
    tick()


async def roll(
    episode: Episode,
    task: Task,
    index: int,
    policy: str,
    batcher: Batcher,
    config: RolloutsConfig,
    temperature: float | None = None,
) -> Rollout:
    """One rollout, sampled at ``temperature`` (``None``: the policy's own)."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(plan=batcher.policy.needs_plan)
    reset_seed = seeds.reset(task.id, index)
    first = await episode.reset(task, reset_seed, ask)
    situation = Situation(
        task,
        index,
        first.record,
        config.budget,
        lambda position: seeds.decision(task.id, index, ROLLOUT, position),
        temperature,
    )
    steps, last = await act(episode, batcher, situation, (), first, ask, is_over)
    records = [first.record, *(step.record for step in steps)]
    return Rollout(
        task=task.id,
        index=index,
        policy=policy,
        reset_seed=reset_seed,
        decisions=tuple(step.decision for step in steps),
        records=len(records),
        digest=records_digest(records),
        won=last.record.won,
        outcome=outcome_of(last.record),
        temperature=temperature,
    )
