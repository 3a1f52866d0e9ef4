"""Plays a verified-frontier run (sections 3.1 and 4.1 of the paper).

A reacher acts for at most ``reach_budget`` actions; at reset and after every action the environment is asked whether
the state lies on F_D.  The first arrival ends its turn.  For every arrival and every solver the state is cloned
(reset + replay, every record equal) and the solver goes on for ``solve_budget`` actions with the seeds of its
position, the same for every solver.  Non-arrivals stay in the table as failures.

The plan is fixed before anything runs; records are sealed in its order: all trajectories by (task, slot, reacher), then
all endpoints by (task, slot, reacher, solver).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import attrs

from handoff.episodes.batching import Batcher, by_policy
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Episode
from handoff.episodes.turns import Situation, act, is_over
from handoff.policies.policy import Policy, Turn
from handoff.progress import Tick
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.frontier.inputs import EqualInputs
from handoff.protocols.frontier.records import ENDPOINT, TRAJECTORY, Cell, Clone, Endpoint, EndpointCell, Trajectory
from handoff.records import Task, from_json, to_json
from handoff.replay import records_digest
from handoff.runs.launch import Running
from handoff.seeds import REACH, SOLVE, SeedSchedule

Job = tuple[str, Callable[[], Awaitable[None]]]


@attrs.define
class Player:
    """Plays one run on ``tasks`` (with their sources), by policies by name."""

    config: FrontierConfig
    tasks: Sequence[Task]
    policies: Mapping[str, Policy]
    running: Running
    _inputs: EqualInputs = attrs.field(init=False)

    @_inputs.default
    def _no_inputs_yet(self) -> EqualInputs:
        return EqualInputs.of(self.policies, self.config.prompt_groups)

    async def play(self) -> dict[str, float]:
        """Play all that the store does not hold yet.  Returns wall-clock seconds by phase."""
        seconds = {}
        for phase, job in ((TRAJECTORY, self._reach_all), (ENDPOINT, self._solve_all)):
            started = time.perf_counter()
            await job()
            seconds[phase] = time.perf_counter() - started
        return seconds

    def _crossing(self, reachers: Sequence[str]) -> list[tuple[Task, Cell]]:
        return [
            (task, Cell(task.id, slot, name))
            for name in reachers
            for task in self.tasks
            for slot in range(self.config.slots)
        ]

    async def _reach_all(self) -> None:
        batchers = {name: Batcher(self.policies[name], name) for name in self.config.reachers}
        jobs: list[Job] = []
        crossing = self._crossing(self.config.reachers)  # reacher by reacher: an exclusive model is loaded once
        with self.running.progress.phase("reach", len(crossing)) as tick:
            for task, cell in crossing:
                if self.running.store.body(cell.key) is None:
                    jobs.append((cell.reacher, partial(self._reach, task, cell, batchers[cell.reacher], tick)))
                else:
                    tick(resumed=True)
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _reach(self, task: Task, cell: Cell, batcher: Batcher, tick: Tick) -> None:
        async with self.running.pool.episode() as episode:
            trajectory = await reach(episode, task, cell.slot, cell.reacher, batcher, self.config)
        self.running.store.finish(cell.key, to_json(trajectory))
        tick()

    async def _solve_all(self) -> None:
        arrivals: list[tuple[Task, Trajectory]] = []
        for task in self.tasks:
            for slot in range(self.config.slots):
                for name in self.config.reachers:
                    cell = Cell(task.id, slot, name)
                    body = self.running.store.body(cell.key)
                    assert body is not None, "every trajectory is finished before a solver starts"
                    if body["arrival"] is not None:
                        arrivals.append((task, from_json(Trajectory, body, "/".join(cell.key))))
                        continue
                    for solver in self.config.solvers:
                        row = Endpoint(task.id, slot, name, solver, arrived=False, won=False)
                        self.running.store.finish(row.cell.key, to_json(row), durable=False)
        jobs: list[Job] = []
        with self.running.progress.phase("solve", len(arrivals) * len(self.config.solvers)) as tick:
            for solver in self.config.solvers:
                batcher = Batcher(self.policies[solver], solver)
                for task, trajectory in arrivals:
                    endpoint = EndpointCell(*trajectory.cell, solver)
                    body = self.running.store.body(endpoint.key)
                    if body is None:
                        jobs.append((solver, partial(self._solve, task, trajectory, endpoint, batcher, tick)))
                    else:
                        self._inputs.finished(task, from_json(Endpoint, body, "/".join(endpoint.key)))
                        tick(resumed=True)
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _solve(
        self, task: Task, trajectory: Trajectory, cell: EndpointCell, batcher: Batcher, tick: Tick
    ) -> None:
        async with self.running.pool.episode() as episode:
            endpoint = await solve(episode, task, trajectory, cell.solver, batcher, self.config, self._inputs)
        self.running.store.finish(cell.key, to_json(endpoint))
        tick()


async def reach(
    episode: Episode, task: Task, slot: int, reacher: str, batcher: Batcher, config: FrontierConfig
) -> Trajectory:
    """A reacher's turn: A_w(i, s) and tau_D."""
    seeds = SeedSchedule(config.run_seed)
    ask = Ask(depth=config.depth, plan=batcher.policy.needs_plan, distances=config.distances)
    reset_seed = seeds.reset(task.id, slot)
    first = await episode.reset(task, reset_seed, ask)
    assert first.certificate is not None
    situation = Situation(
        task, slot, first.record, config.reach_budget, lambda position: seeds.decision(task.id, slot, REACH, position)
    )
    steps, last = await act(episode, batcher, situation, (), first, ask, lambda view: _outcome(view) is not None)
    outcome = _outcome(last)
    return Trajectory(
        task=task.id,
        slot=slot,
        reacher=reacher,
        reset_seed=reset_seed,
        reset=first.record,
        reset_check=first.certificate,
        steps=steps,
        arrival=len(steps) if outcome == "arrived" else None,
        outcome=outcome or "budget",
        reset_distance=first.distance,
    )


