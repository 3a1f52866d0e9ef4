"""Scripted policies decide again: seed, state and plan say all of a decision, so an audit makes it anew and compares.

The plan of the environment is asked where the episode is replayed, on the reference engine.  A policy whose actions lie
in a file is held against itself, for no file that a manifest names is read: at one place of a task it always takes the
same action.  Policies of other packages are not made here, and nobody can say who decided for a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.auditing.checks import Check
from handoff.errors import HandoffError
from handoff.policies import kinds
from handoff.policies.policy import Policy, Request
from handoff.policies.scripted import is_temperature
from handoff.policies.specs import Spec
from handoff.records import Decision

CLAIM = "every decision of a scripted policy is what its spec gives for its seed, the replayed state and the plan there"


class Redecided:
    """The scripted policies of a run, made anew from their specs."""

    def __init__(self, described: Mapping[str, Any], check: Check) -> None:
        self._check = check
        self._policies: dict[str, Policy] = {}
        #: Actions of policies whose file is not read, by policy, task and place in the episode.
        self._lists: dict[str, dict[tuple[str, int], str | None]] = {}
        for name, facts in described.items():
            text = facts.get("spec") if isinstance(facts, dict) else None
            spec = Spec.parse(text if isinstance(text, str) else "")
            if spec.kind in ("actions", "calls"):
                self._lists[name] = {}
                check.notes.append(f"policy {name}: its file of actions is not read, so it is held against itself only")
            elif spec.kind in kinds.SCRIPTED:
                self._make(name, spec)
            elif spec.kind not in kinds.BUILTIN:
                check.notes.append(f"policy {name}: it is no policy of the toolkit, so it does not decide again")
        if not self._policies and not self._lists:
            check.excuse("no policy is scripted; who decided for another one cannot be known (docs/audit.md)")
        else:
            check.excuse("no scripted policy had anything to decide")

    def _make(self, name: str, spec: Spec) -> None:
        try:
            self._policies[name] = kinds.find(spec.kind).make(spec)
        except HandoffError as error:
            self._check.owe(f"policy {name} cannot be made: {error}")

    def needs_plan(self, *names: str) -> bool:
        """Whether one of the policies decides by the environment's plan."""
        return any(policy.needs_plan for name, policy in self._policies.items() if name in names)

    def require(
        self, name: str, cell: str, position: int, request: Request, plan: tuple[str, ...] | None, decision: Decision
    ) -> None:
        """Hold one decision, number ``position`` of its policy's turn, against what the policy decides now."""
        if name in self._lists:
            self._require_same(name, cell, position, request, decision)
        if name not in self._policies:
            return
        if request.temperature is not None and not is_temperature(request.temperature):
            failure = f"{cell}: decision {position} is stated to be made at the temperature {request.temperature}"
            self._check.require(False, f"{failure}, which is none")
            return
        (again,) = self._policies[name].decide([attrs.evolve(request, plan=plan)])
        self._check.require(
            (again.action, again.status, again.flags) == (decision.action, decision.status, decision.flags),
            f"{cell}: decision {position} is recorded as {_words(decision)}, but its policy decides {_words(again)}",
        )

    def _require_same(self, name: str, cell: str, position: int, request: Request, decision: Decision) -> None:
        place = (request.task.id, len(request.history))
        action = self._lists[name].setdefault(place, decision.action)
        self._check.require(
            action == decision.action,
            f"{cell}: decision {position} is {decision.action!r:.80}, but at this place of the task {name} did "
            f"{action!r:.80} elsewhere",
        )


def _words(decision: Decision) -> str:
    flags = f", {' '.join(decision.flags)}" if decision.flags else ""
    return f"{decision.action!r:.80} ({decision.status}{flags})"
