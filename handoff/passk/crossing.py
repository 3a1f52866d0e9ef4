"""Mean curves of many pairs, and where the mean curve of the bases overtakes that of the post-trained policies.

Every base has the same weight, and so have the post-trained policies of one base.  A base that several policies share
is counted once.

The pairs of a benchmark have the same tasks, so a mean over pairs varies with the pairs and with the tasks.  With one
pair left out at a time the variance is V_pairs, with one task left out at a time (of all pairs on it) V_tasks.  The
noise of single pairs on single tasks is in both, so it is taken away once (Cameron, Gelbach and Miller 2011, "Robust
inference with multiway clustering"):

    V = V_pairs + max(V_tasks - V_pairs_on_tasks, 0)

An interval is the point plus and minus t standard errors.  The degrees of freedom are the geometric mean of
Satterthwaite's and those of the pairs alone: where chance made the V_pairs of few pairs small, Satterthwaite's are too
many.  A bootstrap that draws pairs and tasks counts the noise of single pairs three times (Owen 2007, "The pigeonhole
bootstrap"), and cannot reach far enough with few pairs.  The units on the upper level are bases with all their
policies; with one base, its policies.  Two of either say nothing about their spread: then V = V_tasks, for the given
pairs.  The variance of one rollout's outcome on one task is added to differences of coverage (Agresti and Min 2005),
so that policies that agree do not get an interval without width.

The interval of the crossover holds the budgets k that the intervals of the difference at k leave open: from the first k
at which the upper end of "bases less post-trained" is above zero to the first k at which the lower end is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np
from numpy.typing import ArrayLike

from handoff.errors import UsageError
from handoff.passk.comparison import LEVEL, MOST_NUMBERS
from handoff.passk.counts import Counts
from handoff.passk.curves import FloatArray, pass_at_k_curves, pass_hat_k_curves
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import BaseRuns, Pair, by_base, common_budget
from handoff.passk.tax import NO_HEADROOM, SAME, calibrated, crossover, scalability
from handoff.settings import require

#: The fewest bases (or post-trained policies of one base) whose spread is estimated.
LEAST_UNITS = 3

Band = tuple[tuple[float, float], ...]


@attrs.frozen
class MeanCurve:
    """The mean of several policies' curves."""

    #: pass@1 ... pass@K, and the pointwise interval of each.
    pass_at_k: tuple[float, ...]
    pass_at_k_band: Band
    #: pass^1 ... pass^K, and the pointwise interval of each.
    pass_hat_k: tuple[float, ...]
    pass_hat_k_band: Band
    #: Mean shares of the tasks.
    never_solved: float
    always_solved: float


@attrs.frozen
class Crossing:
    """The least k at which the bases' mean pass@k is greater."""

    #: ``None`` where it is greater at no k up to the budget.
    k: int | None
    #: Ends of the interval; ``None``: beyond the budget.
    low: int | None
    high: int | None


@attrs.frozen
class MeanCurves:
    """Means over pairs, each base counted once, with intervals over pairs and tasks."""

    budget: int
    #: Different base evaluations, and pairs.
    bases: int
    pairs: int
    #: The units whose spread the intervals have beside that of tasks: "bases", "post-trained policies", or "".
    spread: str
    level: float
    base: MeanCurve
    post: MeanCurve
    crossing: Crossing
    tax_a: TaxEstimate
    tax_s: TaxEstimate
    coverage_lost: TaxEstimate
    efficiency_gained: TaxEstimate
    #: Pairs that the mean of Tax_S leaves out, because theirs is undefined.
    undefined: int


