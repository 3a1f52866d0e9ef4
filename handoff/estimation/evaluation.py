"""Estimands under any weighting of the tasks: the data themselves, a bootstrap draw, a task left out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from handoff.estimation.arrays import BoolArray, FloatArray, IntArray
from handoff.estimation.counting import Count, Observed, Ratio, Sums
from handoff.estimation.estimands import Estimand
from handoff.estimation.table import Table

#: Weighted sums (K, B) of an evaluation's counts by task type; those of all tasks under ``None``.
SumsByType = Mapping[str | None, FloatArray]


class Evaluated(ABC):
    """Estimands of one or several tables, which can be evaluated under weightings of their tasks."""

    estimands: tuple[Estimand, ...]
    #: Values on the data, NaN where undefined.
    points_E: FloatArray
    #: The ratios that each is made of.
    ratios_E: tuple[tuple[Ratio, ...], ...]
    #: The largest size that each value can have.
    limits_E: FloatArray
    #: The variance that one discordant episode adds to each contrast; 0 for other kinds.
    floors_E: FloatArray
    #: The evaluations whose sums the formulas take.
    parts: tuple[Evaluation, ...]
    #: Whether the parts share one weighting of the same tasks; else the tasks of one follow those of the other.
    paired: bool

    @property
    def strata(self) -> tuple[str, ...]:
        """Types of the weighted tasks."""
        tables = self.parts[:1] if self.paired else self.parts
        return tuple(type for part in tables for type in part.table.strata)

    @property
    def firsts(self) -> tuple[int, ...]:
        """Index of each part's first task among the weighted tasks."""
        sizes = [0 if self.paired else len(part.table.tasks) for part in self.parts]
        return tuple(sum(sizes[:p]) for p in range(len(sizes)))

    def depends_on(self, e: int) -> BoolArray:
        """Shape (T,): the weighted tasks that the estimand numbered ``e`` depends on."""
        type = self.estimands[e].type
        return np.array([type in (None, stratum) for stratum in self.strata])

    @abstractmethod
    def formulas(self, sums: Sequence[SumsByType], which: Iterable[int]) -> Iterator[tuple[int, FloatArray]]:
        """The estimands numbered ``which``, shape (B,) each, from the sums of each part.

        An estimand of a type without sums is left out.  The caller allows empty denominators
        (:func:`~handoff.estimation.counting.empty_allowed`), which give NaN.
        """


class Evaluation(Evaluated):
    """The estimands of one table.

    Raises :class:`~handoff.errors.UsageError` if the table lacks what an estimand needs.
    """

    paired = True

    def __init__(self, table: Table, estimands: Sequence[Estimand]) -> None:
        self.table = table
        self.estimands = tuple(estimands)
        self.parts = (self,)
        per_task: dict[Count, IntArray] = {}
        observed = {type: Observed(table, type, per_task) for type in dict.fromkeys(e.type for e in self.estimands)}
        points, ratios, floors = [], [], []
        for estimand in self.estimands:
            sums = observed[estimand.type]
            sums.forget()
            points.append(float(estimand(sums)[0]))
            ratios.append(tuple(sums.ratios))
            floors.append(_floor(estimand, sums, points[-1]))
        self.points_E = np.array(points)
        self.ratios_E = tuple(ratios)
        self.floors_E = np.array(floors)
        limits = (_limit(one, table, point) for one, point in zip(self.estimands, points, strict=True))
        self.limits_E = np.array(list(limits))
        self.counts_KT: IntArray = np.array(list(per_task.values()), np.int64).reshape(-1, len(table.tasks))
        self._index = {count: k for k, count in enumerate(per_task)}

    def formulas(self, sums: Sequence[SumsByType], which: Iterable[int]) -> Iterator[tuple[int, FloatArray]]:
        by_type = dict(sums[0])
        whole = Sums(self._index, by_type.pop(None, np.empty((0, 0))))
        alike: dict[tuple[object, ...], dict[str, int]] = {}
        for e in which:
            estimand = self.estimands[e]
            if estimand.type is None:
                yield e, estimand(whole)
            elif estimand.type in by_type:
                alike.setdefault((estimand.name, estimand.arguments), {})[estimand.type] = e
        if not alike:
            return
        # Estimands that differ only in type are one formula, of all types side by side: many short arrays are slow.
        beside = Sums(self._index, np.concatenate(list(by_type.values()), axis=1))
        stops = np.cumsum([sums_KB.shape[1] for sums_KB in by_type.values()])
        spans = {type: slice(stop - by_type[type].shape[1], stop) for type, stop in zip(by_type, stops, strict=True)}
        for group in alike.values():
            values = self.estimands[next(iter(group.values()))](beside)
            for type, e in group.items():
                yield e, values[spans[type]]


def _floor(estimand: Estimand, sums: Observed, point: float) -> float:
    """Half the sum, over the numerators, of the squared change that one more count makes.

    A difference of two rates with one denominator d has (1/d)^2: one discordant pair, whichever way it goes.
    """
    if estimand.kind != "contrast" or np.isnan(point):
        return 0.0
    squares = 0.0
    for numerator in tuple(sums.numerators):
        sums.raised = numerator
        squares += (float(estimand(sums)[0]) - point) ** 2
    sums.raised = None
    return squares / 2


def _limit(estimand: Estimand, table: Table, point: float) -> float:
    """The largest size that the value can have.

    A mean number of actions is at most the budget.  Nobody acts within 0 actions, so where no task begins on the
    frontier, the arrivals within 0 actions are 0 and nothing else.
    """
    steps = [value for name, value in estimand.arguments if name.endswith("steps")]
    if steps and not any(steps) and point == 0:
        return 0.0
    return _budget(table, estimand.limit) if estimand.kind == "mean" else estimand.limit


def _budget(table: Table, unknown: float) -> float:
    """The budget of the reachers, which a table without it tells where the longest turn did not arrive."""
    if table.budget is not None:
        return float(table.budget)
    if table.actions_WTS is None:
        return unknown
    longest = int(table.actions_WTS.max())
    return float(longest) if (~table.arrived_WTS & (table.actions_WTS == longest)).any() else unknown
