"""``handoff check``: the adapter conformance suite on the terminal."""

from __future__ import annotations

import json

import click

from handoff.cli import numbers, options


@click.command(
    epilog="""\b
Examples:
  handoff check sokoban
  handoff check alfworld --split unseen --tasks 3
  handoff check my-env --env-option data=games/ --json

Exit code: 0 all passed, 1 a check failed, 2 the request was wrong."""
)
@click.argument("environment")
@click.option("--split", help="Split whose tasks are played.  [default: the environment's first]")
@click.option("--tasks", default=2, show_default=True, type=numbers.COUNT, help="How many tasks to play.")
@click.option("--steps", default=6, show_default=True, type=numbers.COUNT, help="Actions of each random walk.")
@click.option("--depth", default=2, show_default=True, type=numbers.DEPTH, help="Greatest frontier depth.")
@click.option("--seed", default=0, type=numbers.SEED, show_default=True, help="Seed of the walks.")
@click.option(
    "--step-timeout",
    type=numbers.Real(0.1, 86_400),
    metavar="SECONDS",
    help="Fail a check if one call of the environment takes longer.  [default: never]",
)
@options.env_option
@options.as_json
def check(
    environment: str,
    split: str | None,
    tasks: int,
    steps: int,
    depth: int,
    seed: int,
    step_timeout: float | None,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check that ENVIRONMENT keeps the adapter contract: what passes, what fails, and what to do about it."""
    from handoff.cli.output import console
    from handoff.conformance.subject import Settings
    from handoff.conformance.suite import check_environment
    from handoff.report.checks import show_conformance

    settings = Settings(split=split, tasks=tasks, steps=steps, depth=depth, seed=seed)
    report = check_environment(environment, options.env_options(pairs), settings, step_timeout)
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        show_conformance(console(), report)
    click.get_current_context().exit(0 if report.conforms else 1)
