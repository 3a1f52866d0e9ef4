"""``handoff distance``: how far a game is from success after every action."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import click

from handoff.cli import numbers
from handoff.cli.options import PATH, as_json
from handoff.errors import DataError


@click.command(
    epilog="""\b
Examples:
  handoff distance valid_unseen/.../game.tw-pddl
  handoff distance game.tw-pddl --actions episode.txt --limit 8
  handoff distance game.tw-pddl --actions - --json < episode.txt"""
)
@click.argument("game", type=PATH)
@click.option(
    "--actions",
    metavar="FILE",
    type=click.File("rb"),
    help="Actions, one a line (- reads standard input).  [default: the game's own walkthrough]",
)
@click.option("--limit", default=6, show_default=True, type=numbers.DEPTH, help="Greatest distance to look for.")
@as_json
def distance(game: Path, actions: BinaryIO | None, limit: int, as_json: bool) -> None:
    """The exact distance to success in GAME, at reset and after every action.

    A distance is the least number of actions that wins from there; one above the limit is shown as a dash.
    """
    from handoff.envs.alfworld.cli.curve import curve

    lines = None if actions is None else _lines(actions)
    points = curve(game, lines, limit)
    if as_json:
        click.echo(json.dumps({"game": str(game), "limit": limit, "points": [point.to_json() for point in points]}))
        return
    for number, point in enumerate(points):
        shown = "-" if point.distance is None else str(point.distance)
        bar = "" if point.distance is None else "#" * point.distance
        note = "" if point.admissible else "  (not admissible)"
        click.echo(f"{number:4} {shown:>3} {bar:{min(limit, 40)}} {point.action or '(reset)'}{note}")


def _lines(file: BinaryIO) -> list[str]:
    try:
        return [line.rstrip("\r") for line in file.read().decode("utf-8-sig").removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name} is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise DataError(f"cannot read {file.name}: {error.strerror or error}") from error
