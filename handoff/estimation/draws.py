"""Summary of one estimand's bootstrap draws: how often it was undefined, its range, its quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from handoff.estimation.arrays import BoolArray, IntArray
from handoff.estimation.counting import FloatArray, empty_allowed
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.intervals import percentiles
from handoff.estimation.resampling import Plan

#: Values that differ by no more are the same.
SAME = 1e-12

#: The shares of values below either end of an interval.
Shares = tuple[float, float]


@attrs.frozen
class Distribution:
    """The values of one estimand in its draws."""

    draws: int
    #: Draws without a value (NaN).
    excluded: int
    #: Least and greatest value; without any, infinity and minus infinity.
    least: float
    most: float
    #: The wanted quantiles, interpolated linearly.
    ends: tuple[float, float] | None = None

    @property
    def varies(self) -> bool:
        return self.most - self.least > SAME

    def joined(self, other: Distribution) -> Distribution:
        """Both sets of draws together, without quantiles."""
        least, most = min(self.least, other.least), max(self.most, other.most)
        return Distribution(self.draws + other.draws, self.excluded + other.excluded, least, most)


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


def distributions(
    evaluation: Evaluated, plan: Plan, draws: int, seed: int, shares: Mapping[int, Shares]
) -> list[Distribution]:
    """The distribution of every estimand, without draws where it is undefined on the data.

    Quantiles are computed of the estimands (by number) that have ``shares``.  Another estimand that every draw defines
    is evaluated until it has varied.  An estimand of one type whose stratum has a menu is evaluated once per line of
    the menu instead of once per draw.
    """
    sampler = evaluation.sampler(plan)
    defined = [e for e, point in enumerate(evaluation.points_E) if not math.isnan(point)]
    drawn = [e for e in defined if evaluation.estimands[e].type not in sampler.listed]
    from_menu = [e for e in defined if evaluation.estimands[e].type in sampler.listed]
    types = dict.fromkeys(evaluation.estimands[e].type for e in from_menu)
    listed = {type: sampler.listed[type] for type in types if type is not None}
    times = {type: np.zeros(len(entry.counts_LK), np.int64) for type, entry in listed.items()}
    values = {e: np.empty(draws) for e in drawn if e in shares}
    results = {e: NOTHING for e in drawn if e not in shares}
    wanted = drawn
    with empty_allowed():
        for block in plan.blocks(draws, seed):
            for e, values_B in sampler.values(block, wanted):
                if e in shares:
                    values[e][block.first : block.first + block.draws] = values_B
                else:
                    results[e] = results[e].joined(distribution(values_B))
            wanted = [e for e in wanted if e in shares or not (evaluation.always_defined(e) and results[e].varies)]
            for type, entry in listed.items():
                times[type] += np.bincount(block.picks[entry.stratum][:, 0], minlength=len(entry.counts_LK))
        results |= {e: distribution(values.pop(e), shares=shares[e]) for e in list(values)}
        taken = {type: times_L > 0 for type, times_L in times.items()}
        often: dict[str | None, IntArray] = {type: times_L[taken[type]] for type, times_L in times.items()}
        for e, values_L in sampler.lines(taken, from_menu):
            results[e] = distribution(values_L, often[evaluation.estimands[e].type], shares=shares.get(e))
    return [results.get(e, NOTHING) for e in range(len(evaluation.estimands))]


#: Of an estimand that is undefined on the data.
NOTHING = Distribution(0, 0, math.inf, -math.inf)
