"""ALFWorld games: the built-in ones of each type, and game files that tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import Game

TASK_TYPES = (
    "look_at_obj_in_light",
    "pick_and_place_simple",
    "pick_clean_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_two_obj_and_place",
)


def one_of_each_type(split: str = "valid_unseen") -> dict[str, Game]:
    """The first built-in game of each task type."""
    source = BuiltinSource()
    tasks = source.tasks(split)
    return {kind: source.load(next(task for task in tasks if task.type == kind)) for kind in TASK_TYPES}


def form(game: Game) -> dict[str, Any]:
    """The content of the game's file."""
    return {
        "pddl_domain": game.domain,
        "grammar": game.grammar,
        "pddl_problem": game.problem,
        "solvable": True,
        "walkthrough": list(game.walkthrough or ()),
    }


def write(folder: Path, content: dict[str, Any] | bytes | str) -> Path:
    """Write a game file with this content into the folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "game.tw-pddl"
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
