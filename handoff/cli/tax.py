"""``handoff tax``: pass@k, pass^k and the sharpening tax of a pair of policies, or of many pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handoff.cli import numbers, options
from handoff.errors import UsageError

if TYPE_CHECKING:
    from handoff.passk.pairs_file import PairsFile
    from handoff.report.tax.values import TaxDocument

#: As of :data:`handoff.passk.estimators.METHODS`, which costs the import of numpy.
METHODS = ("jackknife", "paper")


@click.command(
    epilog="""\b
Examples:
  handoff tax base.csv post.csv
  handoff tax base.jsonl post.jsonl --budget 32 --json
  handoff tax base.csv post.csv --pair base-7b.csv post-7b.csv --pair base-1b.csv post-1b.csv
  handoff tax runs/sokoban-0123456789#base runs/sokoban-0123456789#post --html
  handoff tax base.csv ppo.csv ptgs.csv
  handoff tax base-7b.csv=post-7b.csv base-1b.csv=post-1b.csv
  handoff tax pairs.toml --html

A file has one row a task: task,n,c as CSV with a header, or objects with these keys as JSON lines: c successes out
of n independent rollouts.  A rollouts run is RUN, or RUN#POLICY if it has several; of a PTGS run the scored rollouts
count.  The page needs no network and has a twin in JSON of every number beside it: tax.html, tax.json."""
)
@click.argument("policies", nargs=-1, required=True, type=options.PATH, metavar="BASE POST...")
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
    help="Further pairs, for the trade-off and for how well the tax at 8 rollouts foretells it at 32 others; repeats.",
)
@click.option(
    "--html",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Write the page, and its numbers as JSON beside it.  [default: tax.html, in the run if both are of one]",
)
@click.option("--more", is_flag=True, help="Show more: routing with intervals.")
@options.as_json
@click.pass_context
def tax(
    ctx: click.Context,
    policies: tuple[Path, ...],
    budget: int | None,
    draws: int,
    interval: str,
    seed: int,
    pilot: int | None,
    extremes: int,
    pairs: tuple[tuple[Path, Path], ...],
    html: str | None,
    more: bool,
    as_json: bool,
) -> None:
    """What post-training of BASE into POST took from the gain by repeated sampling, and where.

    Two policies are compared in detail.  Many pairs are compared side by side, with their means and counts of signs:
    name several POST of one BASE, or each pair as BASE=POST, or a study of pairs in a TOML file.
    """
    from handoff.cli import inputs
    from handoff.report import terminal
    from handoff.report.pairs import document as many
    from handoff.report.pairs import page as page_of_pairs
    from handoff.report.tax import page as page_of_two
    from handoff.text import shell_word

    study, method = pairs_of(policies, pairs), METHODS[0] if interval == "default" else interval
    if study is not None and len(study.entries) == 1:
        (entry,) = study.entries
        policies, budget, study = (Path(entry.base), Path(entry.post)), budget or study.budget, None
    if study is None:
        base, post = policies
        document: Any = _detailed(base, post, pairs, budget, draws, seed, pilot, extremes, method, more)
        page: Any = page_of_two
        read, place = [base, post, *sum(pairs, ())], None if html is None else page_path(html, base, post)
    else:
        if ctx.get_parameter_source("extremes") is click.core.ParameterSource.COMMANDLINE:
            raise UsageError("--extremes lists tasks of one pair: give it with BASE POST alone")
        budget = study.budget if budget is None else budget
        more = more or pilot is not None
        named = inputs.pairs(study.entries)
        document = many.document(named, budget, draws=draws, seed=seed, pilot=pilot, method=method, more=more)
        page = page_of_pairs
        read = [*policies, *(Path(path) for entry in study.entries for path in (entry.base, entry.post))]
        place = None if html is None else Path(html)
    if place is not None:
        for path in page.write(document, place, read):
            click.echo(f"wrote {shell_word(path)}", err=as_json)
        if not as_json:
            return
    if as_json:
        click.echo(json.dumps(document.to_json(), indent=2, allow_nan=False))
        return
    from handoff.cli.output import console

    terminal.show(console(), page.content(document))


def pairs_of(policies: Sequence[Path], more: Sequence[tuple[Path, Path]]) -> PairsFile | None:
    """The study of pairs that the arguments name; ``None`` for two policies, which are compared in detail.

    Raises :class:`~handoff.errors.UsageError` for arguments of two kinds, and as
    :func:`~handoff.passk.pairs_file.read_pairs_file` does.
    """
    from handoff.passk.pairs_file import PairEntry, PairsFile, read_pairs_file

    words = [str(path) for path in policies]
    joined = [word for word in words if "=" in word and not Path(word.partition("#")[0]).exists()]
    if not joined and words[0].lower().endswith(".toml"):
        if len(words) > 1 or more:
            raise UsageError(f"{words[0]} is a study of pairs: name it alone, and further pairs in it")
        return read_pairs_file(policies[0])
    if not joined and len(words) == 2:
        return None
    entries = [PairEntry(words[0], post) for post in words[1:]]
    if joined:
        entries = [PairEntry(base, post) for base, _, post in (word.partition("=") for word in joined)]
        if len(joined) < len(words) or not all(entry.base and entry.post for entry in entries):
            wrong = next(word for word in words if word not in joined or word.startswith("=") or word.endswith("="))
            raise UsageError(f"write BASE POST, or each pair as BASE=POST (got {wrong!r} among pairs)")
    elif len(words) == 1:
        raise UsageError(f"{words[0]} alone is no pair: write BASE POST, BASE=POST, or a study of pairs (.toml)")
    return PairsFile((*entries, *(PairEntry(str(base), str(post)) for base, post in more)))


def _detailed(
    base: Path,
    post: Path,
    pairs: Sequence[tuple[Path, Path]],
    budget: int | None,
    draws: int,
    seed: int,
    pilot: int | None,
    extremes: int,
    method: str,
    with_more: bool,
) -> TaxDocument:
    """The comparison of two policies, with further pairs beside it."""
    import attrs

    from handoff.cli.inputs import counts as read_counts
    from handoff.passk.comparison import compare
    from handoff.passk.early import early_estimate
    from handoff.passk.pairs import Pair
    from handoff.passk.routing import route, routed_coverage
    from handoff.report.tax import document as tax_numbers

    counts = read_counts(base), read_counts(post)
    compared = compare(*counts, budget, draws=draws, seed=seed, extremes=extremes, method=method)
    k = compared.budget
    pilot = max(2, min(32, k // 4)) if pilot is None else pilot
    routed = route(*counts, k, pilot, seed=seed)
    more = [(read_counts(one), read_counts(other)) for one, other in pairs]
    named = [Pair(one, other, f"{one.name} / {other.name}") for one, other in (counts, *more)]
    early = early_estimate(named, seed=seed) if more else None
    document = tax_numbers.document(*counts, compared, routed, early, more)
    return attrs.evolve(document, routed=routed_coverage(*counts, k, pilot, seed=seed)) if with_more else document


def page_path(given: str, base: Path, post: Path) -> Path:
    """The page's path: ``given``, else the run folder that both policies share, else the working folder."""
    if given:
        return Path(given)
    folders = {str(path).partition("#")[0] for path in (base, post)}
    folder = Path(folders.pop())
    return folder if not folders and folder.is_dir() else Path()
