"""A base and a post-trained policy compared: the sharpening tax, its parts, and their intervals.

Intervals are percentiles of a paired task bootstrap: both policies' counts of a drawn task come together.
"""

from __future__ import annotations

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
    contributions,
    crossover,
    scalability,
)
from handoff.settings import require

DRAWS = 1_000
LEVEL = 0.95
#: The most numbers in one array.  A comparison holds about ten arrays, with 8 bytes per number.
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

    ``draws`` resamples of the tasks make the intervals of ``level``; ``extremes`` tasks are listed at either end, none
    at both.  Raises :class:`~handoff.errors.UsageError` unless 2 <= ``budget`` <= the rollouts of every task, and
    :class:`~handoff.errors.DataError` unless both policies have the same tasks.
    """
    base, post = matched(base, post)
    fewest = min(base.rollouts, post.rollouts)
    budget = fewest if budget is None else budget
    for name, value in (("budget", budget), ("draws", draws), ("seed", seed), ("extremes", extremes)):
        require(name, value, int, least=0)
    require("level", level, least=0, most=1, open=True)
    if not 2 <= budget <= fewest:
        raise UsageError(
            f"the budget must be between 2 and the fewest rollouts of a task ({fewest}), not {budget}: "
            "make more rollouts, or choose another --budget"
        )
    if draws < 1:
        raise UsageError("intervals need at least 1 draw")
    tasks = len(base.tasks)
    if max(tasks, draws) * budget > MOST_NUMBERS or tasks * draws > MOST_NUMBERS:
        raise UsageError(
            f"a budget of {budget:,} rollouts over {tasks:,} tasks with {draws:,} draws does not fit into memory: "
            "choose a smaller --budget, or fewer --draws"
        )
    weights_BT = draw_counts(tasks, draws, seed) / tasks
    ours, theirs = (_Side.of(counts, budget, weights_BT) for counts in (base, post))
    estimate = _Estimator(level)
    solved_b, solved_p = base.c_T > 0, post.c_T > 0
    lost, gained, both = solved_b & ~solved_p, solved_p & ~solved_b, solved_b & solved_p
    a_b, a_p = ours.raw_TK[:, -1], theirs.raw_TK[:, -1]

    def part(values_T: FloatArray) -> TaxEstimate:
        return estimate(_with_draws(values_T, weights_BT))

    raw_DK, calibrated_DK = ours.raw_DK - theirs.raw_DK, ours.calibrated_DK - theirs.calibrated_DK
    curve_DK = ours.curve_DK - theirs.curve_DK
    crossed = crossover(ours.curve_DK[0], theirs.curve_DK[0])
    listed = ranked(base, post, budget)
    upper = (len(listed) + 1) // 2  # no task is at both ends
    return TaxComparison(
        tasks=tasks,
        budget=budget,
        draws=draws,
        seed=seed,
        level=level,
        base=ours.policy(estimate),
        post=theirs.policy(estimate),
        tax_a=estimate(raw_DK[:, -1]),
        tax_s=estimate(calibrated_DK[:, -1]),
        tax_a_by_k=estimate.each(raw_DK),
        tax_s_by_k=estimate.each(calibrated_DK),
        ceiling=estimate(budget * curve_DK[:, -1]),
        averaged=estimate(budget * (ours.curve_DK.mean(axis=1) - theirs.curve_DK.mean(axis=1))),
        lost=part(np.where(lost, a_b, 0.0)),
        gained=part(-np.where(gained, a_p, 0.0)),
        shape=part(np.where(both, a_b - a_p, 0.0)),
        tasks_lost=int(lost.sum()),
        tasks_gained=int(gained.sum()),
        tasks_both=int(both.sum()),
        coverage_lost=estimate(curve_DK[:, -1]),
        efficiency_gained=estimate(theirs.curve_DK[:, 0] - ours.curve_DK[:, 0]),
        crossover=crossed,
        crossover_reason=None if crossed else f"the base's pass@k is greater at no k up to {budget}",
        crossed_share=float((curve_DK[1:] > SAME).any(axis=1).mean()),
        highest=listed[: min(extremes, upper)],
        lowest=listed[max(upper, len(listed) - extremes) :][::-1],
    )


def _with_draws(values_T: FloatArray, weights_BT: FloatArray) -> FloatArray:
    """The mean over tasks in the data, followed by that in each of B draws: the axis D of 1 + B."""
    means: FloatArray = np.concatenate([values_T.mean(axis=0, keepdims=True), weights_BT @ values_T])
    return means


@attrs.frozen(eq=False)
class _Side:
    """One policy's curves: per task (T), and of the data followed by every draw (D)."""

    counts: Counts
    raw_TK: FloatArray
    curve_DK: FloatArray
    hat_DK: FloatArray
    raw_DK: FloatArray
    calibrated_DK: FloatArray

    @classmethod
    def of(cls, counts: Counts, budget: int, weights_BT: FloatArray) -> _Side:
        curve_TK = pass_at_k_curves(counts.n_T, counts.c_T, budget)
        curve_DK = _with_draws(curve_TK, weights_BT)
        hat_DK = _with_draws(pass_hat_k_curves(counts.n_T, counts.c_T, budget), weights_BT)
        return cls(counts, scalability(curve_TK), curve_DK, hat_DK, scalability(curve_DK), calibrated(curve_DK))

    def policy(self, estimate: _Estimator) -> PolicyCurves:
        counts = self.counts
        return PolicyCurves(
            name=counts.name,
            remark=counts.remark,
            pass_at_k=tuple(self.curve_DK[0].tolist()),
            pass_at_k_band=estimate.band(self.curve_DK),
            pass_hat_k=tuple(self.hat_DK[0].tolist()),
            pass_hat_k_band=estimate.band(self.hat_DK),
            scalability=estimate(self.raw_DK[:, -1]),
            calibrated=estimate(self.calibrated_DK[:, -1]),
            coverage=estimate(self.curve_DK[:, -1]),
            mean_coverage=estimate(self.curve_DK.mean(axis=1)),
            never_solved=float((counts.c_T == 0).mean()),
            always_solved=float((counts.c_T == counts.n_T).mean()),
            rollouts=(int(counts.n_T.min()), int(counts.n_T.max())),
        )


