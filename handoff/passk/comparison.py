"""A base and a post-trained policy compared: the sharpening tax, its parts, and their intervals.

Intervals are percentiles of a paired task bootstrap: both policies' counts of a drawn task come together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.passk.counts import Counts, matched
from handoff.passk.curves import FloatArray, pass_at_k_curves, pass_hat_k_curves
from handoff.passk.tax import (
    NO_HEADROOM,
    NO_RETRIES,
    SAME,
    calibrated,
    calibrated_scalability,
    contributions,
    crossover,
    scalability,
)

DRAWS = 1_000
LEVEL = 0.95
#: Numbers of one array, of which there are about ten (8 bytes each).
MOST_NUMBERS = 100_000_000
#: More draws than this share in which a number is undefined refuse its interval.
EXCLUDED_LIMIT = 0.01


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
    #: Bootstrap draws that left the number undefined.
    excluded: int = 0
    #: Whether all draws gave one value.
    degenerate: bool = False


@attrs.frozen
class PolicyCurves:
    """One policy's side of a comparison."""

    name: str
    #: The remark of its counts.
    remark: str
    #: pass@1 ... pass@K, and the pointwise interval of each.
    pass_at_k: tuple[float, ...]
    pass_at_k_band: tuple[tuple[float, float], ...]
    #: pass^1 ... pass^K, and the pointwise interval of each.
    pass_hat_k: tuple[float, ...]
    pass_hat_k_band: tuple[tuple[float, float], ...]
    #: A(K) and S(K).
    scalability: TaxEstimate
    calibrated: TaxEstimate
    #: pass@K, and the mean of pass@1 ... pass@K.
    coverage: TaxEstimate
    mean_coverage: TaxEstimate
    #: Shares of the tasks.
    never_solved: float
    always_solved: float
    #: The fewest and the most rollouts of a task.
    rollouts: tuple[int, int]


@attrs.frozen
class Contribution:
    """One task's part of Tax_S."""

    task: str
    #: The name by which people call the task.
    name: str
    contribution: float
    #: Each policy's counts (c, n).
    base: tuple[int, int]
    post: tuple[int, int]


@attrs.frozen
class TaxComparison:
    """All numbers of ``handoff tax`` about a base and a post-trained policy on the same tasks."""

    tasks: int
    budget: int
    draws: int
    seed: int
    level: float
    base: PolicyCurves
    post: PolicyCurves
    tax_a: TaxEstimate
    tax_s: TaxEstimate
    #: The taxes at budgets 1 ... K.
    tax_a_by_k: tuple[TaxEstimate, ...]
    tax_s_by_k: tuple[TaxEstimate, ...]
    #: The parts of Tax_A by Eq. 8: Tax_A = ceiling - averaged.
    ceiling: TaxEstimate
    averaged: TaxEstimate
    #: The parts of Tax_A by tasks (Table 6): those that only the base ever solves, only the post-trained policy, both.
    lost: TaxEstimate
    gained: TaxEstimate
    shape: TaxEstimate
    tasks_lost: int
    tasks_gained: int
    tasks_both: int
    #: pass@K of the base minus that of the post-trained policy.
    coverage_lost: TaxEstimate
    #: Mean success rate of the post-trained policy minus that of the base.
    efficiency_gained: TaxEstimate
    #: The least k at which the base's pass@k is greater.
    crossover: int | None
    crossover_reason: str | None
    #: Share of the draws in which the base overtakes within the budget.
    crossed_share: float
    #: Tasks with the greatest and with the least part of Tax_S.
    highest: tuple[Contribution, ...]
    lowest: tuple[Contribution, ...]

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


def draw_counts(tasks: int, draws: int, seed: int) -> FloatArray:
    """How often each task is taken in each bootstrap draw, shape (draws, tasks): every row sums to ``tasks``."""
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen_BT = rng.integers(tasks, size=(draws, tasks)) + np.arange(0, draws * tasks, tasks)[:, None]
    return np.bincount(chosen_BT.ravel(), minlength=draws * tasks).reshape(draws, tasks).astype(np.float64)


