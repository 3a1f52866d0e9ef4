"""pass@k and pass^k from counts: c successes out of n independent rollouts of a task.

    pass@k = 1 - C(n-c, k)/C(n, k)      at least one of k rollouts succeeds   (coverage)
    pass^k = C(c, k)/C(n, k)            all of k rollouts succeed             (consistency; "pass hat k")

Both are averages over all k-subsets of the n rollouts, unbiased for the task's success probability (Chen et al. 2021).
They are computed by cumulative products, never by factorials.  pass@k is summed from the probabilities that the first
success in a random order comes at rollout j; every term is positive, so nothing cancels however small c/n is, and
pass@1 is c/n exactly.

Tasks with the same (n, c) have the same curves, so each distinct pair is computed once.  A k greater than some n is an
error: nothing is known about k rollouts where fewer were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handoff.errors import UsageError
from handoff.settings import require

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def pass_at_k(n: int, c: int, k: int) -> float:
    """pass@k of one task with ``c`` successes out of ``n`` rollouts.

    Raises :class:`~handoff.errors.UsageError` unless 0 <= c <= n and 1 <= k <= n.
    """
    return float(pass_at_k_curves([n], [c], k)[0, -1])


def pass_hat_k(n: int, c: int, k: int) -> float:
    """pass^k (all k succeed) of one task with ``c`` successes out of ``n`` rollouts.

    Raises :class:`~handoff.errors.UsageError` unless 0 <= c <= n and 1 <= k <= n.
    """
    return float(pass_hat_k_curves([n], [c], k)[0, -1])


def pass_at_k_curves(n_T: ArrayLike, c_T: ArrayLike, budget: int) -> FloatArray:
    """pass@1 ... pass@``budget`` of every task, shape (tasks, budget).

    Raises :class:`~handoff.errors.UsageError` unless 0 <= c <= n and 1 <= ``budget`` <= n for every task.
    """
    return _per_task(n_T, c_T, budget, _pass_at_k_table)


def pass_hat_k_curves(n_T: ArrayLike, c_T: ArrayLike, budget: int) -> FloatArray:
    """pass^1 ... pass^``budget`` of every task, shape (tasks, budget); raises as :func:`pass_at_k_curves` does."""
    return _per_task(n_T, c_T, budget, _pass_hat_k_table)


def mean_pass_at_k(n_T: ArrayLike, c_T: ArrayLike, budget: int) -> FloatArray:
    """The data set's pass@1 ... pass@``budget``: the mean over tasks, each of equal weight; shape (budget,).

    Needs no memory for the single tasks' curves.  Raises as :func:`pass_at_k_curves` does.
    """
    return _mean(n_T, c_T, budget, _pass_at_k_table)


def mean_pass_hat_k(n_T: ArrayLike, c_T: ArrayLike, budget: int) -> FloatArray:
    """The data set's pass^1 ... pass^``budget``; see :func:`mean_pass_at_k`."""
    return _mean(n_T, c_T, budget, _pass_hat_k_table)


_Table = Callable[[IntArray, IntArray, int], FloatArray]


def _pass_at_k_table(n_P: IntArray, c_P: IntArray, budget: int) -> FloatArray:
    rollout_K = np.arange(budget)
    left_PK = n_P[:, None] - rollout_K  # rollouts not looked at yet, before the one at hand
    failures_PK = np.maximum(n_P[:, None] - c_P[:, None] - rollout_K, 0)
    # All of the first k fail: C(n-c, k)/C(n, k) = prod over i < k of (n-c-i)/(n-i).
    none_PK = np.cumprod(failures_PK / left_PK, axis=1)
    before_PK = np.ones_like(none_PK)
    before_PK[:, 1:] = none_PK[:, :-1]
    curves_PK: FloatArray = np.cumsum(before_PK * (c_P[:, None] / left_PK), axis=1)
    # Among more rollouts than there are failures one succeeds for certain, whatever rounding says.
    curves_PK[failures_PK == 0] = 1.0
    np.minimum(curves_PK, 1.0, out=curves_PK)
    return curves_PK


