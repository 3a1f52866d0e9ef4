"""A rollouts run in the terminal and as JSON: successes, pass@k and pass^k."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.passk import mean_pass_at_k, mean_pass_hat_k
from handoff.rollout_study import RolloutStudy


def summary(study: RolloutStudy) -> dict[str, Any]:
    """Counts per policy and task, and the curves pass@k and pass^k for k = 1, 2, 4, ... up to the rollouts of a task.

    While rollouts are owed there are no curves, and ``owed`` says how many are missing.
    """
    owed = study.planned - study.count
    result: dict[str, Any] = {"complete": study.sealed and owed == 0, "planned": study.planned, "owed": owed}
    if owed:
        return result
    policies = []
    for name in study.policies:
        counts = study.counts(name)
        budgets = [2**i for i in range(counts.rollouts.bit_length())]
        at_K = mean_pass_at_k(counts.n_T, counts.c_T, budgets[-1])
        hat_K = mean_pass_hat_k(counts.n_T, counts.c_T, budgets[-1])
        policies.append(
            {
                "policy": name,
                "rollouts": int(counts.n_T.sum()),
                "successes": int(counts.c_T.sum()),
                "tasks": [
                    {"task": task, "n": int(n), "c": int(c)}
                    for task, n, c in zip(counts.tasks, counts.n_T, counts.c_T, strict=True)
                ],
                "pass_at_k": {str(k): float(at_K[k - 1]) for k in budgets},
                "pass_hat_k": {str(k): float(hat_K[k - 1]) for k in budgets},
            }
        )
    return {**result, "policies": policies}


def show(console: Console, study: RolloutStudy) -> None:
    """The table of a rollouts run."""
    numbers = summary(study)
    if numbers["owed"]:
        console.print(
            f"{study.still_owed} are owed: type the run's command again to go on.", style="yellow", highlight=False
        )
        return
    budgets = list(numbers["policies"][0]["pass_at_k"])
    grid = Grid(header_style="")
    grid.add_column("policy")
    grid.add_column("successes", justify="right")
    for k in budgets:
        grid.add_column(f"pass@{k}", justify="right")
    grid.add_column(f"pass^{budgets[-1]}", justify="right")
    for entry in numbers["policies"]:
        grid.add_row(
            Text(entry["policy"]),
            f"{entry['successes']}/{entry['rollouts']}",
            *(f"{100 * entry['pass_at_k'][k]:.1f}%" for k in budgets),
            f"{100 * entry['pass_hat_k'][budgets[-1]]:.1f}%",
        )
    console.print(grid)
