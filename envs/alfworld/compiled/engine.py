"""A fast, exact ALFWorld: the records of textworld 1.7 under alfworld's demangler without shuffling, byte for byte.

>>> game = CompiledGame.load("valid_unseen/.../game.tw-pddl")     # doctest: +SKIP
>>> episode = game.episode()                                      # doctest: +SKIP
>>> record = episode.reset()                                      # doctest: +SKIP
>>> record = episode.step("go to desk 1")                         # doctest: +SKIP
>>> before = episode.snapshot()           # constant time, hashable, good for this game for ever
>>> record = episode.restore(before)                              # doctest: +SKIP

Everything that belongs to a game is worked out once and shared by all its episodes; an episode is one integer and its
last record.  Nothing from a game file is run: a grammar that uses more than the restricted form
(:mod:`~handoff.envs.alfworld.compiled.grammar`) is refused.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import attrs

from handoff.canonical import digest
from handoff.envs.alfworld.compiled import cache, sas
from handoff.envs.alfworld.compiled import grammar as grammars
from handoff.envs.alfworld.compiled.bit_task import BitTask, Op
from handoff.envs.alfworld.compiled.builder import build
from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.compiled.texts import Branch, Items, Memory, Texts, render
from handoff.envs.alfworld.games.files import Game, load_game
from handoff.records import Certificate, Record

#: Raised when the compiled form or what it is made from changes.
ENGINE_VERSION = 3

NOTHING = "Nothing happens."


@attrs.frozen
class Snapshot:
    """A state of a game with the record that led to it.  Equal snapshots have the same futures: the record takes no
    part in equality."""

    state: int
    record: Record = attrs.field(eq=False, repr=False)


class CompiledGame:
    """One game, shared by any number of episodes.  Not thread safe (its tables grow); any number of processes may have
    one of their own.

    A *state* is an integer: the facts that actions can change, and textworld's memory of facts that were made false.
    ``initial`` is the state after a reset and ``reset_record`` the record; :meth:`step` is a function of the state.
    """

    def __init__(self, task: BitTask, grammar: grammars.Grammar, useless: Collection[int] | None = None) -> None:
        self._memory = Memory(task, grammar)
        self._texts = Texts(task, grammar, self._memory)
        self.dynamics = Dynamics(task, useless)
        self.initial: int = self._memory.initial
        # An operator's change of the whole state and its text, worked out when it is first taken.
        self._taken: dict[Op, tuple[int, int, list[str | Branch | Items]]] = {}
        self.reset_record = Record(
            observation=render(self._texts.intro(), self.initial),
            admissible=self.dynamics.admissible(self.initial),
            score=0.0,
            done=False,
            won=self.dynamics.won(self.initial),
        )

    @classmethod
    def compile(cls, domain: str, grammar: str, problem: str) -> CompiledGame:
        """From a game's three texts; what was compiled once is found on disk again (``HANDOFF_CACHE``).

        Raises :class:`~handoff.errors.DataError`, naming the construct, for a game that the planner does not accept
        or that uses something outside the engine's restricted forms.
        """
        versions = {**sas.versions(), "engine": ENGINE_VERSION}
        key = digest({"domain": domain, "grammar": grammar, "problem": problem, "versions": versions})
        data = cache.load("games", key)
        if data is not None:
            return cls(BitTask.from_json(data["task"]), grammars.from_json(data["grammar"]), data["useless"])
        form = grammars.parse(grammar)
        task = build(sas.translate(domain, problem), form)
        game = cls(task, form)
        useless = sorted(game.dynamics.useless)
        cache.store("games", key, {"task": task.to_json(), "grammar": grammars.to_json(form), "useless": useless})
        return game

    @classmethod
    def of(cls, game: Game) -> CompiledGame:
        """From a loaded game."""
        return cls.compile(game.domain, game.grammar, game.problem)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CompiledGame:
        """From a ``game.tw-pddl`` file.  A grammar that is not a known one is accepted if it keeps to the restricted
        form: nothing in it is run.  Raises :class:`~handoff.errors.DataError`, naming the file, for a broken one."""
        return cls.of(load_game(path, trust=True))

    def episode(self) -> CompiledEpisode:
        """A new episode of this game, not yet reset."""
        return CompiledEpisode(self)

    def step(self, state: int, command: str) -> tuple[int, Record]:
        """The state and the record after a command, admissible or not."""
        dynamics = self.dynamics
        op = dynamics.operator(state, command)
        if op is None:
            text = NOTHING
        else:
            taken = self._taken.get(op)
            if taken is None:
                taken = self._take(op)
            state = (op.apply(state) if op.steps else state) & ~taken[1] | taken[0]
            text = render(taken[2], state)
        won = dynamics.won(state)
        return state, Record(text, dynamics.admissible(state), 1.0 if won else 0.0, won, won)

    def replay(self, commands: Sequence[str]) -> tuple[int, list[Record]]:
        """The state after a reset and ``commands``, and the record of the reset and of each."""
        state, records = self.initial, [self.reset_record]
        for command in commands:
            state, record = self.step(state, command)
            records.append(record)
        return state, records

    def admissible(self, state: int) -> tuple[str, ...]:
        """The admissible commands in a state, sorted."""
        return self.dynamics.admissible(state)

    def won(self, state: int) -> bool:
        """Whether the goal holds in a state (it is not latched: a won game can be spoilt)."""
        return self.dynamics.won(state)

    def certify(self, state: int, depth: int) -> Certificate:
        """As :meth:`Dynamics.certify`."""
        return self.dynamics.certify(state, depth)

    def distance(self, state: int, limit: int) -> int | None:
        """The least number of actions that wins from a state, if it is at most ``limit``."""
        return self.dynamics.distance(state, limit)

    def distances(self, commands: Sequence[str], limit: int) -> list[int | None]:
        """The distance after a reset and after each command: ``len(commands) + 1`` values."""
        curve, state = [self.distance(self.initial, limit)], self.initial
        for command in commands:
            state, _ = self.step(state, command)
            curve.append(self.distance(state, limit))
        return curve

    def plan(self, state: int) -> tuple[str, ...]:
        """As :meth:`Dynamics.plan`."""
        return self.dynamics.plan(state)

    def _take(self, op: Op) -> tuple[int, int, list[str | Branch | Items]]:
        add, dele = self._memory.changes(op)
        if not op.steps:
            add, dele = add | op.add, dele | op.dele
        taken = self._taken[op] = (add, dele, self._texts.feedback(op))
        return taken


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

    def step(self, command: str) -> Record:
        """Take one command; one that is not admissible changes nothing and says so."""
        self._state, self.record = self.game.step(self._state, command)
        return self.record

    def snapshot(self) -> Snapshot:
        """This moment, in constant time."""
        return Snapshot(self._state, self.record)

    def restore(self, snapshot: Snapshot) -> Record:
        """Go back to (or over to) a moment of any episode of this game, in constant time."""
        self._state, self.record = snapshot.state, snapshot.record
        return self.record

    def certify(self, depth: int) -> Certificate:
        """The certificate of an exhaustive search from here."""
        return self.game.certify(self._state, depth)

    def distance(self, limit: int) -> int | None:
        """The least number of actions that wins from here, if it is at most ``limit``."""
        return self.game.distance(self._state, limit)

    def plan(self) -> tuple[str, ...]:
        """A shortest sequence of actions that wins from here."""
        return self.game.plan(self._state)
