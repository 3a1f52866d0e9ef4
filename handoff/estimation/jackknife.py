"""The delete-one jackknife: the variance of each estimand and its degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import empty_allowed
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.intervals import kurtosis_freedom
from handoff.estimation.resampling import Plan


@attrs.frozen(eq=False)
class Jackknife:
    """All arrays are NaN where leaving out one task leaves an estimand undefined."""

    variance_E: FloatArray
    #: Satterthwaite's degrees of freedom; NaN also where there is no variance.
    freedom_E: FloatArray
    #: The same, at most those of the kurtosis of the tasks' contributions (:func:`~.intervals.kurtosis_freedom`).
    bounded_E: FloatArray


def jackknife(evaluated: Evaluated, plan: Plan) -> Jackknife:
    """The stratified delete-one jackknife.

    Stratum h of n_h tasks adds v_h = (n_h - 1) / n_h * sum over its tasks of (theta_(hi) - mean theta_(h.))^2, where
    its other tasks weigh n_h / (n_h - 1) while one is out.  The degrees of freedom are
    (sum v_h)^2 / sum(v_h^2 / (n_h - 1))
    (F. E. Satterthwaite, Biometrics Bulletin 2, 1946): few when few strata carry the variance, as with rare arrivals.
    """
    values_ET = _without_each(evaluated, plan)
    variance_E, squares_E, fourths_E = np.zeros((3, len(evaluated.estimands)))
    for stratum in plan.strata:
        n = len(stratum.tasks)
        if n < 2:
            continue
        values_EN = values_ET[:, stratum.tasks]
        off_EN = values_EN - values_EN.mean(axis=1, keepdims=True)
        part_E = (n - 1) / n * (off_EN**2).sum(axis=1)
        variance_E += part_E
        squares_E += part_E**2 / (n - 1)
        fourths_E += ((n - 1) / n) ** 2 * (off_EN**4).sum(axis=1)
    tasks_E = np.array([evaluated.depends_on(e).sum() for e in range(len(evaluated.estimands))])
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom_E = variance_E**2 / squares_E
        kurtosis_E = tasks_E * fourths_E / variance_E**2
        return Jackknife(variance_E, freedom_E, np.fmin(freedom_E, kurtosis_freedom(tasks_E, kurtosis_E)))


def _without_each(evaluated: Evaluated, plan: Plan) -> FloatArray:
    """Shape (E, T): every estimand without each task in turn, the other tasks of its stratum making up for it."""
    tasks = plan.tasks
    stratum_T = np.empty(tasks, np.int64)
    weight_T = np.ones(tasks)
    for h, stratum in enumerate(plan.strata):
        stratum_T[stratum.tasks] = h
        n = len(stratum.tasks)
        if n > 1:
            weight_T[stratum.tasks] = n / (n - 1)
    values_ET = np.full((len(evaluated.estimands), tasks), np.nan)
    size = max(1, 2**22 // tasks)
    for first in range(0, tasks, size):
        out_O = np.arange(first, min(first + size, tasks))
        weights_OT = np.where(stratum_T[out_O, None] == stratum_T, weight_T, 1.0)
        weights_OT[np.arange(len(out_O)), out_O] = 0.0
        sums = [
            _weighted(part.counts_KT.astype(np.float64), part.table.strata, weights_OT[:, start:])
            for part, start in zip(evaluated.parts, evaluated.firsts, strict=True)
        ]
        with empty_allowed():
            for e, values_O in evaluated.formulas(sums, range(len(evaluated.estimands))):
                values_ET[e, out_O] = values_O
    return values_ET


def _weighted(counts_KT: FloatArray, strata: Sequence[str], weights_OT: FloatArray) -> dict[str | None, FloatArray]:
    """Shape (K, O) by task type, and of all tasks under ``None``: the counts under O weightings of the tasks."""
    by_type: dict[str | None, FloatArray] = {}
    whole_KO = np.zeros((len(counts_KT), len(weights_OT)))
    for type in dict.fromkeys(strata):
        start = strata.index(type)  # a table keeps the tasks of one type together
        span = slice(start, start + strata.count(type))
        by_type[type] = _product(counts_KT[:, span], weights_OT[:, span])
        whole_KO += by_type[type]
    return {**by_type, None: whole_KO}


def _product(counts_KN: FloatArray, weights_ON: FloatArray) -> FloatArray:
    """Shape (K, O), by products small enough for BLAS to keep to one thread.

    They are no slower on an idle machine, and on a busy one BLAS threads that wait for each other cost many times more.
    """
    sums_KO = np.empty((len(counts_KN), len(weights_ON)))
    size = max(16, 2**17 // max(1, counts_KN.size))
    for first in range(0, len(weights_ON), size):
        part = slice(first, first + size)
        np.matmul(counts_KN, weights_ON[part].T, out=sums_KO[:, part])
    return sums_KO