def compare(
    base: Counts,
    post: Counts,
    budget: int | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = LEVEL,
    extremes: int = 5,
) -> TaxComparison:
    """Compare a post-trained policy with its base at budget K (default: the fewest rollouts that a task has).

    ``draws`` resamples of the tasks make the intervals of ``level``; ``extremes`` tasks are listed at either end.
    Raises :class:`~handoff.errors.UsageError` unless 2 <= ``budget`` <= the rollouts of every task, and
    :class:`~handoff.errors.DataError` unless both policies have the same tasks.
    """
    base, post = matched(base, post)
    fewest = min(base.rollouts, post.rollouts)
    budget = fewest if budget is None else budget
    if not 2 <= budget <= fewest:
        raise UsageError(
            f"the budget must be between 2 and the fewest rollouts of a task ({fewest}), not {budget}: "
            "make more rollouts, or choose another --budget"
        )
    if draws < 1 or not 0 < level < 1:
        raise UsageError(f"intervals need at least 1 draw and a level between 0 and 1, not {draws} and {level:g}")
    tasks = len(base.tasks)
    if max(tasks, draws) * budget > MOST_NUMBERS or tasks * draws > MOST_NUMBERS:
        raise UsageError(
            f"a budget of {budget:,} rollouts over {tasks:,} tasks with {draws:,} draws does not fit into memory: "
            "choose a smaller --budget, or fewer --draws"
        )
    taken_BT = draw_counts(len(base.tasks), draws, seed) / len(base.tasks)
    sides = [_Side.of(counts, budget, taken_BT) for counts in (base, post)]
    estimate = _Estimator(level)
    ours, theirs = sides
    both, solved_b, solved_p = (base.c_T > 0) & (post.c_T > 0), base.c_T > 0, post.c_T > 0
    a_b, a_p = ours.raw_TK[:, -1], theirs.raw_TK[:, -1]
    split = {
        "lost": np.where(solved_b & ~both, a_b, 0.0),
        "gained": -np.where(solved_p & ~both, a_p, 0.0),
        "shape": np.where(both, a_b - a_p, 0.0),
    }
    crossed = crossover(ours.curve_K, theirs.curve_K)
    overtaken_B = (ours.curve_BK > theirs.curve_BK + SAME).any(axis=1)
    listed = ranked(base, post, budget)
    return TaxComparison(
        tasks=len(base.tasks),
        budget=budget,
        draws=draws,
        seed=seed,
        level=level,
        base=ours.policy(estimate),
        post=theirs.policy(estimate),
        tax_a=estimate(ours.raw_K[-1] - theirs.raw_K[-1], ours.raw_BK[:, -1] - theirs.raw_BK[:, -1]),
        tax_s=estimate(ours.cal_K[-1] - theirs.cal_K[-1], ours.cal_BK[:, -1] - theirs.cal_BK[:, -1]),
        tax_a_by_k=estimate.each(ours.raw_K - theirs.raw_K, ours.raw_BK - theirs.raw_BK),
        tax_s_by_k=estimate.each(ours.cal_K - theirs.cal_K, ours.cal_BK - theirs.cal_BK),
        ceiling=estimate(
            budget * (ours.curve_K[-1] - theirs.curve_K[-1]), budget * (ours.curve_BK[:, -1] - theirs.curve_BK[:, -1])
        ),
        averaged=estimate(
            budget * (ours.curve_K.mean() - theirs.curve_K.mean()),
            budget * (ours.curve_BK.mean(axis=1) - theirs.curve_BK.mean(axis=1)),
        ),
        **{name: estimate(part_T.mean(), taken_BT @ part_T) for name, part_T in split.items()},
        tasks_lost=int((solved_b & ~both).sum()),
        tasks_gained=int((solved_p & ~both).sum()),
        tasks_both=int(both.sum()),
        coverage_lost=estimate(ours.curve_K[-1] - theirs.curve_K[-1], ours.curve_BK[:, -1] - theirs.curve_BK[:, -1]),
        efficiency_gained=estimate(theirs.curve_K[0] - ours.curve_K[0], theirs.curve_BK[:, 0] - ours.curve_BK[:, 0]),
        crossover=crossed,
        crossover_reason=None if crossed else f"the base's pass@k is greater at no k up to {budget}",
        crossed_share=float(overtaken_B.mean()),
        highest=listed[:extremes],
        lowest=listed[::-1][:extremes],
    )


