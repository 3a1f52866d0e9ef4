"""The distance to success along one episode of a game."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import attrs

from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.games.files import load_game
from handoff.errors import DataError


@attrs.frozen
class Point:
    """After ``action`` (empty: the reset): the ``distance`` to success (``None``: above the limit), whether the action
    was ``admissible``, and whether the game is ``won``."""

    action: str
    distance: int | None
    admissible: bool
    won: bool

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


def curve(path: str | os.PathLike[str], actions: Sequence[str] | None, limit: int) -> list[Point]:
    """The points of an episode of the game in file ``path``; its stored walkthrough if ``actions`` is ``None``.

    Raises :class:`~handoff.errors.DataError` for a file that is no usable game, or that has no walkthrough when one is
    asked for.
    """
    loaded = load_game(path, trust=True)  # nothing of the file is run by the compiled engine
    if actions is None:
        if loaded.walkthrough is None:
            raise DataError(f"game file {path} has no walkthrough; give the actions by --actions")
        actions = loaded.walkthrough
    try:
        game = CompiledGame.of(loaded)
    except DataError as error:
        raise DataError(f"game file {path}: {error}") from error
    state = game.initial
    points = [Point("", game.distance(state, limit), True, game.won(state))]
    for action in actions:
        admissible = action.strip() in game.commands(state)
        state, record = game.step(state, action)
        points.append(Point(action, game.distance(state, limit), admissible, record.won))
    return points
