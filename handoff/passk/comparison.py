"""A base and a post-trained policy compared: the sharpening tax, its parts, and their intervals."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike

from handoff.errors import UsageError
from handoff.passk.counts import Counts, matched
from handoff.passk.curves import FloatArray, pass_at_k_curves, pass_hat_k_curves
from handoff.passk.estimators import METHODS, Estimator, Measured, TaxEstimate, effective_tasks, estimator_of
from handoff.passk.tax import (
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
    #: How the intervals are made: one of ``METHODS`` of :mod:`handoff.passk.estimators`.
    interval: str = METHODS[0]

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
    method: str = METHODS[0],
) -> TaxComparison:
    """Compare a post-trained policy with its base at budget K (default: the fewest rollouts that a task has).

    ``method`` makes the intervals of ``level`` (:mod:`handoff.passk.estimators`); ``draws`` resamples of the tasks make
    those of the paper, and say in how many draws the base overtakes.  ``extremes`` tasks are listed at either end, none
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
    if method not in METHODS:
        raise UsageError(f"the interval is one of {', '.join(METHODS)}, not {method!r}")
    if draws < 1:
        raise UsageError("intervals need at least 1 draw")
    tasks = len(base.tasks)
    if max(tasks, draws) * budget > MOST_NUMBERS or tasks * draws > MOST_NUMBERS:
        raise UsageError(
            f"a budget of {budget:,} rollouts over {tasks:,} tasks with {draws:,} draws does not fit into memory: "
            "choose a smaller --budget, or fewer --draws"
        )
    weights_BT = draw_counts(tasks, draws, seed) / tasks
    estimator = estimator_of(method, tasks, level, weights_BT)
    ours, theirs = (_Side.of(counts, budget, estimator) for counts in (base, post))
    solved_b, solved_p = base.c_T > 0, post.c_T > 0
    lost, gained, both = solved_b & ~solved_p, solved_p & ~solved_b, solved_b & solved_p
    a_b, a_p = ours.raw_TK[:, -1], theirs.raw_TK[:, -1]
    budgets_K = np.arange(1, budget + 1)
    carriers = min(ours.carriers, theirs.carriers)

    def tax(difference_DK: FloatArray, most: ArrayLike) -> Measured:
        return Measured.of(difference_DK, "contrast", most, carriers=carriers)

    def gap(difference_DK: FloatArray, step: float, most: float = 1.0) -> TaxEstimate:
        """``step`` is the largest change of pass@k by one rollout's outcome: k of n rollouts."""
        return estimator.one(Measured.of(difference_DK, "contrast", most, step=step / fewest))

    def part(values_T: FloatArray) -> TaxEstimate:
        return estimator.one(Measured.of(estimator.means(values_T), "contrast", budget - 1.0))

    raw = tax(ours.raw_DK - theirs.raw_DK, budgets_K - 1.0)
    relative = tax(ours.calibrated_DK - theirs.calibrated_DK, 1.0)
    curve_DK = ours.curve_DK - theirs.curve_DK
    mean_D = ours.curve_DK.mean(axis=1) - theirs.curve_DK.mean(axis=1)
    crossed = crossover(ours.curve_DK[0], theirs.curve_DK[0])
    drawn_BK = weights_BT @ (ours.curve_TK - theirs.curve_TK)
    listed = ranked(base, post, budget)
    upper = (len(listed) + 1) // 2  # no task is at both ends
    raw_by_k, relative_by_k = estimator.each(raw), estimator.each(relative)
    return TaxComparison(
        tasks=tasks,
        budget=budget,
        draws=draws,
        seed=seed,
        level=level,
        base=ours.policy(estimator),
        post=theirs.policy(estimator),
        tax_a=raw_by_k[-1],
        tax_s=relative_by_k[-1],
        tax_a_by_k=raw_by_k,
        tax_s_by_k=relative_by_k,
        ceiling=gap(budget * curve_DK[:, -1], budget * budget, budget),
        averaged=gap(budget * mean_D, budget * (budget + 1) / 2, budget),
        lost=part(np.where(lost, a_b, 0.0)),
        gained=part(-np.where(gained, a_p, 0.0)),
        shape=part(np.where(both, a_b - a_p, 0.0)),
        tasks_lost=int(lost.sum()),
        tasks_gained=int(gained.sum()),
        tasks_both=int(both.sum()),
        coverage_lost=gap(curve_DK[:, -1], budget),
        efficiency_gained=gap(-curve_DK[:, 0], 1),
        crossover=crossed,
        crossover_reason=None if crossed else f"the base's pass@k is greater at no k up to {budget}",
        crossed_share=float((drawn_BK > SAME).any(axis=1).mean()),
        highest=listed[: min(extremes, upper)],
        lowest=listed[max(upper, len(listed) - extremes) :][::-1],
        interval=method,
    )


@attrs.frozen(eq=False)
class _Side:
    """One policy's curves: per task (T), and of the data followed by every other weighting (D)."""

    counts: Counts
    curve_TK: FloatArray
    raw_TK: FloatArray
    curve_DK: FloatArray
    hat_DK: FloatArray
    raw_DK: FloatArray
    calibrated_DK: FloatArray

    @classmethod
    def of(cls, counts: Counts, budget: int, estimator: Estimator) -> _Side:
        curve_TK = pass_at_k_curves(counts.n_T, counts.c_T, budget)
        curve_DK = estimator.means(curve_TK)
        hat_DK = estimator.means(pass_hat_k_curves(counts.n_T, counts.c_T, budget))
        raw_TK, raw_DK = scalability(curve_TK), scalability(curve_DK)
        return cls(counts, curve_TK, raw_TK, curve_DK, hat_DK, raw_DK, calibrated(curve_DK))

    @property
    def carriers(self) -> float:
        """The tasks that carry A and S: those where attempts fail, by how often."""
        return effective_tasks(1 - self.curve_TK[:, 0])

    def policy(self, estimator: Estimator) -> PolicyCurves:
        counts, budget = self.counts, self.curve_TK.shape[1]
        budgets_K = np.arange(1, budget + 1)
        rollouts = float(counts.n_T.sum())

        def rates(values: FloatArray, k: ArrayLike) -> Measured:
            # A mean of pass@k is worth at most one trial per k rollouts.
            return Measured.of(values, "rate", trials=rollouts / np.asarray(k))

        def positive(values_D: FloatArray, most: float) -> TaxEstimate:
            return estimator.one(Measured.of(values_D, "positive", most, carriers=self.carriers))

        return PolicyCurves(
            name=counts.name,
            remark=counts.remark,
            pass_at_k=tuple(self.curve_DK[0].tolist()),
            pass_at_k_band=estimator.band(rates(self.curve_DK, budgets_K)),
            pass_hat_k=tuple(self.hat_DK[0].tolist()),
            pass_hat_k_band=estimator.band(rates(self.hat_DK, budgets_K)),
            scalability=positive(self.raw_DK[:, -1], budget - 1.0),
            calibrated=positive(self.calibrated_DK[:, -1], 1.0),
            coverage=estimator.one(rates(self.curve_DK[:, -1], budget)),
            mean_coverage=estimator.one(rates(self.curve_DK.mean(axis=1), (budget + 1) / 2)),
            never_solved=float((counts.c_T == 0).mean()),
            always_solved=float((counts.c_T == counts.n_T).mean()),
            rollouts=(int(counts.n_T.min()), int(counts.n_T.max())),
        )


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
