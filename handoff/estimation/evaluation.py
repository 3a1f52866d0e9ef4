"""Estimands under any weighting of the tasks: the data themselves, a bootstrap draw, a task left out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from handoff.estimation.arrays import BoolArray, IntArray
from handoff.estimation.counting import Count, FloatArray, Observed, Ratio, Sums, empty_allowed
from handoff.estimation.estimands import CONTRAST, Estimand, declare
from handoff.estimation.lookup import Entry, Lookup
from handoff.estimation.resampling import Block, Plan
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

    def values(self, weights_BT: FloatArray) -> FloatArray:
        """Shape (E, B): all estimands under B weightings of the tasks, which may be fractions."""
        ...

    def always_defined(self, e: int) -> bool:
        """Whether every possible draw defines estimand number ``e``."""
        ...

    def sampler(self, plan: Plan) -> BlockSampler:
        """The estimands under the draws of ``plan``, by look-up."""
        ...


class BlockSampler(Protocol):
    """Estimands, ready to be evaluated under the draws of one plan."""

    @property
    def listed(self) -> Mapping[str, Entry]:
        """Task types whose draws come from a menu."""
        ...

    def values(self, block: Block, which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        """The estimands numbered ``which`` in every draw of ``block``, shape (B,) each; NaN where undefined."""
        ...

    def lines(self, taken: Mapping[str, BoolArray], which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        """The estimands numbered ``which``, each of a listed type, on the lines of the menus that were ``taken``."""
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
        self.limits_E: FloatArray = np.array([estimand.declaration.limit for estimand in self.estimands])
        self.counts_KT: IntArray = np.array(list(asked.values()), np.int64).reshape(-1, len(table.tasks))
        self._index = {count: k for k, count in enumerate(asked)}
        self._spans = _spans(table.strata)

    def values(self, weights_BT: FloatArray) -> FloatArray:
        """Shape (E, B): all estimands under B weightings.  NaN where a denominator is empty."""
        counts_KT = self.counts_KT.astype(np.float64)
        by_type: dict[str | None, FloatArray] = {}
        whole_KB = np.zeros((len(counts_KT), len(weights_BT)))
        for type, span in self._spans.items():
            sums_KB = _product(counts_KT[:, span], weights_BT[:, span])
            whole_KB += sums_KB
            by_type[type] = sums_KB
        by_type[None] = whole_KB
        values_EB = np.full((len(self.estimands), len(weights_BT)), np.nan)
        with empty_allowed():
            for e, values_B in self.formulas(by_type, range(len(self.estimands))):
                values_EB[e] = values_B
        return values_EB

    def always_defined(self, e: int) -> bool:
        """Whether every possible draw defines estimand number ``e``: every task adds to every denominator."""
        return all(ratio.tasks == len(self.strata) for ratio in self.ratios_E[e])

    def sampler(self, plan: Plan) -> TableSampler:
        return TableSampler(self, plan)

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


class TableSampler:
    """The estimands of one table (see :class:`BlockSampler`)."""

    def __init__(self, evaluation: Evaluation, plan: Plan) -> None:
        self._evaluation = evaluation
        self._lookup = Lookup(evaluation.counts_KT, evaluation.strata, plan)
        entries = self._lookup.entries.items()
        self.listed = {type: entry for type, entry in entries if plan.strata[entry.stratum].menu is not None}

    def values(self, block: Block, which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        types = {type for e in which if (type := self._evaluation.estimands[e].type) is not None}
        return self._evaluation.formulas(self._lookup.sums(block, types), which)

    def lines(self, taken: Mapping[str, BoolArray], which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        by_type: dict[str | None, FloatArray] = {
            type: self.listed[type].sums_KL[:, lines] for type, lines in taken.items()
        }
        return self._evaluation.formulas(by_type, which)


class Combination(ABC):
    """Quantities that are formulas in the estimands of two evaluations.

    With ``paired`` both take the same draws of the same tasks.  Else the tasks of ``second`` follow those of ``first``,
    and both are drawn independently (:func:`~handoff.estimation.resampling.joined`).
    """

    estimands: tuple[Estimand, ...]
    points_E: FloatArray
    ratios_E: tuple[tuple[Ratio, ...], ...]
    limits_E: FloatArray

    def __init__(self, first: Evaluation, second: Evaluation, paired: bool) -> None:
        self.first, self.second, self.paired = first, second, paired
        self.strata = first.strata if paired else first.strata + second.strata

    @abstractmethod
    def combine(self, first_EB: FloatArray, second_EB: FloatArray) -> FloatArray:
        """Shape (E, B), from the values of both evaluations."""

    def values(self, weights_BT: FloatArray) -> FloatArray:
        cut = None if self.paired else len(self.first.strata)
        start = None if self.paired else len(self.first.strata)
        return self.combine(self.first.values(weights_BT[:, :cut]), self.second.values(weights_BT[:, start:]))

    def always_defined(self, e: int) -> bool:
        return False  # no use is made of it here

    def sampler(self, plan: Plan) -> CombinedSampler:
        return CombinedSampler(self, plan)


class CombinedSampler:
    """The quantities of a :class:`Combination` (see :class:`BlockSampler`)."""

    listed: Mapping[str, Entry] = {}

    def __init__(self, combination: Combination, plan: Plan) -> None:
        self._combination = combination
        first, second = (plan, plan) if combination.paired else plan.parts
        self._samplers = combination.first.sampler(first), combination.second.sampler(second)

    def values(self, block: Block, which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        blocks = (block, block) if self._combination.paired else block.parts()
        parts = []
        for sampler, part, evaluation in zip(
            self._samplers, blocks, (self._combination.first, self._combination.second), strict=True
        ):
            values_EB = np.full((len(evaluation.estimands), block.draws), np.nan)
            for e, values_B in sampler.values(part, range(len(evaluation.estimands))):
                values_EB[e] = values_B
            parts.append(values_EB)
        combined_EB = self._combination.combine(*parts)
        return ((e, combined_EB[e]) for e in which)

    def lines(self, taken: Mapping[str, BoolArray], which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        return iter(())


class Difference(Combination):
    """``second`` minus ``first``, estimand by estimand."""

    def __init__(self, first: Evaluation, second: Evaluation, paired: bool) -> None:
        super().__init__(first, second, paired)
        self.estimands = tuple(Estimand("difference", (("of", str(one)),), one.type) for one in first.estimands)
        self.points_E = second.points_E - first.points_E
        self.ratios_E = tuple((*b, *a) for a, b in zip(first.ratios_E, second.ratios_E, strict=True))
        self.limits_E = first.limits_E + second.limits_E

    def combine(self, first_EB: FloatArray, second_EB: FloatArray) -> FloatArray:
        difference_EB: FloatArray = second_EB - first_EB
        return difference_EB


declare(
    "difference", CONTRAST, "{of}", "The second table's value minus the first one's; paired on the same draws of tasks."
)


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
