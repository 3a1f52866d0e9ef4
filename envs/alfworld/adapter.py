"""The ALFWorld adapter: native textworld + alfworld, with the frontier searched in the compiled dynamics.

Beside every native step the compiled dynamics take the same action, and their admissible commands and success flag must
equal the native record's: each step of every episode checks the compiled form against the engine that it stands for.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

from handoff.environment import Environment
from handoff.envs.alfworld.dynamics import Dynamics
from handoff.envs.alfworld.games import SPLITS, Game, find_source, mask_sentence
from handoff.envs.alfworld.native import NativeEngine
from handoff.errors import DataError, EnvironmentFault, UsageError
from handoff.records import Certificate, Record, Task

_MEMORY = 16  # games kept per process: a compiled game is some MB


class AlfworldEnvironment(Environment):
    """Options: ``data`` (a folder, a game file, or ``builtin``; else ``ALFWORLD_DATA``, else the built-in games) and
    ``trust_games`` (accept a grammar that is not known: it is run as code)."""

    name: ClassVar[str] = "alfworld"
    splits: ClassVar[tuple[str, ...]] = SPLITS

    def __init__(self, data: str | None = None, trust_games: bool = False) -> None:
        self._data, self._trust = data, trust_games
        self._source = find_source(data, trust_games)
        self._engine: NativeEngine | None = None
        self._games: OrderedDict[str, tuple[Game, Dynamics]] = OrderedDict()
        self._dynamics: Dynamics | None = None
        self._state: Any = None
        self._task = ""

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in (*SPLITS, "default"):
            raise UsageError(f"ALFWorld has no split {split!r}; it has {', '.join(SPLITS)}")
        return self._source.tasks(split)

    def reset(self, task: Task, seed: int) -> Record:
        game, self._dynamics = self._game(task)
        self._engine = self._engine or NativeEngine()
        self._task = task.name
        self._state = self._dynamics.initial
        try:
            return self._checked(self._engine.reset(game))
        except DataError as error:
            raise DataError(f"game {task.name} ({task.source}): {error}") from error

    def step(self, action: str) -> Record:
        if self._engine is None or self._dynamics is None:
            raise EnvironmentFault("step before reset")
        self._state = self._dynamics.apply(self._state, action)
        return self._checked(self._engine.step(action))

    def certify(self, depth: int) -> Certificate:
        assert self._dynamics is not None, "certify before reset"
        return self._dynamics.certify(self._state, depth)

    def plan(self) -> tuple[str, ...]:
        assert self._dynamics is not None, "plan before reset"
        return self._dynamics.plan(self._state)

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        games = [self._source.load(task) for task in tasks]
        return {
            "engine": "native",
            **versions(),
            "domain_sha256": sorted({_sha256(game.domain) for game in games}),
            "grammar_sha256_sentence_masked": sorted({_sha256(mask_sentence(game.grammar)[0]) for game in games}),
        }

    def reference_options(self) -> Mapping[str, Any]:
        return {"data": self._data, "trust_games": self._trust}

    def _game(self, task: Task) -> tuple[Game, Dynamics]:
        if task.id not in self._games:
            game = self._source.load(task)
            try:
                compiled = Dynamics.compile(game.domain, game.grammar, game.problem)
            except DataError as error:
                raise DataError(f"game {task.name} ({task.source}) cannot be compiled: {error}") from error
            self._games[task.id] = (game, compiled)
            while len(self._games) > _MEMORY:
                self._games.popitem(last=False)
        self._games.move_to_end(task.id)
        return self._games[task.id]

    def _checked(self, record: Record) -> Record:
        assert self._dynamics is not None
        admissible, won = self._dynamics.commands(self._state), self._dynamics.won(self._state)
        if admissible != record.admissible or won != record.won:
            differing = sorted(set(admissible) ^ set(record.admissible))
            raise EnvironmentFault(
                f"task {self._task}: the compiled dynamics differ from the native engine "
                f"(won {won} against {record.won}; commands that only one has: {differing[:5]})"
            )
        return record


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, Any]:
    """What the records depend on beside the game: versions of the engine's parts, digests of domain and grammar."""
    facts: dict[str, Any] = {
        "versions": {name: metadata.version(name) for name in ("textworld", "alfworld", "fast-downward-textworld")}
    }
    return facts
