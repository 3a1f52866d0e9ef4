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
    low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return min(low, point), max(high, point)  # rounding would leave out a rate of 0 or 1


def normal(level: float) -> float:
    """Two-sided critical value of the normal distribution."""
    return float(special.ndtri((1 + level) / 2))


def effective_trials(point: float, variance: float, trials: int, tasks: int, level: float, freedom: float) -> float:
    """The independent trials that would leave a rate as unsure as ``variance`` says: point (1 - point) / variance.

    They are fewer by the square of the normal over Student's critical value, as the variance is known by so few degrees
    of freedom, and never more than the ``trials`` made (E. L. Korn and B. I. Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998;
    with Wilson's interval: N. Dean and M. Pagano, "Evaluating confidence interval methods for binomial proportions in
    clustered surveys", Journal of Survey Statistics and Methodology 3, 2015).  A rate of 0 or 1 shows no variance; then
    each of the ``tasks`` counts as one trial, as if the seed slots of a task all had to agree.
    """
    share = (normal(level) / student(level, freedom)) ** 2
    if point in (0.0, 1.0):
        return share * tasks
    if variance <= 0:
        return float(trials)
    return min(float(trials), share * point * (1 - point) / variance)


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
    #: Variance of one discordant episode.
    floor: float
    #: Tasks minus strata, of those that the estimand depends on.
    design_freedom: int
    #: Percentiles of the draws for ``freedom`` (:func:`expanded`), if there are enough.
    percentiles: tuple[float, float] | None = None


#: Discordant episodes that are added to a variance, and to one where no difference was seen at all.
PSEUDO, PSEUDO_ALONE = 1.0, 1.5


def with_pseudo(spread: Spread) -> tuple[float, float]:
    """The variance with the pseudo-episodes, and its degrees of freedom.

    To the variance of a contrast one discordant pseudo-episode is added (A. Agresti and Y. Min, "Effects and
    non-effects of paired identical observations in comparing proportions with binary matched-pairs data", Statistics in
    Medicine 23 (2004); D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data", Journal of Educational and Behavioral Statistics 37 (2012)), with the degrees of
    freedom of the design: Satterthwaite's rule for the sum.
    """
    seen = spread.variance if spread.variance > SAME else 0.0
    extra = spread.floor * (PSEUDO if seen else PSEUDO_ALONE)
    design = max(1.0, float(spread.design_freedom))
    own = max(1.0, spread.freedom) if seen and spread.freedom > 0 else design
    variance = seen + extra
    freedom = variance**2 / (seen**2 / own + extra**2 / design) if variance > SAME else design
    return variance, freedom


def interval(point: float, spread: Spread, level: float) -> tuple[float, float] | None:
    """Both ends; ``None`` if the interval would have no width.

    It reaches as far as Student's t or the percentiles, both with the pseudo-episodes (:func:`with_pseudo`), whichever
    is farther: t fails where a product is skewed, percentiles where few draws differ.
    """
    variance, freedom = with_pseudo(spread)
    if not variance > SAME:
        return None
    half = student(level, freedom) * math.sqrt(variance)
    low, high = point - half, point + half
    if spread.percentiles is not None and spread.variance > SAME:
        wider = math.sqrt(variance / spread.variance)
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
