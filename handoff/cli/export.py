"""``handoff export``: the records of a run as Parquet, CSV and JSONL tables."""

from __future__ import annotations

from pathlib import Path

import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff export runs/alfworld-0123456789
  handoff export runs/alfworld-0123456789 --out tables --format csv --format jsonl

Tables of a handoff run: endpoints (task,type,seed,reacher,solver,arrived,won and more; `handoff estimate` reads it),
trajectories, steps, searches.  Tables of a rollouts run: rollouts, decisions."""
)
@click.argument("run", type=options.PATH)
@click.option("--out", type=options.PATH, help="Folder for the tables.  [default: RUN/export]")
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["parquet", "csv", "jsonl"]),
    help="Format; repeats.  [default: all, Parquet where pyarrow is installed]",
)
def export(run: Path, out: Path | None, formats: tuple[str, ...]) -> None:
    """Write the records of RUN as tables that other tools read."""
    from handoff.protocols.export import export as write_tables
    from handoff.protocols.registry import protocol_of_run
    from handoff.text import shell_word

    protocol = protocol_of_run(run)
    tables = protocol.tables(protocol.read(run))
    result = write_tables(run, tables, run / "export" if out is None else out, formats or None)
    for path, rows in result.written:
        click.echo(f"{shell_word(path)}: {rows} rows")
    if result.skipped:
        click.echo(result.skipped, err=True)
