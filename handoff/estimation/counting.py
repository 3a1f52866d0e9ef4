"""Per-task counts, and their weighted sums under many weightings of the tasks at once.

Every estimand is a formula in ratios of such sums.  A bootstrap draw is a weighting of the tasks: how often each was
drawn.  Summands and these weights are whole numbers, so their sums are exact in any order of addition.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.estimation.arrays import BoolArray, FloatArray, IntArray
from handoff.estimation.table import Table


@attrs.frozen(cache_hash=True)
class Count:
    """A number counted per task over its seed slots."""

    kind: str
    #: The checkpoints or steps that it is about.
    of: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.of))})" if self.of else self.kind

    def per_task(self, table: Table) -> IntArray:
        """Shape (T,).  Raises :class:`~handoff.errors.UsageError` if the table lacks what is counted."""
        counts_T: IntArray = _COUNTERS[self.kind](table, *self.of)
        return counts_T


#: One count, or several that are added up.
Summands = Count | tuple[Count, ...]
#: Episodes of a task, one per seed slot.
EPISODES = Count("episodes")


@functools.lru_cache(maxsize=1024)
def arrived(reacher: str) -> Count:
    """Seed slots on which A_w = 1."""
    return Count("arrived", (reacher,))


@functools.lru_cache(maxsize=1024)
def arrived_within(reacher: str, steps: int) -> Count:
    """Seed slots on which tau_D <= ``steps``."""
    return Count("arrived_within", (reacher, steps))


@functools.lru_cache(maxsize=1024)
def actions(reacher: str) -> Count:
    """Reacher actions until arrival or stopping, added up."""
    return Count("actions", (reacher,))


@functools.lru_cache(maxsize=1024)
def won(reacher: str, solver: str) -> Count:
    """Seed slots on which Y_{w,r} = 1."""
    return Count("won", (reacher, solver))


@functools.lru_cache(maxsize=1024)
def won_only(reacher: str, winner: str, loser: str) -> Count:
    """Seed slots whose reached state ``winner`` completes and ``loser`` does not."""
    return Count("won_only", (reacher, winner, loser))


@functools.lru_cache(maxsize=1024)
def bridged(reacher: str, solver: str) -> Count:
    """Seed slots on which the solver's first action stays on a shortest path."""
    return Count("bridged", (reacher, solver))


@functools.lru_cache(maxsize=1024)
def finished(reacher: str, solver: str) -> Count:
    """Seed slots won after a first action that stays on a shortest path."""
    return Count("finished", (reacher, solver))


@functools.lru_cache(maxsize=1024)
def both_arrived(first: str, second: str) -> Count:
    """Seed slots on which both reachers arrive."""
    return Count("both_arrived", (first, second))


@functools.lru_cache(maxsize=1024)
def won_beside(reacher: str, other: str, solver: str) -> Count:
    """Seed slots on which ``solver`` wins from the state of ``reacher``, and reacher ``other`` arrives too."""
    return Count("won_beside", (reacher, other, solver))


def empty_allowed() -> np.errstate:
    """Context in which numpy does not warn of empty denominators."""
    return np.errstate(invalid="ignore", divide="ignore")


class Sums:
    """Weighted sums over tasks, under B weightings.  ``sums_KB`` holds the counts of ``index`` row by row."""

    def __init__(self, index: Mapping[Count, int], sums_KB: FloatArray) -> None:
        self._index = index
        self._sums_KB = sums_KB
        self._totals: dict[tuple[Count, ...], FloatArray] = {}
        self._ratios: dict[tuple[Summands, Summands], FloatArray] = {}

    def total(self, counts: Summands) -> FloatArray:
        """The counts added up, shape (B,)."""
        if isinstance(counts, Count):
            sums_B: FloatArray = self._sums_KB[self._index[counts]]
            return sums_B
        known = self._totals.get(counts)
        if known is None:
            known = self.total(counts[0])
            for count in counts[1:]:
                known = known + self.total(count)
            self._totals[counts] = known
        return known

    def ratio(self, numerator: Summands, denominator: Summands) -> FloatArray:
        """``numerator / denominator``, shape (B,); NaN where the denominator is empty.  Tuples are added up first.

        Where denominators may be empty, the caller enters :func:`empty_allowed`, once for all ratios.
        """
        known = self._ratios.get((numerator, denominator))
        if known is None:
            known = self._ratios[numerator, denominator] = self.total(numerator) / self.total(denominator)
        return known


@attrs.frozen(cache_hash=True)
class Ratio:
    """One ratio that an estimand is made of, as counted in the data."""

    label: str
    numerator: int
    denominator: int
    #: Tasks that add to the denominator.
    tasks: int


