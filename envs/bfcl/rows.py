"""Scores rows of calls that were made elsewhere, for ``handoff score bfcl FILE.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.envs.bfcl.checker import check
from handoff.envs.bfcl.package import benchmark
from handoff.envs.bfcl.rounds import as_rounds, as_rounds_of_replies
from handoff.errors import DataError

#: Fields that may hold the calls per turn, in this order.
FIELDS = ("calls", "turns", "result", "model_result", "ground_truth")
#: Those of them that hold replies, as the benchmark writes its results.
REPLIES = ("result", "model_result")


def score_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with ``passed`` filled in, the benchmark's ``error_type``, and the ``turn`` that failed (from 0).

    The row has an ``id`` and the calls per turn; other fields are kept as they are.  Raises
    :class:`~handoff.errors.DataError` for a row that cannot be read.
    """
    id = row.get("id")
    if not isinstance(id, str) or id not in benchmark().entries:
        raise DataError(f"its id is {id!r:.60}, which multi_turn_base does not have")
    field = next((name for name in FIELDS if name in row), None)
    if field is None:
        raise DataError(f"it has no list of calls per turn ({', '.join(FIELDS)})")
    turns = row[field]
    if not isinstance(turns, list) or not all(isinstance(turn, list) for turn in turns):
        raise DataError(f"its {field} is not a list of turns, each a list of calls")
    result = check(id, as_rounds_of_replies(id, turns) if field in REPLIES else as_rounds(id, turns))
    return {**row, "passed": result.valid, "error_type": result.error or None, "turn": result.turn}