def mean_curves(pairs: Sequence[Pair], budget: int | None = None, *, level: float = LEVEL) -> MeanCurves:
    """Mean curves of ``pairs`` up to ``budget`` (default: the fewest rollouts that a task of any pair has).

    Raises :class:`~handoff.errors.UsageError` for a number out of range, and as
    :func:`~handoff.passk.pairs.by_base` does.
    """
    groups = by_base(pairs)
    budget = common_budget(pairs, budget)
    require("level", level, least=0, most=1, open=True)
    tasks = sum(len(pair.base.tasks) for pair in pairs)
    if tasks * budget > MOST_NUMBERS:
        raise UsageError(
            f"a budget of {budget:,} rollouts over {tasks:,} tasks of all pairs does not fit into memory: choose a "
            "smaller --budget"
        )
    sides = [_Curves.of(group, budget) for group in groups]
    keys = [group.pairs[0].task_set for group in groups]
    lone = len(groups) == 1 and len(groups[0].pairs) >= LEAST_UNITS
    spread = "bases" if len(groups) >= LEAST_UNITS else "post-trained policies" if lone else ""

    def of_bases(values: Sequence[FloatArray]) -> _Mean:
        """Of one value per task and budget of every base."""
        return _Mean.of([[one] for one in values], keys, level, by_group=True)

    def of_both(values: Sequence[tuple[FloatArray, Sequence[FloatArray]]], discordant: ArrayLike = 0.0) -> _Mean:
        """Of the sums of the values of every base and the mean of those of its policies."""
        posts, bases = [posts for _, posts in values], [base for base, _ in values]
        return _Mean.of(posts, keys, level, bases, by_group=not lone, discordant=discordant)

    nothing = [np.zeros_like(one.base_TK) for one in sides]
    post = of_both([(zero, one.post_TK) for zero, one in zip(nothing, sides, strict=True)])
    hat = of_both([(zero, one.post_hat_TK) for zero, one in zip(nothing, sides, strict=True)])
    # One rollout's outcome changes pass@k of a task by k of n rollouts at most.
    step_K = np.arange(1, budget + 1) / min(pair.rollouts for pair in pairs)
    lost = of_both([(one.base_TK, [-curve for curve in one.post_TK]) for one in sides], step_K)
    raw = of_both([
        (scalability(one.base_TK)[:, -1:], [-scalability(curve)[:, -1:] for curve in one.post_TK]) for one in sides
    ])  # fmt: skip
    return MeanCurves(
        budget=budget,
        bases=len(groups),
        pairs=len(pairs),
        spread=spread,
        level=level,
        base=_curve(
            of_bases([one.base_TK for one in sides]),
            of_bases([one.base_hat_TK for one in sides]),
            [[group.base] for group in groups],
        ),
        post=_curve(post, hat, [[pair.post for pair in group.pairs] for group in groups]),
        crossing=lost.crossing(),
        tax_a=raw.estimate(0),
        tax_s=_tax_s(groups, sides, level),
        coverage_lost=lost.estimate(budget - 1),
        efficiency_gained=_negative(lost.estimate(0)),
        undefined=sum(_undefined(one, curve) for one in sides for curve in one.post_TK),
    )


def _curve(at: _Mean, hat: _Mean, policies: list[list[Counts]]) -> MeanCurve:
    never = [np.mean([(one.c_T == 0).mean() for one in group]) for group in policies]
    always = [np.mean([(one.c_T == one.n_T).mean() for one in group]) for group in policies]
    return MeanCurve(
        tuple(at.point_K.tolist()),
        at.band(),
        tuple(hat.point_K.tolist()),
        hat.band(),
        float(np.mean(never)),
        float(np.mean(always)),
    )


def _negative(one: TaxEstimate) -> TaxEstimate:
    point, low, high = (None if end is None else -end for end in (one.point, one.high, one.low))
    return attrs.evolve(one, point=point, low=low, high=high)


@attrs.frozen(eq=False)
class _Curves:
    """The curves of one base and its policies on every task, in the order of the tasks' names."""

    base_TK: FloatArray
    base_hat_TK: FloatArray
    post_TK: list[FloatArray]
    post_hat_TK: list[FloatArray]

    @classmethod
    def of(cls, group: BaseRuns, budget: int) -> _Curves:
        order = sorted(group.base.tasks)
        base, *posts = (one.in_order_of(order) for one in (group.base, *(pair.post for pair in group.pairs)))
        return cls(
            pass_at_k_curves(base.n_T, base.c_T, budget),
            pass_hat_k_curves(base.n_T, base.c_T, budget),
            [pass_at_k_curves(post.n_T, post.c_T, budget) for post in posts],
            [pass_hat_k_curves(post.n_T, post.c_T, budget) for post in posts],
        )


def _undefined(one: _Curves, post_TK: FloatArray) -> bool:
    """Whether Tax_S of the pair is undefined."""
    return any(bool(np.isnan(calibrated(curve.mean(axis=0))[-1])) for curve in (one.base_TK, post_TK))


def _tax_s(groups: Sequence[BaseRuns], sides: Sequence[_Curves], level: float) -> TaxEstimate:
    """The mean of Tax_S over the pairs that have one, each base of the same weight."""
    values, keys, lone = [], [], len(groups) == 1
    for group, one in zip(groups, sides, strict=True):
        known = [curve for curve in one.post_TK if not _undefined(one, curve)]
        if known:
            values.append((_calibrated(one.base_TK), [-_calibrated(curve) for curve in known]))
            keys.append(group.pairs[0].task_set)
    if not values:
        return TaxEstimate(None, None, None, reason=NO_HEADROOM, interval_reason=NO_HEADROOM)
    mean = _Mean.of(
        [posts for _, posts in values],
        keys,
        level,
        [base for base, _ in values],
        by_group=not (lone and len(values[0][1]) >= LEAST_UNITS),
    )
    return mean.estimate(0)


def _calibrated(curve_TK: FloatArray) -> FloatArray:
    """S(K) as a mean over tasks to first order, shape (tasks, 1): S plus each task's influence on it."""
    raw_T, first_T = scalability(curve_TK)[:, -1], curve_TK[:, 0]
    headroom = (curve_TK.shape[1] - 1) * (1 - first_T.mean())
    s = raw_T.mean() / headroom
    # S = A / ((K-1) (1 - p)), so dS = (dA + S (K-1) dp) / ((K-1) (1 - p)).
    influence_T = (raw_T - raw_T.mean() + s * (curve_TK.shape[1] - 1) * (first_T - first_T.mean())) / headroom
    values: FloatArray = (s + influence_T)[:, None]
    return values


