"""``handoff report``: the tables of a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff report runs/alfworld-0123456789
  handoff report runs/alfworld-0123456789 --json"""
)
@click.argument("run", type=click.Path(path_type=Path))
@options.as_json
def report(run: Path, as_json: bool) -> None:
    """Print the tables of RUN: endpoints, Reach and Solve per cell with counts, and what is owed."""
    from rich.console import Console

    from handoff import study
    from handoff.report import numbers, terminal

    loaded = study.load(run)
    if as_json:
        click.echo(json.dumps(numbers.summary(loaded), indent=2))
    else:
        terminal.show_study(Console(), loaded)
