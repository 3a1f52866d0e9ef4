"""How intervals are made, and the two ends of one from draws, variances and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from scipy import special

from handoff.estimation.arrays import IntArray
from handoff.estimation.counting import FloatArray
from handoff.settings import setting

#: The method called "default" on the command line.
DEFAULT = "rescaled"


def _method(name: str) -> str:
    return DEFAULT if name == "default" else name


@attrs.frozen
class Intervals:
    """How intervals are made: by which bootstrap, from how many draws, at which level."""

    #: ``rescaled`` or ``paper`` (:mod:`handoff.estimation.bootstrap`).
    method: str = setting(
        f"Kind of interval; the default is {DEFAULT}, the paper's is the ordinary percentile one.",
        kind=str,
        default="default",
        name="interval",
        choices=("default", "rescaled", "paper"),
        group="intervals",
        converter=_method,
    )
    draws: int = setting("Bootstrap draws.", kind=int, default=100_000, least=100, most=1_000_000, group="intervals")
    #: Seed of the draws.
    seed: int = setting("Seed of the draws.", kind=int, default=0, least=0, most=2**63 - 1, group="intervals")
    #: Share of intervals that are to cover the truth.
    level: float = setting(
        "Level of the intervals.", kind=float, default=0.95, least=0, most=1, open=True, group="intervals"
    )

    def to_json(self) -> dict[str, Any]:
        return {"interval": self.method, "draws": self.draws, "seed": self.seed, "level": self.level}


def percentiles(values_V: FloatArray, low: float, high: float, times_V: IntArray | None = None) -> tuple[float, float]:
    """The ``low`` and ``high`` quantiles of values without NaN, interpolated linearly between order statistics.

    ``times_V`` says how many times each value is there (once without it).  ``values_V`` is left in another order.
    """
    last = (len(values_V) if times_V is None else int(times_V.sum())) - 1
    places = [q * last for q in (low, high)]
    ranks = sorted({i for place in places for i in (int(place), min(int(place) + 1, last))})
    ordered = smallest(values_V, ranks) if times_V is None else _smallest_of_repeated(values_V, times_V, ranks)
    return interpolated(ordered, places[0], last), interpolated(ordered, places[1], last)


def interpolated(ordered: Mapping[int, float], place: float, last: int) -> float:
    """The value at a fractional ``place`` among order statistics from 0 to ``last``."""
    a, b = ordered[int(place)], ordered[min(int(place) + 1, last)]
    return a + (b - a) * (place - int(place))


def smallest(values_B: FloatArray, ranks: list[int]) -> dict[int, float]:
    """The values of these ascending ranks.  ``values_B`` is left in another order."""
    found = {}
    rest_B = values_B  # as many values as there are up to the last rank found, none above them
    for rank in reversed(ranks):
        if rank == len(rest_B) - 1:
            found[rank] = float(rest_B.max())
            continue
        # One rank at a time: numpy is several times slower when asked for more at once.
        rest_B.partition(rank)
        found[rank] = float(rest_B[rank])
        rest_B = rest_B[:rank]
    return found


def _smallest_of_repeated(values_V: FloatArray, times_V: IntArray, ranks: list[int]) -> dict[int, float]:
    order_V = np.argsort(values_V)
    places = np.searchsorted(np.cumsum(times_V[order_V]), ranks, side="right")
    return {rank: float(values_V[order_V[place]]) for rank, place in zip(ranks, places, strict=True)}


def student(level: float, freedom: float) -> float:
    """Two-sided critical value of Student's t; ``freedom`` below 1 counts as 1."""
    return float(special.stdtrit(max(freedom, 1.0), (1 + level) / 2))


def widened(level: float, freedom: float) -> tuple[float, float]:
    """The percentiles that make a bootstrap interval as wide as Student's t asks for, not as the normal does.

    The normal quantile of the lower one is minus the critical t (T. C. Hesterberg, "What teachers should know about
    the bootstrap", The American Statistician 69 (2015), expanded percentile interval; the factor for the sample's size
    is left to the draws, which have the right variance already).
    """
    low = float(special.ndtr(-student(level, freedom)))
    return low, 1.0 - low


def score(point: float, effective: float, critical: float) -> tuple[float, float]:
    """Wilson's score interval of a rate ``point`` seen in ``effective`` independent trials (not a whole number)."""
    square = critical**2 / effective
    centre = (point + square / 2) / (1 + square)
    half = critical / (1 + square) * np.sqrt(point * (1 - point) / effective + square / (4 * effective))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def effective_trials(point: float, variance: float, trials: int, tasks: int) -> float:
    """The independent trials that would leave a rate as unsure as ``variance`` says: point (1 - point) / variance.

    Never more than the ``trials`` made.  A rate of 0 or 1 shows no variance; then every one of the ``tasks`` counts as
    one trial, as if the seed slots of a task all had to agree.
    """
    if point in (0.0, 1.0):
        return float(tasks)
    if variance <= 0:
        return float(trials)
    return min(float(trials), point * (1 - point) / variance)
