"""``handoff report``: the tables of a run, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handoff.bootstrap import DEFAULT, DRAWS, METHODS
from handoff.cli import options
from handoff.errors import UsageError


@click.command(
    epilog="""\b
Examples:
  handoff report runs/alfworld-0123456789
  handoff report runs/alfworld-0123456789 --html
  handoff report runs/alfworld-0123456789 --html page.html --external runs/alfworld-seen
  handoff report runs/alfworld-0123456789 --budgets 4,8,48 --interval paper --json

The page stands alone (no network) and has a twin in JSON of every number beside it: page.html, page.json."""
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write the page, and its numbers as JSON beside it.  [default: RUN/report.html]",
)
@click.option(
    "--external", type=click.Path(path_type=Path), metavar="RUN", help="Run of other tasks to predict from (Eq. 10)."
)
@click.option("--budgets", metavar="LIST", help="Reacher budgets of Table 7.  [default: 8,16,48 as far as observed]")
@click.option("--order", metavar="LIST", help="Checkpoints from the weakest to the strongest.  [default: the run's]")
@click.option(
    "--interval", default=DEFAULT, show_default=True, metavar="NAME", help=f"Kind of interval: {', '.join(METHODS)}."
)
@click.option("--draws", default=DRAWS, show_default=True, help="Bootstrap draws.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draws.")
@click.option("--level", default=0.95, show_default=True, help="Level of the intervals.")
@options.as_json
def report(
    run: Path,
    html: str | None,
    external: Path | None,
    budgets: str | None,
    order: str | None,
    interval: str,
    draws: int,
    seed: int,
    level: float,
    as_json: bool,
) -> None:
    """Print the tables of RUN with intervals: endpoints and the interaction, Reach and Solve, bridge and finish, rates
    by task type, arrival by budget.  While records are owed: the counts so far."""
    from rich.console import Console

    from handoff import rollout_study, study
    from handoff.report import numbers, rollouts, terminal

    if rollout_study.protocol_name(run) == "rollouts":
        if html is not None or external is not None:
            raise UsageError(f"{run} holds rollouts, not a handoff study; `handoff tax` compares two of them")
        counted = rollout_study.load(run)
        if as_json:
            click.echo(json.dumps(rollouts.summary(counted), indent=2, allow_nan=False))
        else:
            rollouts.show(Console(), counted)
        return
    chosen = numbers.Options(
        interval=interval,
        draws=draws,
        seed=seed,
        level=level,
        order=names(order),
        budgets=whole_numbers(budgets),
    )
    loaded = study.load(run)
    document = numbers.document(loaded, chosen, None if external is None else study.load(external))
    if html is not None:
        from handoff.report import page

        written = page.write(loaded, document, Path(html) if html else None)
        for path in written:
            click.echo(f"wrote {path}", err=as_json)
        if not as_json:
            return
    if as_json:
        click.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        terminal.show_report(Console(), document)


def names(text: str | None) -> tuple[str, ...] | None:
    """``a,b`` as names; ``None`` stays ``None``."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def whole_numbers(text: str | None) -> tuple[int, ...] | None:
    """``8,16`` as numbers.  Raises :class:`~handoff.errors.UsageError` for anything else."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UsageError(f"write --budgets as whole numbers, such as 8,16,48 (got {text!r:.80})")
    return tuple(int(part) for part in parts)
