"""Certification of rollouts: each is replayed on the reference environment.

A rollout keeps its decisions and no records, so the replay says what they were: where the episode ended, whether it was
won, and after how many decisions.  No statement of the record is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import attrs

from handoff.auditing import scripted
from handoff.auditing.checks import Audit, Check, check_statuses
from handoff.auditing.policies import DecisionRules, rules_of
from handoff.auditing.prompts import Renderer
from handoff.auditing.scripted import Redecided
from handoff.episodes.batching import gather
from handoff.episodes.host import Ask, View
from handoff.episodes.pool import Pool
from handoff.episodes.turns import is_over
from handoff.errors import DataError
from handoff.policies.policy import Request, Turn
from handoff.progress import Progress, Tick
from handoff.protocols.rollouts.records import Rollout, outcome_of
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import Record, Task
from handoff.replay import records_digest

CLAIMS = {
    "replay": "every rollout's records, number of decisions, end and success are those of the reference engine",
    "inputs": "every input's digest is that of what the replayed records show, at the stated temperature",
    "prompts": "every prompt's digest is that of the prompt that its template makes of the replayed records",
    "texts": "every text gives its action, by the stated rule and the admissible actions there",
    "decisions": scripted.CLAIM,
}


@attrs.frozen
class _Checks:
    replay: Check
    inputs: Check
    prompts: Check
    texts: Check
    decisions: Check


@attrs.frozen
class _Auditor:
    """Everything that a rollout is held against."""

    study: RolloutStudy
    checks: _Checks
    rules: Mapping[str, DecisionRules]
    renderer: Renderer
    again: Redecided

    async def one(self, rollout: Rollout, task: Task, pool: Pool, tick: Tick) -> None:
        """Replay one rollout, decision by decision, until its episode ends."""
        label, check = self.study.label(rollout.cell), self.checks.replay
        try:
            async with pool.episode() as episode:
                ask = Ask(plan=self.again.needs_plan(rollout.policy))
                view = await episode.reset(task, rollout.reset_seed, ask)
                records, history = [view.record], list[Turn]()
                for decision in rollout.decisions:
                    if is_over(view):
                        break
                    self._decision(rollout, label, history, records[0], view)
                    view = await episode.step(decision.action, ask) if decision.action else view
                    records.append(view.record)
                    history.append(Turn(decision.action or "", view.record, decision.text))
        except DataError as error:
            check.require(False, f"{label}: {error}")
        else:
            check.require(records_digest(records) == rollout.digest, f"{label}: its records differ")
            check.collect(label, self._end_problems(rollout, len(history), view))
        tick()

    def _decision(self, rollout: Rollout, label: str, history: Sequence[Turn], reset: Record, view: View) -> None:
        """Hold the decision after ``history`` against what it was made from, which is at ``view``."""
        decision, place = rollout.decisions[len(history)], len(history) + 1
        request = Request(
            self.study.task(rollout.task),
            decision.seed,
            reset,
            tuple(history),
            self.study.config.budget - len(history),
            temperature=rollout.temperature,
        )
        admissible = view.record.offer(free=bool(reset.messages))
        problems = chain(
            self.rules[rollout.policy].replayed_problems(decision, admissible), check_statuses(decision, admissible)
        )
        self.checks.texts.collect(f"{label}, decision {place}", dict.fromkeys(problems))
        self.checks.inputs.require(
            decision.input_digest == request.input_digest(),
            f"{label}: input of decision {place} is not what the records show",
        )
        self.renderer.require_one(rollout.policy, label, place, request, decision)
        self.again.require(rollout.policy, label, place, request, view.plan, decision)

    def _end_problems(self, rollout: Rollout, played: int, last: View) -> Iterator[str]:
        """Where the record says something else of the end than the replay, which stopped after ``played`` decisions."""
        made, budget = len(rollout.decisions), self.study.config.budget
        if played < made:
            yield f"decision {played + 1} was made after the episode had ended"
        elif not is_over(last) and made != budget:
            yield f"it stops after {made} of {budget} decisions, though the episode had not ended"
        if rollout.records != played + 1:
            yield f"it has {rollout.records} records, but the replay has {played + 1}"
        if rollout.won != last.record.won:
            yield f"won is recorded as {rollout.won}"
        if rollout.outcome != (outcome := outcome_of(last.record)):
            yield f"its outcome is recorded as {rollout.outcome!r:.40}, but is {outcome!r}"


async def certify(
    audit: Audit, study: RolloutStudy, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
) -> None:
    """Add the checks of :data:`CLAIMS` to ``audit``: each episode again, and all that its policy was given and did."""
    checks = _Checks(*(audit.check(name, claim) for name, claim in CLAIMS.items()))
    if not any(rollout.decisions for rollout in study.rollouts.values()):
        checks.inputs.excuse("no policy had anything to decide")
        checks.texts.excuse("no policy had anything to decide")
    auditor = _Auditor(
        study,
        checks,
        rules_of(study),
        Renderer(study.described, checks.prompts, audit.templates),
        Redecided(study.described, checks.decisions),
    )
    models = any(rules.model for rules in auditor.rules.values())
    reason = "no template of these policies may be rendered here" if models else "no policy is a language model"
    checks.prompts.excuse(reason)
    jobs = [
        partial(auditor.one, rollout, tasks[rollout.task], pool)
        for rollout in study.rollouts.values()
        if rollout.task in tasks
    ]
    with progress.phase("replay", len(jobs)) as tick:
        await gather([partial(job, tick) for job in jobs], concurrency)
    for check in attrs.astuple(checks, recurse=False):
        check.failures.sort()
