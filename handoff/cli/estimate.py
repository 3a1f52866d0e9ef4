"""``handoff estimate``: every estimand of a table, with intervals."""

from __future__ import annotations

import json
from typing import Any

import click

from handoff.cli import bootstrap_options, options
from handoff.cli.settings import options_of
from handoff.estimation.method import Intervals


@click.command(
    epilog="""\b
Examples:
  handoff estimate table.csv
  handoff estimate table.csv --interval paper --json
  handoff estimate table.csv --more
  handoff estimate runs/alfworld-0123456789 --order base,sft,dpo,rl --budgets 8,16,48
  handoff estimate D=2=runs/two D=4=runs/four          # side by side, with paired differences

A CSV has the columns task,type,seed,reacher,solver,arrived,won, one row an endpoint, with arrived and won 0 or 1; a
reacher that never arrived has rows too.  Columns bridge (0 or 1), arrival and actions (numbers) are used if there."""
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@options_of(Intervals)
@bootstrap_options.order_option
@click.option("--budgets", metavar="STEPS", help="Reacher budgets for arrival.  [default: 8,16,48]")
@bootstrap_options.more_option
@options.as_json
def estimate(
    tables: tuple[str, ...],
    intervals: dict[str, Any],
    order: str | None,
    budgets: str | None,
    more: bool,
    as_json: bool,
) -> None:
    """Print every estimand of TABLE (a CSV file or a run folder) with its interval and its counts.

    Several tables, as PATH or LABEL=PATH, are put side by side.
    """
    from handoff.cli import inputs
    from handoff.cli.output import console
    from handoff.errors import UsageError
    from handoff.estimation import bootstrap, differences, estimands
    from handoff.estimation.more import more as beside
    from handoff.report import more as more_sheets
    from handoff.report import statistics

    names = bootstrap_options.names(order)
    steps = bootstrap_options.whole_numbers("--budgets", budgets)
    loaded = inputs.labelled(tables)
    if more and len(loaded) > 1:
        raise UsageError("--more is of one table; give it one table at a time")
    if len(loaded) > 1:
        several = differences.side_by_side(loaded, names, budgets=steps, intervals=Intervals(**intervals))
        if as_json:
            click.echo(json.dumps(several.to_json(), indent=2, allow_nan=False))
        else:
            statistics.show_side_by_side(console(), several)
        return
    (table,) = loaded.values()
    wanted = estimands.standard(table, names, budgets=steps)
    estimates = bootstrap.estimate(table, wanted, Intervals(**intervals))
    further = beside(table, names, Intervals(**intervals)) if more else None
    if as_json:
        extra = {} if further is None else {"more": further.to_json()}
        click.echo(json.dumps({**estimates.to_json(), **extra}, indent=2, allow_nan=False))
        return
    statistics.show_estimates(console(), table, estimates)
    if further is not None:
        more_sheets.show(console(), further)
