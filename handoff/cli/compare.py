"""``handoff compare``: two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handoff.cli import bootstrap_options, options

if TYPE_CHECKING:
    from handoff.report.report import Options


@click.command(
    epilog="""\b
Examples:
  handoff compare runs/alfworld-unseen runs/alfworld-seen
  handoff compare runs/monday runs/tuesday --json

Differences are second minus first: paired where both runs have the same tasks, of independent samples where they have
none in common."""
)
@click.argument("first", metavar="RUN1", type=options.PATH)
@click.argument("second", metavar="RUN2", type=options.PATH)
@click.option("--anyway", is_flag=True, help="Take differences of runs of different environments too.")
@bootstrap_options.of_a_report
@options.as_json
def compare(
    first: Path,
    second: Path,
    anyway: bool,
    as_json: bool,
    chosen: Options,
) -> None:
    """Set RUN1 and RUN2 side by side: what they differ in, whether they can be compared, and every estimand of both
    with intervals and the difference."""
    from handoff.cli.output import console
    from handoff.protocols.frontier import FRONTIER
    from handoff.report.study import comparison

    compared = comparison.compare(FRONTIER.read(first), FRONTIER.read(second), chosen, anyway)
    if as_json:
        click.echo(json.dumps(compared.to_json(), indent=2, allow_nan=False))
    else:
        comparison.show(console(), compared)
