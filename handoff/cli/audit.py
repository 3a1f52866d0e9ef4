"""``handoff audit``: re-derive every claim of a run from its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli import options
from handoff.cli.settings import Command, Option, options_of
from handoff.episodes.start import Where


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  handoff audit runs/alfworld-0123456789
  handoff audit runs/alfworld-0123456789 --data ~/alfworld --json
  handoff audit runs/alfworld-0123456789 --records-only      # no environment needed, a second or two
  handoff audit runs/alfworld-0123456789 --register plan.json     # is it the plan that was published before?

Exit code: 0 the run passes, 1 a check failed or was due and not done, 2 the request was wrong, 3 interrupted.""",
)
@click.argument("run", type=options.PATH)
@click.option(
    "--data",
    cls=Option,
    group="study",
    metavar="PATH",
    help="Where the tasks lie now.  [default: where the run found them]",
)
@click.option(
    "--records-only",
    cls=Option,
    group="study",
    is_flag=True,
    help="Check the records against themselves; replay nothing, and name the checks that are left out.",
)
@click.option(
    "--template",
    "templates",
    cls=Option,
    group="models",
    multiple=True,
    metavar="FILE",
    help="A prompt template of the run, to render; repeats.",
)
@click.option(
    "--register",
    cls=Option,
    group="study",
    type=options.PATH,
    metavar="FILE",
    help="The plan that was registered before the run, to compare.",
)
@click.option(
    "--trust-games", cls=Option, group="study", is_flag=True,
    help="Load games whose grammar is not known (it is run as code).",
)  # fmt: skip
@options.env_option
@options_of(Where)
@options.quiet
@options.as_json
def audit(
    run: Path,
    data: str | None,
    records_only: bool,
    templates: tuple[str, ...],
    register: Path | None,
    trust_games: bool,
    pairs: tuple[str, ...],
    where: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Check everything about RUN again: digests, plan, seeds, inputs, every replay, frontier and scripted decision."""
    from handoff import progress
    from handoff.cli.output import console
    from handoff.protocols.audit import audit_run
    from handoff.report.checks import show_audit

    overrides = options.env_options(pairs, data=data, trust_games=trust_games)
    bar = progress.for_console(console(stderr=True), quiet)
    result = audit_run(run, overrides, Where(**where), bar, not records_only, templates, register)
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
    else:
        show_audit(console(), result)
    click.get_current_context().exit(0 if result.passed else 1)
