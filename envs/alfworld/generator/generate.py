"""Making games: drafts are proven on the native engine in worker processes and written as they come.

A game is written only after its plan was replayed (unless that is switched off): each command admissible, won exactly
after the last one.  Files appear whole or not at all, and a folder of games is gone on with when the same command is
given again.  The bytes written do not depend on the number of workers.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import handoff
from handoff import files
from handoff.canonical import canonical, parse
from handoff.envs.alfworld.games.files import GAME_FILE
from handoff.envs.alfworld.games.recipe import Recipe
from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.drafts import drafts
from handoff.episodes.children import Children
from handoff.errors import DataError, EnvironmentFault, Interrupted, StoreError, UsageError
from handoff.progress import Progress

if TYPE_CHECKING:
    from handoff.envs.alfworld.native.engine import NativeEngine


RELEASE = "json_2.1.1"  # folder of the release's layout
MANIFEST = "manifest.json"
_PER_POOL = 200  # games proven by one set of worker processes: each loaded game leaks memory inside textworld


def prove(recipe: Recipe, engine: NativeEngine) -> None:
    """Replay the plan on the native engine.

    Raises :class:`~handoff.errors.EnvironmentFault` unless every command is admissible and the game is won exactly
    after the last one.
    """
    record = engine.reset(recipe.game())
    if record.won:
        raise EnvironmentFault(f"game {recipe.name} is won at reset")
    for number, command in enumerate(recipe.plan, 1):
        if command not in record.admissible:
            raise EnvironmentFault(f"game {recipe.name}: command {number} of its plan, {command!r}, is not admissible")
        record = engine.step(command)
        if record.won != (number == len(recipe.plan)):
            state = "won" if record.won else "not won"
            raise EnvironmentFault(f"game {recipe.name} is {state} after command {number} of {len(recipe.plan)}")


_engine: NativeEngine | None = None


def _prove_in_worker(recipe: Recipe) -> Recipe:
    global _engine
    if _engine is None:
        os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())  # else importing alfworld makes a cache folder
        from handoff.envs.alfworld.native.engine import NativeEngine

        _engine = NativeEngine()
    prove(recipe, _engine)
    return recipe


def proven(recipes: Iterable[Recipe], workers: int) -> Iterator[Recipe]:
    """The same recipes in the same order, each after its proof."""
    if workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    pending = iter(recipes)
    while batch := list(itertools.islice(pending, _PER_POOL)):
        with Children(min(workers, len(batch))) as pool:
            try:
                proofs = [pool.submit(_prove_in_worker, recipe) for recipe in batch]
                for proof in proofs:
                    yield proof.result()
            except BrokenProcessPool as error:
                raise Interrupted(
                    "a process that proves games went away; the same command goes on from here"
                ) from error
            except BaseException:
                pool.end()
                raise


def generate(
    split: str, count: int, seed: int, out: Path, *, workers: int = 1, verify: bool = True, progress: Progress
) -> None:
    """Write ``count`` games of ``split`` below ``out`` as official game files, and ``manifest.json`` beside them.

    Goes on where an earlier call of the same kind stopped.  Raises :class:`~handoff.errors.UsageError` if ``out``
    holds anything else.
    """
    made = {"split": split, "seed": seed, "games": count, "verified": verify, **origin()}
    _claim(out, made)
    recipes = []
    with progress.phase(f"drafts {split}", count) as tick:
        for recipe in drafts(split, count, seed):
            recipes.append(recipe)
            tick()
    owed = [recipe for recipe in recipes if not _is_there(out, split, recipe)]
    with progress.phase(f"games {split}", count) as tick:
        for _ in range(count - len(owed)):
            tick(resumed=True)
        for recipe in proven(owed, workers) if verify else owed:
            write_official(out, split, recipe)
            tick()
    write_file(out / MANIFEST, _pretty({**made, "complete": True, **_summary(recipes)}))


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

    This is the form in which the built-in games ship.  Nothing is written before all games are proven.
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
    write_file(out / MANIFEST, _pretty(manifest))


def line(recipe: Recipe) -> bytes:
    """A recipe as it stands in the compact file: one line of canonical JSON."""
    return canonical(recipe.to_json()) + b"\n"


def origin() -> dict[str, Any]:
    """What games are made from: versions, and sha256 of the wheel's files."""
    return {
        "versions": {
            "handoff": handoff.__version__,
            "alfworld": metadata.version("alfworld"),
            "textworld": metadata.version("textworld"),
        },
        "sha256": {
            "domain": wheel.text_digest(wheel.domain()),
            "grammar": wheel.text_digest(wheel.grammar()),
            "scenes": wheel.scenes_digest(),
        },
    }


def official_path(out: Path, split: str, recipe: Recipe) -> Path:
    """Where the release's layout has the game: ``json_2.1.1/<split>/<task>/<trial>/game.tw-pddl``."""
    return out / RELEASE / split / recipe.name / GAME_FILE


def write_official(out: Path, split: str, recipe: Recipe) -> None:
    """Write one official game file, whole or not at all."""
    write_file(official_path(out, split, recipe), _official(recipe))


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all.  Raises :class:`~handoff.errors.StoreError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, data)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def refuse_used(out: Path, force: bool) -> None:
    """Raises :class:`~handoff.errors.UsageError` if ``out`` is no folder, or holds something and ``force`` is not
    given."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder")
    try:
        used = out.is_dir() and next(out.iterdir(), None) is not None
    except OSError as error:
        raise StoreError(f"cannot read {out}: {error.strerror or error}") from error
    if used and not force:
        raise UsageError(f"{out} is not empty; give another folder, or --force to write into this one")


def _claim(out: Path, made: Mapping[str, Any]) -> None:
    """Start a folder of generated games, or find that it was started for the same ones."""
    path = out / MANIFEST
    if not path.is_file():
        refuse_used(out, force=False)
        write_file(path, _pretty({**made, "complete": False}))
        return
    try:
        found = parse(files.read(path))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    differ = [key for key, value in made.items() if not isinstance(found, dict) or found.get(key) != value]
    if differ:
        raise UsageError(f"{out} holds games made otherwise ({', '.join(differ)} differ); give another folder")


def _is_there(out: Path, split: str, recipe: Recipe) -> bool:
    path = official_path(out, split, recipe)
    try:
        return files.read(path) == _official(recipe)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def _official(recipe: Recipe) -> bytes:
    return json.dumps(recipe.official()).encode()


def _summary(recipes: Sequence[Recipe]) -> dict[str, Any]:
    return {
        "games": len(recipes),
        "types": dict(sorted(Counter(recipe.type for recipe in recipes).items())),
        "scenes": sorted({recipe.scene for recipe in recipes}),
    }


def _pretty(manifest: Mapping[str, Any]) -> bytes:
    """Readable JSON, one task a line."""
    text = json.dumps(manifest, indent=1, ensure_ascii=True, allow_nan=False)
    return (text + "\n").encode()
