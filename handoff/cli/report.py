"""``handoff report``: the tables of a run, and its page."""

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
  handoff report runs/alfworld-0123456789
  handoff report runs/alfworld-0123456789 --more
  handoff report runs/alfworld-0123456789 --html
  handoff report runs/alfworld-0123456789 --html page.html --external runs/alfworld-seen
  handoff report runs/alfworld-0123456789 --budgets 4,8,48 --interval paper --json

The page needs no network and has a twin in JSON of every number beside it: page.html, page.json."""
)
@click.argument("run", type=options.PATH)
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write the page, and its numbers as JSON beside it.  [default: RUN/report.html]",
)
@click.option(
    "--external", type=options.PATH, metavar="RUN", help="Run of other tasks: predict the interaction from it."
)
@bootstrap_options.of_a_report
@bootstrap_options.more_option
@options.as_json
def report(
    run: Path,
    html: str | None,
    external: Path | None,
    more: bool,
    as_json: bool,
    chosen: Options,
) -> None:
    """Print the tables of RUN.  Of a handoff study: endpoints and the interaction, Reach and Solve, bridge and finish,
    rates by task type, arrival by budget, all with intervals; of rollouts: successes, pass@k and pass^k.  While records
    are owed: the counts so far."""
    import attrs

    from handoff.cli.output import console
    from handoff.protocols.registry import protocol_of_run
    from handoff.text import shell_word

    protocol = protocol_of_run(run)
    chosen = attrs.evolve(chosen, more=more or html is not None)  # the page has it folded
    shown, loaded = protocol.report(), protocol.read(run)
    document = shown.document(loaded, chosen, None if external is None else protocol.read(external))
    if html is not None:
        for path in shown.write(loaded, document, Path(html) if html else None):
            click.echo(f"wrote {shell_word(path)}", err=as_json)
        if not as_json:
            return
    if as_json:
        click.echo(json.dumps(document.to_json(), indent=2, allow_nan=False))
    else:
        shown.show(console(), document)
