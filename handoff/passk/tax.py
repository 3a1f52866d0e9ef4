"""The sharpening tax: what post-training takes from a policy's gain by repeated sampling.

Of a pass@k curve up to a budget K, with pass@k the mean over tasks of equal weight:

    A(K) = sum_{k<K} (pass@K - pass@k)           raw scalability (Eq. 1)
    S(K) = A(K) / ((K-1) (1 - pass@1))           calibrated, in [0, 1] (Eq. 2)
    Tax_A = A_base - A_post,  Tax_S = S_base - S_post   (Eq. 3)

With H the rollout of the first success, A(K) = E[(H-1) 1{H <= K}]: failed attempts before a success within the budget
(Proposition 1).  With C = pass@K and Cbar(K) the mean of pass@1 ... pass@K, A(K) = K (C - Cbar(K)) (Corollary 4), so
that Tax_A = K (gap of the ceilings) - K (gap of the budget-averaged coverages) (Eq. 8).

S is undefined where pass@1 = 1 (no attempt fails, so there is nothing to retry) and at K = 1; it is then ``None`` with
the reason, never 0.  Intervals are percentiles of a paired task bootstrap: both policies' counts of a drawn task come
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike

from handoff.errors import UsageError
from handoff.passk.counts import Counts, matched
from handoff.passk.curves import FloatArray, pass_at_k_curves, pass_hat_k_curves

DRAWS = 1_000
LEVEL = 0.95
#: Numbers of one array, of which there are about ten (8 bytes each).
MOST_NUMBERS = 100_000_000
#: More draws than this share in which a number is undefined refuse its interval.
EXCLUDED_LIMIT = 0.01
#: Draws nearer than this are one value.
SAME = 1e-12

NO_HEADROOM = "pass@1 is 1: no attempt fails, so there is nothing that retries could convert"
NO_RETRIES = "a budget of one rollout has no retries"


# The definitions -----------------------------------------------------------------------------------------------------


def scalability(curve_K: ArrayLike) -> FloatArray:
    """A(1) ... A(K) of curves pass@1 ... pass@K along the last axis; A(k) = k pass@k - sum_{j<=k} pass@j."""
    curve = np.asarray(curve_K, dtype=np.float64)
    budgets_K = np.arange(1, curve.shape[-1] + 1)
    result: FloatArray = budgets_K * curve - np.cumsum(curve, axis=-1)
    return result


def calibrated(curve_K: ArrayLike) -> FloatArray:
    """S(1) ... S(K) of curves along the last axis; NaN where undefined (k = 1, or pass@1 = 1)."""
    curve = np.asarray(curve_K, dtype=np.float64)
    failing = 1 - curve[..., :1]
    headroom = np.arange(curve.shape[-1]) * np.where(failing > SAME, failing, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = np.where(headroom > 0, scalability(curve) / headroom, np.nan)
    return result


def raw_scalability(curve_K: ArrayLike) -> float:
    """A(K) of one curve pass@1 ... pass@K (Eq. 1)."""
    return float(scalability(curve_K)[-1])


def calibrated_scalability(curve_K: ArrayLike) -> float | None:
    """S(K) of one curve (Eq. 2); ``None`` where it is undefined."""
    value = float(calibrated(curve_K)[-1])
    return None if np.isnan(value) else value


def contributions(base: Counts, post: Counts, budget: int) -> FloatArray:
    """Per task, its part of Tax_S(``budget``) (Eq. 10), shape (tasks,); their mean is Tax_S.

    a_i of each policy is divided by the policy's benchmark-level headroom (K-1)(1 - pass@1).  Raises
    :class:`~handoff.errors.UsageError` where a headroom is zero.
    """
    base, post = matched(base, post)
    parts = []
    for counts in (base, post):
        curves_TK = pass_at_k_curves(counts.n_T, counts.c_T, budget)
        headroom = (budget - 1) * (1 - float(curves_TK[:, 0].mean()))
        if headroom <= SAME:
            raise UsageError(f"{counts.name}: {NO_RETRIES if budget == 1 else NO_HEADROOM}")
        parts.append(scalability(curves_TK)[:, -1] / headroom)
    result: FloatArray = parts[0] - parts[1]
    return result


def crossover(base_K: ArrayLike, post_K: ArrayLike) -> int | None:
    """The least k at which the base's pass@k is greater than the post-trained policy's; ``None`` if it never is."""
    greater = np.flatnonzero(np.asarray(base_K) > np.asarray(post_K) + SAME)
    return int(greater[0]) + 1 if len(greater) else None


# A comparison with intervals -----------------------------------------------------------------------------------------


@attrs.frozen
class TaxEstimate:
    """A number with its interval.  What is missing is ``None`` with the ``reason``, or the ``interval_reason``.

    ``excluded`` bootstrap draws left the number undefined; ``degenerate`` says that all draws gave one value.
    """

    point: float | None
    low: float | None
    high: float | None
    reason: str | None = None
    interval_reason: str | None = None
    excluded: int = 0
    degenerate: bool = False


@attrs.frozen
class PolicyCurves:
    """One policy's side of a comparison; curves are pass@1 ... pass@K and pass^1 ... pass^K, bands their pointwise
    intervals (low, high).  ``remark`` is that of its counts."""

    name: str
    remark: str
    pass_at_k: tuple[float, ...]
    pass_at_k_band: tuple[tuple[float, float], ...]
    pass_hat_k: tuple[float, ...]
    pass_hat_k_band: tuple[tuple[float, float], ...]
    scalability: TaxEstimate
    calibrated: TaxEstimate
    coverage: TaxEstimate
    mean_coverage: TaxEstimate
    never_solved: float
    always_solved: float
    rollouts: tuple[int, int]


@attrs.frozen
class Contribution:
    """One task's part of Tax_S, with both policies' counts (c, n).  ``name`` is how people call the task."""

    task: str
    name: str
    contribution: float
    base: tuple[int, int]
    post: tuple[int, int]


@attrs.frozen
class TaxComparison:
    """Everything that ``handoff tax`` says about a base and a post-trained policy on the same tasks.

    ``tax_a_by_k`` and ``tax_s_by_k`` are the taxes at budgets 1 ... K.  ``lost`` are the tasks that only the base ever
    solves, ``gained`` those that only the post-trained policy does, ``shape`` those that both do: the three parts of
    Tax_A (Table 6).  ``ceiling`` and ``averaged`` are its two parts by Eq. 8: Tax_A = ceiling - averaged.
    ``coverage_lost`` is pass@K of the base less that of the post-trained policy, ``efficiency_gained`` is the gain in
    mean success rate.  ``crossed_share`` is the share of draws in which the base overtakes within the budget.
    ``highest`` and ``lowest`` are tasks by their part of Tax_S.
    """

    tasks: int
    budget: int
    draws: int
    seed: int
    level: float
    base: PolicyCurves
    post: PolicyCurves
    tax_a: TaxEstimate
    tax_s: TaxEstimate
    tax_a_by_k: tuple[TaxEstimate, ...]
    tax_s_by_k: tuple[TaxEstimate, ...]
    ceiling: TaxEstimate
    averaged: TaxEstimate
    lost: TaxEstimate
    gained: TaxEstimate
    shape: TaxEstimate
    tasks_lost: int
    tasks_gained: int
    tasks_both: int
    coverage_lost: TaxEstimate
    efficiency_gained: TaxEstimate
    crossover: int | None
    crossover_reason: str | None
    crossed_share: float
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

    ``draws`` tasks resamples make the intervals of ``level``; ``extremes`` tasks are listed at either end.  Raises
    :class:`~handoff.errors.UsageError` unless 2 <= ``budget`` <= the rollouts of every task, and
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
        """One estimate a column.  NaN marks what is undefined."""
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


# Many pairs ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class EarlyEstimate:
    """Tax_S at a small and at a greater budget over many pairs, and their rank correlation (Spearman's rho).

    A tax is ``None`` where undefined, and its pair takes no part in the correlation, which is ``None`` with the
    ``reason`` if fewer than three pairs are left or all of one column are equal.
    """

    early: int
    late: int
    pairs: tuple[tuple[str, float | None, float | None], ...]
    rho: float | None
    reason: str | None = None


def early_estimate(pairs: Sequence[tuple[Counts, Counts]], early: int = 8, late: int = 32) -> EarlyEstimate:
    """How well the tax at ``early`` rollouts foretells the tax at ``late`` over ``pairs`` of (base, post).

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
