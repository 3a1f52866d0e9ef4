"""Scores rows of plans that were made elsewhere, for ``handoff score travelplanner FILE.jsonl``.

Here an unlisted flight number does not exist: the flight tables are the whole table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.envs.travelplanner.evaluation.evaluator import Evaluator
from handoff.envs.travelplanner.evaluation.names import Rules
from handoff.envs.travelplanner.queries import Query
from handoff.envs.travelplanner.world import World
from handoff.errors import DataError

#: The field of each evaluator's verdict.
FIELDS = {"official": Rules.OFFICIAL, "agent_star": Rules.AGENT_STAR}


class PlanScorer:
    """Scores rows ``{"split", "idx", "query_changes", "plan"}``; other fields are kept as they are."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._evaluators = {name: Evaluator(self._world.database, rules) for name, rules in FIELDS.items()}

    def score_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row with ``official`` and ``agent_star`` filled in.

        Raises :class:`~handoff.errors.DataError` for a row that cannot be read.
        """
        split, idx, changes = row.get("split"), row.get("idx"), row.get("query_changes") or {}
        if split not in self._world.queries:
            known = ", ".join(self._world.queries)
            raise DataError(f"its split is {split!r:.40}, which this folder does not have (it has {known})")
        form = self._world.queries[str(split)].get(idx) if type(idx) is int else None
        if form is None:
            raise DataError(f"its idx is {idx!r:.40}, which the split {split} does not have")
        if "plan" not in row:
            raise DataError("it has no plan")
        if not isinstance(changes, dict) or not set(changes) <= set(form):
            raise DataError("its query_changes are not fields of a query")
        query = Query.of({**form, **changes}, "its query")
        verdicts = {name: one.evaluate(query, row["plan"]).to_json() for name, one in self._evaluators.items()}
        return {**row, **verdicts}
