"""A memory for textworld, which repeats the same work on the same text at every reset and every step.

It covers functions of text alone: the translation of a game from PDDL to SAS (over 90% of a reset's time), and the
results of the grammar's two parsers (over two thirds of a step's time).  Nothing else of textworld changes, so the
records are the same with and without it.  The memory is this process's: runs are certified on this engine, which takes
no result from a disk that others can write to.
"""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

_GAMES = 32  # whose two translations, of some MB each, a process keeps
_TEXTS = 2**14  # rules and conditions that a process keeps; the release's grammar has a few hundred


class _Translator:
    """Replaces the ``fast_downward`` module in textworld, and remembers the results of ``pddl2sas``.

    Resets share the task object in memory, since textworld only reads it.
    """

    def __init__(self, module: Any) -> None:
        self.shipped = module
        self._memory: OrderedDict[tuple[str, str, bool], Any] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shipped, name)

    def pddl2sas(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        key = (domain, problem, optimize)
        if key not in self._memory:
            self._memory[key] = self.shipped.pddl2sas(domain, problem, optimize=optimize)
            while len(self._memory) > 2 * _GAMES:
                self._memory.popitem(last=False)
        self._memory.move_to_end(key)
        return self._memory[key]


def _parsing_once(parse: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """``parse``, a function of its text, with a memory.  It returns copies, since textworld writes into them."""
    memory = functools.lru_cache(maxsize=_TEXTS)(parse)

    @functools.wraps(parse)
    def parsed(*arguments: Any, **options: Any) -> list[Any]:
        return deepcopy(memory(*arguments, **options))

    return parsed


@functools.cache
def install() -> None:
    """Give the textworld of this process its memory.  Further calls do nothing."""
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    logic.fast_downward = _Translator(logic.fast_downward)
    textgen._parse_and_convert = _parsing_once(textgen._parse_and_convert)
    # textworld only reads rules, so all users can share one.
    Rule.parse_conjunctive_query = staticmethod(functools.lru_cache(maxsize=_TEXTS)(Rule.parse_conjunctive_query))


@contextlib.contextmanager
def without() -> Iterator[None]:
    """The shipped textworld, for comparison."""
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    install()
    patched = logic.fast_downward, textgen._parse_and_convert, Rule.parse_conjunctive_query
    logic.fast_downward = patched[0].shipped
    textgen._parse_and_convert = patched[1].__wrapped__
    Rule.parse_conjunctive_query = staticmethod(patched[2].__wrapped__)
    try:
        yield
    finally:
        logic.fast_downward, textgen._parse_and_convert = patched[:2]
        Rule.parse_conjunctive_query = staticmethod(patched[2])
