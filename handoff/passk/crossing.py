"""Mean curves of many pairs, and where the mean curve of the bases overtakes that of the post-trained policies.

Every base has the same weight, and so have the post-trained policies of one base.  A base that several policies share
is counted once.

Intervals come from a bootstrap on two levels.  A draw takes bases with replacement, each with all its post-trained
policies, and independently the tasks of each benchmark with replacement.  Every pair on a benchmark has the same drawn
tasks, so a base evaluation is drawn once for all policies that share it.  Drawing rows and columns of a crossed design
independently is somewhat conservative (Owen 2007, "The pigeonhole bootstrap").  With one base, its post-trained
policies are drawn in the place of bases.  Two of either say nothing about their spread: then only tasks are drawn.

A percentile interval from n units is too short by about sqrt((n-1)/n), and by the normal quantile in the place of
Student's.  The percentiles are therefore those of Hesterberg (2015, "What teachers should know about the bootstrap"):
the normal tail probability of sqrt(n/(n-1)) times the t quantile of n - 1 degrees of freedom, n being the number of
units drawn on the upper level.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.passk.comparison import DRAWS, EXCLUDED_LIMIT, LEVEL, MOST_NUMBERS, TaxEstimate, draw_counts
from handoff.passk.counts import Counts
from handoff.passk.curves import FloatArray, pass_at_k_curves, pass_hat_k_curves
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
    #: Share of the draws in which the bases overtake within the budget.
    crossed_share: float


@attrs.frozen
class MeanCurves:
    """Means over pairs, each base counted once, with intervals over pairs and tasks."""

    budget: int
    #: Different base evaluations, and pairs.
    bases: int
    pairs: int
    #: The units that a draw takes beside tasks: "bases", "post-trained policies", or "" if there are too few.
    resampled: str
    draws: int
    seed: int
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


def mean_curves(
    pairs: Sequence[Pair], budget: int | None = None, *, draws: int = DRAWS, seed: int = 0, level: float = LEVEL
) -> MeanCurves:
    """Mean curves of ``pairs`` up to ``budget`` (default: the fewest rollouts that a task of any pair has).

    Raises :class:`~handoff.errors.UsageError` for a number out of range, and as
    :func:`~handoff.passk.pairs.by_base` does.
    """
    groups = by_base(pairs)
    budget = common_budget(pairs, budget)
    for name, value in (("draws", draws), ("seed", seed)):
        require(name, value, int, least=1 if name == "draws" else 0)
    require("level", level, least=0, most=1, open=True)
    most = max(len(pair.base.tasks) for pair in pairs)
    if max(most, draws) * budget > MOST_NUMBERS or most * draws > MOST_NUMBERS:
        raise UsageError(
            f"a budget of {budget:,} rollouts over {most:,} tasks with {draws:,} draws does not fit into memory: "
            "choose a smaller --budget, or fewer --draws"
        )
    weights = _Weights.of(groups, draws, seed)
    sums = _Sums.empty(draws, budget)
    for number, group in enumerate(groups):
        sums.add(group, number, weights, budget)
    estimate = _Intervals(level, weights.units)
    lost_DK = sums.base_DK - sums.post_DK
    raw_D = scalability(lost_DK)[:, -1]
    return MeanCurves(
        budget=budget,
        bases=len(groups),
        pairs=len(pairs),
        resampled=weights.resampled,
        draws=draws,
        seed=seed,
        level=level,
        base=_curve(estimate, sums.base_DK, sums.base_hat_DK, [[group.base] for group in groups]),
        post=_curve(estimate, sums.post_DK, sums.post_hat_DK, [[one.post for one in group.pairs] for group in groups]),
        crossing=estimate.crossing(lost_DK),
        tax_a=estimate(raw_D),
        tax_s=estimate(sums.tax_s()),
        coverage_lost=estimate(lost_DK[:, -1]),
        efficiency_gained=estimate(-lost_DK[:, 0]),
        undefined=sums.undefined,
    )


def _curve(estimate: _Intervals, at_DK: FloatArray, hat_DK: FloatArray, policies: list[list[Counts]]) -> MeanCurve:
    never = [np.mean([(one.c_T == 0).mean() for one in group]) for group in policies]
    always = [np.mean([(one.c_T == one.n_T).mean() for one in group]) for group in policies]
    return MeanCurve(
        tuple(at_DK[0].tolist()),
        estimate.band(at_DK),
        tuple(hat_DK[0].tolist()),
        estimate.band(hat_DK),
        float(np.mean(never)),
        float(np.mean(always)),
    )


@attrs.frozen(eq=False)
class _Weights:
    """Weights in the data followed by those in every draw (axis D)."""

    resampled: str
    #: How many units the intervals rest on.
    units: int
    #: Of every base, and of every post-trained policy of each base; both sum to 1 in a draw.
    base_DU: FloatArray
    post_UDP: tuple[FloatArray, ...]
    #: Of the tasks of each set, in the order of their names.
    tasks_DT: dict[Hashable, FloatArray]

    @classmethod
    def of(cls, groups: Sequence[BaseRuns], draws: int, seed: int) -> _Weights:
        sets = {pair.task_set: len(pair.base.tasks) for group in groups for pair in group.pairs}
        tasks_DT = {key: _drawn(tasks, draws, _stream(seed, 1 + i)) for i, (key, tasks) in enumerate(sets.items())}
        sizes = [len(group.pairs) for group in groups]
        base_DU = np.full((1 + draws, len(groups)), 1 / len(groups))
        resampled, units = "", min(sets.values())
        if len(groups) >= LEAST_UNITS:
            resampled, units = "bases", len(groups)
            base_DU = _drawn(len(groups), draws, _stream(seed, 0))
        post_UDP = [np.repeat(base_DU[:, [u]] / size, size, axis=1) for u, size in enumerate(sizes)]
        if len(groups) == 1 and sizes[0] >= LEAST_UNITS:
            resampled, units = "post-trained policies", sizes[0]
            post_UDP = [_drawn(sizes[0], draws, _stream(seed, 0))]
        return cls(resampled, units, base_DU, tuple(post_UDP), tasks_DT)


def _stream(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _drawn(units: int, draws: int, seed: int) -> FloatArray:
    """Weights of units, equal in the data (the first row)."""
    weights: FloatArray = np.concatenate([np.ones((1, units)), draw_counts(units, draws, seed)]) / units
    return weights


@attrs.define(eq=False)
class _Sums:
    """Weighted sums over the bases and their policies, in the data followed by every draw."""

    base_DK: FloatArray
    base_hat_DK: FloatArray
    post_DK: FloatArray
    post_hat_DK: FloatArray
    #: Tax_S times weights, and the weights of the pairs that have one.
    tax_D: FloatArray
    weight_D: FloatArray
    undefined: int = 0

    @classmethod
    def empty(cls, draws: int, budget: int) -> _Sums:
        curves = [np.zeros((1 + draws, budget)) for _ in range(4)]
        return cls(*curves, np.zeros(1 + draws), np.zeros(1 + draws))

    def add(self, group: BaseRuns, number: int, weights: _Weights, budget: int) -> None:
        tasks_DT = weights.tasks_DT[group.pairs[0].task_set]
        order = sorted(group.base.tasks)

        def curves(counts: Counts) -> tuple[FloatArray, FloatArray]:
            ordered = counts.in_order_of(order)
            n_T, c_T = ordered.n_T, ordered.c_T
            return tasks_DT @ pass_at_k_curves(n_T, c_T, budget), tasks_DT @ pass_hat_k_curves(n_T, c_T, budget)

        at_DK, hat_DK = curves(group.base)
        share_D1 = weights.base_DU[:, [number]]
        self.base_DK += share_D1 * at_DK
        self.base_hat_DK += share_D1 * hat_DK
        before_D = calibrated(at_DK)[:, -1]
        for pair, share_D in zip(group.pairs, weights.post_UDP[number].T, strict=True):
            at_DK, hat_DK = curves(pair.post)
            self.post_DK += share_D[:, None] * at_DK
            self.post_hat_DK += share_D[:, None] * hat_DK
            tax_D = before_D - calibrated(at_DK)[:, -1]
            if np.isnan(tax_D[0]):
                self.undefined += 1
                continue
            self.tax_D += np.where(share_D > 0, share_D * tax_D, 0.0)
            self.weight_D += share_D

    def tax_s(self) -> FloatArray:
        """The mean of Tax_S; NaN in a draw that has no pair with one, or leaves one undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean_D: FloatArray = self.tax_D / self.weight_D
        return mean_D


