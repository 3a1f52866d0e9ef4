"""Generates games: worker processes prove drafts on the native engine, and each game is written after its proof.

A proof replays the plan: each action is admissible, and the last one wins.  Files are written whole or not at all, and
the same command resumes an unfinished folder.  The bytes do not depend on the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import handoff
from handoff.canonical import canonical
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.drafts import drafts
from handoff.envs.alfworld.generator.folder import claim, is_written, write_file, write_manifest, write_official
from handoff.envs.alfworld.generator.proofs import proven
from handoff.progress import Progress


def generate(
    split: str, count: int, seed: int, out: Path, *, workers: int = 1, verify: bool = True, progress: Progress
) -> None:
    """Write ``count`` games of ``split`` below ``out`` as official game files, and ``manifest.json`` beside them.

    Resumes an earlier call with the same arguments.  Raises :class:`~handoff.errors.UsageError` if ``out`` has other
    content.
    """
    manifest = {"split": split, "seed": seed, "games": count, "verified": verify, **origin()}
    claim(out, manifest)
    recipes = []
    with progress.phase(f"drafts {split}", count) as tick:
        for recipe in drafts(split, count, seed):
            recipes.append(recipe)
            tick()
    owed = [recipe for recipe in recipes if not is_written(out, split, recipe)]
    with progress.phase(f"games {split}", count) as tick:
        for _ in range(count - len(owed)):
            tick(resumed=True)
        for recipe in proven(owed, workers) if verify else owed:
            write_official(out, split, recipe)
            tick()
    write_manifest(out, {**manifest, "complete": True, **_summary(recipes)})


def generate_compact(
    splits: Sequence[str],
    count: int,
    seed: int,
    out: Path,
    *,
    command: str,
    workers: int = 1,
    verify: bool = True,
    progress: Progress,
) -> None:
    """Write ``count`` games of each split as ``<split>.jsonl``, and the ``manifest.json`` that lists them.

    This is the form of the built-in games.  Nothing is written before all games are proven.
    """
    texts: dict[str, bytes] = {}
    entries: dict[str, Any] = {}
    for split in splits:
        recipes = []
        with progress.phase(f"games {split}", count) as tick:
            for recipe in proven(drafts(split, count, seed), workers) if verify else drafts(split, count, seed):
                recipes.append(recipe)
                tick()
        name = f"{split}.jsonl"
        texts[name] = b"".join(line(recipe) for recipe in recipes)
        entries[split] = {
            "file": name,
            "sha256": wheel.text_digest(texts[name].decode()),
            **_summary(recipes),
            "tasks": [{"id": recipe.id, "name": recipe.name, "type": recipe.type} for recipe in recipes],
        }
    manifest = {"command": command, "seed": seed, "verified": verify, **origin(), "splits": entries}
    for name, data in texts.items():
        write_file(out / name, data)
    write_manifest(out, manifest)


def line(recipe: Recipe) -> bytes:
    """A recipe in the compact file: one line of canonical JSON."""
    return canonical(recipe.to_json()) + b"\n"


def origin() -> dict[str, Any]:
    """The origin of generated games: versions, and sha256 of the wheel's files."""
    return {
        "versions": {
            "handoff": handoff.__version__,
            "alfworld": metadata.version("alfworld"),
            "textworld": metadata.version("textworld"),
        },
        "sha256": wheel.digests(),
    }


def _summary(recipes: Sequence[Recipe]) -> dict[str, Any]:
    return {
        "games": len(recipes),
        "types": dict(sorted(Counter(recipe.type for recipe in recipes).items())),
        "scenes": sorted({recipe.scene for recipe in recipes}),
    }
