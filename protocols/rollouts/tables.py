"""The records of a rollouts run as flat tables."""

from __future__ import annotations

from collections.abc import Mapping

from handoff.protocols.export import ExportTable
from handoff.protocols.rollouts.study import RolloutStudy

_CELL = {"task": str, "name": str, "type": str, "policy": str, "index": int}


def tables(study: RolloutStudy) -> Mapping[str, ExportTable]:
    """``rollouts``: one row per rollout; ``decisions``: one row per decision."""
    rollouts, decisions = [], []
    for rollout in study.rollouts.values():
        task = study.task(rollout.task)
        cell = {
            "task": task.id, "name": task.name, "type": task.type, "policy": rollout.policy, "index": rollout.index,
        }  # fmt: skip
        rollouts.append(
            {
                **cell,
                "pilot": int(rollout.index < study.pilots),
                "won": int(rollout.won),
                "outcome": rollout.outcome,
                "actions": len(rollout.decisions),
                "temperature": rollout.temperature,
            }
        )
        decisions += [
            {
                **cell,
                "position": position,
                "action": decision.action,
                "status": decision.status,
                "flags": " ".join(decision.flags),
                "text": decision.text,
            }
            for position, decision in enumerate(rollout.decisions)
        ]
    outcome = {"pilot": int, "won": int, "outcome": str, "actions": int, "temperature": float}
    decision_columns = {"position": int, "action": str, "status": str, "flags": str, "text": str}
    return {
        "rollouts": ExportTable({**_CELL, **outcome}, rollouts),
        "decisions": ExportTable({**_CELL, **decision_columns}, decisions),
    }
