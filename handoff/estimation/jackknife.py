"""Variance by leaving one task out: how unsure each estimand is, and on how many degrees of freedom."""

from __future__ import annotations

import attrs
import numpy as np

from handoff.estimation.counting import FloatArray
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.resampling import Plan


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
    values_ET = _without_each(evaluation, plan)
    variance_E, squares_E = np.zeros((2, len(evaluation.estimands)))
    for stratum in plan.strata:
        n = len(stratum.tasks)
        if n < 2:
            continue
        values_EN = values_ET[:, stratum.tasks]
        off_EN = values_EN - values_EN.mean(axis=1, keepdims=True)
        part_E = (n - 1) / n * (off_EN**2).sum(axis=1)
        variance_E += part_E
        squares_E += part_E**2 / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Spread(variance_E, variance_E**2 / squares_E)


def _without_each(evaluation: Evaluated, plan: Plan) -> FloatArray:
    """Shape (E, T): every estimand without each task in turn, the other tasks of its stratum making up for it."""
    tasks = plan.tasks
    stratum_T = np.empty(tasks, np.int64)
    weight_T = np.ones(tasks)
    for h, stratum in enumerate(plan.strata):
        stratum_T[stratum.tasks] = h
        n = len(stratum.tasks)
        if n > 1:
            weight_T[stratum.tasks] = n / (n - 1)
    values_ET = np.empty((len(evaluation.estimands), tasks))
    size = max(1, 2**22 // tasks)
    for first in range(0, tasks, size):
        out_O = np.arange(first, min(first + size, tasks))
        weights_OT = np.where(stratum_T[out_O, None] == stratum_T, weight_T, 1.0)
        weights_OT[np.arange(len(out_O)), out_O] = 0.0
        values_ET[:, out_O] = evaluation.values(weights_OT)
    return values_ET
