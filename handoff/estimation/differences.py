"""Differences between tables: depths D of the frontier, runs of another day, checkpoints of another size.

Tables of the same tasks with equally many seed slots get the same bootstrap draws, so their differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from handoff.estimation.arrays import FloatArray
from handoff.estimation.bootstrap import Estimate, Estimates, bootstrap, estimate
from handoff.estimation.estimands import Estimand, declare, standard
from handoff.estimation.evaluation import Evaluated, Evaluation, SumsByType
from handoff.estimation.intervals import difference_of
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import joined, plan_of
from handoff.estimation.table import Table

declare(
    "difference",
    "contrast",
    "The second table's value minus the first one's, on the same draws of tasks (paired).",
    label="{of}",
)


class Difference(Evaluated):
    """``second`` minus ``first``, estimand by estimand: on the same draws if ``paired``, else on independent ones."""

    def __init__(self, first: Evaluation, second: Evaluation, paired: bool = True) -> None:
        self.parts, self.paired = (first, second), paired
        self.estimands = tuple(Estimand("difference", (("of", str(one)),), one.type) for one in first.estimands)
        self.points_E = second.points_E - first.points_E
        self.ratios_E = tuple((*b, *a) for a, b in zip(first.ratios_E, second.ratios_E, strict=True))
        self.limits_E = first.limits_E + second.limits_E
        self.floors_E = first.floors_E + second.floors_E

    def formulas(self, sums: Sequence[SumsByType], which: Iterable[int]) -> Iterator[tuple[int, FloatArray]]:
        which = tuple(which)
        first, second = (part.formulas([own], which) for part, own in zip(self.parts, sums, strict=True))
        # Both tables evaluate the same estimands in the same order.
        for (e, before_B), (_, after_B) in zip(first, second, strict=True):
            yield e, after_B - before_B


def difference(
    first: Table, second: Table, estimands: Sequence[Estimand], intervals: Intervals, *, paired: bool
) -> Estimates:
    """``second`` minus ``first`` for each of the estimands, which both tables must answer.

    ``paired`` tables have the same tasks; others have no task in common.  The default interval of the latter comes from
    the two that each table gives (:func:`handoff.estimation.intervals.difference_of`).
    """
    before, after = Evaluation(first, estimands), Evaluation(second, estimands)
    evaluated = Difference(before, after, paired)
    plan = plan_of(first.strata, intervals.method)
    if paired:
        return bootstrap(evaluated, plan, intervals)
    other = plan_of(second.strata, intervals.method)
    if intervals.method == "paper":
        return bootstrap(evaluated, joined(plan, other), intervals)
    pairs = zip(
        evaluated.estimands,
        bootstrap(before, plan, intervals).estimates,
        bootstrap(after, other, intervals).estimates,
        strict=True,
    )
    return Estimates(tuple(_recovered(one, *both) for one, *both in pairs), intervals)


def _recovered(estimand: Estimand, before: Estimate, after: Estimate) -> Estimate:
    """The difference of two independent estimates, which refuses where one of them does."""
    ratios = (*after.ratios, *before.ratios)
    if before.point is None or after.point is None:
        reason = before.reason or after.reason
        return Estimate(estimand, None, None, None, ratios, reason=reason, interval_reason=reason)
    point, excluded = after.point - before.point, before.excluded + after.excluded
    notes = tuple(dict.fromkeys((*before.notes, *after.notes)))
    if before.low is None or before.high is None or after.low is None or after.high is None:
        reason = before.interval_reason or after.interval_reason
        return Estimate(estimand, point, None, None, ratios, None, reason, None, excluded, notes)
    ends = difference_of((before.point, before.low, before.high), (after.point, after.low, after.high))
    return Estimate(estimand, point, *ends, ratios, None, None, "recovered", excluded, notes)


@attrs.frozen
class SideBySide:
    """Several tables, by label."""

    estimates: Mapping[str, Estimates]
    #: Differences of every later table from the first.
    differences: Mapping[str, Estimates]
    #: Why a table has no differences.
    unpaired: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "tables": {label: estimates.to_json() for label, estimates in self.estimates.items()},
            "differences": {label: estimates.to_json() for label, estimates in self.differences.items()},
            "unpaired": dict(self.unpaired),
        }


def side_by_side(
    tables: Mapping[str, Table],
    order: Sequence[str] | None = None,
    *,
    budgets: Sequence[int] | None = None,
    by_type: bool = False,
    intervals: Intervals = Intervals(),
) -> SideBySide:
    """All estimands of every table, and paired differences of those that a table shares with the first.

    ``tables`` by label, such as "D=2" and "D=4".  ``order``, ``budgets`` and ``by_type`` as for
    :func:`~handoff.estimation.estimands.standard`, which says for what they raise.
    """
    estimands = {label: standard(table, order, budgets=budgets, by_type=by_type) for label, table in tables.items()}
    estimates = {label: estimate(table, estimands[label], intervals) for label, table in tables.items()}
    (first, reference), *others = tables.items()
    differences: dict[str, Estimates] = {}
    unpaired: dict[str, str] = {}
    for label, table in others:
        reason = _unlike(reference, table)
        if reason is not None:
            unpaired[label] = reason
            continue
        common = [one for one in estimands[label] if one in set(estimands[first])]
        differences[label] = difference(reference, table, common, intervals, paired=True)
    return SideBySide(estimates, differences, unpaired)


def _unlike(first: Table, second: Table) -> str | None:
    if (first.tasks, first.strata) != (second.tasks, second.strata):
        return "it has other tasks, so no draw can take the same ones"
    if len(first.slots) != len(second.slots):
        return f"it has {len(second.slots)} seed slots and the first table has {len(first.slots)}"
    return None
