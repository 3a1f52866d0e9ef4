"""Bootstrap values of estimands, and what the draws of one estimand say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from handoff.estimation.arrays import FloatArray, IntArray
from handoff.estimation.counting import empty_allowed
from handoff.estimation.evaluation import Evaluated, SumsByType
from handoff.estimation.lookup import Lookup
from handoff.estimation.quantiles import quantiles
from handoff.estimation.resampling import Plan

#: Values that differ by no more are the same.
SAME = 1e-12
#: Values held at a time (128 MiB); estimands beyond them are evaluated on the same draws again.
VALUES = 2**24


@attrs.frozen
class Distribution:
    """Summary of one estimand's bootstrap draws."""

    draws: int
    #: Draws that gave no value (NaN).
    excluded: int
    #: Whether the other draws gave more than one value.
    varies: bool
    #: The quantiles asked for.
    ends: tuple[float, float] | None = None


#: Of an estimand that is undefined on the data.
NOTHING = Distribution(0, 0, False)


def distribution(
    values_V: FloatArray, times_V: IntArray | None = None, shares: tuple[float, float] | None = None
) -> Distribution:
    """Summary of values, NaN where undefined, each drawn once or as often as ``times_V`` says.

    ``shares`` are those of the quantiles; with them ``values_V`` is left in another order.
    """
    draws = len(values_V) if times_V is None else int(times_V.sum())
    least, excluded = values_V.min(), 0
    if np.isnan(least):  # cheaper than to look for NaN where there are none
        defined_V = ~np.isnan(values_V)
        values_V = values_V[defined_V]
        times_V = None if times_V is None else times_V[defined_V]
        excluded = draws - (len(values_V) if times_V is None else int(times_V.sum()))
        least = values_V.min(initial=np.inf)
    varies = bool(values_V.max(initial=-np.inf) - least > SAME)
    ends = quantiles(values_V, *shares, times_V) if shares and len(values_V) else None
    return Distribution(draws, excluded, varies, ends)


def distributions(
    evaluated: Evaluated, plan: Plan, draws: int, seed: int, shares: Mapping[int, tuple[float, float]]
) -> list[Distribution]:
    """One per estimand, with the quantiles of ``shares`` (by number of the estimand)."""
    summaries = [NOTHING] * len(evaluated.estimands)
    for e, values_V, times_V in bootstrap_values(evaluated, plan, draws, seed):
        summaries[e] = distribution(values_V, times_V, shares.get(e))
    return summaries


def bootstrap_values(
    evaluated: Evaluated, plan: Plan, draws: int, seed: int
) -> Iterator[tuple[int, FloatArray, IntArray | None]]:
    """Number, values and their frequencies of every estimand that is defined on the data; NaN where a draw is empty.

    An estimand of one type whose stratum has a menu has one value per line of it, drawn as often as its frequency says.
    The others have one value per draw, in the order of the draws, and ``None`` for the frequencies.
    """
    lookups = [
        Lookup(part.counts_KT, part.table.strata, plan, first)
        for part, first in zip(evaluated.parts, evaluated.firsts, strict=True)
    ]
    defined = np.flatnonzero(~np.isnan(evaluated.points_E)).tolist()
    types = {e: evaluated.estimands[e].type for e in defined}
    stratum = {type: entry.stratum for type, entry in lookups[0].entries.items()} if evaluated.paired else {}
    listed = [type for type in stratum if type in types.values() and plan.strata[stratum[type]].menu is not None]
    drawn = [e for e in defined if types[e] not in listed]
    times = {stratum[type]: np.zeros(plan.strata[stratum[type]].lines, np.int64) for type in listed}
    size = max(1, VALUES // draws)
    for group in [drawn[first : first + size] for first in range(0, len(drawn), size)] or [[]]:
        unlisted = {type for e in group if (type := types[e]) is not None}
        values = dict(zip(group, np.empty((len(group), draws)), strict=True))
        for block in plan.blocks(draws, seed):
            if group:
                sums = [lookup.sums(block, unlisted) for lookup in lookups]
                with empty_allowed():
                    for e, values_B in evaluated.formulas(sums, group):
                        values[e][block.span] = values_B
            for h, times_L in times.items() if group == drawn[:size] else ():
                times_L += np.bincount(block.picks(h)[:, 0], minlength=len(times_L))
        yield from ((e, values_B, None) for e, values_B in values.items())
    taken = {h: times_L > 0 for h, times_L in times.items()}
    lines: list[SumsByType] = [
        {type: lookup.entries[type].sums_KL[:, taken[stratum[type]]] for type in listed} for lookup in lookups
    ]
    with empty_allowed():
        by_line = list(evaluated.formulas(lines, [e for e in defined if types[e] in listed])) if listed else []
    for e, values_L in by_line:
        h = stratum[str(types[e])]
        yield e, values_L, times[h][taken[h]]
