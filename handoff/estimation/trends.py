"""Ladders: an order of checkpoints, its steps and its trend.

The trend is the linear contrast of E. B. Page ("Ordered hypotheses for multiple treatments: a significance test for
linear ranks", JASA 58 (1963)), on the rates instead of ranks: the slope of the least-squares line over the rungs, in
points per rung.  It assumes an order that was given in advance, and does not assume that steps are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import Sums
from handoff.estimation.estimands import completion, endpoint, formula, reach


def slope(levels: Sequence[FloatArray]) -> FloatArray:
    """Slope of the least-squares line through values at 0, 1, 2, ...: sum of (j - mean) x_j / sum of (j - mean)^2."""
    middle = (len(levels) - 1) / 2
    total: FloatArray = sum((place - middle) * level for place, level in enumerate(levels))  # type: ignore[assignment]
    return total / sum((place - middle) ** 2 for place in range(len(levels)))


@formula("contrast", "Reach per rung, {rungs}")
def reach_trend(sums: Sums, rungs: tuple[str, ...]) -> FloatArray:
    """Slope of Reach (section 3.2) over the rungs of a ladder (Page 1963)."""
    return slope([reach(sums, rung) for rung in rungs])


@formula("contrast", "completion per rung, {rungs}")
def completion_trend(sums: Sums, reachers: tuple[str, ...], rungs: tuple[str, ...]) -> FloatArray:
    """Slope of same-state completion (section 4.4) over the rungs of a ladder (Page 1963)."""
    return slope([completion(sums, reachers, rung) for rung in rungs])


@formula("contrast", "endpoint per rung, {rungs}")
def endpoint_trend(sums: Sums, rungs: tuple[str, ...]) -> FloatArray:
    """Slope of endpoint success (Eq. 2), one checkpoint in both roles, over the rungs of a ladder (Page 1963)."""
    return slope([endpoint(sums, rung, rung) for rung in rungs])