@attrs.frozen(eq=False)
class _Side:
    """One policy's curves: per task, of the data set, and of every draw (axes T, K, B)."""

    counts: Counts
    raw_TK: FloatArray
    hat_K: FloatArray
    hat_BK: FloatArray
    curve_K: FloatArray
    curve_BK: FloatArray
    raw_K: FloatArray
    raw_BK: FloatArray
    cal_K: FloatArray
    cal_BK: FloatArray

    @classmethod
    def of(cls, counts: Counts, budget: int, taken_BT: FloatArray) -> _Side:
        curve_TK = pass_at_k_curves(counts.n_T, counts.c_T, budget)
        hat_TK = pass_hat_k_curves(counts.n_T, counts.c_T, budget)
        curve_K, curve_BK = curve_TK.mean(axis=0), taken_BT @ curve_TK
        return cls(
            counts,
            scalability(curve_TK),
            hat_TK.mean(axis=0),
            taken_BT @ hat_TK,
            curve_K,
            curve_BK,
            scalability(curve_K),
            scalability(curve_BK),
            calibrated(curve_K),
            calibrated(curve_BK),
        )

    def policy(self, estimate: _Estimator) -> PolicyCurves:
        counts = self.counts
        return PolicyCurves(
            name=counts.name,
            remark=counts.remark,
            pass_at_k=tuple(self.curve_K.tolist()),
            pass_at_k_band=estimate.band(self.curve_BK),
            pass_hat_k=tuple(self.hat_K.tolist()),
            pass_hat_k_band=estimate.band(self.hat_BK),
            scalability=estimate(self.raw_K[-1], self.raw_BK[:, -1]),
            calibrated=estimate(self.cal_K[-1], self.cal_BK[:, -1]),
            coverage=estimate(self.curve_K[-1], self.curve_BK[:, -1]),
            mean_coverage=estimate(self.curve_K.mean(), self.curve_BK.mean(axis=1)),
            never_solved=float((counts.c_T == 0).mean()),
            always_solved=float((counts.c_T == counts.n_T).mean()),
            rollouts=(int(counts.n_T.min()), int(counts.n_T.max())),
        )


