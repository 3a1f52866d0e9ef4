"""Quantiles of values that come block by block: exact, with nothing kept but the tails."""

from __future__ import annotations

import math

import numpy as np

from handoff.estimation.counting import FloatArray
from handoff.estimation.intervals import interpolated, smallest

#: Standard deviations beyond its place in the first block to which values are kept around a quantile.
MARGIN = 6.0


class Tails:
    """The ``low`` and ``high`` quantiles of all values added (without NaN), interpolated linearly.

    The first block shows where either quantile lies; of the others only values up to a little beyond are kept, while
    they are still in the processor's cache.
    """

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._below, self._above = math.inf, -math.inf  # nothing between them is kept
        self._kept: list[FloatArray] = []
        self._added = 0

    def add(self, values_B: FloatArray) -> None:
        if not len(values_B):
            return
        if not self._kept:
            self._guess(values_B)
        outside_B = values_B <= self._below
        outside_B |= values_B >= self._above
        self._kept.append(values_B.compress(outside_B))
        self._added += len(values_B)

    def _guess(self, values_B: FloatArray) -> None:
        size = len(values_B)
        low, high = (int(_place(share, size)) for share in (self._low, 1 - self._high))
        if low < size and high < size:  # else a tail is nearly the whole
            ordered = smallest(values_B.copy(), sorted({low, size - 1 - high}))
            self._below, self._above = ordered[low], ordered[size - 1 - high]

    def percentiles(self) -> tuple[float, float] | None:
        """``None`` if too little was kept, as when the first block is not like the others."""
        last = self._added - 1
        if last < 0:
            return None
        kept_V = np.concatenate(self._kept)
        dropped = self._added - len(kept_V)  # of them all are above the lower tail
        low, high = self._low * last, self._high * last - dropped
        lower = np.count_nonzero(kept_V <= self._below) if dropped else len(kept_V)
        if min(int(low) + 1, last) >= lower or int(high) < (lower if dropped else 0):
            return None
        ranks = {int(low), min(int(low) + 1, last), int(high), min(int(high) + 1, last - dropped)}
        ordered = smallest(kept_V, sorted(ranks))
        return interpolated(ordered, low, last), interpolated(ordered, high, last - dropped)


def _place(share: float, size: int) -> float:
    expected = share * size
    return expected + MARGIN * math.sqrt(expected * (1 - share) + 1) + 1
