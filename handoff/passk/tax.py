"""The sharpening tax: the part of a policy's gain by repeated sampling that post-training takes away.

Of a pass@k curve up to a budget K, with pass@k the mean over tasks of equal weight:

    A(K) = sum_{k<K} (pass@K - pass@k)           raw scalability (Eq. 1)
    S(K) = A(K) / ((K-1) (1 - pass@1))           calibrated, in [0, 1] (Eq. 2)
    Tax_A = A_base - A_post,  Tax_S = S_base - S_post   (Eq. 3)

With H the rollout of the first success, A(K) = E[(H-1) 1{H <= K}]: failed attempts before a success within the budget
(Proposition 1).  With C = pass@K and Cbar(K) the mean of pass@1 ... pass@K, A(K) = K (C - Cbar(K)) (Corollary 4), so
that Tax_A = K (gap of the ceilings) - K (gap of the budget-averaged coverages) (Eq. 8).

Equations and tables are numbered as in "Sharpening Tax in Post-Training".

S is undefined where pass@1 = 1 (no attempt fails, so there is nothing to retry) and at K = 1; it is then ``None``,
never 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from handoff.errors import UsageError
from handoff.passk.counts import Counts, matched
from handoff.passk.curves import FloatArray, pass_at_k_curves

#: The paper of all equations, tables and theorems that this package names by number.
PAPER = "Sharpening Tax in Post-Training"
#: Values nearer than this are the same.
SAME = 1e-12

NO_HEADROOM = "pass@1 is 1: no attempt fails, so there is nothing that retries could convert"
NO_RETRIES = "a budget of one rollout has no retries"


def scalability(curve_K: ArrayLike) -> FloatArray:
    """A(1) ... A(K) of curves pass@1 ... pass@K along the last axis (Eq. 1); A(k) = k pass@k - sum_{j<=k} pass@j."""
    curve = np.asarray(curve_K, dtype=np.float64)
    budgets_K = np.arange(1, curve.shape[-1] + 1)
    result: FloatArray = budgets_K * curve - np.cumsum(curve, axis=-1)
    return result


def calibrated(curve_K: ArrayLike) -> FloatArray:
    """S(1) ... S(K) of curves along the last axis; NaN where undefined (k = 1, or pass@1 = 1)."""
    curve = np.asarray(curve_K, dtype=np.float64)
    failing = 1 - curve[..., :1]
    headroom = np.arange(curve.shape[-1]) * np.where(failing > SAME, failing, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = np.where(headroom > 0, scalability(curve) / headroom, np.nan)
    return result


def calibrated_scalability(curve_K: ArrayLike) -> float | None:
    """S(K) of one curve (Eq. 2); ``None`` where it is undefined."""
    value = float(calibrated(curve_K)[-1])
    return None if np.isnan(value) else value


def contributions(base: Counts, post: Counts, budget: int) -> FloatArray:
    """Per task, its part of Tax_S(``budget``) (Eq. 10), shape (tasks,); their mean is Tax_S.

    a_i of each policy is divided by the policy's benchmark-level headroom (K-1)(1 - pass@1).  Raises
    :class:`~handoff.errors.UsageError` where a headroom is zero.
    """
    base, post = matched(base, post)
    parts = []
    for counts in (base, post):
        curves_TK = pass_at_k_curves(counts.n_T, counts.c_T, budget)
        headroom = (budget - 1) * (1 - float(curves_TK[:, 0].mean()))
        if headroom <= SAME:
            raise UsageError(f"{counts.name}: {NO_RETRIES if budget == 1 else NO_HEADROOM}")
        parts.append(scalability(curves_TK)[:, -1] / headroom)
    result: FloatArray = parts[0] - parts[1]
    return result


def crossover(base_K: ArrayLike, post_K: ArrayLike) -> int | None:
    """The least k at which the base's pass@k is greater than the post-trained policy's; ``None`` if it never is."""
    greater = np.flatnonzero(np.asarray(base_K) > np.asarray(post_K) + SAME)
    return int(greater[0]) + 1 if len(greater) else None
