"""``handoff run``: verified-frontier handoff from one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli import numbers, options
from handoff.cli.settings import options_of
from handoff.policies import ModelOptions


@click.command(
    epilog="""\b
Examples:
  handoff run alfworld --reacher rl --solver sft
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --reacher rl --solver sft
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --cross sft,rl --split valid_seen
  handoff run alfworld --reacher expert --solver random --data ~/alfworld --dry-run
  handoff run alfworld -p sft=hf:./sft -p rl=openai:http://127.0.0.1:8000/v1#rl --cross sft,rl
  handoff run --config study.toml

A policy is a name bound by -p NAME=SPEC, or a SPEC itself: random, expert, noisy:EPS, actions:FILE, and for language
models openai:URL#MODEL, hf:CHECKPOINT, vllm:CHECKPOINT (a folder or OWNER/NAME[/SUBFOLDER][@REVISION]).
In alfworld base, sft, rl and control mean small checkpoints that ship (builtin:NAME) unless they are bound.
Typing the same command again resumes the run, or shows its result if it is complete.
Exit code: 0 complete, 2 the request was wrong, 3 interrupted with records owed (resume by typing it again)."""
)
@click.argument("environment", required=False)
@click.option("--config", "file", type=options.PATH, help="A study as a TOML file; options override it.")
@click.option("-p", "--policy", "bindings", multiple=True, metavar="NAME=SPEC", help="Bind a policy's name; repeats.")
@click.option("--reacher", "reachers", multiple=True, metavar="NAME", help="Who acts first; repeats.")
@click.option("--solver", "solvers", multiple=True, metavar="NAME", help="Who goes on from the clone; repeats.")
@click.option("--cross", metavar="NAME,NAME", help="Every one of these as reacher and as solver.")
@click.option("--data", metavar="PATH", help="Where the environment's tasks lie.  [default: the environment's own]")
@click.option("--split", help="Which tasks to draw from.  [default: the environment's first split]")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Task types to draw from; repeats.  [default: all]"
)
@click.option("--tasks", type=numbers.COUNT_OR_ALL, help="How many tasks, as many of each type; or all.  [default: 30]")
@click.option("--slots", type=numbers.COUNT, help="Paired seed slots per task.  [default: 4]")
@click.option("--budget", type=numbers.COUNT, help="Actions that a reacher has.  [default: 48]")
@click.option("--depth", type=numbers.DEPTH, help="D: actions from success at the handoff.  [default: 2]")
@click.option("--solver-budget", type=numbers.COUNT, help="Actions that a solver has.  [default: D]")
@click.option("--seed", type=numbers.SEED, help="Seed that every decision's seed derives from.  [default: 0]")
@click.option("--selection-seed", type=numbers.SEED, help="Seed that the tasks are drawn with.  [default: 2029]")
@click.option("--distances", type=numbers.DEPTH, help="Record the distance to success, up to N, at every step.")
@click.option("--engine", metavar="NAME", help="The environment's engine, where it has several.")
@click.option("--trust-games", is_flag=True, help="Load games whose grammar is not known (it is run as code).")
@options.env_option
@options_of(ModelOptions)
@click.option("--out", type=options.PATH, help="Run folder.  [default: runs/ENVIRONMENT-DIGEST]")
@options.workers
@options.ray
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@options.quiet
@options.as_json
def run(
    environment: str | None,
    file: Path | None,
    bindings: tuple[str, ...],
    reachers: tuple[str, ...],
    solvers: tuple[str, ...],
    cross: str | None,
    data: str | None,
    split: str | None,
    types: tuple[str, ...],
    tasks: int | str | None,
    slots: int | None,
    budget: int | None,
    depth: int | None,
    solver_budget: int | None,
    seed: int | None,
    selection_seed: int | None,
    distances: int | None,
    engine: str | None,
    trust_games: bool,
    pairs: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    ray: str | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    model_options: dict[str, Any],
) -> None:
    """Run a handoff study on ENVIRONMENT: reachers act until the state is D actions from success, solvers go on from
    exact clones."""
    from handoff import progress, registry
    from handoff.cli.output import console
    from handoff.errors import Interrupted, UsageError
    from handoff.policies import specs as kinds
    from handoff.protocols import study_file as files
    from handoff.protocols.frontier import config as frontier_config
    from handoff.protocols.frontier import play as frontier_play
    from handoff.protocols.frontier import study
    from handoff.report import terminal

    if cross is not None and (reachers or solvers):
        raise UsageError("give either --cross, or --reacher and --solver")
    if cross is not None:
        reachers = solvers = tuple(name.strip() for name in cross.split(",") if name.strip())
    stated = files.EMPTY if file is None else files.load(file)
    environment = environment or stated.environment
    if environment is None:
        raise UsageError("name an environment, or a file that does (--config); `handoff envs` lists them")
    if not reachers and not solvers:
        reachers, solvers = stated.reachers, stated.solvers
    given = {
        "split": split, "types": types or None, "tasks": tasks, "slots": slots, "budget": budget, "depth": depth,
        "solver_budget": solver_budget, "seed": seed, "selection_seed": selection_seed, "distances": distances,
    }  # fmt: skip
    if dry_run:
        # Who asks for a plan does not wait for a server that may come back.
        model_options = {"patience": 3.0, "timeout": 2.0, **model_options}
    chosen = {**stated.study, **{name: value for name, value in given.items() if value is not None}}
    chosen.setdefault("split", registry.load(environment).splits[0])
    if chosen.get("tasks") == "all":
        chosen["tasks"] = None
    renamed = {"budget": "reach_budget", "solver_budget": "solve_budget", "seed": "run_seed"}
    config = frontier_config.Config(
        reachers=reachers, solvers=solvers, **{renamed.get(name, name): value for name, value in chosen.items()}
    )
    bound = {**stated.bindings, **kinds.bind(bindings)}
    specs = kinds.resolve(list(dict.fromkeys((*reachers, *solvers))), bound, registry.load(environment).policies)
    places = options.env_options(pairs, data=data, engine=engine, trust_games=trust_games)
    try:
        prepared = frontier_play.prepare(
            environment,
            {**stated.environment_options, **places},
            config,
            specs,
            files.model_options(specs, stated, model_options),
        )
    except Interrupted as error:
        if not dry_run:
            raise
        raise UsageError(f"there is no plan without the server: {error}; start it, then type the same again") from error
    if file is not None:
        prepared.remarks = {"config": stated.remark()}
    folder = prepared.default_folder if out is None else out
    shown = console(stderr=True, quiet=quiet)
    terminal.show_plan(shown if not dry_run or as_json else console(), prepared.identity, folder)
    if dry_run:
        if as_json:
            click.echo(json.dumps({"folder": str(folder), "digest": prepared.digest, **prepared.identity}, indent=2))
        return
    for remark in prepared.run(folder, workers, progress.for_console(shown, quiet), ray=ray):
        shown.print(remark, style="yellow", markup=False, highlight=False)
    result = study.load(folder)
    if as_json:
        click.echo(json.dumps(_json(result), indent=2))
    else:
        terminal.show_study(console(), result)
        click.echo(f"\nrun folder: {folder}\ncheck it:   handoff audit {folder}")


def _json(result: Any) -> dict[str, Any]:
    from handoff.protocols.frontier import summary

    return {"folder": str(result.folder), **summary.summary(result)}
