"""The two ends of an interval from a variance and its degrees of freedom: Student's t and Wilson's score."""

from __future__ import annotations

import math

import attrs
import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from handoff.estimation.arrays import FloatArray

#: A variance that is no more is rounding.
SAME = 1e-18

#: A point, and the two ends of its interval.
Ends = tuple[float, float, float]


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


def kurtosis_freedom(values_E: ArrayLike, kurtosis_E: ArrayLike) -> FloatArray:
    """Degrees of freedom of a variance of so many values of this kurtosis, elementwise.

    2 N / (kurtosis - (N - 3) / (N - 1)): N - 1 for the kurtosis of normal values, which is 3, and fewer where few
    values carry the variance (B. O'Neill, "Some useful moment results in sampling problems", The American Statistician
    68, 2014).  At least 1, and at most N - 1; NaN where the kurtosis is.
    """
    n_E = np.asarray(values_E, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom_E = np.where(n_E > 3, 2 * n_E / (np.asarray(kurtosis_E) - (n_E - 3) / (n_E - 1)), n_E - 1)
    # Below the least kurtosis that a sample can have, which is 1, only rounding leads.
    bounded_E: FloatArray = np.clip(np.where(freedom_E < 0, n_E - 1, freedom_E), 1.0, np.maximum(1.0, n_E - 1))
    return bounded_E


@attrs.frozen
class Spread:
    """What an interval of a contrast or a mean is made of."""

    #: The jackknife variance and its degrees of freedom; NaN freedom where there is no variance.
    variance: float
    freedom: float
    #: The degrees of freedom that the percentiles below were taken for.
    percentile_freedom: float
    #: Variance of one discordant episode.
    floor: float
    #: Tasks minus strata, of those that the estimand depends on.
    design_freedom: int
    #: Percentiles of the draws (:func:`expanded`), if there are enough.
    percentiles: tuple[float, float] | None = None


#: Discordant episodes that are added to a variance, and to one where no difference was seen at all.
PSEUDO, PSEUDO_ALONE = 1.0, 1.5


def interval(point: float, spread: Spread, level: float) -> tuple[float, float] | None:
    """Both ends; ``None`` if the interval would have no width.

    To the variance of a contrast one discordant pseudo-episode is added (A. Agresti and Y. Min, "Effects and
    non-effects of paired identical observations in comparing proportions with binary matched-pairs data", Statistics in
    Medicine 23 (2004); D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data", Journal of Educational and Behavioral Statistics 37 (2012)), with the degrees of
    freedom of the design: Satterthwaite's rule for the sum.  The interval reaches as far as Student's t or the
    percentiles, widened alike, whichever is farther: t fails where a product is skewed, percentiles where few draws
    differ.
    """
    seen = spread.variance > SAME
    extra = spread.floor * (PSEUDO if seen else PSEUDO_ALONE)
    variance = (spread.variance if seen else 0.0) + extra
    if not variance > SAME:
        return None
    design = max(1.0, float(spread.design_freedom))
    own = max(1.0, spread.freedom) if seen and spread.freedom > 0 else design
    freedom = variance**2 / ((spread.variance**2 / own if seen else 0.0) + extra**2 / design)
    half = student(level, freedom) * math.sqrt(variance)
    low, high = point - half, point + half
    if spread.percentiles is not None and seen:
        wider = math.sqrt(variance / spread.variance) * student(level, own) / student(level, spread.percentile_freedom)
        low = min(low, point + (spread.percentiles[0] - point) * wider)
        high = max(high, point + (spread.percentiles[1] - point) * wider)
    return low, high


def clipped(ends: tuple[float, float], least: float, most: float) -> tuple[float, float]:
    """The part of an interval in a parameter's range."""
    return max(least, ends[0]), min(most, ends[1])


def difference_of(before: Ends, after: Ends) -> tuple[float, float]:
    """The interval of ``after`` minus ``before``, which are independent, from the interval of each.

    The method of variance estimates recovery (G. Y. Zou and A. Donner, "Construction of confidence limits about effect
    measures: a general approach", Statistics in Medicine 27 (2008)).  It is never narrower than either.
    """
    point = after[0] - before[0]
    return (
        point - math.hypot(after[0] - after[1], before[2] - before[0]),
        point + math.hypot(after[2] - after[0], before[0] - before[1]),
    )
