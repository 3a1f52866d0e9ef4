"""The two ends of an interval from a variance and its degrees of freedom: Student's t and Wilson's score."""

from __future__ import annotations

import numpy as np
from scipy import special

from handoff.estimation.arrays import FloatArray


def student(level: float, freedom: float) -> float:
    """Two-sided critical value of Student's t; ``freedom`` below 1 counts as 1."""
    return float(special.stdtrit(max(freedom, 1.0), (1 + level) / 2))


def expanded(level: float, freedom: float) -> tuple[float, float]:
    """Shares of the percentiles that make a bootstrap interval as wide as Student's t asks for.

    The normal quantile of the lower share is minus the critical t (T. C. Hesterberg, "What teachers should know about
    the bootstrap", The American Statistician 69 (2015), expanded percentile interval).  His factor for the sample's
    size is left out, because the draws have the right variance already.
    """
    low = float(special.ndtr(-student(level, freedom)))
    return low, 1.0 - low


def wilson(point: float, trials: float, critical: float) -> tuple[float, float]:
    """Wilson's score interval of a rate ``point`` seen in ``trials`` independent trials (any positive number)."""
    square = critical**2 / trials
    centre = (point + square / 2) / (1 + square)
    half = critical / (1 + square) * np.sqrt(point * (1 - point) / trials + square / (4 * trials))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def effective_trials(point: float, variance: float, trials: int, tasks: int) -> float:
    """The independent trials that would leave a rate as unsure as ``variance`` says: point (1 - point) / variance.

    Never more than the ``trials`` made.  A rate of 0 or 1 shows no variance; then each of the ``tasks`` counts as one
    trial, as if the seed slots of a task all had to agree.
    """
    if point in (0.0, 1.0):
        return float(tasks)
    if variance <= 0:
        return float(trials)
    return min(float(trials), point * (1 - point) / variance)


def kurtosis_freedom(off_N: FloatArray) -> float:
    """Degrees of freedom of the variance of N values, from their distances ``off_N`` to the mean.

    2 N / (kurtosis - (N - 3) / (N - 1)): N - 1 for the kurtosis of normal values, which is 3, and fewer where few
    values carry the variance (B. O'Neill, "Some useful moment results in sampling problems", The American Statistician
    68, 2014).  At least 1, and at most N - 1.
    """
    n = len(off_N)
    square = float(off_N @ off_N)
    if n < 4 or square <= 0:
        return float(max(1, n - 1))
    kurtosis = n * float((off_N**2) @ (off_N**2)) / square**2
    return min(n - 1.0, max(1.0, 2 * n / (kurtosis - (n - 3) / (n - 1))))
