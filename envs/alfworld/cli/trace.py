"""The trace of an episode: the distance to success after every action, and the graph of the states around its end."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import frontier
from handoff.envs.alfworld.compiled.engine import CompiledEpisode, CompiledGame
from handoff.envs.alfworld.games.files import load_game
from handoff.envs.alfworld.generator.folder import write_file
from handoff.errors import DataError, UsageError
from handoff.text import printable

#: Endings of the files that a graph can be written to.
GRAPH_FORMATS = (".graphml", ".json")


@attrs.frozen
class Moment:
    """One moment of an episode."""

    #: The action before it; empty for the reset.
    action: str
    #: The least number of actions that wins from here; ``None``: more than the limit.
    distance: int | None
    #: Whether the action was admissible.
    admissible: bool
    #: Whether the game is won.
    won: bool

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


def trace(
    path: str | os.PathLike[str], actions: Sequence[str] | None, limit: int
) -> tuple[list[Moment], CompiledEpisode]:
    """The points of an episode of the game in file ``path``, and the episode after the last of ``actions``.

    Without ``actions`` the points are those of the game's own walkthrough, and the episode is at the reset.  Raises
    :class:`~handoff.errors.DataError` for a file that is no usable game, or that has no walkthrough when one is needed.
    """
    loaded = load_game(path, trust=True)  # the compiled engine runs nothing of the file
    if actions is None and loaded.walkthrough is None:
        raise DataError(f"game file {path} has no walkthrough; give the actions by --actions")
    try:
        game = CompiledGame.of(loaded)
    except DataError as error:
        raise DataError(f"game file {path}: {error}") from error
    episode = game.episode()
    points = [Moment("", episode.distance(limit), True, episode.record.won)]
    for action in (loaded.walkthrough or ()) if actions is None else actions:
        admissible = action.strip() in episode.record.admissible
        record = episode.step(action)
        points.append(Moment(action, episode.distance(limit), admissible, record.won))
    if actions is None:
        episode.reset()
    return points, episode


def require_graph_format(path: Path) -> None:
    """Raise :class:`~handoff.errors.UsageError` if the ending of ``path`` names no format of a graph."""
    if path.suffix not in GRAPH_FORMATS:
        raise UsageError(f"cannot tell the format of graph {path}; end its name in {' or '.join(GRAPH_FORMATS)}")


def write_graph(path: Path, episode: CompiledEpisode, depth: int) -> int:
    """Write the graph of the states within ``depth`` actions of the episode's state; the ending names the format.

    Nodes carry ``depth``, ``won``, ``observation`` and, where the graph holds a win, ``distance``; edges carry
    ``action``.  Returns the number of states.  Raises :class:`~handoff.errors.UsageError` for an unknown ending,
    without networkx, or for too many states.
    """
    require_graph_format(path)
    graph = frontier.neighbourhood(episode, episode.record, depth)
    for _, data in graph.nodes(data=True):
        del data["done"]  # equals ``won`` in ALFWorld
        data["observation"] = printable(data.pop("record").observation)
        if data["distance"] is None:
            del data["distance"]
    import networkx as nx

    if path.suffix == ".json":
        text = json.dumps(nx.node_link_data(graph, edges="edges"), indent=1)
    else:
        text = "\n".join(nx.generate_graphml(graph))
    write_file(path, (text + "\n").encode())
    return len(graph)
