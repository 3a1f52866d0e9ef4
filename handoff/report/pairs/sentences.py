"""The sentences of many pairs, each made from the numbers that it states."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from handoff.passk.crossing import Crossing
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import SignCount
from handoff.report.format import (
    decimal_with_interval,
    gap_with_interval,
    percent,
    plural,
    rate_with_interval,
    sign,
    told,
)
from handoff.report.pairs.values import PairsDocument
from handoff.report.tax.sentences import early as early_words

SAME = "an interval that is not on one side of zero"


def sentences(document: PairsDocument) -> dict[str, list[str]]:
    """The sentences of each section."""
    return {
        "verdict": list(verdict(document)),
        "pairs": list(pairs(document)),
        "signs": list(signs(document)),
        "curves": list(curves(document)),
        "recovered": list(recovered(document)),
        "early": [] if document.early is None else list(early_words(document.early)),
        "routing": list(routing(document)),
        "intervals": list(intervals(document)),
    }


def verdict(document: PairsDocument) -> Iterator[str]:
    """Signs over the pairs, the mean tax by its interval, and the crossover of the mean curves."""
    means, tax = document.means, document.means.tax_s
    yield f"Tax_S is {count(document.signs[0].tax_s)}."
    if tax.point is None:
        yield f"Its mean is undefined: {tax.reason}."
    elif tax.low is None:
        yield f"Its mean over the pairs is {decimal_with_interval(tax)}, without an interval: {tax.interval_reason}."
    else:
        words = told(tax, "above zero", "below zero", f"not resolved, {SAME}")
        yield f"Its mean over the pairs is {decimal_with_interval(tax)}: {words}."
    crossing = means.crossing
    if crossing.k is None:
        yield f"The bases' mean pass@k is greater at no k up to {document.budget}."
    else:
        yield (
            f"The mean curve of the bases is first the greater one at k = {crossing_words(crossing, document.budget)}."
        )


def count(signs: SignCount) -> str:
    """``above zero in 11 of 12 pairs (10 resolved) and below zero in 1 (0 resolved)``."""
    above = f"above zero in {signs.positive} of {plural(signs.pairs, 'pair')} ({signs.above} resolved)"
    return f"{above} and below zero in {signs.negative} ({signs.below} resolved)" if signs.negative else above


def crossing_words(crossing: Crossing, budget: int) -> str:
    """``22 [8, 74]``; an end that no draw reaches is "beyond" the budget."""
    low, high = (f"beyond {budget}" if end is None else str(end) for end in (crossing.low, crossing.high))
    return f"{budget if crossing.k is None else crossing.k} [{low}, {high}]"


def pairs(document: PairsDocument) -> Iterator[str]:
    rows = document.pairs
    yield (
        f"{plural(len(rows), 'pair')} at K = {document.budget}, of {plural(document.means.bases, 'base evaluation')}; "
        "all taxes are the base's number less that of the post-trained policy."
    )


def signs(document: PairsDocument) -> Iterator[str]:
    every = document.signs[0]
    yield (
        f"Coverage lost is {count(every.coverage_lost)}; efficiency gained is {count(every.efficiency_gained)}; "
        f"the base overtakes within {document.budget} rollouts in {every.overtaken} of {plural(every.pairs, 'pair')}. "
        "A sign is resolved where the pair's interval lies on one side of zero."
    )


def curves(document: PairsDocument) -> Iterator[str]:
    means, k = document.means, document.budget
    crossing = means.crossing
    first = (
        f"first the greater one at k = {crossing_words(crossing, k)}"
        if crossing.k is not None
        else f"greater at no k up to {k}"
    )
    yield f"Averaged over {plural(means.bases, 'base')}, the bases' pass@k is {first}."
    alone = sorted(row.crossover for row in document.pairs if row.crossover is not None)
    if alone and len(document.pairs) > 1:
        yield (
            f"Pair by pair the base overtakes in {len(alone)} of {len(document.pairs)}, at k from {alone[0]} to "
            f"{alone[-1]}."
        )
    yield (
        f"The mean pass@{k} goes from {percent(means.base.pass_at_k[-1])} to {percent(means.post.pass_at_k[-1])}, "
        f"coverage lost {gap_with_interval(means.coverage_lost)}; pass@1 from {percent(means.base.pass_at_k[0])} to "
        f"{percent(means.post.pass_at_k[0])}, efficiency gained {gap_with_interval(means.efficiency_gained)}."
    )
    yield (
        f"The share of tasks that are always solved goes from {percent(means.base.always_solved)} to "
        f"{percent(means.post.always_solved)}, and of those never solved from {percent(means.base.never_solved)} to "
        f"{percent(means.post.never_solved)}."
    )
    if means.undefined:
        yield f"The mean of Tax_S leaves out {plural(means.undefined, 'pair')} in which it is undefined."


def recovered(document: PairsDocument) -> Iterator[str]:
    rows = document.lost_then_solved
    if len(rows) > 2:  # the table has the others
        rows = tuple(row for row in rows if sign(row.difference) > 0)
    for row in rows:
        if row.share.point is None:
            yield f"{row.share.reason}."
            continue
        of = f" ({row.benchmark})" if row.benchmark else ""
        words = told(
            row.difference,
            "more than in the other direction",
            "less than in the other direction",
            "not told apart from the other direction",
        )
        gap = "" if row.difference.point is None else f", {words}: {gap_with_interval(row.difference)}"
        yield (
            f"Of the tasks that {row.base} solves and {row.loser} loses, {row.solver} solves "
            f"{rate_with_interval(row.share)}{of}{gap}."
        )
    if document.lost_then_solved:
        if not rows:
            yield "No direction is told apart from the other one."
        yield (
            "A policy solves a task if at least one of K rollouts succeeds. A second evaluation of the same policy "
            "would solve some of the lost tasks by chance, so compare the two directions."
        )


def routing(document: PairsDocument) -> Iterator[str]:
    routed = [row.routing for row in document.pairs if row.routing is not None]
    if not routed:
        return
    k, pilot = document.budget, routed[0].pilot
    yield (
        f"Sending each task to the policy that a pilot of {pilot} rollouts of both speaks for, pass@{k} less that of "
        f"the post-trained policy alone is {_signed([one.over_post for one in routed])}; less that of the base alone "
        f"{_signed([one.over_base for one in routed])}; less that of a random policy "
        f"{_signed([one.over_random for one in routed])}."
    )
    equal = [one.equal_cost_over_post for one in routed if one.equal_cost_over_post is not None]
    if equal:
        yield f"At an equal cost of {k} rollouts per task in all, the first is {_signed(equal)}."


def _signed(estimates: Collection[TaxEstimate]) -> str:
    return count(SignCount.of(estimates))


def intervals(document: PairsDocument) -> Iterator[str]:
    means = document.means
    drawn = f"percentiles of {plural(document.draws, 'bootstrap draw')} of tasks, seed {document.seed}"
    jackknife = "Student's t on the jackknife over tasks, and Wilson's score for rates"
    yield f"Intervals of single pairs are {drawn if document.interval == 'paper' else jackknife}."
    spread = (
        f"{means.spread} and over tasks, which are the same for all pairs on a benchmark"
        if means.spread
        else "tasks alone: fewer than three bases, or policies of one base, do not show their spread"
    )
    yield (
        f"{means.level:.0%} intervals of means, and of where the mean curves cross, are over {spread} (delete-one "
        "jackknife, Student's t). Every base has the same weight, and a base that several post-trained policies share "
        "counts once. Bands are pointwise."
    )
