"""Quantiles of values that may repeat, interpolated linearly between order statistics."""

from __future__ import annotations

import numpy as np

from handoff.estimation.arrays import FloatArray, IntArray


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
    """The values of these ascending ranks, counted from 0.  ``values_B`` is left in another order."""
    ordered = {}
    rest_B = values_B  # the smallest values, up to the rank above
    for rank in reversed(ranks):
        if rank == len(rest_B) - 1:
            ordered[rank] = float(rest_B.max())
            continue
        # One rank at a time: numpy is several times slower when asked for more at once.
        rest_B.partition(rank)
        ordered[rank] = float(rest_B[rank])
        rest_B = rest_B[:rank]
    return ordered


def _of_repeated(values_V: FloatArray, times_V: IntArray, ranks: list[int]) -> dict[int, float]:
    order_V = np.argsort(values_V)
    places = np.searchsorted(np.cumsum(times_V[order_V]), ranks, side="right")
    return {rank: float(values_V[order_V[place]]) for rank, place in zip(ranks, places, strict=True)}
