"""``handoff distance``: the distance to success after every action of an episode."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from handoff import files
from handoff.errors import UsageError
from handoff.plugin import DEPTH, PATH, FilePath, as_json


@click.command(
    epilog="""\b
Examples:
  handoff distance valid_unseen/.../game.tw-pddl
  handoff distance game.tw-pddl --actions episode.txt --limit 8
  handoff distance game.tw-pddl --actions - --json < episode.txt
  handoff distance game.tw-pddl --actions episode.txt --graph states.graphml

A graph holds every state within --depth actions, one edge per admissible action. Nodes carry their observation, their
depth, whether they are won, and their distance to a won state of the graph. The ending of FILE is .graphml (for Gephi,
yEd, networkx) or .json (node-link data). It needs networkx (the extra "graph")."""
)
@click.argument("game", type=PATH)
@click.option(
    "--actions",
    metavar="FILE",
    type=FilePath(allow_dash=True),
    help="Actions, one per line (- reads standard input).  [default: the game's own walkthrough]",
)
@click.option("--limit", default=6, show_default=True, type=DEPTH, help="Greatest distance to search for.")
@click.option(
    "--graph",
    metavar="FILE",
    type=PATH,
    help="Write the graph of the states around the last of --actions (without --actions: around the reset).",
)
@click.option("--depth", default=2, show_default=True, type=DEPTH, help="Depth of the graph, in actions.")
@as_json
def distance(game: Path, actions: str | None, limit: int, graph: Path | None, depth: int, as_json: bool) -> None:
    """The exact distance to success in GAME, at reset and after every action.

    A distance is the least number of actions that wins from there; a dash is a distance above the limit.
    """
    from handoff.envs.alfworld.cli.trace import require_graph_format, trace, write_graph

    if graph is not None:
        require_graph_format(graph)
    points, episode = trace(game, None if actions is None else _lines(actions), limit)
    states = None if graph is None else write_graph(graph, episode, depth)
    if as_json:
        click.echo(json.dumps({"game": str(game), "limit": limit, "points": [point.to_json() for point in points]}))
        return
    for number, point in enumerate(points):
        digits = "-" if point.distance is None else str(point.distance)
        bar = "" if point.distance is None else "#" * point.distance
        note = "" if point.admissible else "  (not admissible)"
        click.echo(f"{number:4} {digits:>3} {bar:{min(limit, 40)}} {point.action or '(reset)'}{note}")
    if states is not None:
        click.echo(f"{states:,} states within {depth} actions in {graph}")


def _lines(file: str) -> list[str]:
    """The lines of a file, or of standard input (``-``)."""
    name = "standard input" if file == "-" else file
    try:
        raw = sys.stdin.buffer.read() if file == "-" else files.read_input(Path(file))
    except OSError as error:
        raise UsageError(f"cannot read {name}: {files.cause(error)}") from error
    text = files.text_of(raw, name).replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n")
