"""Routing: which of two policies gets a task's rollouts, by five rules, with the cost of the pilot counted.

``base`` and ``post`` send every task to one policy, ``random`` sends each to either with probability one half (its
numbers are expectations), ``tax`` looks at a pilot of m rollouts of both policies, and ``oracle`` knows which policy
covers the task better at the full budget.

The tax rule sends a task to the base if its part of Tax_S(m), estimated from the pilot (Eq. 10), is positive, and to
the post-trained policy if it is negative.  Where it is zero (both never or both always succeeded, or alike) the policy
with more pilot successes gets the task, and of equals the post-trained one.

The pilot's rollouts of the chosen policy are part of its K; those of the other are overhead: K + m rollouts per task.
At an equal cost of K rollouts per task in all, K - m are left for the chosen policy, and pass@(K-m) is the number to
compare with the single policies' pass@K.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.passk.comparison import LEVEL
from handoff.passk.counts import Counts, matched
from handoff.passk.curves import FloatArray, IntArray, pass_at_k_curves
from handoff.passk.estimators import LeaveOneOut, Measured, TaxEstimate
from handoff.passk.tax import scalability
from handoff.settings import require


@attrs.frozen
class Route:
    """Outcome of one rule: means over tasks and, for ``tax``, over pilots."""

    #: base, post, random, tax or oracle.
    rule: str
    pass_1: float
    pass_k: float
    #: Share of the tasks sent to the base.
    to_base: float
    #: Cost per task.
    rollouts: int
    #: pass@k at a cost of K rollouts per task; ``None`` with the ``reason`` if the pilot leaves none.
    equal_cost: float | None
    reason: str | None = None
    #: Standard deviation of pass@K over pilots.
    deviation: float = 0.0


@attrs.frozen
class Routing:
    """The five rules at budget K."""

    budget: int
    #: Rollouts in a pilot (m).
    pilot: int
    #: Random pilots averaged over.
    pilots: int
    seed: int
    routes: tuple[Route, ...]


def route(
    base: Counts, post: Counts, budget: int | None = None, pilot: int = 32, *, pilots: int = 200, seed: int = 0
) -> Routing:
    """Compare the five rules on the same tasks.

    A pilot is a random m of the n rollouts that were made: its successes are hypergeometric.  Raises
    :class:`~handoff.errors.UsageError` unless 1 < ``pilot`` <= ``budget`` <= the rollouts of every task.
    """
    base, post = matched(base, post)
    budget = _budget(base, post, budget, pilot, pilots, seed)
    curves_2TK = np.stack([pass_at_k_curves(counts.n_T, counts.c_T, budget) for counts in (base, post)])
    routes = [
        _fixed("base", curves_2TK, np.ones(len(base.tasks))),
        _fixed("post", curves_2TK, np.zeros(len(base.tasks))),
        _fixed("random", curves_2TK, np.full(len(base.tasks), 0.5)),
        _by_tax(base, post, curves_2TK, pilot, pilots, seed),
        _fixed("oracle", curves_2TK, _oracle(curves_2TK)),
    ]
    return Routing(budget, pilot, pilots, seed, tuple(routes))


def _budget(base: Counts, post: Counts, budget: int | None, pilot: int, pilots: int, seed: int) -> int:
    """The budget, after a check of all numbers."""
    fewest = min(base.rollouts, post.rollouts)
    budget = fewest if budget is None else budget
    for name, value in (("pilot", pilot), ("budget", budget), ("pilots", pilots), ("seed", seed)):
        require(name, value, int, least=0)
    if not 1 < pilot <= budget <= fewest:
        raise UsageError(
            f"routing needs 1 < pilot <= budget <= the fewest rollouts of a task, not pilot {pilot}, budget {budget} "
            f"and {fewest} rollouts"
        )
    if pilots < 1:
        raise UsageError(f"at least one pilot is needed, not {pilots}")
    return budget


def _oracle(curves_2TK: FloatArray) -> FloatArray:
    """1 where the base covers the task better at K; of equals by pass@1, of equals in that the post-trained policy."""
    last, first = curves_2TK[..., -1], curves_2TK[..., 0]
    better: FloatArray = ((last[0] > last[1]) | ((last[0] == last[1]) & (first[0] > first[1]))).astype(np.float64)
    return better


def _value(curves_2TK: FloatArray, to_base_T: FloatArray, k: int) -> float:
    base_T, post_T = curves_2TK[0, :, k - 1], curves_2TK[1, :, k - 1]
    return float(np.mean(to_base_T * base_T + (1 - to_base_T) * post_T))


def _fixed(rule: str, curves_2TK: FloatArray, to_base_T: FloatArray) -> Route:
    budget = curves_2TK.shape[2]
    covered = _value(curves_2TK, to_base_T, budget)
    return Route(rule, _value(curves_2TK, to_base_T, 1), covered, float(to_base_T.mean()), budget, covered)


def choose(pilot_base_T: IntArray, pilot_post_T: IntArray, pilot: int) -> FloatArray:
    """The tax rule: 1 for the tasks that it sends to the base, from both policies' pilot successes out of ``pilot``."""
    parts = []
    table_CK = pass_at_k_curves(np.full(pilot + 1, pilot), np.arange(pilot + 1), pilot)
    raw_C = scalability(table_CK)[:, -1]
    for wins_T in (pilot_base_T, pilot_post_T):
        headroom = (pilot - 1) * (1 - wins_T.mean() / pilot)
        # Without headroom every attempt succeeded, and no task gains anything from retries.
        parts.append(raw_C[wins_T] / headroom if headroom > 0 else np.zeros(len(wins_T)))
    tax_T = parts[0] - parts[1]
    chosen: FloatArray = np.where(tax_T == 0, pilot_base_T > pilot_post_T, tax_T > 0).astype(np.float64)
    return chosen


