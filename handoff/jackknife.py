"""Variance by leaving one task out: how unsure each estimand is, and on how many degrees of freedom."""

from __future__ import annotations

import attrs
import numpy as np

from handoff.evaluation import Evaluated
from handoff.resampling import Plan
from handoff.sums import FloatArray


@attrs.frozen(eq=False)
class Spread:
    """``variance_E`` of each estimand and its Satterthwaite degrees of freedom ``freedom_E``.

    Both are NaN where leaving out one task leaves an estimand undefined; ``freedom_E`` also where there is no variance.
    """

    variance_E: FloatArray
    freedom_E: FloatArray


def spread(evaluation: Evaluated, plan: Plan) -> Spread:
    """The stratified delete-one jackknife.

    Stratum h of n_h tasks adds v_h = (n_h - 1) / n_h * sum over its tasks of (theta_(hi) - mean theta_(h.))^2, where
    its other tasks weigh n_h / (n_h - 1) while one is out.  The degrees of freedom are
    (sum v_h)^2 / sum(v_h^2 / (n_h - 1))
    (F. E. Satterthwaite, Biometrics Bulletin 2, 1946): few when few strata carry the variance, as with rare arrivals.
    """
    tasks = plan.tasks
    ones_T = np.ones(tasks)
    variance_E, squares_E = np.zeros((2, len(evaluation.estimands)))
    for stratum in plan.strata:
        n = len(stratum.tasks)
        if n < 2:
            continue
        values_EN = np.empty((len(evaluation.estimands), n))
        size = max(1, 2**22 // tasks)
        for first in range(0, n, size):
            out_N = stratum.tasks[first : first + size]
            weights_NT = np.ones((len(out_N), tasks))
            weights_NT[:, stratum.tasks] = n / (n - 1)
            weights_NT[np.arange(len(out_N)), out_N] = 0.0
            values_EN[:, first : first + len(out_N)] = evaluation.values(weights_NT, ones_T)
        off_EN = values_EN - values_EN.mean(axis=1, keepdims=True)
        part_E = (n - 1) / n * (off_EN**2).sum(axis=1)
        variance_E += part_E
        squares_E += part_E**2 / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Spread(variance_E, variance_E**2 / squares_E)
