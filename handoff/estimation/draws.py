"""What the draws of one estimand come to: how often it was undefined, its range, its quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from handoff.estimation.arrays import BoolArray, IntArray
from handoff.estimation.counting import FloatArray, empty_allowed
from handoff.estimation.evaluation import Evaluation
from handoff.estimation.intervals import percentiles
from handoff.estimation.lookup import Lookup
from handoff.estimation.resampling import Block, Plan
from handoff.estimation.tails import Tails

#: Values that differ by no more are the same.
SAME = 1e-12

#: Numbers in an array (24 MiB).  Once one of this size was freed, glibc keeps every block's memory for the next one
#: instead of handing it back to the system, which costs a tenth of the whole; elsewhere it does nothing.
HELD = 3 * 2**20
#: The shares of values below either end of an interval.
Shares = tuple[float, float]


@attrs.frozen
class Distribution:
    """The values of one estimand in its draws.

    ``draws`` were looked at, of which ``excluded`` gave no value (NaN); the others lie between ``least`` and ``most``
    (infinities the wrong way round where there are none).  ``ends`` are the quantiles that were asked for, interpolated
    linearly.
    """

    draws: int
    excluded: int
    least: float
    most: float
    ends: tuple[float, float] | None = None

    @property
    def varies(self) -> bool:
        return self.most - self.least > SAME


def distribution(
    values_V: FloatArray, times_V: IntArray | None = None, *, shares: Shares | None = None
) -> Distribution:
    """Of values among which may be NaN, each drawn once or as often as ``times_V`` says.

    ``values_V`` is left in another order if ``shares`` are given.
    """

    def number() -> int:
        return len(values_V) if times_V is None else int(times_V.sum())

    draws = number()
    defined_V, least, most = _range(values_V)
    if defined_V is not None:
        values_V = values_V[defined_V]
        times_V = None if times_V is None else times_V[defined_V]
    ends = percentiles(values_V, *shares, times_V) if shares and len(values_V) else None
    return Distribution(draws, draws - number(), least, most, ends)


def _range(values_V: FloatArray) -> tuple[BoolArray | None, float, float]:
    """Which values are defined (``None``: all), the least and the greatest of these."""
    defined_V: BoolArray | None = None
    least = float(values_V.min(initial=math.inf))
    if math.isnan(least):  # cheaper than to look for NaN where there are none
        defined_V = ~np.isnan(values_V)
        values_V = values_V[defined_V]
        least = float(values_V.min(initial=math.inf))
    return defined_V, least, float(values_V.max(initial=-math.inf))


class _Growing:
    """A distribution of which draws come block by block."""

    def __init__(self, shares: Shares | None) -> None:
        self._tails = Tails(*shares) if shares else None
        self._draws = self._excluded = 0
        self._least, self._most = math.inf, -math.inf

    def add(self, values_B: FloatArray) -> None:
        defined_B, least, most = _range(values_B)
        self._draws += len(values_B)
        if defined_B is not None:
            values_B = values_B[defined_B]
            self._excluded += len(defined_B) - len(values_B)
        self._least, self._most = min(self._least, least), max(self._most, most)
        if self._tails is not None:
            self._tails.add(values_B)

    @property
    def now(self) -> Distribution:
        ends = self._tails.percentiles() if self._tails is not None else None
        return Distribution(self._draws, self._excluded, self._least, self._most, ends)


def distributions(
    evaluation: Evaluation, plan: Plan, draws: int, seed: int, shares: Mapping[int, Shares]
) -> list[Distribution]:
    """Of every estimand (without draws where it is undefined on the data).  Quantiles are found of those (by number)
    for which there are ``shares``; of the others no more draws are looked at than say whether they vary and how often
    they are undefined.

    An estimand of one type whose stratum has a menu is evaluated once a line of it instead of once a draw.
    """
    lookup = Lookup(evaluation.counts_KT, evaluation.strata, plan)
    listed = {type: entry for type, entry in lookup.entries.items() if plan.strata[entry.stratum].menu is not None}
    defined = [e for e, point in enumerate(evaluation.points_E) if not math.isnan(point)]
    drawn = [e for e in defined if evaluation.estimands[e].type not in listed]
    from_menu = [e for e in defined if evaluation.estimands[e].type in listed]
    certain = {e for e in drawn if e not in shares and evaluation.surely_defined(e)}
    growing = {e: _Growing(shares.get(e)) for e in drawn}
    listed = {type: listed[type] for type in dict.fromkeys(evaluation.estimands[e].type for e in from_menu) if type}
    times = {type: np.zeros(len(entry.counts_LK), np.int64) for type, entry in listed.items()}

    def evaluated(block: Block, which: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        types = {type for e in which if (type := evaluation.estimands[e].type) is not None}
        return evaluation.formulas(lookup.sums(block, types), which)

    np.empty(HELD)  # freed at once
    with empty_allowed():
        wanted = drawn
        for block in plan.blocks(draws, seed):
            for e, values_B in evaluated(block, wanted):
                growing[e].add(values_B)
            wanted = [e for e in wanted if e not in certain or not growing[e].now.varies]
            for type, entry in listed.items():
                times[type] += np.bincount(block.picks[entry.stratum][:, 0], minlength=len(entry.counts_LK))
        found = {e: grown.now for e, grown in growing.items()}
        for e in [e for e in shares if e in found and found[e].ends is None]:
            # The tails that were kept fell short: all of its values, once more.
            values = [values_B for block in plan.blocks(draws, seed) for _, values_B in evaluated(block, [e])]
            found[e] = distribution(np.concatenate(values), shares=shares[e])
        taken = {type: times_L > 0 for type, times_L in times.items()}
        often: dict[str | None, IntArray] = {type: times_L[taken[type]] for type, times_L in times.items()}
        lines: dict[str | None, FloatArray] = {type: entry.sums_KL[:, taken[type]] for type, entry in listed.items()}
        for e, values_L in evaluation.formulas(lines, from_menu):
            found[e] = distribution(values_L, often[evaluation.estimands[e].type], shares=shares.get(e))
    return [found.get(e, NOTHING) for e in range(len(evaluation.estimands))]


#: Of an estimand that is undefined on the data.
NOTHING = Distribution(0, 0, math.inf, -math.inf)
