"""The reference engine: textworld's ``PddlEnv`` under alfworld's demangler, with normalised records.

Every claim of a run is certified on this engine.  It is the shipped one with a memory for functions of text
(:mod:`handoff.envs.alfworld.native.memory`) and with expressions that work on Python 3.13
(:mod:`handoff.envs.alfworld.native.expressions`).  textworld cannot return to a state, has global state in its parser
and is not thread safe: one engine belongs to one thread of one process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from handoff.envs.alfworld.compiled import sas
from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.native import expressions, memory
from handoff.errors import DataError, EnvironmentFault
from handoff.records import Record


@contextlib.contextmanager
def host_unharmed() -> Iterator[None]:
    """Keep ``sys.argv`` and ``sys.stdout`` of the host: the translator overwrites both."""
    argv, stdout = sys.argv, sys.stdout
    try:
        yield
    finally:
        sys.argv, sys.stdout = argv, stdout


@contextlib.contextmanager
def _untouched_host() -> Iterator[None]:
    """Import textworld and alfworld without their side effects.

    alfworld creates the folder that ``ALFWORLD_DATA`` names, and sets the variable where it is unset; then the built-in
    games would no longer be the default.  textworld draws from numpy's global generator.
    """
    data = os.environ.get("ALFWORLD_DATA")
    random_state = np.random.get_state()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["ALFWORLD_DATA"] = scratch
        try:
            yield
        finally:
            np.random.set_state(random_state)
            if data is None:
                del os.environ["ALFWORLD_DATA"]
            else:
                os.environ["ALFWORLD_DATA"] = data


class NativeEngine:
    """One textworld environment, reused for every game (a new one would leak a mapped library)."""

    def __init__(self) -> None:
        try:
            with _untouched_host():
                import textworld
                from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
                from textworld.envs.pddl import PddlEnv
        except ImportError as error:
            raise EnvironmentFault(
                f"the native ALFWorld engine needs textworld[pddl] and alfworld ({error}): pip install alfworld"
            ) from error
        expressions.install()
        memory.install()
        self._thread = threading.get_ident()
        self._env = AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)), shuffle=False)
        self._loaded: str | None = None

    def reset(self, game: Game) -> Record:
        """Load ``game`` if another one is loaded, and reset.  Raises :class:`~handoff.errors.DataError` if textworld
        cannot load it."""
        self._one_thread()
        data = {"pddl_domain": game.domain, "grammar": game.grammar, "pddl_problem": game.problem, "walkthrough": []}
        with host_unharmed():
            try:
                if self._loaded != game.id:
                    self._loaded = None
                    self._env.load(data)
                state = self._env.reset()
            except (Exception, SystemExit) as error:  # the translator exits on some malformed problems
                raise DataError(
                    f"textworld cannot load game {game.id[:12]}...: {type(error).__name__}: {sas.reason(error)}"
                ) from error
        self._loaded = game.id
        return _record(state)

    def step(self, action: str) -> Record:
        """Take one action.  An inadmissible one changes nothing and says so."""
        self._one_thread()
        if self._loaded is None:
            raise EnvironmentFault("step before reset")
        with host_unharmed():
            state, _, _ = self._env.step(action)
        return _record(state)

    def _one_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise EnvironmentFault(
                "the native ALFWorld engine is not thread-safe: use it only in the thread that made it, "
                "or in one process per environment"
            )


def _record(state: Any) -> Record:
    won = bool(state["won"])
    score, done = state.get("score"), state.get("done")  # both unset at reset
    return Record(
        observation=str(state.feedback),
        admissible=tuple(state["admissible_commands"]),
        score=float(score or 0),
        done=bool(done) if done is not None else False,
        won=won,
    )
