"""A rollouts run in the terminal and as JSON: successes, pass@k and pass^k.

Of a PTGS run these are of the scored rollouts; the pilots and the temperatures stand beside them.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.passk.curves import mean_pass_at_k, mean_pass_hat_k
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import to_json


def summary(study: RolloutStudy) -> dict[str, Any]:
    """Counts per policy and task, and the curves pass@k and pass^k for k = 1, 2, 4, ... up to the rollouts of a task.

    ``never_solved`` is the share of tasks without a success.  A PTGS run has ``ptgs``, its settings; each policy has
    the successes of its ``pilots``, and each task the temperature that they set.  While rollouts are owed there are no
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
    grid.add_column("never", justify="right")
    for entry in numbers["policies"]:
        grid.add_row(
            Text(entry["policy"]),
            f"{entry['successes']}/{entry['rollouts']}",
            *(f"{100 * entry['pass_at_k'][k]:.1f}%" for k in budgets),
            f"{100 * entry['pass_hat_k'][budgets[-1]]:.1f}%",
            f"{100 * entry['never_solved']:.1f}%",
        )
    console.print(grid)
    if study.ptgs is None:
        return
    ptgs = study.ptgs
    console.print(
        f"PTGS: of {study.protocol['rollouts']} rollouts a task the first {ptgs.pilots} are pilots and not scored; "
        f"tau {ptgs.tau:g}, target success rate {ptgs.target:g}",
        highlight=False,
    )
    grid = Grid(header_style="")
    for column in ("policy", "T of the pilots", "T of the scored", "pilot successes", "never in the pilots"):
        grid.add_column(column, justify="left" if column == "policy" else "right")
    for entry in numbers["policies"]:
        found, pilots = [row["temperature"] for row in entry["tasks"]], entry["pilots"]
        grid.add_row(
            Text(entry["policy"]),
            f"{ptgs.references[entry['policy']]:g}",
            f"{min(found):.3g} to {max(found):.3g}",
            f"{pilots['successes']}/{pilots['rollouts']}",
            f"{100 * pilots['never_solved']:.1f}%",
        )
    console.print(grid)
