"""Intervals of means and ratios over tasks, without draws: the tasks are the independent units.

A rate, the ratio of two sums over tasks, has Wilson's score interval on its effective number of trials.  A difference
of two rates has the point plus and minus t standard errors, with one discordant task's variance added (Agresti and Min
2005; Bonett and Price 2012), so that policies that agree on all tasks do not get an interval without width.
"""

from __future__ import annotations

import numpy as np

from handoff.passk.comparison import LEVEL, TaxEstimate
from handoff.passk.curves import FloatArray


def rate(numerator_T: FloatArray, denominator_T: FloatArray, level: float = LEVEL, empty: str = "") -> TaxEstimate:
    """The sum of ``numerator_T`` over that of ``denominator_T``, where 0 <= numerator <= denominator for every task.

    ``empty`` is the reason why there is no number where the denominators are all zero.  The effective number of trials
    is p (1 - p) / variance over tasks, at most the square of the effective number of tasks; for a rate of 0 or 1 it is
    the effective number of tasks, (sum of denominators)^2 / (sum of their squares).
    """
    from scipy import stats

    total = float(denominator_T.sum())
    if total <= 0:
        return TaxEstimate(None, None, None, reason=empty, interval_reason=empty)
    p = min(1.0, float(numerator_T.sum()) / total)
    tasks = total**2 / float((denominator_T**2).sum())
    variance = float(((numerator_T - p * denominator_T) ** 2).sum()) / total**2
    spread = p * (1 - p)
    trials = min(spread / variance if variance > 0 else np.inf, tasks**2) if spread > 0 else tasks
    # Of single outcomes the score interval knows the variance; of shares it is estimated from the tasks.
    single = bool((np.isin(denominator_T, (0.0, 1.0)) & np.isin(numerator_T, (0.0, 1.0))).all())
    z = float(stats.norm.ppf((1 + level) / 2) if single else stats.t.ppf((1 + level) / 2, max(1.0, tasks - 1)))
    middle = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(spread / trials + z**2 / (4 * trials**2))
    return TaxEstimate(p, max(0.0, min(p, float(middle - half))), min(1.0, max(p, float(middle + half))))


def mean_rate(values_T: FloatArray, level: float = LEVEL) -> TaxEstimate:
    """The mean over tasks of values between 0 and 1."""
    return rate(values_T, np.ones(len(values_T)), level)


def mean_difference(values_T: FloatArray, level: float = LEVEL) -> TaxEstimate:
    """The mean over tasks of values between -1 and 1: a difference of two rates of the same tasks."""
    from scipy import stats

    tasks, point = len(values_T), float(values_T.mean())
    if tasks < 2:
        return TaxEstimate(point, None, None, interval_reason="one task shows no spread over tasks")
    variance = float(values_T.var(ddof=1)) / tasks + 1 / tasks**2
    half = float(stats.t.ppf((1 + level) / 2, tasks - 1) * np.sqrt(variance))
    return TaxEstimate(point, max(-1.0, point - half), min(1.0, point + half))


def correlation(numerators_2T: tuple[FloatArray, FloatArray], denominators_2T: tuple[FloatArray, FloatArray]) -> float:
    """Of the errors of two rates over the same tasks; 0 where one of them shows no spread."""
    errors_2T = []
    for numerator_T, denominator_T in zip(numerators_2T, denominators_2T, strict=True):
        total = float(denominator_T.sum())
        errors_2T.append(numerator_T - (numerator_T.sum() / total if total > 0 else 0.0) * denominator_T)
    sizes = [float(np.sqrt((errors_T**2).sum())) for errors_T in errors_2T]
    return float((errors_2T[0] * errors_2T[1]).sum()) / (sizes[0] * sizes[1]) if min(sizes) > 0 else 0.0


def rate_difference(first: TaxEstimate, second: TaxEstimate, correlated: float = 0.0) -> TaxEstimate:
    """``first`` less ``second``, two rates, from their intervals and the correlation of their errors (Newcombe 1998).

    Without a correlation it is method 10 of "Interval estimation for the difference between independent proportions".
    """
    ends = (first.point, first.low, first.high, second.point, second.low, second.high)
    if any(end is None for end in ends):
        missing = first.reason or second.reason or first.interval_reason or second.interval_reason
        return TaxEstimate(None, None, None, reason=missing, interval_reason=missing)
    p, low, high, q, under, over = (float(end) for end in ends if end is not None)

    def reach(one: float, other: float) -> float:
        return float(np.sqrt(max(one**2 + other**2 - 2 * correlated * one * other, 0.0)))

    return TaxEstimate(p - q, p - q - reach(p - low, over - q), p - q + reach(high - p, q - under))
