"""The sentences of the sharpening tax, each made from the numbers that it states."""

from __future__ import annotations

from collections.abc import Iterator

from handoff.passk.comparison import PolicyCurves, TaxComparison
from handoff.passk.early import EarlyEstimate
from handoff.report.format import (
    Measure,
    decimal,
    decimal_with_interval,
    gap_with_interval,
    interval,
    percent,
    plural,
    rate_with_interval,
    sign,
)
from handoff.report.tax.values import TaxDocument


def sentences(document: TaxDocument) -> dict[str, list[str]]:
    """The sentences of each section."""
    return {
        "verdict": [verdict(document), trade(document)],
        "curves": list(curves(document)),
        "scalability": list(scalability(document)),
        "parts": list(parts(document)),
        "tasks": list(tasks(document)),
        "trade": [trade(document), *_pairs(document)],
        "early": list(early(document.early) if document.early is not None else early_alone(document.comparison)),
        "routing": list(routing(document)),
        "intervals": [intervals(document.comparison)],
    }


def verdict(document: TaxDocument) -> str:
    """Whether there is a sharpening tax, by its interval."""
    compared, (base, post) = document.comparison, document.names
    tax, k = compared.tax_s, compared.budget
    if tax.point is None:
        return f"The sharpening tax is undefined: {tax.reason}."
    of = (
        f"from {base} to {post}, calibrated scalability S({k}) goes from "
        f"{decimal(compared.base.calibrated.point, 3)} to {decimal(compared.post.calibrated.point, 3)}, "
        f"Tax_S {decimal_with_interval(tax)}"
    )
    direction = sign(tax)
    if tax.low is None:
        return f"Without an interval: {of}."
    if direction > 0:
        return f"There is a sharpening tax: {of}."
    if direction < 0:
        return f"There is none, retries gained: {of}."
    return f"Not resolved: {of}, an interval that is not on one side of zero."


def trade(document: TaxDocument) -> str:
    compared, (base, post) = document.comparison, document.names
    k, one, other = compared.budget, compared.base, compared.post
    lost = compared.coverage_lost
    point, low, high = (None if end is None else -end for end in (lost.point, lost.high, lost.low))
    gained = Measure(None, point, low, high)
    return (
        f"A rollout succeeds in {percent(one.pass_at_k[0])} with {base} and {percent(other.pass_at_k[0])} with "
        f"{post}, {gap_with_interval(compared.efficiency_gained)}; {k} rollouts cover "
        f"{percent(one.coverage.point)} of the tasks with {base} and {percent(other.coverage.point)} with "
        f"{post}, {gap_with_interval(gained)}."
    )


def curves(document: TaxDocument) -> Iterator[str]:
    compared, (base, _), k = document.comparison, document.names, document.comparison.budget
    first = f"first the greater one at k = {compared.crossover}" if compared.crossover else f"greater at no k up to {k}"
    yield (
        f"pass@k is the share of tasks that at least one of k rollouts solves, pass^k the share that all k solve. "
        f"In these counts {base}'s pass@k is {first}; in {percent(compared.crossed_share)} of the draws it is ahead "
        f"at some k up to {k}."
    )
    yield (
        f"Averaged over all budgets up to {k}, coverage is {rate_with_interval(compared.base.mean_coverage)} and "
        f"{rate_with_interval(compared.post.mean_coverage)}."
    )


def scalability(document: TaxDocument) -> Iterator[str]:
    compared, (base, post) = document.comparison, document.names
    yield (
        f"Raw scalability A({compared.budget}) is the number of failed attempts before a success within "
        f"{compared.budget} rollouts: {decimal_with_interval(compared.base.scalability, 2)} for {base} and "
        f"{decimal_with_interval(compared.post.scalability, 2)} for {post}, so Tax_A is "
        f"{decimal_with_interval(compared.tax_a, 2)}."
    )
    yield "Calibrated scalability S sets it against all attempts that could have failed: 1 is the most."


def parts(document: TaxDocument) -> Iterator[str]:
    one, (base, post) = document.comparison, document.names
    lost, gained, shape, ceiling, averaged = (
        decimal(part.point, 2) for part in (one.lost, one.gained, one.shape, one.ceiling, one.averaged)
    )
    yield (
        f"Tax_A is the sum of three parts: {lost} from {plural(one.tasks_lost, 'task')} that only {base} solved, "
        f"{gained} from {plural(one.tasks_gained, 'task')} that only {post} did, and {shape} from "
        f"{plural(one.tasks_both, 'task')} that both did."
    )
    yield (
        f"By Eq. 8 it is also K times the gap of coverage, {ceiling}, less K times the gap of budget-averaged "
        f"coverage, {averaged}."
    )