class Observed(Sums):
    """The sums of the data (B = 1), which also notes what a formula asks for.

    ``type`` restricts the tasks to one type.  ``ratios`` are those asked for since the last :meth:`forget`, in order,
    and ``numerators`` are their numerators.  ``per_task`` receives all counts ever asked for, of all tasks; several may
    share it.  With ``raised`` set to a numerator, its ratios are those of one more count.
    """

    def __init__(self, table: Table, type: str | None, per_task: dict[Count, IntArray]) -> None:
        super().__init__({}, np.empty((0, 1)))
        self._table = table
        self._mask_T = np.array([type is None or stratum == type for stratum in table.strata])
        self._noted: dict[tuple[Summands, Summands], Ratio] = {}
        self._counts_T = per_task
        self.ratios: dict[Ratio, None] = {}
        self.numerators: dict[Summands, None] = {}
        self.raised: Summands | None = None

    def forget(self) -> None:
        self.ratios, self.numerators = {}, {}

    def ratio(self, numerator: Summands, denominator: Summands) -> FloatArray:
        ratio = self._noted.get((numerator, denominator))
        if ratio is None:
            above_T, below_T = self._per_task(_tuple(numerator)), self._per_task(_tuple(denominator))
            label = f"{_label(numerator)} / {_label(denominator)}"
            ratio = Ratio(label, int(above_T.sum()), int(below_T.sum()), int(np.count_nonzero(below_T)))
            self._noted[numerator, denominator] = ratio
        self.ratios[ratio] = None
        self.numerators[numerator] = None
        count = ratio.numerator + (numerator == self.raised)
        return np.array([count / ratio.denominator if ratio.denominator else np.nan])

    def _per_task(self, counts: tuple[Count, ...]) -> IntArray:
        for count in counts:
            if count not in self._counts_T:
                self._counts_T[count] = count.per_task(self._table)
        total_T: IntArray = sum((self._counts_T[count] for count in counts[1:]), self._counts_T[counts[0]])
        masked: IntArray = total_T[self._mask_T]
        return masked


def _tuple(counts: Summands) -> tuple[Count, ...]:
    return (counts,) if isinstance(counts, Count) else counts


def _label(counts: Summands) -> str:
    parts = [str(count) for count in _tuple(counts)]
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def _per_task(array_TS: BoolArray | IntArray) -> IntArray:
    total_T: IntArray = array_TS.sum(axis=1, dtype=np.int64)
    return total_T


def _arrived(table: Table, reacher: str) -> IntArray:
    return _per_task(table.arrived_WTS[table.reacher(reacher)])


def _arrived_within(table: Table, reacher: str, steps: int) -> IntArray:
    if table.arrival_WTS is None:
        raise UsageError("the table does not say after how many actions a reacher arrived (column `arrival`)")
    if table.budget is not None and steps > table.budget:
        raise UsageError(
            f"arrival within {steps} actions was not observed: the reachers had a budget of {table.budget}"
        )
    arrival_TS = table.arrival_WTS[table.reacher(reacher)]
    return _per_task((arrival_TS >= 0) & (arrival_TS <= steps))


def _actions(table: Table, reacher: str) -> IntArray:
    if table.actions_WTS is None:
        raise UsageError("the table does not say how many actions a reacher took (column `actions`)")
    return _per_task(table.actions_WTS[table.reacher(reacher)])


def _won(table: Table, reacher: str, solver: str) -> IntArray:
    return _per_task(table.won_WRTS[table.reacher(reacher), table.solver(solver)])


def _won_only(table: Table, reacher: str, winner: str, loser: str) -> IntArray:
    won_RTS = table.won_WRTS[table.reacher(reacher)]
    return _per_task(won_RTS[table.solver(winner)] & ~won_RTS[table.solver(loser)])


def _bridged(table: Table, reacher: str, solver: str) -> IntArray:
    if table.bridge_WRTS is None:
        raise UsageError("the table does not say which first actions were bridges (column `bridge`)")
    return _per_task(table.bridge_WRTS[table.reacher(reacher), table.solver(solver)])


def _finished(table: Table, reacher: str, solver: str) -> IntArray:
    _bridged(table, reacher, solver)  # raises where the table has no bridges
    assert table.bridge_WRTS is not None
    both_WRTS = table.bridge_WRTS & table.won_WRTS
    return _per_task(both_WRTS[table.reacher(reacher), table.solver(solver)])


def _both_arrived(table: Table, first: str, second: str) -> IntArray:
    return _per_task(table.arrived_WTS[table.reacher(first)] & table.arrived_WTS[table.reacher(second)])


def _won_beside(table: Table, reacher: str, other: str, solver: str) -> IntArray:
    won_TS = table.won_WRTS[table.reacher(reacher), table.solver(solver)]
    return _per_task(won_TS & table.arrived_WTS[table.reacher(other)])


_COUNTERS: dict[str, Callable[..., IntArray]] = {
    "episodes": lambda table: np.full(len(table.tasks), len(table.slots), np.int64),
    "arrived": _arrived,
    "arrived_within": _arrived_within,
    "actions": _actions,
    "won": _won,
    "won_only": _won_only,
    "bridged": _bridged,
    "finished": _finished,
    "both_arrived": _both_arrived,
    "won_beside": _won_beside,
}