@attrs.frozen
class _Estimator:
    """Estimates from values on the data followed by those in every draw (axis D); NaN marks undefined ones."""

    level: float

    def __call__(self, values_D: FloatArray) -> TaxEstimate:
        return self.each(values_D[:, None])[0]

    def _ends(self, draws_BK: FloatArray) -> FloatArray:
        """Shape (2, K)."""
        ends_2K: FloatArray = np.quantile(draws_BK, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        return ends_2K

    def band(self, values_DK: FloatArray) -> tuple[tuple[float, float], ...]:
        """The interval of each column."""
        low_K, high_K = self._ends(values_DK[1:]).tolist()
        return tuple(zip(low_K, high_K, strict=True))

    def each(self, values_DK: FloatArray) -> tuple[TaxEstimate, ...]:
        """One estimate per column."""
        point_K, draws_BK = values_DK[0].tolist(), values_DK[1:]
        excluded_K = np.isnan(draws_BK).sum(axis=0)
        clean = excluded_K == 0
        ends_2K = np.full((2, len(point_K)), np.nan)
        if clean.any():
            ends_2K[:, clean] = self._ends(draws_BK[:, clean])
        for k in np.flatnonzero(~clean & (excluded_K < len(draws_BK))):
            ends_2K[:, k] = self._ends(draws_BK[~np.isnan(draws_BK[:, k]), k])
        return tuple(
            # Of several columns the first is the budget of one rollout.
            self._one(
                point,
                ends_2K[:, k],
                int(excluded_K[k]),
                len(draws_BK),
                NO_RETRIES if k == 0 and len(point_K) > 1 else NO_HEADROOM,
            )
            for k, point in enumerate(point_K)
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