@attrs.frozen(eq=False)
class _Mean:
    """A mean over bases and their policies, at every budget, with the half width of its interval."""

    point_K: FloatArray
    #: NaN where one task and no spread of pairs leave no interval.
    half_K: FloatArray

    @classmethod
    def of(
        cls,
        posts_TK: Sequence[Sequence[FloatArray]],
        keys: Sequence[Hashable],
        level: float,
        bases_TK: Sequence[FloatArray] | None = None,
        *,
        by_group: bool,
        discordant: ArrayLike = 0.0,
    ) -> _Mean:
        """From each task's values of every base, and of the policies of each.

        The units of the upper level are the bases with their policies (``by_group``), or the policies of the one base.
        One task with the value ``discordant`` is counted as noise that was not seen.
        """
        shared_TK = [0.0] * len(keys) if bases_TK is None else bases_TK
        units_TK: list[FloatArray] = [
            base + np.mean(posts, axis=0) for base, posts in zip(shared_TK, posts_TK, strict=True)
        ]
        sets, point_K = list(keys), np.mean([unit.mean(axis=0) for unit in units_TK], axis=0)
        on_tasks_K, fewest = _of_tasks(units_TK, sets)
        if not by_group:  # one base: what its policies share is not drawn anew with a policy
            units_TK, sets = list(posts_TK[0]), sets * len(posts_TK[0])
        count = len(units_TK)
        between_K, tasks_K = np.zeros_like(point_K), on_tasks_K
        if count >= LEAST_UNITS:
            between_K = np.var([unit.mean(axis=0) for unit in units_TK], axis=0, ddof=1) / count
            cells_K = np.sum([_of_tasks([unit], [0])[0] for unit in units_TK], axis=0) / count**2
            tasks_K = np.maximum(on_tasks_K - cells_K, 0.0)
        tasks_K = tasks_K + (np.asarray(discordant) / (len(keys) * fewest)) ** 2
        return cls(point_K, _half(between_K, count - 1, tasks_K, fewest - 1, level))

    def estimate(self, k: int) -> TaxEstimate:
        point, half = float(self.point_K[k]), float(self.half_K[k])
        if np.isnan(half):
            return TaxEstimate(point, None, None, interval_reason="one task shows no spread over tasks")
        if 2 * half < SAME:
            return TaxEstimate(point, None, None, interval_reason="all pairs and tasks agree")
        return TaxEstimate(point, point - half, point + half)

    def band(self) -> Band:
        """The intervals of rates, within 0 and 1."""
        half_K = np.nan_to_num(self.half_K, nan=1.0)
        low_K, high_K = np.clip([self.point_K - half_K, self.point_K + half_K], 0, 1).tolist()
        return tuple(zip(low_K, high_K, strict=True))

    def crossing(self) -> Crossing:
        """Of "bases less post-trained"."""
        half_K, zero_K = np.nan_to_num(self.half_K, nan=np.inf), np.zeros_like(self.point_K)
        ends = (self.point_K, self.point_K + half_K, self.point_K - half_K)
        return Crossing(*(crossover(end_K, zero_K) for end_K in ends))


def _of_tasks(units_TK: Sequence[FloatArray], sets: Sequence[Hashable]) -> tuple[FloatArray, int]:
    """The variance of the mean of units if their tasks are drawn, those of one set together, and the fewest tasks."""
    variance_K, fewest = np.zeros(units_TK[0].shape[1]), min(len(unit) for unit in units_TK)
    for key in dict.fromkeys(sets):
        together = [unit for unit, one in zip(units_TK, sets, strict=True) if one == key]
        total_TK = np.sum(together, axis=0) / len(units_TK)
        if len(total_TK) > 1:
            variance_K += total_TK.var(axis=0, ddof=1) / len(total_TK)
    return variance_K, fewest


def _half(between_K: FloatArray, pairs: int, tasks_K: FloatArray, tasks: int, level: float) -> FloatArray:
    """Half the width of intervals: of two variances with their degrees of freedom."""
    from scipy import stats

    if not between_K.any() and tasks < 1:
        return np.full_like(tasks_K, np.nan)
    variance_K = between_K + tasks_K
    parts_K = between_K**2 / max(pairs, 1) + tasks_K**2 / max(tasks, 1)
    freedom_K = np.where(variance_K > 0, variance_K**2 / np.where(parts_K > 0, parts_K, 1), 1.0)
    if between_K.any():
        freedom_K = np.sqrt(freedom_K * pairs)
    half_K: FloatArray = stats.t.ppf((1 + level) / 2, freedom_K) * np.sqrt(variance_K)
    return half_K
