"""The benchmark's own checker, behind a boundary: fresh names, what it made removed, and a limit of time.

Its executor keeps instances in the globals of its module under the name of a model and a task, so a name is never used
twice.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

import attrs

from handoff.envs.bfcl.package import benchmark, checker, utilities
from handoff.envs.bfcl.surroundings import OutOfTime, limited, surroundings

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
        with surroundings(), limited(limit):
            result: dict[str, Any] = checker().multi_turn_checker(rounds, gold, entry, "multi_turn_base", name)
    except OutOfTime:
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
