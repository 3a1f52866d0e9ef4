"""What an audit checks from the records of a rollouts run alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from handoff.auditing.checks import MOST_MISSING, Audit
from handoff.protocols.rollouts.config import plan
from handoff.protocols.rollouts.records import rollout_problem
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import STATUSES
from handoff.seeds import ROLLOUT, SeedSchedule


def check_records(audit: Audit, study: RolloutStudy) -> None:
    """The checks that need neither the environment nor time."""
    check = audit.check("rollouts", "every planned rollout is there")
    if study.planned - study.count > MOST_MISSING:
        check.require(False, f"missing: {study.still_owed}")
    else:
        sealed = set(study.keys())
        for key in plan(study.tasks, study.config):
            check.require(key in sealed, f"missing: {'/'.join(key)}")
    stated = study.config.tasks  # none: all that the environment has
    if stated not in (None, len(study.tasks)):
        check.failures.append(f"the protocol states {stated} tasks, the manifest lists {len(study.tasks)}")
    _check_temperatures(audit, study)
    _check_decisions(audit, study)


def _check_decisions(audit: Audit, study: RolloutStudy) -> None:
    budget, schedule = study.config.budget, SeedSchedule(study.config.run_seed)
    seeds = audit.check("seeds", "every stated seed is the schedule's")
    logic = audit.check("protocol", "successes, outcomes and budgets follow from the decisions")
    for cell, rollout in study.rollouts.items():
        label = study.label(cell)
        seeds.require(rollout.reset_seed == schedule.reset(cell.task, cell.rollout), f"{label}: reset seed")
        for position, decision in enumerate(rollout.decisions):
            expected = schedule.decision(cell.task, cell.rollout, ROLLOUT, position)
            seeds.require(decision.seed == expected, f"{label}: seed of decision {position + 1} is not the schedule's")
        known = all(decision.status in STATUSES for decision in rollout.decisions)
        logic.require(known, f"{label}: a decision has an unknown status")
        problem = rollout_problem(rollout, budget)
        logic.require(problem is None, f"{label}: {problem}")


def _check_temperatures(audit: Audit, study: RolloutStudy) -> None:
    """That every pilot was at its policy's own temperature, and every scored rollout at the one that follows from the
    recorded pilots of its task (:mod:`handoff.passk.ptgs`)."""
    config = study.config
    if config.ptgs is None:
        check = audit.check("temperatures", "no rollout states another temperature than its policy's own")
        for cell, rollout in study.rollouts.items():
            failure = f"{study.label(cell)}: a temperature of {rollout.temperature} was set"
            check.require(rollout.temperature is None, failure)
        return
    ptgs, schedule = config.ptgs, SeedSchedule(config.run_seed)
    check = audit.check(
        "temperatures", "every stated temperature is the policy's own or follows from the task's pilots"
    )
    others = sorted(set(ptgs.references) - set(config.policies))
    check.failures.extend(f"pilots of {name:.80}, which is no policy of the run" for name in others)
    for policy in config.policies:
        facts = study.described.get(policy)
        own = _own_temperature(facts if isinstance(facts, dict) else {})
        stated = ptgs.references.get(policy)
        if not check.require(stated is not None and stated == own, f"pilots of {policy} at {stated}, but it has {own}"):
            continue
        mine = [one for one in study.rollouts.values() if one.policy == policy]
        successes = Counter(one.task for one in mine if one.index < ptgs.pilots and one.won)
        scored = {
            task.id: ptgs.temperature(policy, successes[task.id], schedule.temperature(task.id)) for task in study.tasks
        }
        for one in mine:
            expected = stated if one.index < ptgs.pilots else scored[one.task]
            check.require(
                one.temperature == expected,
                f"{study.label(one.cell)}: at {one.temperature}, not {expected} "
                f"({successes[one.task]} of {ptgs.pilots} pilots succeeded)",
            )


def _own_temperature(facts: Mapping[str, Any]) -> Any:
    """The temperature in a policy's description: its own entry, or that of a language model's sampling."""
    sampling = facts.get("sampling")
    return facts.get("temperature", sampling.get("temperature") if isinstance(sampling, dict) else None)
