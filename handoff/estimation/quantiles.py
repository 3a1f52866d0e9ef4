"""Quantiles of values that may repeat, interpolated linearly between order statistics."""

from __future__ import annotations

import numpy as np

from handoff.estimation.arrays import FloatArray, IntArray

#: Values that show where the tails of all begin.
SAMPLE = 2048


def quantiles(values_V: FloatArray, low: float, high: float, times_V: IntArray | None = None) -> tuple[float, float]:
    """The ``low`` and ``high`` quantiles of values without NaN.

    ``times_V`` says how often each value occurs (once without it).  ``values_V`` is left in another order.
    """
    last = (len(values_V) if times_V is None else int(times_V.sum())) - 1
    places = [share * last for share in (low, high)]
    ranks = sorted({rank for place in places for rank in (int(place), min(int(place) + 1, last))})
    ordered = order_statistics(values_V, ranks) if times_V is None else _of_repeated(values_V, times_V, ranks)

    def at(place: float) -> float:
        below, above = ordered[int(place)], ordered[min(int(place) + 1, last)]
        return below + (above - below) * (place - int(place))

    return at(places[0]), at(places[1])


def order_statistics(values_B: FloatArray, ranks: list[int]) -> dict[int, float]:
    """The values of these ascending ranks, counted from 0.  ``values_B`` may be left in another order."""
    tails_V = _tails(values_B, ranks)
    dropped = len(values_B) - len(tails_V)
    ordered = {}
    rest_V = tails_V  # the smallest values, up to the rank above
    for rank in reversed(ranks):
        place = rank if 2 * rank < len(values_B) else rank - dropped
        if place == len(rest_V) - 1:
            ordered[rank] = float(rest_V.max())
            continue
        # One rank at a time: numpy is several times slower when asked for more at once.
        rest_V.partition(place)
        ordered[rank] = float(rest_V[place])
        rest_V = rest_V[:place]
    return ordered


def _tails(values_B: FloatArray, ranks: list[int]) -> FloatArray:
    """The values without some that lie between the ranks of the lower half and those of the upper half.

    As in R. W. Floyd and R. L. Rivest, "Expected time bounds for selection" (CACM 18, 1975), a sample says where to
    cut.  If the sample misleads, all values are returned.
    """
    size = len(values_B)
    low, high = [rank for rank in ranks if 2 * rank < size], [rank for rank in ranks if 2 * rank >= size]
    if size < 2 * SAMPLE or not low or not high:
        return values_B
    sample = np.sort(values_B[:SAMPLE])
    # Six standard deviations beyond the expected places.
    expected = [SAMPLE * share for share in (low[-1] / size, 1 - high[0] / size)]
    below, above = (min(SAMPLE - 1, int(at + 6 * at**0.5) + 1) for at in expected)
    lower_B = values_B <= sample[below]
    tails_V = values_B.compress(lower_B | (values_B >= sample[SAMPLE - 1 - above]))
    lower, dropped = np.count_nonzero(lower_B), size - len(tails_V)
    return tails_V if dropped and low[-1] < lower <= high[0] - dropped else values_B


def _of_repeated(values_V: FloatArray, times_V: IntArray, ranks: list[int]) -> dict[int, float]:
    order_V = np.argsort(values_V)
    places = np.searchsorted(np.cumsum(times_V[order_V]), ranks, side="right")
    return {rank: float(values_V[order_V[place]]) for rank, place in zip(ranks, places, strict=True)}
