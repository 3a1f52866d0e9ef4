"""The delete-one jackknife: the variance of each estimand and its degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from handoff.estimation.arrays import FloatArray, IntArray
from handoff.estimation.counting import empty_allowed
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.intervals import SAME, kurtosis_freedom
from handoff.estimation.resampling import Plan

#: Tasks that are left out at a time, one each.
CHUNK = 2048


@attrs.frozen(eq=False)
class Jackknife:
    """Both arrays are NaN where leaving out one task leaves an estimand undefined."""

    variance_E: FloatArray
    #: Satterthwaite's degrees of freedom, at most those of the kurtosis of the tasks' contributions
    #: (:func:`~.intervals.kurtosis_freedom`); NaN also where there is no variance.
    freedom_E: FloatArray


def jackknife(evaluated: Evaluated, plan: Plan) -> Jackknife:
    """The stratified delete-one jackknife.

    Stratum h of n_h tasks adds v_h = (n_h - 1) / n_h * sum over its tasks of (theta_(hi) - mean theta_(h.))^2, where
    its other tasks weigh n_h / (n_h - 1) while one is out.  The degrees of freedom are
    (sum v_h)^2 / sum(v_h^2 / (n_h + 1)) - 2,
    at least 1 and at most those of the strata with a variance: few when few strata carry it, as with rare arrivals.
    This is the rule of F. E. Satterthwaite (Biometrics Bulletin 2, 1946), (sum V_h)^2 / sum(V_h^2 / (n_h - 1)) for the
    true variances V_h, with unbiased squares: the mean of v_h^2 is (n_h + 1) / (n_h - 1) V_h^2 for normal values.
    Plain v_h^2 would give a third of the degrees of freedom where each type has two tasks.
    """
    values_ET = _without_each(evaluated, plan)
    variance_E, squares_E, fourths_E, most_E = np.zeros((4, len(evaluated.estimands)))
    for stratum in plan.strata:
        n = len(stratum.tasks)
        if n < 2:
            continue
        values_EN = np.ascontiguousarray(values_ET[:, stratum.tasks])  # each row is summed in one order
        off_EN = values_EN - values_EN.mean(axis=1, keepdims=True)
        part_E = (n - 1) / n * (off_EN**2).sum(axis=1)
        variance_E += part_E
        squares_E += part_E**2 / (n + 1)
        most_E += (part_E > SAME) * (n - 1)
        fourths_E += ((n - 1) / n) ** 2 * (off_EN**4).sum(axis=1)
    tasks_E = np.array([evaluated.depends_on(e).sum() for e in range(len(evaluated.estimands))])
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom_E = np.clip(variance_E**2 / squares_E - 2, 1.0, np.maximum(most_E, 1.0))
        most_E = kurtosis_freedom(tasks_E, tasks_E * fourths_E / variance_E**2)
    return Jackknife(variance_E, np.fmin(freedom_E, most_E))


def _without_each(evaluated: Evaluated, plan: Plan) -> FloatArray:
    """Shape (E, T): every estimand without each task in turn, the other tasks of its stratum making up for it."""
    values_ET = np.full((len(evaluated.estimands), plan.tasks), np.nan)
    for stratum in plan.strata:
        for first in range(0, len(stratum.tasks), CHUNK):
            out_O = stratum.tasks[first : first + CHUNK]
            sums = [
                _without(part.counts_KT, part.table.strata, stratum.tasks - start, out_O - start)
                for part, start in zip(evaluated.parts, evaluated.firsts, strict=True)
            ]
            with empty_allowed():
                for e, values_O in evaluated.formulas(sums, range(len(evaluated.estimands))):
                    values_ET[e, out_O] = values_O
    return values_ET


def _without(
    counts_KT: IntArray, strata: Sequence[str], stratum_N: IntArray, out_O: IntArray
) -> dict[str | None, FloatArray]:
    """Shape (K, O) by task type, and of all tasks under ``None``: the counts without each of the tasks ``out_O``.

    The stratum's other tasks weigh n / (n - 1).  Tasks of another table lie outside ``counts_KT``.  Sums are of whole
    numbers, and so the same to the last bit for any choice of counts.
    """
    stratum_N = stratum_N[(stratum_N >= 0) & (stratum_N < counts_KT.shape[1])]
    here = len(stratum_N) > 0
    scale = len(stratum_N) / (len(stratum_N) - 1) if len(stratum_N) > 1 else 1.0
    by_type: dict[str | None, FloatArray] = {}
    for type in (*dict.fromkeys(strata), None):
        of_type_T = np.array([type in (None, stratum) for stratum in strata])
        total_K1 = counts_KT[:, of_type_T].sum(axis=1, keepdims=True)
        if not here or not of_type_T[stratum_N].any():
            by_type[type] = np.repeat(total_K1.astype(np.float64), len(out_O), axis=1)
            continue
        inside_K1 = counts_KT[:, stratum_N[of_type_T[stratum_N]]].sum(axis=1, keepdims=True)
        left_KO = inside_K1 - counts_KT[:, out_O] * of_type_T[out_O]
        by_type[type] = (total_K1 - inside_K1) + scale * left_KO
    return by_type