def tasks(document: TaxDocument) -> Iterator[str]:
    before, after, (base, post) = document.comparison.base, document.comparison.post, document.names
    each = [row.contribution for row in document.contributions]
    if each:
        positive, negative = sum(part > 0 for part in each), sum(part < 0 for part in each)
        yield (
            f"Tax_S is the mean of the tasks' parts (Eq. 10): {positive} of {len(each)} are positive, {negative} "
            f"negative and {len(each) - positive - negative} zero."
        )
    yield (
        f"{base} never solves {percent(before.never_solved)} of the tasks and always solves "
        f"{percent(before.always_solved)}; for {post} these shares are {percent(after.never_solved)} and "
        f"{percent(after.always_solved)}."
    )


def _pairs(document: TaxDocument) -> Iterator[str]:
    rows = document.trade
    if len(rows) > 1:
        both = sum(sign(row.coverage_lost) > 0 and sign(row.efficiency_gained) > 0 for row in rows)
        yield f"Of {len(rows)} pairs, {both} gained efficiency and lost coverage, by intervals on one side of zero."


def early(one: EarlyEstimate) -> Iterator[str]:
    """How well the early tax orders the pairs, from rollouts that the late one does not share."""
    if one.rho is None:
        taxes = f"Tax_S at {one.early} rollouts against Tax_S at {one.late} others"
        yield f"{taxes} has no rank correlation ({one.reason})."
        return
    over_splits = Measure(None, one.rho, one.low, one.high)
    yield (
        f"Each task's rollouts are split at random: Tax_S from {one.early} rollouts against Tax_S at {one.late} from "
        f"the others has the rank correlation {decimal_with_interval(over_splits, 2)} over "
        f"{plural(len(one.pairs), 'pair')} and {plural(one.splits, 'split')}."
    )
    if one.pairs_low is not None:
        over_pairs = Measure(None, one.rho, one.pairs_low, one.pairs_high)
        yield f"With the pairs drawn, too, it lies in {interval(over_pairs, 1.0, 2)}."
    if one.excluded:
        yield f"{plural(one.excluded, 'split')} had none."
    if one.rho_of_same_rollouts is not None:
        yield (
            f"Both taxes from the same rollouts share their noise and foretell nothing; their rank correlation is "
            f"{decimal(one.rho_of_same_rollouts, 2)}."
        )


def early_alone(compared: TaxComparison) -> Iterator[str]:
    """The early tax of one pair."""
    if compared.budget >= 16:
        at_8, at_last = (decimal_with_interval(compared.tax_s_by_k[k - 1]) for k in (8, compared.budget))
        yield (
            f"At 8 rollouts Tax_S is {at_8}, at {compared.budget} it is {at_last}. "
            "How well the early one ranks policies only further pairs can tell (--pair)."
        )


def routing(document: TaxDocument) -> Iterator[str]:
    routed, (base, post) = document.routing, document.names
    rules = {row.rule: row for row in routed.routes}
    tax, k = rules["tax"], routed.budget
    yield (
        f"Sending each task to the policy that a pilot of {routed.pilot} rollouts of both speaks for covers "
        f"{percent(tax.pass_k)} of the tasks with {k} rollouts of the chosen one, and costs {tax.rollouts} "
        f"rollouts per task; {base} alone covers {percent(rules['base'].pass_k)}, {post} alone "
        f"{percent(rules['post'].pass_k)}, and an oracle {percent(rules['oracle'].pass_k)}."
    )
    if tax.equal_cost is not None:
        yield f"At an equal cost of {k} rollouts per task it covers {percent(tax.equal_cost)}."
    else:
        yield f"At an equal cost nothing is left: {tax.reason}."
    yield f"Numbers of the tax rule are means over {plural(routed.pilots, 'random pilot')}."


def intervals(compared: TaxComparison) -> str:
    if compared.interval == "jackknife":
        return (
            f"Intervals are at {compared.level:.0%}: Student's t on the jackknife over tasks, and Wilson's score for "
            "rates; both policies' counts of a task come together. Bands are pointwise."
        )
    return (
        f"Intervals are {compared.level:.0%} percentiles of {plural(compared.draws, 'bootstrap draw')} of tasks, "
        f"seed {compared.seed}; both policies' counts of a drawn task come together. Bands are pointwise."
    )


def source(side: PolicyCurves) -> str:
    """What a policy's counts are."""
    low, high = side.rollouts
    each = f"{low}" if low == high else f"{low} to {high}"
    return f"{each} rollouts per task" + (f" ({side.remark}; pilots are not counted)" if side.remark else "")
