"""Intervals of the numbers of ``handoff tax``, from each number on the data and on other weightings of the tasks.

``jackknife`` (the default)
    Every number once more without each task: the delete-one jackknife variance and Student's t.  Degrees of freedom
    are few where few tasks carry the number (:func:`handoff.estimation.intervals.kurtosis_freedom`, and
    :func:`effective_tasks` of a number that is a share of the headroom).  A rate (pass@k, pass^k) has Wilson's score
    interval on as many trials as its variance is worth, as everywhere in the toolkit.
``paper``
    Percentiles of a paired bootstrap: both policies' counts of a drawn task come together ("Sharpening Tax in
    Post-Training", section 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import attrs
import numpy as np
from numpy.typing import ArrayLike

from handoff.estimation.intervals import kurtosis_freedom, student, wilson
from handoff.passk.curves import FloatArray
from handoff.passk.tax import NO_HEADROOM, NO_RETRIES, SAME

#: More draws than this share in which a number is undefined refuse its interval.
EXCLUDED_LIMIT = 0.01
#: Fewer tasks than this carry a number: its interval is marked.
FEW = 20
METHODS = ("jackknife", "paper")

#: A rate is a mean over tasks of probabilities.  A contrast is a difference between policies.  A positive number is a
#: policy's A or S.
Kind = Literal["rate", "contrast", "positive"]


@attrs.frozen
class TaxEstimate:
    """A number with its interval."""

    #: ``None`` where undefined, with the ``reason``.
    point: float | None
    #: Ends of the interval; ``None`` without one, with the ``interval_reason``.
    low: float | None
    high: float | None
    reason: str | None = None
    interval_reason: str | None = None
    #: Bootstrap draws, or tasks left out, that left the number undefined.
    excluded: int = 0
    #: Whether all draws gave one value.
    degenerate: bool = False
    #: What to know of the interval.
    note: str | None = None


@attrs.frozen(eq=False)
class Measured:
    """Numbers of one kind, on the data and on every other weighting of the tasks."""

    #: Axis D: the data first, then each other weighting; NaN where undefined.  One number per column.
    values_DK: FloatArray
    kind: Kind
    #: The largest size of a number.
    most_K: FloatArray
    #: The largest change of a contrast that one rollout's outcome can make.
    step_K: FloatArray
    #: Independent trials that a rate has at most.
    trials_K: FloatArray
    #: Tasks that carry the number, at most all.
    carriers: float = np.inf

    @classmethod
    def of(
        cls,
        values: FloatArray,
        kind: Kind,
        most: ArrayLike = 1.0,
        *,
        step: ArrayLike = 0.0,
        trials: ArrayLike = 1.0,
        carriers: float = np.inf,
    ) -> Measured:
        """Of values of shape (D,) or (D, K)."""
        values_DK = values[:, None] if values.ndim == 1 else values
        most_K, step_K, trials_K = (
            np.broadcast_to(np.asarray(one, np.float64), values_DK.shape[1:]) for one in (most, step, trials)
        )
        return cls(values_DK, kind, most_K, step_K, trials_K, carriers)


class Estimator(ABC):
    """Makes estimates from values on the data and on other weightings of the tasks."""

    method: str

    @abstractmethod
    def means(self, values_T: FloatArray) -> FloatArray:
        """The mean over tasks (the first axis) of the data, then of every other weighting: the axis D."""

    @abstractmethod
    def interval(self, values_D: FloatArray, measured: Measured, k: int, undefined: str) -> TaxEstimate:
        """The estimate of one number that is defined on the data."""

    def one(self, measured: Measured) -> TaxEstimate:
        return self.each(measured)[0]

    def each(self, measured: Measured) -> tuple[TaxEstimate, ...]:
        """One estimate per column.  Of several columns the first is the budget of one rollout."""
        estimates = []
        for k in range(measured.values_DK.shape[1]):
            undefined = NO_RETRIES if k == 0 and measured.values_DK.shape[1] > 1 else NO_HEADROOM
            values_D = measured.values_DK[:, k]
            if np.isnan(values_D[0]):
                lost = int(np.isnan(values_D[1:]).sum())
                estimates.append(TaxEstimate(None, None, None, undefined, undefined, lost))
            else:
                estimates.append(self.interval(values_D, measured, k, undefined))
        return tuple(estimates)

    def band(self, measured: Measured) -> tuple[tuple[float, float], ...]:
        """The interval of every column of a rate; the whole range where it is refused."""
        return tuple(
            (0.0, 1.0) if one.low is None or one.high is None else (one.low, one.high) for one in self.each(measured)
        )


@attrs.frozen(eq=False)
class LeaveOneOut(Estimator):
    """Delete-one jackknife and Student's t."""

    tasks: int
    level: float
    method = "jackknife"

    def means(self, values_T: FloatArray) -> FloatArray:
        total = values_T.sum(axis=0, keepdims=True)
        without = (total - values_T) / (self.tasks - 1) if self.tasks > 1 else np.full_like(values_T, np.nan)
        means: FloatArray = np.concatenate([values_T.mean(axis=0, keepdims=True), without])
        return means

    def interval(self, values_D: FloatArray, measured: Measured, k: int, undefined: str) -> TaxEstimate:
        point, without_T = float(values_D[0]), values_D[1:]
        lost = int(np.isnan(without_T).sum())
        if self.tasks < 2:
            return _refused(point, "refused: one task shows no variance between tasks", lost)
        if lost:
            return _refused(point, f"refused: without one of its tasks the number is undefined ({undefined})", lost)
        off_T = without_T - without_T.mean()
        square = float(off_T @ off_T)
        variance = (self.tasks - 1) / self.tasks * square
        kurtosis = self.tasks * float((off_T**2) @ (off_T**2)) / square**2 if variance > SAME**2 else 0.0
        freedom = min(float(kurtosis_freedom(self.tasks, kurtosis)), measured.carriers - 1)
        if measured.kind == "rate":
            certain = point < SAME or point > 1 - SAME
            most = float(measured.trials_K[k])
            # Where all tasks agree on 0 or 1, each counts as one trial.
            trials = float(self.tasks) if certain else min(most, point * (1 - point) / max(variance, SAME))
            low, high = wilson(point, trials, student(self.level, freedom))
            return TaxEstimate(point, min(low, point), max(high, point))
        if variance <= SAME**2 and not measured.step_K[k]:
            return _refused(point, "refused: every task gives the same value, so an interval would have no width")
        critical, most = student(self.level, freedom), float(measured.most_K[k])
        note = None
        if measured.carriers < min(FEW, self.tasks):
            note = f"few tasks carry it (as many as {measured.carriers:.1f} of equal weight): the interval is uncertain"
        if measured.kind == "positive":
            # Misses lie above, where the tasks are that nobody drew: the interval is symmetric on the logarithm.
            factor = np.exp(min(critical * np.sqrt(variance) / point, 700.0)) if point > SAME else np.inf
            return TaxEstimate(point, point / float(factor), min(most, point * float(factor)), note=note)
        half = critical * float(np.sqrt(variance + (float(measured.step_K[k]) / self.tasks) ** 2))
        return TaxEstimate(point, max(-most, point - half), min(most, point + half), note=note)