def _chosen(base: Counts, post: Counts, pilot: int, pilots: int, seed: int) -> Iterator[FloatArray]:
    """What the tax rule chooses in each of ``pilots`` random pilots: 1 for a task that it sends to the base."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for _ in range(pilots):
        wins = [rng.hypergeometric(counts.c_T, counts.n_T - counts.c_T, pilot) for counts in (base, post)]
        yield choose(wins[0], wins[1], pilot)


def _by_tax(base: Counts, post: Counts, curves_2TK: FloatArray, pilot: int, pilots: int, seed: int) -> Route:
    budget = curves_2TK.shape[2]
    outcomes = []
    for to_base_T in _chosen(base, post, pilot, pilots, seed):
        left = budget - pilot
        outcomes.append(
            (
                _value(curves_2TK, to_base_T, 1),
                _value(curves_2TK, to_base_T, budget),
                float(to_base_T.mean()),
                _value(curves_2TK, to_base_T, left) if left else np.nan,
            )
        )
    means, deviation = np.mean(outcomes, axis=0), float(np.std([row[1] for row in outcomes]))
    equal = None if budget == pilot else float(means[3])
    reason = "the pilot of both policies takes the whole budget" if equal is None else None
    return Route(
        "tax", float(means[0]), float(means[1]), float(means[2]), budget + pilot, equal, reason, deviation=deviation
    )


@attrs.frozen
class RoutedCoverage:
    """pass@K under the tax rule with its interval over tasks, and what it gains over the other rules."""

    budget: int
    pilot: int
    tax: TaxEstimate
    oracle: TaxEstimate
    #: pass@K under the tax rule less that of a single policy, of a random one, and of the oracle.
    over_base: TaxEstimate
    over_post: TaxEstimate
    over_random: TaxEstimate
    over_oracle: TaxEstimate
    #: The tax rule at a cost of K rollouts per task in all less each single policy's pass@K; ``None`` if the pilot
    #: leaves no rollout.
    equal_cost_over_base: TaxEstimate | None
    equal_cost_over_post: TaxEstimate | None


def routed_coverage(
    base: Counts,
    post: Counts,
    budget: int | None = None,
    pilot: int = 32,
    *,
    pilots: int = 200,
    seed: int = 0,
    level: float = LEVEL,
) -> RoutedCoverage:
    """The coverage of the tax rule with intervals over tasks; arguments and errors are those of :func:`route`.

    A task's value is its mean over the pilots.  The intervals take the tasks' values for independent: that the rule
    weighs a task against the headroom of all tasks in the pilot is left out.
    """
    base, post = matched(base, post)
    budget = _budget(base, post, budget, pilot, pilots, seed)
    base_TK, post_TK = (pass_at_k_curves(counts.n_T, counts.c_T, budget) for counts in (base, post))
    to_base_T = np.mean(list(_chosen(base, post, pilot, pilots, seed)), axis=0)
    oracle_T = _oracle(np.stack([base_TK, post_TK]))

    def under(share_T: FloatArray | float, k: int) -> FloatArray:
        values_T: FloatArray = share_T * base_TK[:, k - 1] + (1 - share_T) * post_TK[:, k - 1]
        return values_T

    estimator, fewest = LeaveOneOut(len(base.tasks), level), min(base.rollouts, post.rollouts)
    trials = min(float(base.n_T.sum()), float(post.n_T.sum())) / budget

    def rate(values_T: FloatArray) -> TaxEstimate:
        return estimator.one(Measured.of(estimator.means(values_T), "rate", trials=trials))

    def gain(k: int, share: FloatArray | float) -> TaxEstimate:
        """pass@``k`` of the tax rule less pass@K of a rule that sends each task to the base with this probability."""
        # One rollout's outcome changes pass@K of a task by K of n, where the two rules differ.
        step = budget / fewest * float(np.abs(to_base_T - share).mean())
        values_T = under(to_base_T, k) - under(share, budget)
        return estimator.one(Measured.of(estimator.means(values_T), "contrast", step=step))

    tax_T, left = under(to_base_T, budget), budget - pilot
    over = [gain(budget, share) for share in (1.0, 0.0, 0.5, oracle_T)]
    equal = [gain(left, share) if left else None for share in (1.0, 0.0)]
    return RoutedCoverage(budget, pilot, rate(tax_T), rate(under(oracle_T, budget)), *over, *equal)
