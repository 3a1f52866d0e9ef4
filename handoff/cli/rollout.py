"""``handoff rollout``: N independent rollouts per task."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff rollout sokoban -p base=noisy:0.6 -n 32
  handoff rollout alfworld -p sft=noisy:0.4 -p rl=noisy:0.2 --tasks 30 -n 16
  handoff tax runs/sokoban-0123456789#base runs/sokoban-0123456789#post

Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with rollouts owed (resume by typing it again)."""
)
@click.argument("environment")
@click.option("-p", "--policy", "bindings", multiple=True, metavar="NAME=SPEC", help="A policy to roll out; repeats.")
@click.option("-n", "--rollouts", default=128, show_default=True, type=int, help="Rollouts of each task and policy.")
@click.option("--data", metavar="PATH", help="Where the environment's tasks lie.  [default: the environment's own]")
@click.option("--split", help="Which tasks to take.  [default: the environment's first split]")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Task type to take; repeats.  [default: all]")
@click.option("--tasks", type=int, help="How many tasks, as many of each type.  [default: all]")
@click.option("--budget", default=50, show_default=True, type=int, help="Actions of a rollout.")
@click.option("--seed", default=0, show_default=True, help="Seed that every decision's seed derives from.")
@click.option("--selection-seed", default=2029, show_default=True, help="Seed that the tasks are drawn with.")
@click.option("--engine", metavar="NAME", help="The environment's engine, where it has several.")
@click.option("--trust-games", is_flag=True, help="Load games whose grammar is not known (it is run as code).")
@options.env_option
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.  [default: runs/ENVIRONMENT-DIGEST]")
@options.workers
@options.quiet
@options.as_json
def rollout(
    environment: str,
    bindings: tuple[str, ...],
    rollouts: int,
    data: str | None,
    split: str | None,
    types: tuple[str, ...],
    tasks: int | None,
    budget: int,
    seed: int,
    selection_seed: int,
    engine: str | None,
    trust_games: bool,
    pairs: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Roll policies out on ENVIRONMENT, many times a task, and count successes per task."""
    from rich.console import Console

    from handoff import environment as registry
    from handoff import policies, progress, rollout_study
    from handoff.protocols import rollouts as protocol
    from handoff.report import rollouts as shown

    specs = policies.bind(bindings)
    config = protocol.Config(
        split=split or registry.load(environment).splits[0],
        policies=tuple(specs),
        rollouts=rollouts,
        tasks=tasks,
        types=types,
        budget=budget,
        run_seed=seed,
        selection_seed=selection_seed,
    )
    chosen = options.env_options(pairs, data=data, engine=engine, trust_games=trust_games)
    prepared = protocol.prepare(environment, chosen, config, specs)
    folder = out or prepared.default_folder
    console = Console(stderr=True, quiet=quiet)
    console.print(f"{len(prepared.plan)} rollouts of {len(prepared.tasks)} tasks into {folder}", highlight=False)
    count = options.default_workers() if workers is None else workers
    for remark in prepared.run(folder, count, progress.for_console(console, quiet)):
        console.print(remark, style="yellow", markup=False, highlight=False)
    result = rollout_study.load(folder)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), **shown.summary(result)}, indent=2))
    else:
        shown.show(Console(), result)
        click.echo(f"\nrun folder: {folder}\ncheck it:   handoff audit {folder}")
