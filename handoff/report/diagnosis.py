"""What ``handoff doctor`` found, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.policies.doctor import Diagnosis


def show_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    """What the policy is, what was compared, and the first difference of each kind."""
    facts = diagnosis.facts
    console.print(f"{diagnosis.name}: {facts.get('spec', '')}", style="bold", markup=False, highlight=False)
    for key in ("engine", "digests", "tokens", "guarantee"):
        value = facts.get(key)
        if isinstance(value, dict):
            value = ", ".join(f"{name} {entry}" for name, entry in value.items() if entry not in (None, {}, ""))
        if value:
            console.print(f"  {key}: {value}", markup=False, highlight=False, soft_wrap=True)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(diagnosis.statuses.items()))
    console.print(f"  replies: {statuses}", markup=False, highlight=False, soft_wrap=True)
    grid = Grid(header_style="")
    grid.add_column("asked")
    grid.add_column("same as alone", justify="right")
    grid.add_column("result")
    for agreement in diagnosis.agreements:
        result = Text("same", "green") if agreement.passed else Text("DIFFERENT", "bold red")
        grid.add_row(Text(agreement.name), f"{agreement.equal}/{agreement.total}", result)
    console.print(grid)
    for agreement in diagnosis.agreements:
        if agreement.first is not None:
            console.print(
                f"{agreement.name}: {agreement.first}", style="red", markup=False, highlight=False, soft_wrap=True
            )
    console.print(f"answers' digest: {diagnosis.fingerprint}", markup=False, highlight=False)
