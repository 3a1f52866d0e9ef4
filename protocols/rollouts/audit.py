"""The audit of temperatures: each is set again from the recorded pilots, and compared with what the records say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff.auditing.checks import Audit, _check_identity, _check_order, _stated, read_run
from handoff.auditing.policies import check_policies
from handoff.auditing.reference import _Place, _Reference
from handoff.progress import Progress
from handoff.protocols.rollouts import config as rollouts_config
from handoff.protocols.rollouts import study as rollouts_study
from handoff.protocols.rollouts.certify import certify_rollouts
from handoff.protocols.rollouts.config import Config
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import STATUSES, from_json
from handoff.seeds import ROLLOUT, SeedSchedule


def check_temperatures(result: Audit, run: RolloutStudy, config: Config) -> None:
    """That every pilot was at its policy's own temperature, and every scored rollout at the one that follows from the
    recorded pilots of its task (:mod:`handoff.passk.ptgs`)."""
    if config.ptgs is None:
        check = result.check("temperatures", "every rollout is at its policy's own temperature")
        for (id, policy, index), rollout in run.rollouts.items():
            told = f"task {id[:12]}, policy {policy}, rollout {index}: a temperature of {rollout.temperature} was set"
            check.require(rollout.temperature is None, told)
        return
    ptgs, schedule = config.ptgs, SeedSchedule(config.run_seed)
    check = result.check("temperatures", "every temperature is the policy's own, or follows from the task's pilots")
    for policy in config.policies:
        facts = run.identity["policies"].get(policy)
        own = _own_temperature(facts if isinstance(facts, dict) else {})
        stated = ptgs.references.get(policy)
        if not check.require(stated is not None and stated == own, f"pilots of {policy} at {stated}, but it has {own}"):
            continue
        for task in run.tasks:
            pilots = [run.rollouts.get((task.id, policy, index)) for index in range(ptgs.pilots)]
            successes = sum(pilot is not None and pilot.won for pilot in pilots)
            scored = ptgs.temperature(policy, successes, schedule.temperature(task.id))
            for index in range(config.rollouts):
                one = run.rollouts.get((task.id, policy, index))
                expected = stated if index < ptgs.pilots else scored
                if one is not None:
                    check.require(
                        one.temperature == expected,
                        f"task {task.name}, policy {policy}, rollout {index}: at {one.temperature}, not {expected} "
                        f"({successes} of {ptgs.pilots} pilots succeeded)",
                    )


def _own_temperature(facts: Mapping[str, Any]) -> Any:
    """The temperature in a policy's description: its own entry, or that of a language model's sampling."""
    sampling = facts.get("sampling")
    return facts.get("temperature", sampling.get("temperature") if isinstance(sampling, dict) else None)


def _audit_rollouts(folder: Path, place: _Place, progress: Progress, replay: bool) -> Audit:
    result, run = read_run(folder, rollouts_study.load)
    if run is None:
        return result
    config = from_json(rollouts_config.Config, _stated(run), f"{folder}: the manifest's protocol")
    _check_identity(result, run)
    found = (("rollout", task, policy, str(index)) for task, policy, index in run.rollouts)
    _check_order(result, rollouts_config.plan(run.tasks, config), found)
    complete = result.check("rollouts", "every planned rollout is there once")
    for key in rollouts_config.plan(run.tasks, config):
        complete.require((key[1], key[2], int(key[3])) in run.rollouts, f"missing: {'/'.join(key)}")
    check_temperatures(result, run, config)
    check_policies(result, run)
    seeds, schedule = result.check("seeds", "every seed is the schedule's"), SeedSchedule(config.run_seed)
    logic = result.check("protocol", "successes, outcomes and budgets follow from the decisions")
    for (task, policy, index), one in run.rollouts.items():
        cell = f"task {task[:12]}, policy {policy}, rollout {index}"
        seeds.require(one.reset_seed == schedule.reset(task, index), f"{cell}: reset seed")
        for position, decision in enumerate(one.decisions):
            expected = schedule.decision(task, index, ROLLOUT, position)
            seeds.require(decision.seed == expected, f"{cell}: seed of decision {position + 1} is not the schedule's")
        known = all(decision.status in STATUSES for decision in one.decisions)
        logic.require(known, f"{cell}: a decision has an unknown status")
        actions = len(one.decisions)
        whole = one.outcome in ("won", "terminal") or (one.outcome == "budget" and actions == config.budget)
        right = (one.outcome == "won") == one.won and one.records == actions + 1 and actions <= config.budget
        logic.require(whole and right, f"{cell}: outcome {one.outcome!r} after {actions} of {config.budget} actions")
    if replay:
        with _Reference(result, run, place, config) as reference:
            reference.run(lambda pool, tasks, lanes: certify_rollouts(result, run, pool, tasks, progress, lanes))
    return result