def _pass_hat_k_table(n_P: IntArray, c_P: IntArray, budget: int) -> FloatArray:
    rollout_K = np.arange(budget)
    successes_PK = np.maximum(c_P[:, None] - rollout_K, 0)
    table_PK: FloatArray = np.cumprod(successes_PK / (n_P[:, None] - rollout_K), axis=1)
    return table_PK


def _per_task(n_T: ArrayLike, c_T: ArrayLike, budget: int, table: _Table) -> FloatArray:
    n, c = _validated(n_T, c_T, budget)
    n_P, c_P, pair_T, _ = _pairs(n, c)
    if len(n_P) == len(n):
        return np.concatenate([part for _, part in _blocks(n, c, budget, table)])
    table_PK = np.concatenate([part for _, part in _blocks(n_P, c_P, budget, table)])
    # Every index is in range, so nothing is lost by not checking them, and the copy is twice as fast.
    return np.take(table_PK, pair_T, axis=0, mode="clip")


def _mean(n_T: ArrayLike, c_T: ArrayLike, budget: int, table: _Table) -> FloatArray:
    n, c = _validated(n_T, c_T, budget)
    n_P, c_P, _, tasks_P = _pairs(n, c)
    total_K = np.zeros(budget)
    for rows, part_PK in _blocks(n_P, c_P, budget, table):
        total_K += tasks_P[rows] @ part_PK
    return total_K / len(n)


def _validated(n_T: ArrayLike, c_T: ArrayLike, budget: int) -> tuple[IntArray, IntArray]:
    arrays = []
    for name, values in (("n", n_T), ("c", c_T)):
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise UsageError(f"{name} must be one whole number per task, not {array.dtype} of shape {array.shape}")
        arrays.append(array.astype(np.int64))
    n, c = arrays
    if len(n) != len(c):
        raise UsageError(f"there are {len(n)} rollout counts and {len(c)} success counts; give both for every task")
    if not len(n):
        raise UsageError("there are no tasks: a mean over none of them is undefined")
    require("k", budget, int, least=1)
    few, odd = n < budget, (c < 0) | (c > n)
    for bad, what in ((few, f"k = {budget} needs at least as many rollouts"), (odd, "0 <= c <= n must hold")):
        if bad.any():
            at = int(np.argmax(bad))
            raise UsageError(f"{what}, but task {at + 1} of {len(n)} has {c[at]} successes in {n[at]} rollouts")
    return n, c


def _pairs(n_T: IntArray, c_T: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The distinct pairs (n, c), which of them each task has, and how many tasks have each."""
    low, base = int(n_T.min()), int(c_T.max()) + 1
    key_T = (n_T - low) * base + c_T
    span = (int(n_T.max()) - low + 1) * base
    if span <= 4 * len(key_T):  # counting is faster than sorting where most keys occur
        tasks_S = np.bincount(key_T, minlength=span)
        keys_P = np.flatnonzero(tasks_S)
        place_S = np.cumsum(tasks_S > 0) - 1
        pair_T, tasks_P = place_S[key_T], tasks_S[keys_P]
    else:
        keys_P, pair_T, tasks_P = np.unique(key_T, return_inverse=True, return_counts=True)
    return keys_P // base + low, keys_P % base, pair_T.reshape(-1), tasks_P


def _blocks(n_P: IntArray, c_P: IntArray, budget: int, table: _Table) -> Iterator[tuple[slice, FloatArray]]:
    """The table in parts of some million entries, so that its temporaries stay in the cache."""
    size = max(1, 2**20 // budget)
    for first in range(0, len(n_P), size):
        rows = slice(first, first + size)
        yield rows, table(n_P[rows], c_P[rows], budget)


__all__ = [
    "mean_pass_at_k",
    "mean_pass_hat_k",
    "pass_at_k",
    "pass_at_k_curves",
    "pass_hat_k",
    "pass_hat_k_curves",
]
