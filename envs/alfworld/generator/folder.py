"""Folders of games: official files and a manifest, each written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import parse
from handoff.envs.alfworld.games.files import GAME_FILE
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.errors import DataError, StoreError, UsageError

RELEASE = "json_2.1.1"  # folder of the release's layout
MANIFEST = "manifest.json"


def official_path(out: Path, split: str, recipe: Recipe) -> Path:
    """The game's path in the release's layout: ``json_2.1.1/<split>/<task>/<trial>/game.tw-pddl``."""
    return out / RELEASE / split / recipe.name / GAME_FILE


def write_official(out: Path, split: str, recipe: Recipe) -> None:
    """Write one official game file."""
    write_file(official_path(out, split, recipe), _official(recipe))


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.  Raises :class:`~handoff.errors.StoreError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {files.cause(error)}") from error


def refuse_used(out: Path, force: bool) -> None:
    """Raises :class:`~handoff.errors.UsageError` if ``out`` is a file, or not empty without ``force``."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder")
    try:
        used = out.is_dir() and next(out.iterdir(), None) is not None
    except OSError as error:
        raise StoreError(f"cannot read {out}: {files.cause(error)}") from error
    if used and not force:
        raise UsageError(f"{out} is not empty; give another folder, or --force to write into this one")


def claim(out: Path, manifest: Mapping[str, Any]) -> None:
    """Start a folder of generated games, or check that its manifest agrees with ``manifest``."""
    path = out / MANIFEST
    if not path.is_file():
        refuse_used(out, force=False)
        write_manifest(out, {**manifest, "complete": False})
        return
    try:
        present = parse(files.read(path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {files.cause(error)}") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error})") from error
    differing = [key for key, value in manifest.items() if not isinstance(present, dict) or present.get(key) != value]
    if differing:
        raise UsageError(f"{out} has games of another command ({', '.join(differing)} differ); give another folder")


def is_written(out: Path, split: str, recipe: Recipe) -> bool:
    """Whether the game's official file is in the folder, with the same bytes."""
    path = official_path(out, split, recipe)
    try:
        return files.read(path) == _official(recipe)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot read {path}: {files.cause(error)}") from error


def _official(recipe: Recipe) -> bytes:
    return json.dumps(recipe.official()).encode()


def write_manifest(out: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a folder as indented JSON."""
    text = json.dumps(manifest, indent=1, ensure_ascii=True, allow_nan=False)
    write_file(out / MANIFEST, (text + "\n").encode())