def _outcome(view: View) -> str | None:
    """The event that ends a reacher's turn in this state, if there is one: here it is decided that it has arrived."""
    assert view.certificate is not None
    if view.record.won:
        return "won"
    if view.record.done:
        return "terminal"
    return "arrived" if view.certificate.member else None


async def solve(
    episode: Episode,
    task: Task,
    trajectory: Trajectory,
    solver: str,
    batcher: Batcher,
    config: FrontierConfig,
    inputs: EqualInputs,
) -> Endpoint:
    """A solver's turn from the clone of an arrival state: Y_{w,r}(i, s).

    Raises :class:`~handoff.errors.ReplayMismatch` if the clone is not exact, and
    :class:`~handoff.errors.Interrupted` if the solver is shown something else than another solver of the clone.
    """
    seeds, slot = SeedSchedule(config.run_seed), trajectory.slot
    ask = Ask(plan=batcher.policy.needs_plan, distances=config.distances)
    recorded = trajectory.records()
    actions = [step.decision.action or "" for step in trajectory.steps]
    clone = await episode.replay(task, trajectory.reset_seed, actions, recorded, ask)
    history = tuple(Turn.of(step) for step in trajectory.steps)
    situation = Situation(
        task,
        slot,
        trajectory.reset,
        config.solve_budget,
        lambda position: seeds.decision(task.id, slot, SOLVE, position),
    )
    first, cell = situation.request(0, history, clone), EndpointCell(*trajectory.cell, solver)
    inputs.before(task, cell, batcher.policy, first)
    steps, last = await act(episode, batcher, situation, history, clone, ask, is_over)
    inputs.after(task, cell, steps[0].decision)
    return Endpoint(
        task=task.id,
        slot=slot,
        reacher=trajectory.reacher,
        solver=solver,
        arrived=True,
        won=last.record.won,
        bridge=steps[0].decision.action in trajectory.certificate().bridges,
        clone=Clone(records=len(recorded), digest=records_digest(recorded), input_digest=first.input_digest()),
        steps=steps,
    )
