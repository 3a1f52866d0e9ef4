"""``handoff tax``: pass@k, pass^k and the sharpening tax of a pair of policies."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handoff.cli import numbers, options

#: As of :data:`handoff.passk.estimators.METHODS`, which costs the import of numpy.
METHODS = ("jackknife", "paper")


@click.command(
    epilog="""\b
Examples:
  handoff tax base.csv post.csv
  handoff tax base.jsonl post.jsonl --budget 32 --json
  handoff tax base.csv post.csv --pair base-7b.csv post-7b.csv --pair base-1b.csv post-1b.csv
  handoff tax runs/sokoban-0123456789#base runs/sokoban-0123456789#post --html

A file has one row a task: task,n,c as CSV with a header, or objects with these keys as JSON lines: c successes out
of n independent rollouts.  A rollouts run is RUN, or RUN#POLICY if it has several; of a PTGS run the scored rollouts
count.  The page needs no network and has a twin in JSON of every number beside it: tax.html, tax.json."""
)
@click.argument("base", type=options.PATH)
@click.argument("post", type=options.PATH)
@click.option(
    "--budget", type=numbers.COUNT, metavar="K", help="Rollouts a task.  [default: the fewest that a task has]"
)
@click.option(
    "--draws",
    default=1000,
    type=numbers.Whole(1, 1_000_000),
    show_default=True,
    help="Bootstrap draws of tasks, paired: the share in which the base overtakes, and the paper's intervals.",
)
@click.option(
    "--interval",
    type=click.Choice(["default", *METHODS]),
    default="default",
    show_default=True,
    help="Kind of interval; the default is jackknife, the paper's is the percentile one.",
)
@click.option("--seed", default=0, type=numbers.SEED, show_default=True, help="Seed of the draws and of the pilots.")
@click.option(
    "--pilot",
    type=numbers.COUNT,
    metavar="M",
    help="Pilot rollouts of the routing rule.  [default: 32, or a quarter of K]",
)
@click.option(
    "--extremes", default=5, show_default=True, type=numbers.Whole(0, 1000), help="Tasks to list at either end."
)
@click.option(
    "--pair",
    "pairs",
    nargs=2,
    multiple=True,
    type=options.PATH,
    metavar="BASE POST",
    help="Further pairs, for how well the tax at 8 rollouts foretells the tax at 32; repeats.",
)
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write the page, and its numbers as JSON beside it.  [default: tax.html, in the run if both are of one]",
)
@options.as_json
def tax(
    base: Path,
    post: Path,
    budget: int | None,
    draws: int,
    interval: str,
    seed: int,
    pilot: int | None,
    extremes: int,
    pairs: tuple[tuple[Path, Path], ...],
    html: str | None,
    as_json: bool,
) -> None:
    """What post-training of BASE into POST took from the gain by repeated sampling, and where."""
    from handoff.cli.inputs import counts as read_counts
    from handoff.passk.comparison import compare, early_estimate
    from handoff.passk.routing import route
    from handoff.report import terminal
    from handoff.report.tax import document as tax_numbers
    from handoff.report.tax import page
    from handoff.text import shell_word

    counts = read_counts(base), read_counts(post)
    method = METHODS[0] if interval == "default" else interval
    compared = compare(*counts, budget, draws=draws, seed=seed, extremes=extremes, method=method)
    k = compared.budget
    routed = route(*counts, k, max(2, min(32, k // 4)) if pilot is None else pilot, seed=seed)
    more = [(read_counts(one), read_counts(other)) for one, other in pairs]
    early = early_estimate([counts, *more]) if more else None
    document = tax_numbers.document(*counts, compared, routed, early, more)
    if html is not None:
        for path in page.write(document, page_path(html, base, post), [base, post, *sum(pairs, ())]):
            click.echo(f"wrote {shell_word(path)}", err=as_json)
        if not as_json:
            return
    if as_json:
        click.echo(json.dumps(document.to_json(), indent=2, allow_nan=False))
        return
    from handoff.cli.output import console

    terminal.show(console(), page.content(document))


def page_path(given: str, base: Path, post: Path) -> Path:
    """The page's path: ``given``, else the run folder that both policies share, else the working folder."""
    if given:
        return Path(given)
    folders = {str(path).partition("#")[0] for path in (base, post)}
    folder = Path(folders.pop())
    return folder if not folders and folder.is_dir() else Path()
