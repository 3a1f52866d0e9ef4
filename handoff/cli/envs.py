"""``handoff envs``: the installed environments."""

from __future__ import annotations

import json

import attrs
import click

from handoff.cli import options


@click.command(
    epilog="""\b
Examples:
  handoff envs
  handoff envs --json"""
)
@options.as_json
def envs(as_json: bool) -> None:
    """List the installed environments with their splits and abilities; a broken one is listed with the reason."""
    from handoff.registry import inventory

    listed = inventory()
    if as_json:
        click.echo(json.dumps({"environments": [attrs.asdict(entry) for entry in listed]}, indent=2))
        return
    if not listed:
        click.echo("no environment is installed; an adapter registers itself by the entry point handoff.environments")
        return
    from rich.markup import escape

    from handoff.cli.output import Console

    console = Console(highlight=False, soft_wrap=True)
    for entry in listed:
        package = f"  [dim]{escape(entry.distribution)}[/]" if entry.distribution else ""
        console.print(f"[bold]{escape(entry.name)}[/]{package}")
        if entry.broken is not None:
            console.print(f"  [red]broken[/]: {escape(entry.broken)}")
            continue
        if entry.summary:
            console.print(f"  {escape(entry.summary)}")
        console.print(f"  splits: {escape(', '.join(entry.splits))}")
        console.print(f"  abilities: {', '.join(entry.abilities) or 'none (reset and replay)'}")
