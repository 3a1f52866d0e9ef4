"""Random choices that are the same on every platform and in every version of Python and numpy.

Python promises only that the sequence of ``random.Random.random`` never changes, so everything is built on it.  Weights
are integers, because sums of floats differ between versions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from handoff.seeds import derive

T = TypeVar("T")


class Dice:
    """A stream of choices that depends on ``parts`` alone."""

    def __init__(self, *parts: str | int) -> None:
        self._random = random.Random(derive(*parts))

    def below(self, bound: int) -> int:
        """An integer in [0, bound)."""
        return int(self._random.random() * bound)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in ``percent`` of 100 cases."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[int]) -> T:
        """One of ``items`` with probability proportional to its weight (integers, not all of them 0)."""
        point = self.below(sum(weights))
        for item, weight in zip(items, weights, strict=True):
            point -= weight
            if point < 0:
                return item
        raise ValueError("no weight is positive")

    def shuffled(self, items: Iterable[T]) -> list[T]:
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result
