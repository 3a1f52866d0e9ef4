"""``handoff transport``: predict the interaction from another split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import click

from handoff.cli import bootstrap_options, numbers, options
from handoff.cli.settings import options_of
from handoff.estimation.method import Intervals


@click.command(
    epilog="""\b
Examples:
  handoff transport runs/unseen --external runs/seen
  handoff transport unseen.csv --external seen.csv --pair sft,rl --json
  handoff transport runs/unseen --external runs/seen --margin 10

The two must share no task and no game, and must have run the same checkpoints alike."""
)
@click.argument("target", type=options.PATH)
@click.option("--external", required=True, type=options.PATH, help="Run folder or CSV of the other split.")
@click.option("--pair", metavar="A,B", help="The contrast A to B.  [default: the first two reachers]")
@click.option(
    "--margin", type=numbers.Real(0, 200), metavar="POINTS",
    help="Test whether the residual lies within so many points of 0; state it before you look.",
)  # fmt: skip
@options_of(Intervals)
@options.as_json
def transport(
    target: Path, external: Path, pair: str | None, margin: float | None, intervals: dict[str, Any], as_json: bool
) -> None:
    """Predict TARGET's interaction: its Reach gap times the external split's Solve gap, type by type.

    TARGET is a run folder or a CSV table (see `handoff estimate`).
    """
    from handoff.cli import inputs
    from handoff.cli.output import console
    from handoff.estimation.transport import pair_of, residual_equivalence
    from handoff.estimation.transport import transport as predict
    from handoff.report import statistics

    here, there = inputs.load_sample(target), inputs.load_sample(external)
    chosen = pair_of(here.table, there.table, bootstrap_options.names(pair))
    transported = predict(here, there, chosen, Intervals(**intervals))
    tested = None
    if margin is not None:
        tested = residual_equivalence(here, there, chosen, margin / 100, Intervals(**intervals))
    if as_json:
        form = transported.to_json()
        if tested is not None:
            form["equivalence"] = {**attrs.asdict(tested), "shown": tested.shown}
        click.echo(json.dumps(form, indent=2, allow_nan=False))
        return
    statistics.show_transport(console(), transported)
    if tested is not None:
        click.echo(str(tested))