@attrs.frozen(eq=False)
class Percentiles(Estimator):
    """Percentiles of bootstrap draws of the tasks."""

    #: The share of each task in every draw (B, T).
    weights_BT: FloatArray
    level: float
    method = "paper"

    def means(self, values_T: FloatArray) -> FloatArray:
        means: FloatArray = np.concatenate([values_T.mean(axis=0, keepdims=True), self.weights_BT @ values_T])
        return means

    def interval(self, values_D: FloatArray, measured: Measured, k: int, undefined: str) -> TaxEstimate:
        point, draws_B = float(values_D[0]), values_D[1:]
        excluded = int(np.isnan(draws_B).sum())
        if excluded > EXCLUDED_LIMIT * len(draws_B):
            return _refused(point, f"undefined in {excluded} of {len(draws_B)} draws ({undefined})", excluded)
        shares = [(1 - self.level) / 2, (1 + self.level) / 2]
        low, high = np.quantile(draws_B[~np.isnan(draws_B)], shares).tolist()
        return TaxEstimate(point, low, high, excluded=excluded, degenerate=high - low < SAME)


def effective_tasks(weights_T: FloatArray) -> float:
    """How many tasks of equal weight are as uneven as these: (sum w)^2 / sum w^2 (L. Kish, Survey Sampling, 1965).

    1 where no task has any weight.
    """
    square = float(weights_T @ weights_T)
    return float(weights_T.sum()) ** 2 / square if square > 0 else 1.0


def _refused(point: float, why: str, excluded: int = 0) -> TaxEstimate:
    return TaxEstimate(point, None, None, interval_reason=why, excluded=excluded)


def estimator_of(method: str, tasks: int, level: float, weights_BT: FloatArray) -> Estimator:
    """The estimator called ``method``."""
    return LeaveOneOut(tasks, level) if method == "jackknife" else Percentiles(weights_BT, level)
