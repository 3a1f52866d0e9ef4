"""``handoff compare``: two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handoff.bootstrap import DEFAULT, DRAWS, METHODS
from handoff.cli import options
from handoff.cli.report import names, whole_numbers


@click.command(
    epilog="""\b
Examples:
  handoff compare runs/alfworld-unseen runs/alfworld-seen
  handoff compare runs/monday runs/tuesday --json

Differences are second minus first: paired where both runs have the same tasks, of independent samples where they have
none in common."""
)
@click.argument("first", metavar="RUN1", type=click.Path(path_type=Path))
@click.argument("second", metavar="RUN2", type=click.Path(path_type=Path))
@click.option("--anyway", is_flag=True, help="Take differences of runs of different environments too.")
@click.option("--budgets", metavar="LIST", help="Reacher budgets.  [default: 8,16,48 as far as observed]")
@click.option("--order", metavar="LIST", help="Checkpoints from the weakest to the strongest.  [default: each run's]")
@click.option(
    "--interval", default=DEFAULT, show_default=True, metavar="NAME", help=f"Kind of interval: {', '.join(METHODS)}."
)
@click.option("--draws", default=DRAWS, show_default=True, help="Bootstrap draws.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draws.")
@click.option("--level", default=0.95, show_default=True, help="Level of the intervals.")
@options.as_json
def compare(
    first: Path,
    second: Path,
    anyway: bool,
    budgets: str | None,
    order: str | None,
    interval: str,
    draws: int,
    seed: int,
    level: float,
    as_json: bool,
) -> None:
    """Set RUN1 and RUN2 side by side: what they differ in, whether they can be compared, and every estimand of both
    with intervals and the difference."""
    from rich.console import Console

    from handoff import study
    from handoff.report import comparison, numbers, terminal

    chosen = numbers.Options(
        interval=interval, draws=draws, seed=seed, level=level, order=names(order), budgets=whole_numbers(budgets)
    )
    compared = comparison.compare(study.load(first), study.load(second), chosen, anyway)
    if as_json:
        click.echo(json.dumps(compared, indent=2, allow_nan=False))
    else:
        terminal.show_comparison(Console(), compared)
