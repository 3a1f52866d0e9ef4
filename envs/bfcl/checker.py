"""The benchmark's own checker, behind a boundary: fresh names, what it made removed, and a limit of time.

Its executor keeps instances in the globals of its module under the name of a model and a task, so a name is never used
twice.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from handoff.envs.bfcl.engine import utc
from handoff.envs.bfcl.package import benchmark, checker, utilities

#: Seconds that one check may take.
LIMIT = 180.0
_NUMBERS = itertools.count()
_TURN = re.compile(r"for turn (\d+)")


@attrs.frozen
class Checked:
    """What the checker says."""

    valid: bool
    #: The benchmark's word for the error; empty: none.
    error: str = ""
    #: The turn that failed, counted from 0.
    turn: int | None = None


def check(entry_id: str, turns: Sequence[Sequence[Sequence[str]]], limit: float = LIMIT) -> Checked:
    """Check ``turns``: per turn a list of rounds, each a list of calls that were written by
    :meth:`handoff.envs.bfcl.calls.BenchmarkCall.text`.  Missing turns are empty."""
    entry, gold = benchmark().entries[entry_id], benchmark().answers[entry_id]
    rounds = [[list(calls) for calls in turn] for turn in turns][: len(gold)]
    rounds += [[] for _ in range(len(gold) - len(rounds))]
    name = f"handoff{os.getpid()}n{next(_NUMBERS)}x"
    try:
        with utc(), _limited(limit):
            result: dict[str, Any] = checker().multi_turn_checker(rounds, gold, entry, "multi_turn_base", name)
    except TimeoutError:
        return Checked(False, "time_limit")
    except Exception as error:  # a call that leaves an instance which cannot be compared
        return Checked(False, f"checker:{type(error).__name__}")
    finally:
        module = utilities().__dict__
        for key in [key for key in module if key.startswith(name)]:
            del module[key]
    if result["valid"]:
        return Checked(True)
    return Checked(False, str(result.get("error_type", "unknown")), _failed_turn(result))


def _failed_turn(result: dict[str, Any]) -> int | None:
    match = _TURN.search(str(result.get("error_message", "")))
    if match is not None:
        return int(match.group(1))
    details = result.get("details")
    executed = result.get("execution_result") or (
        details.get("execution_result") if isinstance(details, dict) else None
    )
    return len(executed) - 1 if isinstance(executed, list) and executed else None


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` inside after ``seconds``, where a signal can do it."""
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield  # another limit is at work here
        return

    def expire(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
