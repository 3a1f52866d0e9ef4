"""``handoff run``: verified-frontier handoff from one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --reacher rl --solver sft
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --cross sft,rl --split valid_seen
  handoff run alfworld --reacher expert --solver random --data ~/alfworld --dry-run

A policy is a name bound by -p NAME=SPEC, or a SPEC itself: random, expert, noisy:EPS, actions:FILE.
Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with records owed (resume by typing it again)."""
)
@click.argument("environment")
@click.option("-p", "--policy", "bindings", multiple=True, metavar="NAME=SPEC", help="Bind a policy's name; repeats.")
@click.option("--reacher", "reachers", multiple=True, metavar="NAME", help="Who acts first; repeats.")
@click.option("--solver", "solvers", multiple=True, metavar="NAME", help="Who goes on from the clone; repeats.")
@click.option("--cross", metavar="NAME,NAME", help="Every one of these as reacher and as solver.")
@click.option("--data", metavar="PATH", help="Where the environment's tasks lie.  [default: the environment's own]")
@click.option("--split", help="Which tasks to draw from.  [default: the environment's first split]")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Task types to draw from; repeats.  [default: all]"
)
@click.option("--tasks", default=30, show_default=True, type=int, help="How many tasks, as many of each type.")
@click.option("--slots", default=4, show_default=True, type=int, help="Paired seed slots per task.")
@click.option("--budget", default=48, show_default=True, type=int, help="Actions that a reacher has.")
@click.option("--depth", default=2, show_default=True, type=int, help="D: actions from success at the handoff.")
@click.option("--solver-budget", type=int, help="Actions that a solver has.  [default: D]")
@click.option("--seed", default=0, show_default=True, help="Seed that every decision's seed derives from.")
@click.option("--selection-seed", default=2029, show_default=True, help="Seed that the tasks are drawn with.")
@click.option("--distances", metavar="N", type=int, help="Record the distance to success, up to N, at every step.")
@click.option("--engine", metavar="NAME", help="The environment's engine, where it has several.")
@click.option("--trust-games", is_flag=True, help="Load games whose grammar is not known (it is run as code).")
@options.env_option
@click.option("--out", type=click.Path(path_type=Path), help="Run folder.  [default: runs/ENVIRONMENT-DIGEST]")
@options.workers
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@options.quiet
@options.as_json
def run(
    environment: str,
    bindings: tuple[str, ...],
    reachers: tuple[str, ...],
    solvers: tuple[str, ...],
    cross: str | None,
    data: str | None,
    split: str | None,
    types: tuple[str, ...],
    tasks: int,
    slots: int,
    budget: int,
    depth: int,
    solver_budget: int | None,
    seed: int,
    selection_seed: int,
    distances: int | None,
    engine: str | None,
    trust_games: bool,
    pairs: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a handoff study on ENVIRONMENT: reachers act until the state is D actions from success, solvers go on from
    exact clones."""
    from rich.console import Console

    from handoff import environment as registry
    from handoff import policies, progress, study
    from handoff.errors import UsageError
    from handoff.protocols import frontier
    from handoff.report import terminal

    if cross is not None and (reachers or solvers):
        raise UsageError("give either --cross, or --reacher and --solver")
    if cross is not None:
        reachers = solvers = tuple(name.strip() for name in cross.split(",") if name.strip())
    bound = policies.bind(bindings)
    config = frontier.Config(
        split=split or registry.load(environment).splits[0],
        reachers=reachers,
        solvers=solvers,
        tasks=tasks,
        types=types,
        slots=slots,
        reach_budget=budget,
        depth=depth,
        run_seed=seed,
        selection_seed=selection_seed,
        distances=distances,
        **({} if solver_budget is None else {"solve_budget": solver_budget}),
    )
    specs = policies.resolve(list(dict.fromkeys((*reachers, *solvers))), bound)
    chosen = options.env_options(pairs, data=data, engine=engine, trust_games=trust_games)
    prepared = frontier.prepare(environment, chosen, config, specs)
    folder = out or prepared.default_folder
    shown = Console(stderr=True, quiet=quiet)
    terminal.show_plan(shown if not dry_run or as_json else Console(), prepared.identity, folder)
    if dry_run:
        if as_json:
            click.echo(json.dumps({"folder": str(folder), "digest": prepared.digest, **prepared.identity}, indent=2))
        return
    count = options.default_workers() if workers is None else workers
    for remark in prepared.run(folder, count, progress.for_console(shown, quiet)):
        shown.print(remark, style="yellow", markup=False, highlight=False)
    result = study.load(folder)
    if as_json:
        click.echo(json.dumps(_json(result), indent=2))
    else:
        terminal.show_study(Console(), result)
        click.echo(f"\nrun folder: {folder}\ncheck it:   handoff audit {folder}")


def _json(result: Any) -> dict[str, Any]:
    from handoff.report import numbers

    return {"folder": str(result.folder), **numbers.summary(result)}
