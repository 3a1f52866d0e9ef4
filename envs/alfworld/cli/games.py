"""``handoff games``: generate games, write the built-in games as official files, list games."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handoff.envs.alfworld.games.files import SPLITS
from handoff.plugin import PATH, SEED, Whole, as_json, console, quiet, usable_cores

if TYPE_CHECKING:
    from handoff.progress import Progress

_out = click.option("--out", required=True, type=PATH, help="Folder to write into.")


def _progress(silent: bool) -> Progress:
    from handoff.progress import for_console

    return for_console(console(stderr=True), silent)


@click.group()
def games() -> None:
    """ALFWorld games: generate new ones, write the built-in ones as files, list them."""


@games.command(
    epilog="""\b
Examples:
  handoff games generate --split train -n 5000 --seed 7 --out my-games
  handoff run alfworld --data my-games --split train --reacher expert --solver expert

The splits train and valid_seen use 108 scenes, with disjoint tasks; valid_unseen uses 12 other scenes. The same command
resumes an unfinished folder. The games do not depend on the number of workers."""
)
@click.option(
    "--split", "splits", multiple=True, type=click.Choice(SPLITS), help="Which split; repeats with --compact."
)
@click.option("-n", "--count", default=72, show_default=True, type=Whole(1, 100_000), help="Games per split.")
@click.option("--seed", default=1, show_default=True, type=SEED, help="Seed of the games.")
@click.option("--workers", type=Whole(1, 1024), help="Processes that prove games.  [default: one per core]")
@click.option("--no-verify", is_flag=True, help="Skip the replay of each plan on the native engine.")
@click.option("--compact", is_flag=True, help="Write recipes, the form of the built-in games, instead of game files.")
@_out
@quiet
def generate(
    splits: Sequence[str],
    count: int,
    seed: int,
    workers: int | None,
    no_verify: bool,
    compact: bool,
    out: Path,
    quiet: bool,
) -> None:
    """Generate new games of all six task types, each proven solvable by its stored plan.

    The games are in the release's layout, OUT/json_2.1.1/SPLIT/TASK/TRIAL/game.tw-pddl, and manifest.json records their
    origin.
    """
    from handoff.envs.alfworld.generator import generate as generation
    from handoff.errors import UsageError
    from handoff.text import shell_word

    splits = splits or ("train",)
    workers, verify, progress = workers or usable_cores(), not no_verify, _progress(quiet)
    if compact:
        command = " ".join(
            ["handoff games generate --compact", *(f"--split {s}" for s in splits), f"-n {count} --seed {seed}"]
            + (["--no-verify"] if no_verify else [])
            + [f"--out {shell_word(out)}"]
        )
        generation.generate_compact(
            splits, count, seed, out, command=command, workers=workers, verify=verify, progress=progress
        )
    elif len(splits) > 1:
        raise UsageError("give one --split per folder (several only with --compact)")
    else:
        generation.generate(splits[0], count, seed, out, workers=workers, verify=verify, progress=progress)
    click.echo(f"{count * len(splits)} games in {out}")


@games.command(
    epilog="""\b
Examples:
  handoff games write --out games
  handoff games write --out games --split valid_unseen
  ALFWORLD_DATA=games alfworld-play-tw"""
)
@click.option("--split", "splits", multiple=True, help="Which split; repeats.  [default: all]")
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@_out
@quiet
def write(splits: Sequence[str], force: bool, out: Path, quiet: bool) -> None:
    """Write the built-in games as official game files, in the release's layout."""
    from handoff.envs.alfworld.games.builtin import BuiltinSource
    from handoff.envs.alfworld.generator.folder import refuse_used, write_official

    source = BuiltinSource()
    splits = splits or source.splits()
    tasks = [(split, task) for split in splits for task in source.tasks(split)]
    refuse_used(out, force)
    with _progress(quiet).phase("writing", len(tasks)) as tick:
        for split, task in tasks:
            write_official(out, split, source.recipe(task))
            tick()
    click.echo(f"{len(tasks)} games in {out}")


@games.command(
    "list",
    epilog="""\b
Examples:
  handoff games list
  handoff games list --data ~/alfworld --split valid_unseen
  handoff games list --json""",
)
@click.option("--data", help="Folder with games, or 'builtin'.  [default: $ALFWORLD_DATA, else the built-in games]")
@click.option("--split", help="Which split.  [default: all]")
@click.option("--trust-games", is_flag=True, help="Accept games with an unknown grammar.")
@as_json
def list_games(data: str | None, split: str | None, trust_games: bool, as_json: bool) -> None:
    """List games: split, task type, name, digest."""
    from handoff.envs.alfworld.games.sources import list_tasks
    from handoff.records import to_json

    tasks = list_tasks(data, split, trust_games)
    if as_json:
        json.dump({"games": [to_json(task) for task in tasks]}, sys.stdout, indent=1)
        click.echo()
        return
    for task in tasks:
        click.echo(f"{task.split:<13} {task.type:<31} {task.id[:12]}  {task.name}")
    counts = Counter(task.split for task in tasks)
    click.echo(f"{len(tasks)} games ({', '.join(f'{name}: {count}' for name, count in counts.items())})")
