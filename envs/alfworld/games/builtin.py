"""The games that ship with the toolkit, read from ``handoff.artifacts``.

A list needs the manifest only.  A game's problem is written from its recipe and the installed ``alfworld`` wheel, and
the game must have the digest that the manifest lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from handoff.canonical import parse
from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.envs.alfworld.generator import wheel
from handoff.errors import DataError, UsageError
from handoff.records import Task

FOLDER = "games"


class BuiltinSource:
    """Games of the splits ``valid_unseen`` and ``valid_seen``; a task's ``source`` is ``<file>#<line>``."""

    def splits(self) -> tuple[str, ...]:
        return tuple(manifest()["splits"])

    def tasks(self, split: str) -> Sequence[Task]:
        """Tasks sorted by name.  Raises :class:`~handoff.errors.UsageError` for another split."""
        splits = manifest()["splits"]
        if split not in splits:
            raise UsageError(
                f"no games of split {split!r} among the built-in games (they have {', '.join(splits)}); "
                "give games with --data, or generate some: handoff games generate --split train -n 100 --out DIR"
            )
        entry = splits[split]
        tasks = [
            Task(id=task["id"], name=task["name"], type=task["type"], split=split, source=f"{entry['file']}#{number}")
            for number, task in enumerate(entry["tasks"], 1)
        ]
        return sorted(tasks, key=lambda task: (task.name, task.id))

    def load(self, task: Task) -> Game:
        """Raises :class:`~handoff.errors.DataError` if the installed alfworld is not the one behind the built-in games,
        or if the task is not a built-in one."""
        check_wheel()
        recipe = self.recipe(task)
        if recipe.id != task.id:
            raise DataError(f"task {task.name} ({task.id[:12]}...) is not a built-in game")
        return recipe.game()

    def recipe(self, task: Task) -> Recipe:
        name, _, number = task.source.partition("#")
        lines = _lines(name) if name in {entry["file"] for entry in manifest()["splits"].values()} else ()
        if not number.isdecimal() or not 1 <= int(number) <= len(lines):
            raise DataError(f"task {task.name} is not a built-in game ({task.source!r} names none)")
        return _recipe(lines[int(number) - 1], task.source)

    def recipes(self, split: str) -> Iterator[Recipe]:
        """All recipes of a split, sorted by name."""
        return (self.recipe(task) for task in self.tasks(split))


@lru_cache(maxsize=1)
def manifest() -> Mapping[str, Any]:
    """The origin of the built-in games (command, versions, digests), and the tasks of each split."""
    data: Mapping[str, Any] = parse(_read("manifest.json"))
    return data


@lru_cache(maxsize=1)
def check_wheel() -> None:
    """Raises :class:`~handoff.errors.DataError` if domain, grammar or scenes of the installed alfworld differ from
    those behind the built-in games."""
    origin = manifest()
    differing = [part for part, sha256 in wheel.digests().items() if sha256 != origin["sha256"][part]]
    if differing:
        raise DataError(
            f"the installed alfworld has another {' and '.join(differing)} than the one of the built-in games; "
            f"install alfworld=={origin['versions']['alfworld']}"
        )


def _read(name: str) -> bytes:
    try:
        return (resources.files("handoff.artifacts") / FOLDER / name).read_bytes()
    except (OSError, ModuleNotFoundError) as error:
        raise DataError(f"the built-in games are not installed (no {FOLDER}/{name}); reinstall the package") from error


@lru_cache(maxsize=4)
def _lines(name: str) -> tuple[bytes, ...]:
    return tuple(_read(name).splitlines())


def _recipe(line: bytes, where: str) -> Recipe:
    try:
        data = parse(line)
    except ValueError as error:
        raise DataError(f"built-in game {where} is not JSON text: {error}") from error
    return Recipe.from_json(data, f"built-in game {where}")
