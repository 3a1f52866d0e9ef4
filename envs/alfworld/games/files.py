"""Game files: identity, discovery, and the refusal of unknown grammars.

A game file is code: textworld evaluates expressions of its grammar as Python.  So a game is accepted only if its
grammar, with the task sentence masked, is a known one, and if the task sentence is plain words.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import attrs

from handoff import files
from handoff.canonical import digest, parse
from handoff.envs.alfworld.games.pddl_checks import MOST_BYTES, require_translatable
from handoff.errors import DataError, UsageError
from handoff.records import Task

GAME_FILE = "game.tw-pddl"
SPLITS = ("valid_unseen", "valid_seen", "train")
TASK_TYPES = (
    "look_at_obj_in_light",
    "pick_and_place_simple",
    "pick_clean_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_two_obj_and_place",
)

#: sha256 of the known grammars, the task sentence masked by ``PLACEHOLDER``: the one inside all games of the
#: ALFWorld release json_2.1.1 and the one that alfworld 0.4.2 carries (``data/alfred.twl2``).
KNOWN_GRAMMARS = {
    "cce0702cd250cc6af6c3ea047a21f6c4c1c8d29a1739efefb5221ef4c3dcac57": "ALFWorld release json_2.1.1",
    "c5b22f0f73309a7fd7c8e5b71de42ad4803b60766ab4a51cc2feb34162be036b": "alfworld 0.4.2",
}
PLACEHOLDER = "UNKNOWN GOAL"

_SENTENCE = re.compile(r'("rhs": "Your task is to: )([^"\n]*)(")')
PLAIN = re.compile(r"[A-Za-z0-9 ,.'-]+")


@attrs.frozen
class Game:
    """One game.  ``id`` is the digest of domain, grammar and problem; the walkthrough is not part of its identity."""

    id: str
    domain: str = attrs.field(repr=False)
    grammar: str = attrs.field(repr=False)
    problem: str = attrs.field(repr=False)
    walkthrough: tuple[str, ...] | None = None

    @classmethod
    def of(cls, domain: str, grammar: str, problem: str, walkthrough: Sequence[str] | None = None) -> Game:
        identity = digest({"domain": domain, "grammar": grammar, "problem": problem})
        return cls(identity, domain, grammar, problem, None if walkthrough is None else tuple(walkthrough))


class GameSource(Protocol):
    """A source of games."""

    def tasks(self, split: str) -> Sequence[Task]:
        """All games of ``split`` as tasks, sorted by name."""

    def load(self, task: Task) -> Game:
        """The game of a task; raises :class:`~handoff.errors.DataError` if it is missing or another one."""


def mask_sentence(grammar: str) -> tuple[str, str | None]:
    """The grammar with its task sentence replaced by ``PLACEHOLDER``, and the sentence (``None`` if there is not
    exactly one)."""
    matches = _SENTENCE.findall(grammar)
    if len(matches) != 1:
        return grammar, None
    sentence = matches[0][1]
    return _SENTENCE.sub(lambda m: m[1] + PLACEHOLDER + "." + m[3], grammar), sentence


@lru_cache(maxsize=4096)
def grammar_problem(grammar: str) -> str | None:
    """The reason to refuse a grammar, or ``None`` if it is known and its task sentence is plain words."""
    masked, sentence = mask_sentence(grammar)
    fingerprint = hashlib.sha256(masked.encode()).hexdigest()
    if fingerprint not in KNOWN_GRAMMARS:
        return f"its grammar (sha256 {fingerprint[:12]}...) is not a known one"
    if sentence is None or not PLAIN.fullmatch(sentence):
        return f"its task sentence {sentence!r:.60} contains more than plain words"
    return None


def load_game(path: str | os.PathLike[str], trust: bool = False) -> Game:
    """Read one game file.

    ``trust`` accepts an unknown grammar: the native engine then evaluates code from that file.  Raises
    :class:`~handoff.errors.DataError`, naming the file, for anything but a usable game.
    """
    path = Path(path)
    if path.is_dir():
        path = path / GAME_FILE
    return _game(_read(path), path, trust)


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = files.read(path, MOST_BYTES)
    except OSError as error:
        raise DataError(f"cannot read game file {path}: {files.cause(error)}") from error
    try:
        data = parse(raw)
    except ValueError as error:
        raise DataError(f"game file {path} is not JSON text: {error}") from error
    if not isinstance(data, dict):
        raise DataError(f"game file {path} is not a JSON object")
    return data


def _game(data: Mapping[str, Any], path: Path, trust: bool) -> Game:
    texts = []
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        text = data.get(key)
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"game file {path} has no usable {key!r}")
        if "\0" in text:
            raise DataError(f"game file {path}: {key!r} contains a NUL character")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise DataError(f"game file {path}: {key!r} contains a lone surrogate, which is no character")
        texts.append(text)
    walkthrough = data.get("walkthrough")
    if walkthrough is not None and not (
        isinstance(walkthrough, list) and all(isinstance(action, str) for action in walkthrough)
    ):
        raise DataError(f"game file {path}: 'walkthrough' is not a list of actions")
    domain, grammar, problem = texts
    require_translatable(domain, problem, f"game file {path}")
    reason = None if trust else grammar_problem(grammar)
    if reason:
        raise DataError(
            f"game file {path} is refused: {reason}. A game's grammar is run as code; "
            "load it only if you trust its author (--trust-games)"
        )
    return Game.of(domain, grammar, problem, walkthrough)


@attrs.define
class FolderSource:
    """Games anywhere below a folder, or one game file.

    A game's split is the nearest folder above it with the name of a split; its type is the first ``-``-separated word
    of a folder above it that is one of ``TASK_TYPES``, else ``unknown``.  No ``traj_data.json`` is needed.
    """

    root: Path
    trust: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.root.exists():
            raise UsageError(f"no games: {self.root.absolute()} does not exist")

    def tasks(self, split: str) -> Sequence[Task]:
        tasks = []
        elsewhere: Counter[str] = Counter()
        unsolvable = 0
        for path in self._files():
            its_split = self._split(path)
            if its_split != split:
                elsewhere[its_split] += 1
                continue
            data = _read(path)
            if data.get("solvable") is False:  # the release keeps such games, evaluations skip them
                unsolvable += 1
                continue
            tasks.append(self._task(path, split, data))
        if not tasks and unsolvable:
            raise UsageError(
                f"no games of split {split!r} below {self.root.absolute()} can be won: all {unsolvable} are marked "
                '"solvable": false'
            )
        if not tasks:
            others = ", ".join(f"{name}: {count}" for name, count in sorted(elsewhere.items()))
            raise UsageError(
                f"no games of split {split!r} below {self.root.absolute()}"
                + (f" (it has {others})" if others else f" (it has no file named {GAME_FILE})")
            )
        by_id: dict[str, Task] = {}
        for task in sorted(tasks, key=lambda task: (task.name, task.id)):
            by_id.setdefault(task.id, task)  # a copy of a game is the same task
        return list(by_id.values())

    def load(self, task: Task) -> Game:
        relative = PurePosixPath(task.source)
        if relative.is_absolute() or ".." in relative.parts:
            raise DataError(f"task {task.name} names a file outside the data folder: {task.source!r}")
        path = self.root if self.root.is_file() else self.root / relative
        if path != self.root:
            _require_inside(os.path.realpath(self.root), path, os.path.realpath(path))
        game = load_game(path, self.trust)
        if game.id != task.id:
            raise DataError(f"game file {path} has digest {game.id[:12]}..., the task {task.name} is {task.id[:12]}...")
        return game

    def _files(self) -> Iterator[Path]:
        if self.root.is_file():
            yield self.root
            return
        root, seen = os.path.realpath(self.root), set[str]()
        for folder, subfolders, names in os.walk(self.root, followlinks=True):
            real = os.path.realpath(folder)
            _require_inside(root, Path(folder), real)
            if real in seen:  # a link back up
                subfolders.clear()
                continue
            seen.add(real)
            # Real folders come before links to them.
            subfolders.sort(key=lambda name: (os.path.islink(os.path.join(folder, name)), name))
            if GAME_FILE in names:
                path = Path(folder, GAME_FILE)
                _require_inside(root, path, os.path.realpath(path))
                yield path

    def _split(self, path: Path) -> str:
        return next((part for part in reversed(path.absolute().parts[:-1]) if part in SPLITS), "default")

    def _task(self, path: Path, split: str, data: Mapping[str, Any]) -> Task:
        game = _game(data, path, self.trust)
        parts = path.absolute().parts[:-1]
        kind = next((w for w in (part.split("-")[0] for part in reversed(parts)) if w in TASK_TYPES), "unknown")
        source = path.name if self.root.is_file() else path.relative_to(self.root).as_posix()
        return Task(id=game.id, name="/".join(parts[-2:]), type=kind, split=split, source=source)


def _require_inside(root: str, path: Path, real: str) -> None:
    """Raise :class:`~handoff.errors.DataError` if ``real``, the location of ``path``, is outside of ``root``."""
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        raise DataError(
            f"{path} is a link that leads out of the data folder (to {real}); copy the games into the folder, "
            "or give the other folder by --data"
        )
