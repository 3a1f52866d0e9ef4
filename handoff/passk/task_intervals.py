"""Intervals of shares over some of the tasks: ratios of two sums over tasks, and differences of two such shares.

A share has Wilson's score interval on its effective number of trials.  A difference of two has the ends that the
distances of both intervals make, with the correlation of the errors (Newcombe 1998).
"""

from __future__ import annotations

import numpy as np

from handoff.estimation.intervals import student, wilson
from handoff.passk.comparison import LEVEL
from handoff.passk.curves import FloatArray
from handoff.passk.estimators import TaxEstimate, effective_tasks


def rate(numerator_T: FloatArray, denominator_T: FloatArray, level: float = LEVEL, empty: str = "") -> TaxEstimate:
    """The sum of ``numerator_T`` over that of ``denominator_T``, where 0 <= numerator <= denominator for every task.

    ``empty`` is the reason why there is no number where the denominators are all zero.  The effective number of trials
    is p (1 - p) / variance over tasks, at most the square of the effective number of tasks; for a share of 0 or 1 it
    is the effective number of tasks.
    """
    total = float(denominator_T.sum())
    if total <= 0:
        return TaxEstimate(None, None, None, reason=empty, interval_reason=empty)
    p = min(1.0, float(numerator_T.sum()) / total)
    tasks = effective_tasks(denominator_T)
    variance = float(((numerator_T - p * denominator_T) ** 2).sum()) / total**2
    spread = p * (1 - p)
    trials = min(spread / variance if variance > 0 else np.inf, tasks**2) if spread > 0 else tasks
    # Of single outcomes the score interval knows the variance; of shares it is estimated from the tasks.
    single = bool((np.isin(denominator_T, (0.0, 1.0)) & np.isin(numerator_T, (0.0, 1.0))).all())
    low, high = wilson(p, trials, student(level, np.inf if single else tasks - 1))
    return TaxEstimate(p, min(low, p), max(high, p))


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
