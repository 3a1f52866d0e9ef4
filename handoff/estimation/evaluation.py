"""Estimands under any weighting of the tasks: the data themselves, a bootstrap draw, a task left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from handoff.estimation.arrays import IntArray
from handoff.estimation.counting import Count, FloatArray, Observed, Ratio, Sums, empty_allowed
from handoff.estimation.estimands import EQUATIONS, Estimand
from handoff.estimation.table import Table


class Evaluated(Protocol):
    """Anything that can be evaluated under weightings of tasks, and so given intervals.

    ``points_E`` are the values on the data (NaN where undefined), ``ratios_E`` the ratios that each is made of,
    ``limits_E`` the largest sizes that values can have, and ``strata`` the types of the tasks that are weighted (T).
    """

    estimands: tuple[Estimand, ...]
    points_E: FloatArray
    ratios_E: tuple[tuple[Ratio, ...], ...]
    limits_E: FloatArray
    strata: tuple[str, ...]

    def values(self, weights_BT: FloatArray, scale_T: FloatArray) -> FloatArray:
        """Shape (E, B): all estimands.  A task weighs ``weights_BT * scale_T``."""
        ...


class Evaluation:
    """The estimands of one table, ready to be evaluated (see :class:`Evaluated`).

    Raises :class:`~handoff.errors.UsageError` if the table lacks what an estimand needs.
    """

    def __init__(self, table: Table, estimands: Sequence[Estimand]) -> None:
        self.strata = table.strata
        self.estimands = tuple(estimands)
        asked: dict[Count, IntArray] = {}
        observed = {type: Observed(table, type, asked) for type in dict.fromkeys(e.type for e in self.estimands)}
        points, ratios = [], []
        for estimand in self.estimands:
            sums = observed[estimand.type]
            sums.forget()
            points.append(float(estimand(sums)[0]))
            ratios.append(tuple(sums.ratios))
        self.points_E: FloatArray = np.array(points)
        self.ratios_E: tuple[tuple[Ratio, ...], ...] = tuple(ratios)
        self.limits_E: FloatArray = np.array([estimand.limit for estimand in self.estimands])
        self.counts_KT: IntArray = np.array(list(asked.values()), np.int64).reshape(-1, len(table.tasks))
        self._index = {count: k for k, count in enumerate(asked)}
        self._spans = _spans(table.strata)

    def values(self, weights_BT: FloatArray, scale_T: FloatArray) -> FloatArray:
        """Shape (E, B): all estimands under B weightings.  NaN where a denominator is empty.

        A task weighs ``weights_BT * scale_T``; ``scale_T`` must not vary within a task type.  It is applied after the
        tasks of a type are added up, which keeps those sums whole numbers when the weights are.
        """
        counts_KT = self.counts_KT.astype(np.float64)
        by_type: dict[str | None, FloatArray] = {}
        whole_KB = np.zeros((len(counts_KT), len(weights_BT)))
        for type, span in self._spans.items():
            sums_KB = _product(counts_KT[:, span], weights_BT[:, span])
            sums_KB *= scale_T[span.start]
            whole_KB += sums_KB
            by_type[type] = sums_KB
        by_type[None] = whole_KB
        values_EB = np.full((len(self.estimands), len(weights_BT)), np.nan)
        with empty_allowed():
            for e, values_B in self.formulas(by_type, range(len(self.estimands))):
                values_EB[e] = values_B
        return values_EB

    def surely_defined(self, e: int) -> bool:
        """Whether estimand number ``e`` is defined however tasks are drawn: every task adds to every denominator."""
        return all(ratio.tasks == len(self.strata) for ratio in self.ratios_E[e])

    def formulas(
        self, by_type: Mapping[str | None, FloatArray], which: Iterable[int]
    ) -> Iterator[tuple[int, FloatArray]]:
        """The estimands numbered ``which``, shape (B,) each, from the sums (K, B) of ``counts_KT`` by task type, those
        of all tasks under ``None``.  Nothing is said of estimands of a type that is not there.

        For sums that may be 0, :func:`~handoff.estimation.counting.empty_allowed` is to be around the loop.
        """
        by_type = dict(by_type)
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
        # What differs in its type only is one formula, of all types side by side: many short arrays would be slow.
        beside = Sums(self._index, np.concatenate(list(by_type.values()), axis=1))
        stops = np.cumsum([sums_KB.shape[1] for sums_KB in by_type.values()])
        spans = {type: slice(stop - by_type[type].shape[1], stop) for type, stop in zip(by_type, stops, strict=True)}
        for group in alike.values():
            values = self.estimands[next(iter(group.values()))](beside)
            for type, e in group.items():
                yield e, values[spans[type]]


def _product(counts_KN: FloatArray, weights_BN: FloatArray) -> FloatArray:
    """Shape (K, B), by products small enough for BLAS to keep to one thread.

    They are no slower on an idle machine, and on a busy one BLAS threads that wait for each other cost many times more.
    """
    sums_KB = np.empty((len(counts_KN), len(weights_BN)))
    size = max(16, 2**17 // max(1, counts_KN.size))
    for first in range(0, len(weights_BN), size):
        part = slice(first, first + size)
        np.matmul(counts_KN, weights_BN[part].T, out=sums_KB[:, part])
    return sums_KB


def _spans(strata: Sequence[str]) -> dict[str, slice]:
    """Where each type's tasks stand; a table keeps the tasks of one type together."""
    spans: dict[str, slice] = {}
    start = 0
    for stop in range(1, len(strata) + 1):
        if stop == len(strata) or strata[stop] != strata[start]:
            spans[strata[start]] = slice(start, stop)
            start = stop
    return spans


EQUATIONS["difference"] = "The second table's value minus the first one's, on the same draws of tasks (paired)."


class Difference:
    """``second`` minus ``first``, estimand by estimand, on the same weightings: paired, so of the same tasks."""

    def __init__(self, first: Evaluation, second: Evaluation) -> None:
        self._parts = (first, second)
        self.strata = first.strata
        self.estimands = tuple(Estimand("difference", (("of", str(one)),), one.type) for one in first.estimands)
        self.points_E: FloatArray = second.points_E - first.points_E
        self.ratios_E = tuple((*b, *a) for a, b in zip(first.ratios_E, second.ratios_E, strict=True))
        self.limits_E: FloatArray = first.limits_E + second.limits_E

    def values(self, weights_BT: FloatArray, scale_T: FloatArray) -> FloatArray:
        first, second = self._parts
        return second.values(weights_BT, scale_T) - first.values(weights_BT, scale_T)
