"""Certification of rollouts: each is replayed on the reference environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from handoff.auditing.checks import Audit
from handoff.auditing.policies import decision_problems
from handoff.episodes.batching import gather
from handoff.episodes.host import Ask
from handoff.episodes.pool import Pool
from handoff.policies.policy import Request, Turn
from handoff.progress import Progress, Tick
from handoff.protocols.rollouts.records import Rollout
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import Task
from handoff.replay import records_digest

CLAIMS = {
    "replay": "every rollout's records and success are equal on the reference engine",
    "inputs": "every recorded input is what the replayed records show, at the stated temperature",
    "texts": "every text gives its action, by the stated rule and the admissible actions there",
}


async def certify(
    audit: Audit, study: RolloutStudy, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
) -> None:
    """Add the checks ``replay`` and ``inputs`` of a rollouts run: each episode again, its records' digest, its success
    and everything that its policy was given equal."""
    check, inputs, texts = (audit.check(name, claim) for name, claim in CLAIMS.items())
    budget = study.config.budget

    async def one(rollout: Rollout, tick: Tick) -> None:
        label = study.label(rollout.cell)
        async with pool.episode() as episode:
            view = await episode.reset(tasks[rollout.task], rollout.reset_seed, Ask())
            records = [view.record]
            history: list[Turn] = []
            for position, decision in enumerate(rollout.decisions):
                if view.record.won or view.record.done:
                    break
                request = Request(
                    tasks[rollout.task],
                    decision.seed,
                    records[0],
                    tuple(history),
                    budget - position,
                    temperature=rollout.temperature,
                )
                facts = study.described.get(rollout.policy)
                problems = decision_problems(facts, decision, view.record.admissible)
                texts.collect(f"{label}, decision {position + 1}", problems)
                inputs.require(
                    decision.input_digest == request.input_digest(),
                    f"{label}: input of decision {position + 1} is not what the records show",
                )
                view = await episode.step(decision.action, Ask()) if decision.action else view
                records.append(view.record)
                history.append(Turn(decision.action or "", view.record, decision.text))
        check.require(records_digest(records) == rollout.digest, f"{label}: its records differ")
        check.require(view.record.won == rollout.won, f"{label}: won is recorded as {rollout.won}")
        tick()

    jobs = [rollout for rollout in study.rollouts.values() if rollout.task in tasks]
    with progress.phase("replay", len(jobs)) as tick:
        await gather([partial(one, job, tick) for job in jobs], concurrency)
    check.failures.sort()
    inputs.failures.sort()
    texts.failures.sort()
