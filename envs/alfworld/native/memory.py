"""A memory for textworld, which works the same things out again from the same text at every reset and every step.

Remembered are functions of text alone: the translation of a game from PDDL to SAS (over 90% of a reset's time; on disk
too), and what the grammar's two parsers make of a rule or a condition (over two thirds of a step's).  Nothing else of
textworld is changed, so it gives the records that it gives without.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from handoff.canonical import digest
from handoff.envs.alfworld.compiled import cache, sas

_GAMES = 32  # whose translations, two each of some MB, are kept in a process
_TEXTS = 2**14  # rules and conditions kept in a process; the release's grammar has some hundred


class _Translator:
    """Stands where textworld expects the ``fast_downward`` module, and remembers what ``pddl2sas`` gave.

    What is kept on disk is the SAS text, by content digest; the task object is parsed from the PDDL again, which takes
    some milliseconds.  In memory it is shared between resets: textworld only reads it.
    """

    def __init__(self, module: Any) -> None:
        self.shipped = module
        self._memory: OrderedDict[tuple[str, str, bool], Any] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shipped, name)

    def pddl2sas(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        key = (domain, problem, optimize)
        if key not in self._memory:
            self._memory[key] = self._translate(domain, problem, optimize)
            while len(self._memory) > 2 * _GAMES:
                self._memory.popitem(last=False)
        self._memory.move_to_end(key)
        return self._memory[key]

    def _translate(self, domain: str, problem: str, optimize: bool) -> tuple[Any, str]:
        key = digest({"domain": domain, "problem": problem, "optimize": optimize, "versions": sas.versions()})
        text = cache.load("native-sas", key)
        if not isinstance(text, str):
            task, text = self.shipped.pddl2sas(domain, problem, optimize=optimize)
            cache.store("native-sas", key, text)
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


def _parsing_once(parse: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """``parse``, a function of its text, doing each text once.  Copies are handed out: textworld writes into them."""
    once = functools.lru_cache(maxsize=_TEXTS)(parse)

    @functools.wraps(parse)
    def parsed(*arguments: Any, **options: Any) -> list[Any]:
        return deepcopy(once(*arguments, **options))

    return parsed


@functools.cache
def install() -> None:
    """Give the textworld of this process its memory (once, however often it is called)."""
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    logic.fast_downward = _Translator(logic.fast_downward)
    textgen._parse_and_convert = _parsing_once(textgen._parse_and_convert)
    # Rules are only read, so all may share one.
    Rule.parse_conjunctive_query = staticmethod(functools.lru_cache(maxsize=_TEXTS)(Rule.parse_conjunctive_query))


@contextlib.contextmanager
def without() -> Iterator[None]:
    """textworld as it ships, to compare with."""
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    install()
    kept = logic.fast_downward, textgen._parse_and_convert, Rule.parse_conjunctive_query
    logic.fast_downward = kept[0].shipped
    textgen._parse_and_convert = kept[1].__wrapped__
    Rule.parse_conjunctive_query = staticmethod(kept[2].__wrapped__)
    try:
        yield
    finally:
        logic.fast_downward, textgen._parse_and_convert = kept[:2]
        Rule.parse_conjunctive_query = staticmethod(kept[2])
