"""A fast, exact ALFWorld: the records of textworld 1.7 under alfworld's demangler without shuffling, byte for byte.

>>> game = CompiledGame.load("valid_unseen/.../game.tw-pddl")     # doctest: +SKIP
>>> episode = game.episode()                                      # doctest: +SKIP
>>> record = episode.reset()                                      # doctest: +SKIP
>>> record = episode.step("go to desk 1")                         # doctest: +SKIP
>>> before = episode.snapshot()           # constant time, hashable, valid for every episode of this game
>>> record = episode.restore(before)                              # doctest: +SKIP

A game's tables are built once and shared by all its episodes; an episode is one integer and its last record.  Nothing
from a game file is run: a grammar outside the restricted form (:mod:`~handoff.envs.alfworld.compiled.grammar`) is
refused.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import attrs

from handoff.canonical import digest
from handoff.envs.alfworld.compiled import bit_task, cache, sas
from handoff.envs.alfworld.compiled import grammar as grammars
from handoff.envs.alfworld.compiled.bit_task import BitTask, Op
from handoff.envs.alfworld.compiled.builder import build
from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.compiled.texts import Memory, Parts, Texts, render
from handoff.envs.alfworld.games.files import Game, load_game
from handoff.records import Certificate, Record

#: To be increased when the compiled form or its sources change.
ENGINE_VERSION = 3

NOTHING = "Nothing happens."

#: A game in the cache.
_SHAPE = {"task": bit_task.SHAPE, "grammar": grammars.SHAPE, "useless": [int]}


@attrs.frozen
class Snapshot:
    """A state of a game with its record.  Equal snapshots have equal futures: the record takes no part in equality."""

    state: int
    record: Record = attrs.field(eq=False, repr=False)


class CompiledGame:
    """One game, shared by any number of episodes.  Not thread safe (its tables grow); each process has its instance.

    A *state* is an integer: the facts that actions can change, and textworld's memory of facts that were made false.
    ``initial`` is the state after a reset and ``reset_record`` its record; :meth:`step` is a function of the state.
    """

    def __init__(self, task: BitTask, grammar: grammars.Grammar, useless: Collection[int] | None = None) -> None:
        self._memory = Memory(task, grammar)
        self._texts = Texts(task, grammar, self._memory)
        self.dynamics = Dynamics(task, useless)
        self.initial: int = self._memory.initial
        # An operator's change of the whole state and its text, from its first use on.
        self._effects: dict[Op, tuple[int, int, Parts]] = {}
        self.reset_record = Record(
            observation=render(self._texts.intro(), self.initial),
            admissible=self.dynamics.admissible(self.initial),
            score=0.0,
            done=False,
            won=self.dynamics.won(self.initial),
        )

    @classmethod
    def compile(cls, domain: str, grammar: str, problem: str, cached: bool = True) -> CompiledGame:
        """From a game's three texts, with a cache on disk (``HANDOFF_CACHE``) unless ``cached`` is false.

        Raises :class:`~handoff.errors.DataError`, naming the construct, for a game that the planner does not accept
        or that is outside the engine's restricted forms.
        """
        versions = {**sas.versions(), "engine": ENGINE_VERSION}
        key = digest({"domain": domain, "grammar": grammar, "problem": problem, "versions": versions})
        kept = cache.load("games", key, _SHAPE, cls._from_json) if cached else None
        if kept is not None:
            return kept
        form = grammars.parse(grammar)
        task = build(sas.translate(domain, problem, cached), form)
        game = cls(task, form)
        if cached:
            useless = sorted(game.dynamics.useless)
            cache.store("games", key, {"task": task.to_json(), "grammar": grammars.to_json(form), "useless": useless})
        return game

    @classmethod
    def _from_json(cls, data: dict[str, Any]) -> CompiledGame:
        """From the form in the cache.  Raises ``ValueError`` if it contradicts itself."""
        useless = data["useless"]
        if not all(0 <= number < len(data["task"]["ops"]) for number in useless):
            raise ValueError("a useless operator is not there")
        return cls(BitTask.from_json(data["task"]), grammars.from_json(data["grammar"]), useless)

    @classmethod
    def of(cls, game: Game, cached: bool = True) -> CompiledGame:
        """From a loaded game; ``cached`` as in :meth:`compile`."""
        return cls.compile(game.domain, game.grammar, game.problem, cached)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CompiledGame:
        """From a ``game.tw-pddl`` file.  Accepts any grammar in the restricted form, since nothing in it is run.

        Raises :class:`~handoff.errors.DataError`, naming the file, for a broken one.
        """
        return cls.of(load_game(path, trust=True))

    def episode(self) -> CompiledEpisode:
        """A new episode of this game, not yet reset."""
        return CompiledEpisode(self)

    def step(self, state: int, action: str) -> tuple[int, Record]:
        """The state and the record after an action, admissible or not."""
        dynamics = self.dynamics
        op = dynamics.operator(state, action)
        if op is None:
            text = NOTHING
        else:
            effect = self._effects.get(op)
            if effect is None:
                effect = self._effect(op)
            state = (op.apply(state) if op.steps else state) & ~effect[1] | effect[0]
            text = render(effect[2], state)
        won = dynamics.won(state)
        return state, Record(text, dynamics.admissible(state), 1.0 if won else 0.0, won, won)

    def replay(self, actions: Sequence[str]) -> tuple[int, list[Record]]:
        """The state after a reset and ``actions``, and the records of the reset and of each action."""
        state, records = self.initial, [self.reset_record]
        for action in actions:
            state, record = self.step(state, action)
            records.append(record)
        return state, records

    def admissible(self, state: int) -> tuple[str, ...]:
        """The admissible actions in a state, sorted."""
        return self.dynamics.admissible(state)

    def won(self, state: int) -> bool:
        """Whether the goal holds in a state (not latched: a later action can undo it)."""
        return self.dynamics.won(state)

    def certify(self, state: int, depth: int) -> Certificate:
        """As :meth:`Dynamics.certify`."""
        return self.dynamics.certify(state, depth)

    def distance(self, state: int, limit: int) -> int | None:
        """The least number of actions that wins from a state, if it is at most ``limit``."""
        return self.dynamics.distance(state, limit)

    def distances(self, actions: Sequence[str], limit: int) -> list[int | None]:
        """The distance after a reset and after each action: ``len(actions) + 1`` values."""
        distances, state = [self.distance(self.initial, limit)], self.initial
        for action in actions:
            state, _ = self.step(state, action)
            distances.append(self.distance(state, limit))
        return distances

    def plan(self, state: int) -> tuple[str, ...]:
        """As :meth:`Dynamics.plan`."""
        return self.dynamics.plan(state)

    def _effect(self, op: Op) -> tuple[int, int, Parts]:
        add, dele = self._memory.changes(op)
        if not op.steps:
            add, dele = add | op.add, dele | op.dele
        effect = self._effects[op] = (add, dele, self._texts.feedback(op))
        return effect


class CompiledEpisode:
    """One play of a compiled game."""

    __slots__ = ("_state", "game", "record")

    def __init__(self, game: CompiledGame) -> None:
        self.game = game
        self.reset()

    @property
    def state(self) -> int:
        """The current state, for the functions of :class:`CompiledGame`."""
        return self._state

    def reset(self) -> Record:
        """Start again."""
        self._state = self.game.initial
        self.record = self.game.reset_record
        return self.record

    def step(self, action: str) -> Record:
        """Take one action.  An inadmissible one changes nothing and says so."""
        self._state, self.record = self.game.step(self._state, action)
        return self.record

    def snapshot(self) -> Snapshot:
        """The current moment, in constant time."""
        return Snapshot(self._state, self.record)

    def restore(self, snapshot: Snapshot) -> Record:
        """Return to a moment of any episode of this game, in constant time."""
        self._state, self.record = snapshot.state, snapshot.record
        return self.record

    def certify(self, depth: int) -> Certificate:
        """The certificate of an exhaustive search from the current state."""
        return self.game.certify(self._state, depth)

    def distance(self, limit: int) -> int | None:
        """The least number of actions that wins from the current state, if it is at most ``limit``."""
        return self.game.distance(self._state, limit)

    def plan(self) -> tuple[str, ...]:
        """A shortest sequence of actions that wins from the current state."""
        return self.game.plan(self._state)
