"""Certification: every episode of a run again, on the environment's reference implementation.

A trajectory is replayed whole, then up to the cut and on with every continuation; each record is compared on the way,
and the message list at the cut byte for byte.  What an episode came to, the formatter's messages, how its reply is
read, and the score are computed again and must be equal.  Scripted policies decide again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from handoff.auditing import scripted
from handoff.auditing.checks import Audit, Check
from handoff.auditing.scripted import Redecided
from handoff.canonical import canonical
from handoff.episodes.batching import gather
from handoff.episodes.host import Ask
from handoff.episodes.pool import Pool
from handoff.errors import DataError, ReplayMismatch
from handoff.policies.policy import Request
from handoff.progress import Progress, Tick
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.recorded.checks import requests_of_history
from handoff.protocols.recorded.formatting import FormatterCall, answer_of
from handoff.protocols.recorded.records import Continuation, Formatting, History, Scoring
from handoff.protocols.recorded.study import RecordedStudy
from handoff.protocols.recorded.turns import Handover, rebuild
from handoff.records import Step, Task, to_json

CLAIMS = {
    "replay": "every trajectory's records are equal on the reference engine",
    "rebuilt": "every history is rebuilt byte for byte, and every continuation and what it came to is equal",
    "formatted": "every formatter's call asks what the answer gives, and its reply is read as recorded",
    "scores": "every score, computed again, is equal",
    "decisions": scripted.CLAIM,
    "diagonal": "a deterministic solver that goes on from its own history begins with its own recorded reply",
}


@attrs.frozen
class _Checks:
    replay: Check
    rebuilt: Check
    formatted: Check
    scores: Check
    decisions: Check
    diagonal: Check


@attrs.frozen
class _RecordedAuditor:
    study: RecordedStudy
    pool: Pool
    checks: _Checks
    again: Redecided

    async def trajectory(self, cell: Cell, history: History, task: Task) -> None:
        label = self.study.label(cell)
        try:
            async with self.pool.episode() as episode:
                ask = Ask(plan=self.again.needs_plan(cell.reacher))
                actions = [step.decision.action or "" for step in history.steps]
                views = await episode.certify_along(task, history.reset_seed, actions, history.records(), ask)
        except (ReplayMismatch, DataError) as error:
            self.checks.replay.require(False, f"{label}: {error}")
            return
        self.checks.replay.require(True, "")
        requests = list(requests_of_history(self.study, history))
        self._redecide(cell.reacher, label, requests, history.steps, [view.plan for view in views])

    async def continuation(self, row: EndpointCell, end: Continuation, task: Task) -> None:
        """Rebuild the history, go on with the recorded replies, and compare all on the way."""
        label, history = self.study.label(row), self.study.histories.get(row.cell)
        given = None if history is None else Handover.of(history, self.study.config)
        if history is None or given is None or end.cut != given.cut:
            return  # the check of the protocol says so
        ask = Ask(plan=self.again.needs_plan(row.solver), answer=True, messages=True)
        try:
            async with self.pool.episode() as episode:
                view, rebuilt = await rebuild(episode, task, history, given.cut, ask)
                views = [view]
                actions = [step.decision.action or "" for step in end.steps]
                recorded = [history.records()[given.cut], *(step.record for step in end.steps)]
                views += await episode.follow(actions, recorded, given.cut, ask)
        except (ReplayMismatch, DataError) as error:
            self.checks.rebuilt.require(False, f"{label}: {error}")
            return
        problems = []
        if end.rebuilt is None or (rebuilt.records, rebuilt.digest) != (end.rebuilt.records, end.rebuilt.digest):
            problems.append("its rebuilt records are not those of the replay")
        answer = views[-1].answer if end.outcome == "ended" else None
        if canonical(answer) != canonical(end.answer):
            problems.append("what its episode came to is not what the replay says")
        self.checks.rebuilt.collect(label, problems)
        requests = given.requests(self.study.task(row.task), end, self.study.config)
        self._redecide(row.solver, label, requests, end.steps, [view.plan for view in views])
        self._diagonal(row, label, history, end)

    def _redecide(
        self,
        policy: str,
        label: str,
        requests: Sequence[Request],
        steps: Sequence[Step],
        plans: Sequence[tuple[str, ...] | None],
    ) -> None:
        for position, (request, step) in enumerate(zip(requests, steps, strict=True), start=1):
            plan = plans[position - 1]
            self.again.require(policy, label, position, request, plan, step.decision)

    def _diagonal(self, row: EndpointCell, label: str, history: History, end: Continuation) -> None:
        """The first decision of a solver on its own history, where its engine is stated to be deterministic."""
        facts: Any = self.study.described.get(row.solver)
        sampling = facts.get("sampling") if isinstance(facts, dict) else None
        greedy = isinstance(sampling, dict) and sampling.get("temperature") == 0
        cut = end.cut
        due = row.reacher == row.solver and greedy and cut is not None and cut < len(history.steps) and end.steps
        if due and facts.get("kind") in ("hf", "builtin"):
            assert cut is not None
            same = end.steps[0].decision.text == history.steps[cut].decision.text
            failure = f"{label}: its first reply is not its own recorded one; its prompt or its engine is another"
            self.checks.diagonal.require(same, failure)

    async def formatting(self, row: EndpointCell, one: Formatting, task: Task, attempt: int) -> None:
        label, end = self.study.label(row), self.study.continuations.get(row)
        if end is None or not isinstance(end.answer, str):
            return
        try:
            async with self.pool.episode() as episode:
                messages = await episode.formatting(task, end.answer)
            call = FormatterCall.of(messages, task) if messages else None
            due = call is not None and (attempt == 0 or one.call is not None)
            problems = []
            if (call.digest if call is not None and due else None) != one.call:
                problems.append("its formatter's call is not what the answer gives")
            elif call is not None and one.decision is not None:
                async with self.pool.episode() as episode:
                    answer = await episode.read_formatted(task, one.decision.text)
                if canonical(answer) != canonical(one.answer):
                    problems.append("its formatter's reply is read as something else")
                request = call.request(self.study.config.run_seed, attempt)
                if one.decision.input_digest != request.input_digest():
                    problems.append("its formatter was shown something else")
                formatter = self.study.config.formatter
                assert formatter is not None
                self.again.require(formatter, label, 1 + attempt, request, None, one.decision)
        except DataError as error:
            problems = [str(error)]
        self.checks.formatted.collect(label, problems)

    async def score(self, row: EndpointCell, scoring: Scoring, task: Task) -> None:
        label, end = self.study.label(row), self.study.continuations.get(row)
        if end is None or scoring.verdict is None:
            return
        answer = answer_of(end, self.study.formattings.get(row), self.study.repairs.get(row))
        try:
            async with self.pool.episode() as episode:
                verdict = await episode.score(task, answer)
        except DataError as error:
            self.checks.scores.require(False, f"{label}: {error}")
            return
        same = canonical(to_json(verdict)) == canonical(to_json(scoring.verdict))
        self.checks.scores.require(same, f"{label}: its score is recorded as {_words(scoring)}, and is another")


def _words(scoring: Scoring) -> str:
    return "passed" if scoring.passed else "failed"


async def certify(
    audit: Audit, study: RecordedStudy, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
) -> None:
    """Add the checks of :data:`CLAIMS` to ``audit``."""
    checks = _Checks(*(audit.check(name, claim) for name, claim in CLAIMS.items()))
    if all(end.cut is None for end in study.continuations.values()):
        checks.rebuilt.excuse("no trajectory came to the cut")
    checks.formatted.excuse("no answer needed a formatter's call")
    checks.scores.excuse("no episode ended")
    checks.diagonal.excuse("no solver is a local model at temperature 0 that goes on from its own history")
    auditor = _RecordedAuditor(study, pool, checks, Redecided(study.described, checks.decisions))
    jobs: list[Callable[[], Awaitable[None]]] = []
    for cell, history in study.histories.items():
        if cell.task in tasks:
            jobs.append(partial(auditor.trajectory, cell, history, tasks[cell.task]))
    for row, end in study.continuations.items():
        if row.task in tasks and end.cut is not None:
            jobs.append(partial(auditor.continuation, row, end, tasks[row.task]))
    for attempt, formatted in enumerate((study.formattings, study.repairs)):
        for row, one in formatted.items():
            if row.task in tasks:
                jobs.append(partial(auditor.formatting, row, one, tasks[row.task], attempt))
    for row, scoring in study.scorings.items():
        if row.task in tasks:
            jobs.append(partial(auditor.score, row, scoring, tasks[row.task]))

    async def ticked(job: Callable[[], Awaitable[None]], tick: Tick) -> None:
        await job()
        tick()

    with progress.phase("replay", len(jobs)) as tick:
        await gather([partial(ticked, job, tick) for job in jobs], concurrency)
    for check in attrs.astuple(checks, recurse=False):
        check.failures.sort()
