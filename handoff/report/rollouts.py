"""A rollouts run in the terminal and as JSON: successes, pass@k and pass^k.

Of a PTGS run these are of the scored rollouts; the pilots and the temperatures stand beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.protocols.rollouts.study import RolloutStudy
from handoff.protocols.rollouts.summary import summary


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
        f"PTGS: of {study.config.rollouts} rollouts a task the first {ptgs.pilots} are pilots and not scored; "
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


class _Shim:
    def plan_lines(self, identity: Any, folder: Path) -> list[str]:
        protocol = identity["protocol"]
        count = len(identity["tasks"]) * len(protocol["policies"]) * protocol["rollouts"]
        return [f"{count} rollouts of {len(identity['tasks'])} tasks into {folder}"]

    def show_result(self, console: Console, run: RolloutStudy) -> None:
        show(console, run)

    def document(self, run: RolloutStudy, options: Any = None, external: Any = None) -> Any:
        return summary(run)

    def show(self, console: Console, document: Any) -> None:
        raise NotImplementedError

    def write(self, run: Any, document: Any, path: Any) -> Any:
        raise NotImplementedError


REPORT = _Shim()
