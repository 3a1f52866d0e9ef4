"""Lost, then solved: of the tasks that a base solves and one post-trained policy loses, the share that another solves.

A policy solves a task if at least one of K rollouts succeeds, and loses it if none does.  Where more than K rollouts
were made, all choices of K of them count alike, each policy's apart:

    share = sum_i base_i (1 - x_i) y_i / sum_i base_i (1 - x_i)

with base_i, x_i and y_i each policy's pass@K on task i.  At K = n these are 0 or 1, and the share is a ratio of two
counts of tasks.  Of a recipe with several runs x_i and y_i are means over the runs: a run is drawn at random.

Two evaluations of one policy have such a share, too: what fails by chance succeeds by chance.  So the share is compared
with that of the other direction, of what y loses and x solves.  Intervals are over tasks, for the given runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import attrs
import numpy as np

from handoff.passk.comparison import LEVEL
from handoff.passk.counts import Counts
from handoff.passk.curves import FloatArray, pass_at_k_curves
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import BaseRuns, Pair, by_base, common_budget
from handoff.passk.task_intervals import correlation, rate, rate_difference


@attrs.frozen
class LostThenSolved:
    """What one recipe loses and another one solves."""

    benchmark: str
    base: str
    #: Recipes, and how many runs each has.
    loser: str
    solver: str
    loser_runs: int
    solver_runs: int
    #: Tasks that the base solves, expected at K rollouts; of these the tasks that the loser loses, and of these the
    #: tasks that the solver solves.
    base_solves: float
    lost: float
    solved: float
    #: ``solved`` / ``lost``.
    share: TaxEstimate
    #: This share less that of the other direction.
    difference: TaxEstimate


def lost_then_solved(
    pairs: Sequence[Pair], budget: int | None = None, *, level: float = LEVEL
) -> tuple[LostThenSolved, ...]:
    """Every two recipes that share a base, in both directions, one after the other; empty without such.

    ``budget`` is K (default: the fewest rollouts that a task of any pair has).  Raises as
    :func:`~handoff.passk.pairs.by_base` and :func:`~handoff.passk.pairs.common_budget` do.
    """
    budget = common_budget(pairs, budget)
    return tuple(row for group in by_base(pairs) for row in _of_base(group, budget, level))


def _of_base(group: BaseRuns, budget: int, level: float) -> Iterator[LostThenSolved]:
    base_T = _solves(group.base, budget)
    runs: dict[str, list[FloatArray]] = {}
    for pair in group.pairs:
        runs.setdefault(pair.recipe, []).append(_solves(pair.post, budget))
    means_T = {recipe: np.mean(each, axis=0) for recipe, each in runs.items()}
    lost_T = {recipe: base_T * (1 - solves_T) for recipe, solves_T in means_T.items()}
    shares = {
        (loser, solver): rate(
            lost_T[loser] * means_T[solver],
            lost_T[loser],
            level,
            f"{loser} loses no task that {group.base.name} solves",
        )
        for loser, solver in permutations(runs, 2)
    }
    for one, other in combinations(runs, 2):
        together = correlation(
            (lost_T[one] * means_T[other], lost_T[other] * means_T[one]), (lost_T[one], lost_T[other])
        )
        for loser, solver in ((one, other), (other, one)):
            yield LostThenSolved(
                group.pairs[0].benchmark,
                group.base.name,
                loser,
                solver,
                len(runs[loser]),
                len(runs[solver]),
                float(base_T.sum()),
                float(lost_T[loser].sum()),
                float((lost_T[loser] * means_T[solver]).sum()),
                shares[loser, solver],
                rate_difference(shares[loser, solver], shares[solver, loser], together),
            )


def _solves(counts: Counts, budget: int) -> FloatArray:
    solves_T: FloatArray = pass_at_k_curves(counts.n_T, counts.c_T, budget)[:, -1]
    return solves_T
