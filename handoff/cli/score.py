"""``handoff score``: replies that were made elsewhere, scored offline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handoff.cli import options

_UNREAD = "rows that could not be read"


@click.command(
    epilog="""\b
Examples:
  handoff score travelplanner plans.jsonl
  handoff score travelplanner plans.jsonl --data ~/travelplanner --out scored.jsonl
  handoff score bfcl calls.jsonl --out scored.jsonl

Each line of FILE is a JSON object. Of travelplanner it has split, idx, plan (a list of days) and, if the query is
another one, query_changes (fields that replace the query's); of bfcl it has id and the calls per turn. Other fields are
kept. One row comes out per row, in order, with the verdict filled in; a row that cannot be read has an error.
Exit code: 0 all rows were scored, 1 some could not be read, 2 the request was wrong."""
)
@click.argument("environment")
@click.argument("file", type=options.PATH)
@click.option("--data", metavar="PATH", help="Where the environment's data lie.  [default: the environment's own]")
@click.option("--flights", metavar="FILE", help="travelplanner: a flight table that lies elsewhere.")
@options.env_option
@click.option("--out", type=options.PATH, help="Write the rows there.  [default: print them]")
@options.quiet
def score(
    environment: str,
    file: Path,
    out: Path | None,
    data: str | None,
    flights: str | None,
    pairs: tuple[str, ...],
    quiet: bool,
) -> None:
    """Score the replies in FILE (JSON lines) with the score of ENVIRONMENT, without any model."""
    from handoff import files, progress
    from handoff.cli.output import console
    from handoff.environment import RowScorer
    from handoff.errors import UsageError
    from handoff.guard.adapter import opened
    from handoff.report.terminal import say

    text = files.read_text(file, f"{file}")
    remarks = console(stderr=True, quiet=quiet)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise UsageError(f"{file} has no rows; each line is a JSON object (`handoff score --help`)")
    if out is not None and not out.absolute().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.parent}; make it first")
    counts: Counter[str] = Counter()
    scored: list[str] = []
    with opened(environment, options.env_options(pairs, data=data, flights=flights)) as instance:
        if not isinstance(instance, RowScorer):
            raise UsageError(f"{environment} scores no rows; environments that do: `handoff envs` says row-scorer")
        with progress.for_console(remarks, quiet).phase("score", len(lines)) as tick:
            for number, line in lines:
                row = _scored(instance, number, line)
                counts[_UNREAD] += "error" in row
                counts.update(dict(_passes(row)))
                scored.append(json.dumps(row, ensure_ascii=False, allow_nan=False))
                tick()
    whole = "".join(f"{row}\n" for row in scored)
    if out is None:
        click.echo(whole, nl=False)
    else:
        files.write_atomically(out, whole.encode())
    unread = counts.pop(_UNREAD, 0)
    words = [f"{len(lines)} rows", *(f"{name}: {count} passed" for name, count in counts.items())]
    say(remarks, ", ".join(words) + (f", {unread} could not be read" if unread else ""))
    if unread:
        click.get_current_context().exit(1)


def _scored(instance: Any, number: int, line: str) -> dict[str, Any]:
    """The row of one line, scored, or with an error."""
    from handoff.canonical import parse
    from handoff.errors import DataError

    try:
        row = parse(line)
    except ValueError as error:
        return {"line": number, "error": f"line {number} is not valid JSON: {error}"}
    if not isinstance(row, dict):
        return {"line": number, "error": f"line {number} is not a JSON object"}
    try:
        scored = instance.score_row(row)
        return {key: scored[key] for key in (*row, *(key for key in scored if key not in row)) if key in scored}
    except DataError as error:
        return {**row, "error": f"line {number}: {error}"}


def _passes(row: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """How often the row passes, by the name of the verdict."""
    if type(row.get("passed")) is bool and "error" not in row:
        yield "passed", int(row["passed"])
    for name, verdict in row.items():
        if isinstance(verdict, dict) and type(verdict.get("passed")) is bool and "error" not in row:
            yield name, int(verdict["passed"])
