"""N independent rollouts per task: what pass@k, the sharpening tax and PTGS are computed from.

Every (task, policy, index) is one episode of at most ``budget`` actions from reset, with seeds of its own: derived from
(run seed, task, index, position), spaced by the hash, and equal for every policy at the same place.  Success is *won at
some step*, and the episode ends there.  Records are sealed by (task, policy, index).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from handoff import environment as registry
from handoff import launch
from handoff.errors import UsageError
from handoff.launch import Prepared, Running, draw_tasks
from handoff.policies import ModelOptions, Policy, Request, make_policies
from handoff.progress import Tick
from handoff.protocols.frontier import decide_and_step, turns
from handoff.records import Rollout, Step, Task, to_json
from handoff.replay import records_digest
from handoff.rollout import Ask, Batcher, Episode, by_policy
from handoff.seeds import ROLLOUT, SeedSchedule
from handoff.store import Key

NAME = "rollouts"
KIND = "rollout"


def _positive(instance: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 1:
        raise UsageError(f"{attribute.name.replace('_', ' ')} must be at least 1, not {value}")


@attrs.frozen
class Config:
    """The protocol's whole configuration.  ``tasks`` is ``None`` for every task of the split; else as many of each type
    as :func:`handoff.launch.draw_tasks` draws."""

    split: str
    policies: tuple[str, ...]
    rollouts: int = attrs.field(default=128, validator=_positive)
    tasks: int | None = attrs.field(default=None, validator=attrs.validators.optional(_positive))
    types: tuple[str, ...] = ()
    budget: int = attrs.field(default=50, validator=_positive)
    run_seed: int = 0
    selection_seed: int = 2029

    def __attrs_post_init__(self) -> None:
        if not self.policies:
            raise UsageError("name at least one policy (-p NAME=SPEC)")

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = to_json(self)
        return {"name": NAME, **form}


def plan(tasks: Sequence[Task], config: Config) -> list[Key]:
    """All records in the order in which they are sealed."""
    return [
        (KIND, task.id, policy, str(index))
        for task in tasks
        for policy in config.policies
        for index in range(config.rollouts)
    ]


def prepare(
    environment: str,
    options: Mapping[str, Any],
    config: Config,
    specs: Mapping[str, str],
    models: Mapping[str, ModelOptions] | None = None,
) -> Prepared:
    """Decide everything about a run; as :func:`handoff.protocols.frontier.prepare`."""
    instance = registry.create(environment, options)
    try:
        available = instance.tasks(config.split)
        tasks = draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        policies = make_policies({name: specs[name] for name in config.policies}, models)
        described = {name: {"spec": specs[name], **policy.describe()} for name, policy in policies.items()}
        what = launch.identity(instance, config.to_json(), config.run_seed, tasks, described)
    finally:
        instance.close()

    async def carry_out(running: Running) -> dict[str, float]:
        started = time.perf_counter()
        await run_all(tasks, policies, config, running)
        return {KIND: time.perf_counter() - started}

    return Prepared(environment, options, tasks, policies, what, plan(tasks, config), carry_out)


async def run_all(tasks: Sequence[Task], policies: Mapping[str, Policy], config: Config, running: Running) -> None:
    """Run every rollout that the store does not hold yet."""
    batchers = {name: Batcher(policies[name]) for name in config.policies}
    jobs: list[tuple[str, Callable[[], Awaitable[None]]]] = []
    with running.progress.phase("rollouts", len(tasks) * len(config.policies) * config.rollouts) as tick:
        for name in config.policies:
            for task in tasks:
                for index in range(config.rollouts):
                    if running.store.body((KIND, task.id, name, str(index))) is None:
                        jobs.append((name, partial(_one, task, index, name, batchers[name], config, running, tick)))
                    else:
                        tick(resumed=True)
        await by_policy(jobs, policies, running.concurrency)


async def _one(
    task: Task, index: int, policy: str, batcher: Batcher, config: Config, running: Running, tick: Tick
) -> None:
    async with running.pool.episode() as episode:
        rollout = await roll(episode, task, index, policy, batcher, config)
    running.store.finish((KIND, task.id, policy, str(index)), to_json(rollout))
    tick()


async def roll(episode: Episode, task: Task, index: int, policy: str, batcher: Batcher, config: Config) -> Rollout:
    """One rollout."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(plan=batcher.policy.needs_plan)
    reset_seed = seeds.reset(task.id, index)
    view = await episode.reset(task, reset_seed, ask)
    reset = view.record
    steps: list[Step] = []
    while len(steps) < config.budget and not (view.record.won or view.record.done):
        request = Request(
            task=task,
            seed=seeds.decision(task.id, index, ROLLOUT, len(steps)),
            reset=reset,
            history=turns(steps),
            remaining=config.budget - len(steps),
            plan=view.plan,
            slot=index,
        )
        decision, view = await decide_and_step(episode, request, batcher, view, ask)
        steps.append(Step(decision, view.record))
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
    )
