"""``handoff rollout``: N independent rollouts per task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli import numbers, options
from handoff.cli.settings import options_of
from handoff.errors import UsageError
from handoff.policies import ModelOptions


@click.command(
    epilog="""\b
Examples:
  handoff rollout sokoban -p base=noisy:0.6 -n 32
  handoff rollout alfworld -p sft=noisy:0.4 -p rl=noisy:0.2 --tasks 30 -n 16
  handoff tax runs/sokoban-0123456789#base runs/sokoban-0123456789#post
  handoff rollout sokoban -p base=tempered:0.2:3 -n 32 --ptgs --pilot 16 --tau 2

With --ptgs the first --pilot rollouts of a task are sampled at the policy's own temperature, and the rest at one that
follows from them: hotter where the pilots failed, cooler where they succeeded.  Only the rest is scored.

Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with rollouts owed (resume by typing it again)."""
)
@click.argument("environment")
@click.option("-p", "--policy", "bindings", multiple=True, metavar="NAME=SPEC", help="A policy to roll out; repeats.")
@click.option(
    "-n", "--rollouts", default=128, show_default=True, type=numbers.COUNT, help="Rollouts of each task and policy."
)
@click.option("--ptgs", is_flag=True, help="Set each task's temperature by pilot rollouts, which are not scored.")
@click.option("--pilot", type=numbers.COUNT, metavar="M", help="Pilots among the -n rollouts.  [default: half of them]")
@click.option(
    "--tau", type=numbers.Real(1, 1000), help="PTGS: temperatures lie within T/TAU and T*TAU.  [default: 1.5]"
)
@click.option("--ptgs-target", type=numbers.RATE, metavar="P", help="PTGS: success rate that keeps T.  [default: 0.5]")
@click.option("--data", metavar="PATH", help="Where the environment's tasks lie.  [default: the environment's own]")
@click.option("--split", help="Which tasks to take.  [default: the environment's first split]")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Task type to take; repeats.  [default: all]")
@click.option(
    "--tasks", type=numbers.COUNT_OR_ALL, help="How many tasks, as many of each type; or all.  [default: all]"
)
@click.option("--budget", default=50, show_default=True, type=numbers.COUNT, help="Actions of a rollout.")
@click.option(
    "--seed", default=0, type=numbers.SEED, show_default=True, help="Seed that every decision's seed derives from."
)
@click.option(
    "--selection-seed", default=2029, type=numbers.SEED, show_default=True, help="Seed that the tasks are drawn with."
)
@click.option("--engine", metavar="NAME", help="The environment's engine, where it has several.")
@click.option("--trust-games", is_flag=True, help="Load games whose grammar is not known (it is run as code).")
@options.env_option
@options_of(ModelOptions)
@click.option("--out", type=options.PATH, help="Run folder.  [default: runs/ENVIRONMENT-DIGEST]")
@options.workers
@options.ray
@options.quiet
@options.as_json
def rollout(
    environment: str,
    bindings: tuple[str, ...],
    rollouts: int,
    ptgs: bool,
    pilot: int | None,
    tau: float | None,
    ptgs_target: float | None,
    data: str | None,
    split: str | None,
    types: tuple[str, ...],
    tasks: int | str | None,
    budget: int,
    seed: int,
    selection_seed: int,
    engine: str | None,
    trust_games: bool,
    pairs: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    ray: str | None,
    quiet: bool,
    as_json: bool,
    model_options: dict[str, Any],
) -> None:
    """Roll policies out on ENVIRONMENT, many times a task, and count successes per task."""
    from handoff import progress, registry
    from handoff.cli.output import console as make_console
    from handoff.passk.ptgs import EstimateThenSample
    from handoff.policies import specs as kinds
    from handoff.protocols import study_file as files
    from handoff.protocols.rollouts import config as rollouts_config
    from handoff.protocols.rollouts import play as rollouts_play
    from handoff.protocols.rollouts import study as rollouts_study
    from handoff.report import rollouts as shown

    given: dict[str, Any] = {
        name: value for name, value in (("tau", tau), ("target", ptgs_target)) if value is not None
    }
    if not ptgs and (given or pilot is not None):
        raise UsageError("--pilot, --tau and --ptgs-target set up PTGS: add --ptgs")
    specs = kinds.bind(bindings)
    config = rollouts_config.Config(
        split=split or registry.load(environment).splits[0],
        policies=tuple(specs),
        rollouts=rollouts,
        tasks=tasks if isinstance(tasks, int) else None,
        types=types,
        budget=budget,
        run_seed=seed,
        selection_seed=selection_seed,
        ptgs=EstimateThenSample(rollouts // 2 if pilot is None else pilot, **given) if ptgs else None,
    )
    chosen = options.env_options(pairs, data=data, engine=engine, trust_games=trust_games)
    models = files.model_options(specs, files.EMPTY, model_options)
    prepared = rollouts_play.prepare(environment, chosen, config, specs, models)
    folder = prepared.default_folder if out is None else out
    console = make_console(stderr=True, quiet=quiet)
    console.print(f"{len(prepared.plan)} rollouts of {len(prepared.tasks)} tasks into {folder}", highlight=False)
    for remark in prepared.run(folder, workers, progress.for_console(console, quiet), ray=ray):
        console.print(remark, style="yellow", markup=False, highlight=False)
    result = rollouts_study.load(folder)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), **shown.summary(result)}, indent=2))
    else:
        shown.show(make_console(), result)
        click.echo(f"\nrun folder: {folder}\ncheck it:   handoff audit {folder}")
