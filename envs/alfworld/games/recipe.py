"""The recipe of a generated game: its parts that are not in the ``alfworld`` wheel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.placement import Placement
from handoff.envs.alfworld.generator.problem import Goal, grammar_for, write
from handoff.envs.alfworld.generator.scenes import scene
from handoff.errors import DataError
from handoff.records import from_json, to_json


@attrs.frozen
class Recipe:
    """One game."""

    #: The game's digest.
    id: str
    #: ``<task>/<trial>``, folders of the release's layout.
    name: str
    #: The task: its type, the types of object and receptacle (or lamp), and its sentence.
    type: str
    thing: str
    target: str
    sentence: str
    #: The number of the room.
    scene: int
    #: The agent's first location: x and z in quarter metres, rotation in quarter turns, camera angle in degrees.
    start: tuple[int, ...]
    #: The places of the objects, as in :class:`~handoff.envs.alfworld.generator.placement.Placement`.
    held: Mapping[str, tuple[str, ...]]
    floor: tuple[str, ...]
    inside: Mapping[str, tuple[str, ...]]
    #: Actions that win.
    plan: tuple[str, ...]

    def game(self) -> Game:
        """The game, with domain and grammar of the installed wheel.

        Raises :class:`~handoff.errors.DataError` if its digest is not ``id``.
        """
        game = self.rebuild()
        if game.id != self.id:
            raise DataError(
                f"game {self.name} comes out as {game.id[:12]}... instead of {self.id[:12]}...: "
                "its recipe or the installed alfworld package was changed"
            )
        return game

    def rebuild(self) -> Game:
        """The game, without a check of ``id``."""
        if len(self.start) != 4:
            raise DataError(f"game {self.name}: 'start' has {len(self.start)} numbers instead of 4")
        room = scene(self.scene)
        placement = Placement(self.held, self.floor, self.inside)
        unknown = sorted(set(self.held) - {receptacle.id for receptacle in room.receptacles})
        if unknown:
            raise DataError(f"game {self.name}: scene {self.scene} has no receptacle {unknown[0]!r}")
        goal = Goal(self.type, self.thing, self.target)
        x, z, rotation, angle = self.start
        problem = write(self.trial, room, placement, goal, (x, z, rotation, angle))
        return Game.of(wheel.domain(), grammar_for(self.sentence), problem, self.plan)

    @property
    def trial(self) -> str:
        return self.name.rpartition("/")[2]

    def official(self) -> dict[str, Any]:
        """Content of the game's ``game.tw-pddl``, keys as in the release."""
        game = self.game()
        return {
            "pddl_domain": game.domain,
            "grammar": game.grammar,
            "pddl_problem": game.problem,
            "solvable": True,
            "walkthrough": list(self.plan),
        }

    def to_json(self) -> Any:
        return to_json(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> Recipe:
        """Raises :class:`~handoff.errors.DataError`, starting with ``where``, if ``data`` is no recipe."""
        if not isinstance(data, dict):
            raise DataError(f"{where} is not a JSON object")
        return from_json(cls, data, where)
