"""The ALFWorld adapter, on either engine.

``compiled`` (the default) plays the compiled form of a game: the records of textworld + alfworld, byte for byte, with
exact snapshots.  ``native`` plays textworld + alfworld themselves and certifies runs.  Beside every native step the
compiled game takes the same action; its admissible actions and success flag must equal the native record's.  So each
native step checks the form that frontiers are searched in.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

from handoff import frontier
from handoff.environment import Environment
from handoff.envs.alfworld.compiled.engine import ENGINE_VERSION, CompiledEpisode, CompiledGame, Snapshot
from handoff.envs.alfworld.compiled.sas import NotTranslated
from handoff.envs.alfworld.games.files import SPLITS, Game, mask_sentence
from handoff.envs.alfworld.games.sources import find_source
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.errors import DataError, EnvironmentFault, UsageError
from handoff.records import Certificate, Record, Task

#: Games of this process, shared by all its environments of one engine: (engine, data, trust, task id) -> game and
#: compiled form.
_GAMES: OrderedDict[tuple[str, str, bool, str], tuple[Game, CompiledGame | None]] = OrderedDict()
_MEMORY = 64  # games kept, of some MB each


class AlfworldEnvironment(Environment):
    """Household tasks in text, on real textworld + alfworld or their compiled form.

    Options: ``data`` (a folder, a game file, or ``builtin``; else ``ALFWORLD_DATA``, else the built-in games),
    ``engine`` (``compiled`` or ``native``), and ``trust_games`` (accept an unknown grammar; the native engine runs it
    as code).  The instance is of the engine's subclass.
    """

    name: ClassVar[str] = "alfworld"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    policies: ClassVar[Mapping[str, str]] = {name: f"builtin:{name}" for name in ("base", "sft", "rl", "control")}
    #: ``ALFWORLD_DATA``, where it is set, and the built-in games; neither is trusted by somebody else's word.
    places: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"data": None, "trust_games": False},
        {"data": "builtin", "trust_games": False},
    )
    engine: ClassVar[str]

    @classmethod
    def usual(cls) -> type[Environment]:
        return ENGINES["compiled"] if cls is AlfworldEnvironment else cls

    def __new__(
        cls, data: str | None = None, engine: str = "compiled", trust_games: bool = False
    ) -> AlfworldEnvironment:
        if cls is not AlfworldEnvironment:
            return super().__new__(cls)
        if engine not in ENGINES:
            raise UsageError(f"ALFWorld has no engine {engine!r}; it has {' and '.join(ENGINES)}")
        return super().__new__(ENGINES[engine])

    def __init__(self, data: str | None = None, engine: str = "compiled", trust_games: bool = False) -> None:
        # Options may be text from a command line: only a truth value may mean trust.
        if trust_games is not True and trust_games is not False:
            raise UsageError(f"trust_games is true or false, not {trust_games!r}")
        if data is not None and not isinstance(data, str):
            raise UsageError(f"data is a path or 'builtin', not {data!r}")
        self._data, self._trust = data, trust_games
        self._source = find_source(data, trust_games)

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in (*SPLITS, "default"):
            raise UsageError(f"ALFWorld has no split {split!r}; it has {', '.join(SPLITS)}")
        return self._source.tasks(split)

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        games = [self._source.load(task) for task in tasks]
        names = ("textworld", "alfworld", "fast-downward-textworld")
        return {
            "engine": self.engine,
            "compiled_engine": ENGINE_VERSION,
            "versions": {name: metadata.version(name) for name in names},
            "domain_sha256": sorted({_sha256(game.domain) for game in games}),
            "grammar_sha256_sentence_masked": sorted({_sha256(mask_sentence(game.grammar)[0]) for game in games}),
        }

    def reference_options(self) -> Mapping[str, Any]:
        """Certification is on the native engine."""
        return {"data": self._data, "engine": NativeAlfworld.engine, "trust_games": self._trust}

    def _load(self, task: Task) -> tuple[Game, CompiledGame | None]:
        """A task's game and its compiled form (``None``: a trusted grammar outside the compiled engine's form)."""
        key = (self.engine, str(self._data), self._trust, task.id)
        if key not in _GAMES:
            game = self._source.load(task)
            compiled: CompiledGame | None = None
            try:
                compiled = CompiledGame.of(game, cached=self.engine == CompiledAlfworld.engine)
            except DataError as error:
                if not (self._trust and self.engine == NativeAlfworld.engine):
                    raise DataError(f"game {task.name} ({task.source}): {error}{self._advice(error)}") from error
            _GAMES[key] = (game, compiled)
            while len(_GAMES) > _MEMORY:
                _GAMES.popitem(last=False)
        _GAMES.move_to_end(key)
        return _GAMES[key]

    def _advice(self, error: DataError) -> str:
        """Advice about a trusted game that cannot be compiled."""
        if not self._trust or isinstance(error, NotTranslated):
            return ""
        return "; play it on the native engine (--engine native)"


class CompiledAlfworld(AlfworldEnvironment):
    """ALFWorld on the compiled engine."""

    engine: ClassVar[str] = "compiled"
    _episode: CompiledEpisode | None = None

    def reset(self, task: Task, seed: int) -> Record:
        _, compiled = self._load(task)
        assert compiled is not None
        self._episode = compiled.episode()
        return self._episode.reset()

    def step(self, action: str) -> Record:
        return self._current().step(action)

    def snapshot(self) -> Hashable:
        return self._current().snapshot()

    def restore(self, snapshot: Hashable) -> Record:
        assert isinstance(snapshot, Snapshot)
        return self._current().restore(snapshot)

    def certify(self, depth: int) -> Certificate:
        return self._current().certify(depth)

    def distance(self, limit: int) -> int | None:
        return self._current().distance(limit)

    def plan(self) -> tuple[str, ...]:
        return self._current().plan()

    def _current(self) -> CompiledEpisode:
        if self._episode is None:
            raise EnvironmentFault("step before reset")
        return self._episode


class NativeAlfworld(AlfworldEnvironment):
    """ALFWorld on textworld + alfworld."""

    engine: ClassVar[str] = "native"
    _native: NativeEngine | None = None
    _mirror: CompiledEpisode | None = None
    _prefix: tuple[Task, int, list[str]] | None = None

    def reset(self, task: Task, seed: int) -> Record:
        game, compiled = self._load(task)
        self._native = self._native or NativeEngine()
        self._mirror = None if compiled is None else compiled.episode()
        self._prefix = (task, seed, [])
        try:
            return self._checked(self._native.reset(game))
        except DataError as error:
            raise DataError(f"game {task.name} ({task.source}): {error}") from error

    def step(self, action: str) -> Record:
        if self._native is None or self._prefix is None:
            raise EnvironmentFault("step before reset")
        self._prefix[2].append(action)
        if self._mirror is not None:
            self._mirror.step(action)
        return self._checked(self._native.step(action))

    def certify(self, depth: int) -> Certificate:
        assert self._prefix is not None, "certify before reset"
        if self._mirror is None:
            task, seed, prefix = self._prefix
            return frontier.search(self, task, seed, tuple(prefix), depth)
        return self._mirror.certify(depth)

    def distance(self, limit: int) -> int | None:
        return self.certify(limit).distance if self._mirror is None else self._mirror.distance(limit)

    def plan(self) -> tuple[str, ...]:
        return () if self._mirror is None else self._mirror.plan()

    def _checked(self, native: Record) -> Record:
        if self._mirror is None:
            return native
        assert self._prefix is not None
        mirror = self._mirror.record
        if mirror.admissible != native.admissible or mirror.won != native.won:
            differing = sorted(set(mirror.admissible) ^ set(native.admissible))
            raise EnvironmentFault(
                f"task {self._prefix[0].name}: the compiled dynamics differ from the native engine "
                f"(won {mirror.won} against {native.won}; actions that only one admits: {differing[:5]})"
            )
        return native


ENGINES: Mapping[str, type[AlfworldEnvironment]] = {"compiled": CompiledAlfworld, "native": NativeAlfworld}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
