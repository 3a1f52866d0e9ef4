"""Estimands under any weighting of the tasks: the data themselves, a bootstrap draw, a task left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from handoff.estimands import EQUATIONS, Estimand
from handoff.sums import FloatArray, Observed, Ratio, Sums
from handoff.table import Table


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

    #: The one type on whose tasks alone an estimand depends; ``None`` if it may depend on all.
    alone_E: tuple[str | None, ...]

    def values(self, weights_BT: FloatArray, scale_T: FloatArray, which: Sequence[int] | None = None) -> FloatArray:
        """Shape (E, B): all estimands, or those numbered ``which``."""
        ...


class Evaluation:
    """The estimands of one table, ready to be evaluated (see :class:`Evaluated`).

    Raises :class:`~handoff.errors.UsageError` if the table lacks what an estimand needs.
    """

    def __init__(self, table: Table, estimands: Sequence[Estimand]) -> None:
        self.strata = table.strata
        self.estimands = tuple(estimands)
        observed = {type: Observed(table, type) for type in dict.fromkeys(e.type for e in self.estimands)}
        points, ratios = [], []
        for estimand in self.estimands:
            sums = observed[estimand.type]
            sums.forget()
            points.append(float(estimand(sums)[0]))
            ratios.append(tuple(sums.ratios))
        self.points_E: FloatArray = np.array(points)
        self.ratios_E: tuple[tuple[Ratio, ...], ...] = tuple(ratios)
        self.limits_E: FloatArray = np.array([estimand.limit for estimand in self.estimands])
        self.alone_E = tuple(estimand.type for estimand in self.estimands)
        asked = {count: counts_T for sums in observed.values() for count, counts_T in sums.asked.items()}
        self._index = {count: k for k, count in enumerate(asked)}
        self._counts_KT = np.array(list(asked.values()), np.float64).reshape(-1, len(table.tasks))
        self._spans = _spans(table.strata)

    def values(self, weights_BT: FloatArray, scale_T: FloatArray, which: Sequence[int] | None = None) -> FloatArray:
        """Shape (E, B): all estimands, or those numbered ``which``, under B weightings.  NaN where a denominator is
        empty.

        A task weighs ``weights_BT * scale_T``; ``scale_T`` must not vary within a task type.  It is applied after the
        tasks of a type are added up, which keeps those sums whole numbers when the weights are.
        """
        wanted = self.estimands if which is None else [self.estimands[e] for e in which]
        if all(estimand.type is None for estimand in wanted) and (scale_T == 1.0).all():
            whole = Sums(self._index, _product(self._counts_KT, weights_BT))
            return np.array([estimand(whole) for estimand in wanted]).reshape(len(wanted), len(weights_BT))
        by_type: dict[str | None, Sums] = {}
        whole_KB = np.zeros((len(self._index), len(weights_BT)))
        for type, span in self._spans.items():
            sums_KB = _product(self._counts_KT[:, span], weights_BT[:, span])
            sums_KB *= scale_T[span.start]
            whole_KB += sums_KB
            by_type[type] = Sums(self._index, sums_KB)
        by_type[None] = Sums(self._index, whole_KB)
        nothing = Sums(self._index, np.zeros_like(whole_KB))
        values_EB = np.empty((len(wanted), len(weights_BT)))
        for e, estimand in enumerate(wanted):
            values_EB[e] = estimand(by_type.get(estimand.type, nothing))
        return values_EB


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
        self.alone_E = first.alone_E

    def values(self, weights_BT: FloatArray, scale_T: FloatArray, which: Sequence[int] | None = None) -> FloatArray:
        first, second = self._parts
        return second.values(weights_BT, scale_T, which) - first.values(weights_BT, scale_T, which)
