"""Several tables side by side: depths D of the frontier, runs of another day, checkpoints of another size.

Tables of the same tasks and as many seed slots get the same bootstrap draws, so that their differences are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff.estimation.bootstrap import INTERVALS, Estimates, bootstrap_values, estimate, plan_of
from handoff.estimation.estimands import standard
from handoff.estimation.evaluation import Difference, Evaluation
from handoff.estimation.intervals import Intervals
from handoff.estimation.table import Table


@attrs.frozen
class SideBySide:
    """``estimates`` by label; ``differences`` of every later table from the first, by label; ``unpaired`` says why a
    table has no differences."""

    estimates: Mapping[str, Estimates]
    differences: Mapping[str, Estimates]
    unpaired: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "tables": {label: made.to_json() for label, made in self.estimates.items()},
            "differences": {label: made.to_json() for label, made in self.differences.items()},
            "unpaired": dict(self.unpaired),
        }


def side_by_side(
    tables: Mapping[str, Table],
    order: Sequence[str] | None = None,
    *,
    budgets: Sequence[int] | None = None,
    by_type: bool = False,
    intervals: Intervals = INTERVALS,
) -> SideBySide:
    """All estimands of every table, and paired differences of those that a table shares with the first.

    ``tables`` by label, such as "D=2" and "D=4".  Options as for :func:`~handoff.estimation.estimands.standard` and
    :func:`~handoff.estimation.bootstrap.estimate`, which see for what they raise.
    """
    asked = {label: standard(table, order, budgets=budgets, by_type=by_type) for label, table in tables.items()}
    made = {label: estimate(table, asked[label], intervals) for label, table in tables.items()}
    (first, reference), *others = tables.items()
    differences: dict[str, Estimates] = {}
    unpaired: dict[str, str] = {}
    for label, table in others:
        reason = _unlike(reference, table)
        if reason is not None:
            unpaired[label] = reason
            continue
        common = [one for one in asked[label] if one in set(asked[first])]
        difference = Difference(Evaluation(reference, common), Evaluation(table, common), paired=True)
        found = bootstrap_values(difference, plan_of(table, intervals), intervals)
        differences[label] = Estimates(tuple(found), intervals)
    return SideBySide(made, differences, unpaired)


def _unlike(first: Table, second: Table) -> str | None:
    if (first.tasks, first.strata) != (second.tasks, second.strata):
        return "it has other tasks, so no draw can take the same ones"
    if len(first.slots) != len(second.slots):
        return f"it has {len(second.slots)} seed slots and the first table has {len(first.slots)}"
    return None