@attrs.frozen
class _Estimator:
    level: float

    def __call__(self, point: float, draws_B: FloatArray) -> TaxEstimate:
        return self.each(np.array([point]), draws_B[:, None])[0]

    @property
    def tails(self) -> tuple[float, float]:
        return (1 - self.level) / 2, (1 + self.level) / 2

    def band(self, draws_BK: FloatArray) -> tuple[tuple[float, float], ...]:
        """The interval of each column."""
        low_K, high_K = np.quantile(draws_BK, self.tails, axis=0).tolist()
        return tuple(zip(low_K, high_K, strict=True))

    def each(self, point_K: FloatArray, draws_BK: FloatArray) -> tuple[TaxEstimate, ...]:
        """One estimate per column.  NaN marks undefined values."""
        excluded_K = np.isnan(draws_BK).sum(axis=0)
        clean = excluded_K == 0
        ends_2K = np.full((2, len(point_K)), np.nan)
        if clean.any():
            ends_2K[:, clean] = np.quantile(draws_BK[:, clean], self.tails, axis=0)
        for k in np.flatnonzero(~clean & (excluded_K < len(draws_BK))):
            ends_2K[:, k] = np.quantile(draws_BK[~np.isnan(draws_BK[:, k]), k], self.tails)
        return tuple(
            # Of several columns the first is the budget of one rollout.
            self._one(
                float(point_K[k]),
                ends_2K[:, k],
                int(excluded_K[k]),
                len(draws_BK),
                NO_RETRIES if k == 0 and len(point_K) > 1 else NO_HEADROOM,
            )
            for k in range(len(point_K))
        )

    def _one(self, point: float, ends: FloatArray, excluded: int, draws: int, undefined: str) -> TaxEstimate:
        if np.isnan(point):
            return TaxEstimate(None, None, None, reason=undefined, interval_reason=undefined, excluded=excluded)
        if excluded > EXCLUDED_LIMIT * draws:
            refused = f"undefined in {excluded} of {draws} draws ({undefined})"
            return TaxEstimate(point, None, None, interval_reason=refused, excluded=excluded)
        low, high = float(ends[0]), float(ends[1])
        return TaxEstimate(point, low, high, excluded=excluded, degenerate=high - low < SAME)


def ranked(base: Counts, post: Counts, budget: int) -> tuple[Contribution, ...]:
    """Every task's part of Tax_S(``budget``), the highest first; empty where Tax_S is undefined."""
    base, post = matched(base, post)
    try:
        parts_T = contributions(base, post, budget)
    except UsageError:
        return ()  # Tax_S is undefined, and says why
    order = np.lexsort((np.arange(len(parts_T)), -parts_T))
    return tuple(
        Contribution(
            base.tasks[i],
            base.names.get(base.tasks[i], base.tasks[i]),
            float(parts_T[i]),
            (int(base.c_T[i]), int(base.n_T[i])),
            (int(post.c_T[i]), int(post.n_T[i])),
        )
        for i in order
    )


@attrs.frozen
class EarlyEstimate:
    """Tax_S at a small and at a greater budget over many pairs, and their rank correlation."""

    early: int
    late: int
    #: Name of the pair, and both taxes; ``None`` where undefined, which leaves the pair out of the correlation.
    pairs: tuple[tuple[str, float | None, float | None], ...]
    #: Spearman's rho; ``None`` with the ``reason`` if fewer than three pairs are left or all of one column are equal.
    rho: float | None
    reason: str | None = None


def early_estimate(pairs: Sequence[tuple[Counts, Counts]], early: int = 8, late: int = 32) -> EarlyEstimate:
    """How well the tax at ``early`` rollouts predicts the tax at ``late`` over ``pairs`` of (base, post).

    Raises :class:`~handoff.errors.UsageError` if a task has fewer than ``late`` rollouts.
    """
    from scipy import stats

    rows: list[tuple[str, float | None, float | None]] = []
    for base, post in pairs:
        base, post = matched(base, post)
        curves = [pass_at_k_curves(counts.n_T, counts.c_T, late).mean(axis=0) for counts in (base, post)]
        taxes = []
        for k in (early, late):
            s_base, s_post = (calibrated_scalability(curve[:k]) for curve in curves)
            taxes.append(None if s_base is None or s_post is None else s_base - s_post)
        rows.append((f"{base.name} / {post.name}", taxes[0], taxes[1]))
    known = [(row[1], row[2]) for row in rows if row[1] is not None and row[2] is not None]
    if len(known) < 3:
        return EarlyEstimate(early, late, tuple(rows), None, f"{len(known)} pairs with both taxes; three are needed")
    x, y = np.array(known, dtype=np.float64).T
    if np.ptp(x) < SAME or np.ptp(y) < SAME:
        return EarlyEstimate(early, late, tuple(rows), None, "the taxes at one budget are all equal")
    return EarlyEstimate(early, late, tuple(rows), float(stats.spearmanr(x, y).statistic))
