"""Counts and curves of a rollouts run, as JSON."""

from __future__ import annotations

from typing import Any

from handoff.passk.curves import mean_pass_at_k, mean_pass_hat_k
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import to_json


def summary(study: RolloutStudy) -> dict[str, Any]:
    """Counts per policy and task, and the curves pass@k and pass^k for k = 1, 2, 4, ... up to the rollouts of a task.

    ``never_solved`` is the share of tasks without a success.  A PTGS run has ``ptgs``, its settings; each policy has
    the successes of its ``pilots``, and each task the temperature that they set.  A policy most of whose
    tasks have equal rollouts only has ``alike``, the number of these tasks.  While rollouts are owed there are no
    curves, and ``owed`` says how many are missing.
    """
    owed = study.planned - study.count
    result: dict[str, Any] = {"complete": study.sealed and owed == 0, "planned": study.planned, "owed": owed}
    if owed:
        return result
    if study.ptgs is not None:
        result["ptgs"] = to_json(study.ptgs)
    policies = []
    for name in study.policies:
        counts = study.counts(name)
        budgets = [2**i for i in range(counts.rollouts.bit_length())]
        at_K = mean_pass_at_k(counts.n_T, counts.c_T, budgets[-1])
        hat_K = mean_pass_hat_k(counts.n_T, counts.c_T, budgets[-1])
        entry: dict[str, Any] = {
            "policy": name,
            "rollouts": int(counts.n_T.sum()),
            "successes": int(counts.c_T.sum()),
            "never_solved": float((counts.c_T == 0).mean()),
            "tasks": [
                {"task": task, "n": int(n), "c": int(c)}
                for task, n, c in zip(counts.tasks, counts.n_T, counts.c_T, strict=True)
            ],
            "pass_at_k": {str(k): float(at_K[k - 1]) for k in budgets},
            "pass_hat_k": {str(k): float(hat_K[k - 1]) for k in budgets},
        }
        if counts.repeated is not None:
            entry["alike"] = counts.alike
        if study.ptgs is not None:
            pilots = study.pilot_counts(name)
            entry["pilots"] = {
                "rollouts": int(pilots.n_T.sum()),
                "successes": int(pilots.c_T.sum()),
                "never_solved": float((pilots.c_T == 0).mean()),
            }
            temperatures = study.temperatures(name)
            for row, successes in zip(entry["tasks"], pilots.c_T, strict=True):
                row |= {"pilot_successes": int(successes), "temperature": temperatures[row["task"]]}
        policies.append(entry)
    return {**result, "policies": policies}
