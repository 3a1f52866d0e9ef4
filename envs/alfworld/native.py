"""The reference engine: textworld's ``PddlEnv`` under alfworld's demangler, records normalised.

Every claim of a run is certified on this engine.  It is kept as it is shipped; only the text of the translation from
PDDL to SAS is remembered, in memory and on disk, since each reset does the same two translations again (over 90% of its
time).  textworld cannot go back,
has global state in its parser and is not thread safe: one engine belongs to one thread of one process.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from handoff.canonical import digest
from handoff.envs.alfworld import diskcache, sas
from handoff.envs.alfworld.games import Game
from handoff.errors import DataError, EnvironmentFault
from handoff.records import Record

_MEMORY = 32  # translations kept per process, of some MB each


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

    alfworld makes the folder that ``ALFWORLD_DATA`` names and sets the variable where it is not set, after which the
    built-in games would no longer be the default; textworld draws from numpy's global generator.
    """
    given = os.environ.get("ALFWORLD_DATA")
    random_state = np.random.get_state()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["ALFWORLD_DATA"] = scratch
        try:
            yield
        finally:
            np.random.set_state(random_state)
            if given is None:
                del os.environ["ALFWORLD_DATA"]
            else:
                os.environ["ALFWORLD_DATA"] = given


class _Translator:
    """Stands where textworld expects the ``fast_downward`` module, and remembers what ``pddl2sas`` gave.

    What is kept on disk is the SAS text, by content digest; the task object is parsed from the PDDL again, which takes
    some milliseconds.  In memory it is shared between resets: textworld only reads it.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._memory: OrderedDict[tuple[str, str, bool], Any] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def pddl2sas(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        key = (domain, problem, optimize)
        if key not in self._memory:
            self._memory[key] = self._translate(domain, problem, optimize)
            while len(self._memory) > 2 * _MEMORY:
                self._memory.popitem(last=False)
        self._memory.move_to_end(key)
        return self._memory[key]

    def _translate(self, domain: str, problem: str, optimize: bool) -> tuple[Any, str]:
        key = digest({"domain": domain, "problem": problem, "optimize": optimize, "versions": sas.versions()})
        text = diskcache.load("native-sas", key)
        if not isinstance(text, str):
            task, text = self._module.pddl2sas(domain, problem, optimize=optimize)
            diskcache.store("native-sas", key, text)
            return task, str(text)
        sys.argv = ["translate.py", "domain", "task"]  # the translator's modules read it when they are imported
        from fast_downward.translate import normalize
        from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions

        with contextlib.redirect_stdout(io.StringIO()):  # it warns about facts that are given twice
            task = parsing_functions.parse_task(
                lisp_parser.parse_nested_list(domain.split("\n")), lisp_parser.parse_nested_list(problem.split("\n"))
            )
            normalize.normalize(task)
        return task, text


def _install_translator() -> None:
    from textworld.envs.pddl import logic

    if not isinstance(logic.fast_downward, _Translator):
        logic.fast_downward = _Translator(logic.fast_downward)


class NativeEngine:
    """One textworld environment, reused for game after game (each new one would leak a mapped library)."""

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
        _install_translator()
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
        """Take one action; text that is no admissible command changes nothing and says so."""
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
                "or one process per environment"
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
