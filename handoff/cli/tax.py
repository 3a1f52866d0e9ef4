"""``handoff tax``: pass@k, pass^k and the sharpening tax of a pair of policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff tax base.csv post.csv
  handoff tax base.jsonl post.jsonl --budget 32 --json
  handoff tax base.csv post.csv --pair base-7b.csv post-7b.csv --pair base-1b.csv post-1b.csv

A file has one row a task: task,n,c as CSV with a header, or objects with these keys as JSON lines: c successes out
of n independent rollouts."""
)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("post", type=click.Path(path_type=Path))
@click.option("--budget", type=int, metavar="K", help="Rollouts a task.  [default: the fewest that a task has]")
@click.option("--draws", default=1000, show_default=True, help="Bootstrap draws of tasks, paired.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draws and of the pilots.")
@click.option(
    "--pilot", type=int, metavar="M", help="Pilot rollouts of the routing rule.  [default: 32, or a quarter of K]"
)
@click.option("--extremes", default=5, show_default=True, type=click.IntRange(0), help="Tasks to list at either end.")
@click.option(
    "--pair",
    "pairs",
    nargs=2,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="BASE POST",
    help="Further pairs, for how well the tax at 8 rollouts foretells the tax at 32; repeats.",
)
@options.as_json
def tax(
    base: Path,
    post: Path,
    budget: int | None,
    draws: int,
    seed: int,
    pilot: int | None,
    extremes: int,
    pairs: tuple[tuple[Path, Path], ...],
    as_json: bool,
) -> None:
    """What post-training of BASE into POST took from the gain by repeated sampling, and where."""
    from handoff.counts import read_counts
    from handoff.report import tax as shown
    from handoff.routing import route
    from handoff.tax import compare, early_estimate

    counts = read_counts(base), read_counts(post)
    compared = compare(*counts, budget, draws=draws, seed=seed, extremes=extremes)
    k = compared.budget
    routed = route(*counts, k, pilot or max(2, min(32, k // 4)), seed=seed)
    early = None
    if pairs:
        early = early_estimate([counts, *((read_counts(one), read_counts(other)) for one, other in pairs)])
    if as_json:
        told: dict[str, Any] = {"comparison": compared.to_json(), "routing": attrs.asdict(routed)}
        told["early"] = None if early is None else attrs.asdict(early)
        click.echo(json.dumps(told, indent=2, allow_nan=False))
        return
    from rich.console import Console

    shown.show(Console(), compared, routed, early)
