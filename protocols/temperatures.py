"""The audit of temperatures: each is set again from the recorded pilots, and compared with what the records say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.audit import Audit
from handoff.protocols.rollouts import Config
from handoff.rollout_study import RolloutStudy
from handoff.seeds import SeedSchedule


def check_temperatures(result: Audit, run: RolloutStudy, config: Config) -> None:
    """That every pilot was at its policy's own temperature, and every scored rollout at the one that follows from the
    recorded pilots of its task (:mod:`handoff.ptgs`)."""
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
