"""The identity of a run: everything that its results depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff import __version__
from handoff.environment import Environment
from handoff.errors import UsageError
from handoff.policies.guard import description
from handoff.policies.policy import OBSERVED, Policy
from handoff.records import Task, to_json
from handoff.runs.run import protocol_of
from handoff.text import require_printable

#: Records that a plan may have: beyond this a typing error is likelier than a study.
MOST_RECORDS = 20_000_000


def require_size(records: int) -> None:
    """Raise :class:`~handoff.errors.UsageError` if a plan of so many ``records`` cannot be meant."""
    if records > MOST_RECORDS:
        raise UsageError(f"this would be {records} records; ask for at most {MOST_RECORDS} (fewer slots or rollouts)")


def stated_seeds(run_seed: int) -> dict[str, Any]:
    """The manifest's entry about seeds."""
    return {"run": run_seed, "schedule": "sha256 of [run, task, slot, purpose, position], first 63 bits"}


def describe(given: str | Policy, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """A policy's part of a manifest; ``given`` is its spec, or the policy itself, ``name`` what the run calls it."""
    described = description(policy, name)
    if isinstance(given, str):
        return {"spec": given, **described}
    return {"spec": f"python:{type(given).__module__}.{type(given).__qualname__}", "kind": "python", **described}


#: Entries of a manifest's protocol that tell what was observed of the models.
OBSERVED_BY_PROTOCOLS = frozenset({"prompt_groups"})


def commanded(identity: Any) -> Any:
    """The part of an identity that follows from the command alone, without what was observed of the models."""
    protocol = protocol_of(identity)
    if OBSERVED_BY_PROTOCOLS & set(protocol):
        identity = {**identity, "protocol": {k: v for k, v in protocol.items() if k not in OBSERVED_BY_PROTOCOLS}}
    policies = identity.get("policies") if isinstance(identity, Mapping) else None
    if not isinstance(policies, Mapping):
        return identity

    def without(facts: Any) -> Any:
        return {key: facts[key] for key in facts if key not in OBSERVED} if isinstance(facts, Mapping) else facts

    return {**identity, "policies": {name: without(facts) for name, facts in policies.items()}}


def identity(
    environment: Environment,
    protocol: Mapping[str, Any],
    run_seed: int,
    tasks: Sequence[Task],
    policies: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The identity of a run, JSON-safe and free of paths: its manifest holds it and its digest covers it.

    Raises :class:`~handoff.errors.DataError` for names that nobody could read back.
    """
    require_printable("policy", policies)
    require_printable("task", [word for task in tasks for word in (task.id, task.name, task.type, task.split)])
    return {
        "handoff": __version__,
        "protocol": dict(protocol),
        "environment": {"name": environment.name, **environment.describe(tasks)},
        "tasks": [to_json(attrs.evolve(task, source="")) for task in tasks],
        "policies": {name: dict(policies[name]) for name in sorted(policies)},
        "seeds": stated_seeds(run_seed),
    }