@attrs.frozen
class _Intervals:
    """Intervals of values in the data followed by every draw (axis D)."""

    level: float
    units: int

    @property
    def tails(self) -> tuple[float, float]:
        """The two percentiles, as shares."""
        from scipy import stats

        least = (1 - self.level) / 2
        if self.units > 1:
            wide = np.sqrt(self.units / (self.units - 1)) * stats.t.ppf(least, self.units - 1)
            least = float(stats.norm.cdf(wide))
        return least, 1 - least

    def __call__(self, values_D: FloatArray) -> TaxEstimate:
        if np.isnan(values_D[0]):
            return TaxEstimate(None, None, None, reason=NO_HEADROOM, interval_reason=NO_HEADROOM)
        point, draws_B = float(values_D[0]), values_D[1:]
        excluded = int(np.isnan(draws_B).sum())
        if excluded > EXCLUDED_LIMIT * len(draws_B):
            refused = f"undefined in {excluded} of {len(draws_B)} draws ({NO_HEADROOM})"
            return TaxEstimate(point, None, None, interval_reason=refused, excluded=excluded)
        low, high = (float(end) for end in np.quantile(draws_B[~np.isnan(draws_B)], self.tails))
        return TaxEstimate(point, low, high, excluded=excluded, degenerate=high - low < SAME)

    def band(self, values_DK: FloatArray) -> Band:
        low_K, high_K = np.quantile(values_DK[1:], self.tails, axis=0).tolist()
        return tuple(zip(low_K, high_K, strict=True))

    def crossing(self, lost_DK: FloatArray) -> Crossing:
        """``lost_DK``: the bases' mean pass@k less that of the post-trained policies."""
        greater_BK = lost_DK[1:] > SAME
        crossed_B = greater_BK.any(axis=1)
        first_B = np.where(crossed_B, greater_BK.argmax(axis=1) + 1, np.inf)
        # Order statistics, outwards: a mean of a budget and "beyond" is no number.
        low, high = (
            float(np.quantile(first_B, tail, method=method))
            for tail, method in zip(self.tails, ("lower", "higher"), strict=True)
        )
        ends = (int(end) if np.isfinite(end) else None for end in (low, high))
        return Crossing(crossover(lost_DK[0], np.zeros(lost_DK.shape[1])), *ends, float(crossed_B.mean()))
