"""What a rollouts run records."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from handoff.records import Decision, Record
from handoff.runs.chain import Key

ROLLOUT = "rollout"


class RolloutCell(NamedTuple):
    """One rollout's place in the plan."""

    task: str
    policy: str
    rollout: int

    @property
    def key(self) -> Key:
        return (ROLLOUT, self.task, self.policy, str(self.rollout))


@attrs.frozen
class Rollout:
    """One of N independent episodes of a policy on a task, without a handoff.

    ``decisions`` are all that it decided; its records are not kept but for their number and ``digest``, for the episode
    can be replayed: ``records`` counts them (``len(decisions) + 1``).  ``outcome`` is ``won``, ``terminal`` or
    ``budget``.  ``temperature`` is what all its decisions were sampled at where the protocol set it; ``None`` leaves it
    to the policy.
    """

    task: str
    index: int
    policy: str
    reset_seed: int
    decisions: tuple[Decision, ...]
    records: int
    digest: str
    won: bool
    outcome: str
    temperature: float | None = None

    @property
    def cell(self) -> RolloutCell:
        return RolloutCell(self.task, self.policy, self.index)


def rollout_problem(rollout: Rollout, budget: int) -> str | None:
    """Where a rollout contradicts itself or its ``budget`` of actions, as a clause."""
    actions, outcome = len(rollout.decisions), rollout.outcome
    whole = outcome in ("won", "terminal") or (outcome == "budget" and actions == budget)
    consistent = (outcome == "won") == rollout.won and rollout.records == actions + 1 and actions <= budget
    return None if whole and consistent else f"outcome {outcome!r:.40} after {actions} of {budget} actions"


def outcome_of(last: Record) -> str:
    """How a rollout ended, given its last record."""
    return "won" if last.won else "terminal" if last.done else "budget"
