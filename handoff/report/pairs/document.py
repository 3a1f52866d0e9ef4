"""The numbers of many pairs: terminal, page and JSON twin are made from these."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from handoff.errors import UsageError
from handoff.passk.comparison import DRAWS, TaxComparison, compare
from handoff.passk.crossing import mean_curves
from handoff.passk.early import LEAST_PAIRS, early_estimate
from handoff.passk.estimators import METHODS
from handoff.passk.pairs import Pair, common_budget, signs
from handoff.passk.recovery import lost_then_solved
from handoff.passk.routing import routed_coverage
from handoff.report.pairs import sentences
from handoff.report.pairs.values import PairRow, PairsDocument


def document(
    pairs: Sequence[Pair],
    budget: int | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    pilot: int | None = None,
    method: str = METHODS[0],
    more: bool = False,
) -> PairsDocument:
    """All numbers of ``pairs`` at one budget (default: the fewest rollouts that a task of any pair has).

    ``method`` makes the intervals of single pairs.  With ``more`` the routing rules are compared, too; ``pilot`` is
    that of the tax rule (default: 32, or a quarter of the budget).  Raises :class:`~handoff.errors.UsageError` for
    fewer than two pairs, and as :func:`~handoff.passk.crossing.mean_curves` and :func:`~handoff.passk.routing.route`
    do.
    """
    if len(pairs) < 2:
        raise UsageError("a study of pairs needs at least two; compare one pair with: handoff tax BASE POST")
    pairs = grouped(pairs)
    budget = common_budget(pairs, budget)
    means = mean_curves(pairs, budget)
    pilot = max(2, min(32, budget // 4)) if pilot is None else pilot
    compared = [
        compare(pair.base, pair.post, budget, draws=draws, seed=seed, extremes=0, method=method) for pair in pairs
    ]
    rows = [_row(pair, one, pilot if more else None) for pair, one in zip(pairs, compared, strict=True)]
    numbers = PairsDocument(
        budget,
        draws,
        seed,
        means.level,
        method,
        tuple(rows),
        signs(pairs, compared),
        means,
        lost_then_solved(pairs, budget),
        early_estimate(pairs, seed=seed) if len(pairs) >= LEAST_PAIRS else None,
    )
    words = sentences.sentences(numbers)
    policies = [policy for pair in pairs for policy in (pair.base, pair.post) if policy.repeated is not None]
    words["verdict"] += dict.fromkeys(str(policy.repeated) for policy in policies)
    return attrs.evolve(numbers, sentences=words, alike={policy.name: policy.alike or 0 for policy in policies})


def grouped(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs by benchmark, and by family within it, each in the order of its first pair."""
    benchmarks = list(dict.fromkeys(pair.benchmark for pair in pairs))
    families = list(dict.fromkeys(pair.family for pair in pairs))
    return sorted(pairs, key=lambda pair: (benchmarks.index(pair.benchmark), families.index(pair.family)))


def _row(pair: Pair, one: TaxComparison, pilot: int | None) -> PairRow:
    routed = None
    if pilot is not None:
        routed = routed_coverage(pair.base, pair.post, one.budget, pilot, seed=one.seed, level=one.level)
    return PairRow(
        name=pair.name,
        family=pair.family,
        benchmark=pair.benchmark,
        base=pair.base.name,
        post=pair.post.name,
        recipe=pair.recipe,
        tasks=one.tasks,
        tax_a=one.tax_a,
        tax_s=one.tax_s,
        coverage_lost=one.coverage_lost,
        efficiency_gained=one.efficiency_gained,
        base_coverage=one.base.coverage,
        post_coverage=one.post.coverage,
        crossover=one.crossover,
        crossed_share=one.crossed_share,
        routing=routed,
    )
