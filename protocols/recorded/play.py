"""Plays a recorded-history run: reach, cut, rebuild, solve, format, score (appendix B of the paper).

The phases are apart, so that models take turns on one accelerator.  The plan is fixed before anything runs, and
records are sealed in its order.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from handoff.episodes.batching import Batcher, by_policy, gather
from handoff.policies.policy import Policy
from handoff.progress import Tick
from handoff.protocols.frontier.inputs import EqualInputs
from handoff.protocols.frontier.records import Cell, Endpoint, EndpointCell
from handoff.protocols.recorded import formatting, turns
from handoff.protocols.recorded.config import RecordedConfig, cells, rows
from handoff.protocols.recorded.formatting import FormatterCall
from handoff.protocols.recorded.records import (
    CONTINUATION,
    FORMATTING,
    REPAIR,
    TRAJECTORY,
    VERDICT,
    Continuation,
    Formatting,
    History,
    Scoring,
    row_key,
    trajectory_key,
)
from handoff.records import AnswerVerdict, Decision, Task, from_json, to_json
from handoff.runs.launch import Running

Job = tuple[str, Callable[[], Awaitable[None]]]


@attrs.define
class RecordedPlayer:
    """Plays one run on ``tasks`` (with their sources), by policies by name."""

    config: RecordedConfig
    tasks: Sequence[Task]
    policies: Mapping[str, Policy]
    running: Running
    _inputs: EqualInputs = attrs.field(init=False)
    _histories: dict[Cell, History] = attrs.Factory(dict)

    @_inputs.default
    def _no_inputs_yet(self) -> EqualInputs:
        return EqualInputs.of(self.policies, self.config.prompt_groups)

    async def play(self) -> dict[str, float]:
        """Play all that the store does not hold yet.  Returns wall-clock seconds by phase."""
        phases: dict[str, Callable[[], Awaitable[None]]] = {TRAJECTORY: self._reach_all, CONTINUATION: self._solve_all}
        if self.config.formatter is not None:
            phases |= {FORMATTING: partial(self._format_all, FORMATTING), REPAIR: partial(self._format_all, REPAIR)}
        phases[VERDICT] = self._score_all
        seconds = {}
        for phase, job in phases.items():
            started = time.perf_counter()
            await job()
            seconds[phase] = time.perf_counter() - started
        return seconds

    def _read(self, kind: type[Any], key: tuple[str, ...]) -> Any:
        body = self.running.store.body(key)
        assert body is not None, "the phase before has finished it"
        return from_json(kind, body, "/".join(key))

    async def _reach_all(self) -> None:
        batchers = {name: Batcher(self.policies[name], name) for name in self.config.reachers}
        jobs: list[Job] = []
        by_id = {task.id: task for task in self.tasks}
        crossing = sorted(cells(self.tasks, self.config), key=lambda cell: self.config.reachers.index(cell.reacher))
        with self.running.progress.phase("reach", len(crossing)) as tick:
            for cell in crossing:
                if self.running.store.body(trajectory_key(cell)) is None:
                    jobs.append((cell.reacher, partial(self._reach, by_id[cell.task], cell, batchers, tick)))
                else:
                    tick(resumed=True)
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _reach(self, task: Task, cell: Cell, batchers: Mapping[str, Batcher], tick: Tick) -> None:
        async with self.running.pool.episode() as episode:
            history = await turns.reach(episode, task, cell, batchers[cell.reacher], self.config)
        self.running.store.finish(trajectory_key(cell), to_json(history))
        tick()

    async def _solve_all(self) -> None:
        by_id = {task.id: task for task in self.tasks}
        crossing = rows(self.tasks, self.config)
        histories = {cell: self._read(History, trajectory_key(cell)) for cell in cells(self.tasks, self.config)}
        jobs: list[Job] = []
        with self.running.progress.phase("solve", len(crossing)) as tick:
            for solver in self.config.solvers:
                batcher = Batcher(self.policies[solver], solver)
                for row in crossing:
                    if row.solver != solver:
                        continue
                    task = by_id[row.task]
                    if self.running.store.body(row_key(CONTINUATION, row)) is not None:
                        self._inputs.finished(task, _as_endpoint(self._read(Continuation, row_key(CONTINUATION, row))))
                        tick(resumed=True)
                    else:
                        jobs.append((solver, partial(self._solve, task, histories[row.cell], row, batcher, tick)))
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _solve(self, task: Task, history: History, row: EndpointCell, batcher: Batcher, tick: Tick) -> None:
        async with self.running.pool.episode() as episode:
            end = await turns.solve(episode, task, history, row, batcher, self.config, self._inputs)
        self.running.store.finish(row_key(CONTINUATION, row), to_json(end))
        tick()

    async def _format_all(self, kind: str) -> None:
        """Bring every answer into the form that is scored.  Rows with one call share its decision.

        The phase ``repair`` sends each input whose reply was empty exactly once more.
        """
        by_id = {task.id: task for task in self.tasks}
        crossing = rows(self.tasks, self.config)
        assert self.config.formatter is not None
        batcher = Batcher(self.policies[self.config.formatter], self.config.formatter)
        owed = [row for row in crossing if self.running.store.body(row_key(kind, row)) is None]
        known: dict[str, Decision] = {}
        for row in set(crossing) - set(owed):
            finished = self._read(Formatting, row_key(kind, row))
            if finished.call is not None and finished.decision is not None:
                known[finished.call] = finished.decision
        calls: dict[str, list[EndpointCell]] = {}
        asked: dict[str, FormatterCall] = {}

        async def prepare(row: EndpointCell) -> None:
            call = await self._call(by_id[row.task], row, kind)
            if call is None:
                self.running.store.finish(row_key(kind, row), to_json(Formatting(*row)))
                return
            calls.setdefault(call.digest, []).append(row)
            asked[call.digest] = call

        await gather([partial(prepare, row) for row in owed], self.running.concurrency)
        jobs: list[Job] = []
        label = "format" if kind == FORMATTING else "repair"
        with self.running.progress.phase(label, len(calls)) as tick:
            # A dictionary keeps the order of its keys, but rows are prepared in any order.
            order = {row: place for place, row in enumerate(crossing)}
            for form in sorted(calls, key=lambda form: min(order[row] for row in calls[form])):
                share = partial(self._format, kind, asked[form], calls[form], known.get(form), batcher, tick)
                jobs.append((self.config.formatter, share))
            await by_policy(jobs, self.policies, self.running.concurrency)

    async def _call(self, task: Task, row: EndpointCell, kind: str) -> FormatterCall | None:
        """The formatter's call that a row needs; ``None``: none."""
        end = self._read(Continuation, row_key(CONTINUATION, row))
        if not isinstance(end.answer, str):
            return None
        if kind == REPAIR and not self._read(Formatting, row_key(FORMATTING, row)).empty:
            return None
        async with self.running.pool.episode() as episode:
            messages = await episode.formatting(task, end.answer)
        return FormatterCall.of(messages, task) if messages else None

    async def _format(
        self,
        kind: str,
        call: FormatterCall,
        sharing: Sequence[EndpointCell],
        known: Decision | None,
        batcher: Batcher,
        tick: Tick,
    ) -> None:
        request = call.request(self.config.run_seed, attempt=0 if kind == FORMATTING else 1)
        decision = known or await batcher.decide(request)
        async with self.running.pool.episode() as episode:
            answer = await episode.read_formatted(call.task, decision.text)
        for row in sorted(sharing):
            self.running.store.finish(row_key(kind, row), to_json(Formatting(*row, call.digest, decision, answer)))
        tick()

    async def _score_all(self) -> None:
        by_id = {task.id: task for task in self.tasks}
        crossing = rows(self.tasks, self.config)
        scored: dict[tuple[str, str], AnswerVerdict] = {}
        with self.running.progress.phase("score", len(crossing)) as tick:
            jobs = []
            for row in crossing:
                if self.running.store.body(row_key(VERDICT, row)) is None:
                    jobs.append(partial(self._score, by_id[row.task], row, scored, tick))
                else:
                    tick(resumed=True)
            await gather(jobs, self.running.concurrency)

    async def _score(
        self, task: Task, row: EndpointCell, scored: dict[tuple[str, str], AnswerVerdict], tick: Tick
    ) -> None:
        end: Continuation = self._read(Continuation, row_key(CONTINUATION, row))
        formatted: Formatting | None = None
        repair: Formatting | None = None
        if self.config.formatter is not None:
            formatted = self._read(Formatting, row_key(FORMATTING, row))
            repair = self._read(Formatting, row_key(REPAIR, row))
        verdict: AnswerVerdict | None = None
        if end.outcome == "ended":
            answer = formatting.answer_of(end, formatted, repair)
            place = (task.id, formatting.answer_digest(answer))
            if place not in scored:
                async with self.running.pool.episode() as episode:
                    scored[place] = await episode.score(task, answer)
            verdict = scored[place]
        self.running.store.finish(row_key(VERDICT, row), to_json(Scoring(*row, verdict)))
        tick()


def _as_endpoint(end: Continuation) -> Endpoint:
    """What :class:`EqualInputs` reads of an earlier continuation."""
    return Endpoint(*end.row, arrived=True, won=False, steps=end.steps)
