"""Intervals that hold all at once, and p-values adjusted for a family of estimands.

From the draws of one bootstrap: the largest |theta* - theta| / s.d. over the family has a quantile c, and every
interval is widened to the level that c has alone (J. P. Romano and M. Wolf, "Exact and approximate stepdown methods for
multiple hypothesis testing", JASA 100 (2005)).  Percentiles of few tasks do not reach so far, so the arms of a
contrast's plain interval are stretched by the ratio of Student's t at both levels; a rate's score interval is made at
the new level.  Adjusted p-values step down through the family by the same maxima (P. H. Westfall and S. S. Young,
"Resampling-Based Multiple Testing", 1993); they are a little less strict than the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from scipy import special

from handoff.errors import UsageError
from handoff.estimation.arrays import FloatArray
from handoff.estimation.bootstrap import Estimate, bootstrap
from handoff.estimation.draws import SAME, bootstrap_values
from handoff.estimation.estimands import PAIRED, Estimand, estimand, pairs
from handoff.estimation.evaluation import Evaluation
from handoff.estimation.intervals import student
from handoff.estimation.jackknife import jackknife
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import Plan, plan_of
from handoff.estimation.table import Table


@attrs.frozen
class EstimandFamily:
    """Estimands of all tasks that are read together, named for what they have in common."""

    name: str
    estimands: tuple[Estimand, ...]


@attrs.frozen
class Member:
    """One estimand of a family."""

    #: With the plain interval.
    plain: Estimate
    #: The interval that holds together with the others; ``None`` where the plain one is missing.
    low: float | None
    high: float | None
    #: Two-sided p-value of a contrast against 0, alone and adjusted; ``None`` of rates, and without an interval.
    p: float | None
    p_adjusted: float | None

    @property
    def point(self) -> float | None:
        return self.plain.point

    @property
    def resolved(self) -> bool:
        """The simultaneous interval lies on one side of 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "key": str(self.plain.estimand),
            "label": self.plain.estimand.label,
            "point": self.point,
            "low": self.plain.low,
            "high": self.plain.high,
            "simultaneous_low": self.low,
            "simultaneous_high": self.high,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "reason": self.plain.reason or self.plain.interval_reason,
        }


@attrs.frozen
class Simultaneous:
    """A family with intervals that hold together."""

    name: str
    #: Probability that all hold.
    level: float
    #: Level of each alone.
    level_of_each: float
    members: tuple[Member, ...]

    def get(self, one: Estimand) -> Member:
        return next(member for member in self.members if member.plain.estimand == one)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": self.level,
            "level_of_each": self.level_of_each,
            "members": [member.to_json() for member in self.members],
        }


def main_family(table: Table, contrast: tuple[str, str, str, str]) -> EstimandFamily:
    """The gaps, effects and interactions of one contrast: twelve, where its checkpoints have both roles."""
    a, b, c, d = contrast
    gain = [estimand("endpoint_gain", a=a, b=b)] if (a, b) == (c, d) else []
    return EstimandFamily(
        "main contrasts",
        (
            estimand("reach_gap", a=a, b=b),
            estimand("completion_gap", reachers=table.reachers, a=c, b=d),
            *(estimand("endpoint_effect", reacher=w, a=c, b=d) for w in (a, b)),
            *(estimand("solver_effect", reacher=w, a=c, b=d) for w in (a, b)),
            *gain,
            *(estimand(name, a=a, b=b, c=c, d=d) for name in PAIRED),
        ),
    )


def of_pairs(table: Table, some: Sequence[tuple[str, str]], name: str) -> EstimandFamily:
    """Reach gap, completion gap and endpoint gain of these pairs."""
    return EstimandFamily(
        name,
        tuple(
            one
            for a, b in some
            for one in (
                estimand("reach_gap", a=a, b=b),
                estimand("completion_gap", reachers=table.reachers, a=a, b=b),
                estimand("endpoint_gain", a=a, b=b),
            )
        ),
    )


def pairwise_family(table: Table, order: Sequence[str] | None = None) -> EstimandFamily:
    """All pairs of the checkpoints that have both roles (:func:`~handoff.estimation.estimands.pairs`)."""
    return of_pairs(table, pairs(table, order), "all pairs")


def simultaneous(table: Table, family: EstimandFamily, intervals: Intervals = Intervals()) -> Simultaneous:
    """The family's intervals that hold together with probability ``intervals.level``, and its adjusted p-values.

    An estimand without a plain interval has no simultaneous one, and does not widen those of the others.  Raises
    :class:`~handoff.errors.UsageError` for an estimand of one task type.
    """
    if any(one.type is not None for one in family.estimands):
        raise UsageError("a family has estimands of all tasks, not of one type")
    evaluation, plan = Evaluation(table, family.estimands), plan_of(table.strata, intervals.method)
    plain = bootstrap(evaluation, plan, intervals).estimates
    usable = [e for e, one in enumerate(plain) if one.low is not None]
    if not usable:
        return Simultaneous(
            family.name,
            intervals.level,
            intervals.level,
            tuple(Member(one, one.low, one.high, None, None) for one in plain),
        )
    size_UB = _standardised(evaluation, plan, intervals, usable)
    critical = float(np.quantile(size_UB.max(axis=0), intervals.level))
    of_each = min(max(intervals.level, 1 - 2 * float(special.ndtr(-critical))), 1 - 1e-9)
    freedom_U = _freedom(evaluation, plan, intervals)[usable]
    p, adjusted = _p_values(plain, usable, size_UB, freedom_U, intervals.level)
    rates = bootstrap(evaluation, plan, attrs.evolve(intervals, level=of_each)).estimates if _has_rate(family) else ()
    freedom = dict(zip(usable, freedom_U, strict=True))

    def member(e: int, one: Estimate) -> Member:
        if e not in freedom:
            return Member(one, one.low, one.high, None, None)
        if one.estimand.kind == "rate":
            return Member(one, rates[e].low, rates[e].high, None, None)
        assert one.point is not None
        assert one.low is not None
        assert one.high is not None
        factor = student(of_each, freedom[e]) / student(intervals.level, freedom[e])
        low, high = (one.point + factor * (end - one.point) for end in (one.low, one.high))
        limit = one.estimand.limit
        least = 0.0 if one.estimand.kind == "mean" else -limit
        return Member(one, min(max(low, least), one.low), max(min(high, limit), one.high), p.get(e), adjusted.get(e))

    members = tuple(member(e, one) for e, one in enumerate(plain))
    return Simultaneous(family.name, intervals.level, of_each, members)


def _has_rate(family: EstimandFamily) -> bool:
    return any(one.kind == "rate" for one in family.estimands)


def _standardised(evaluation: Evaluation, plan: Plan, intervals: Intervals, usable: Sequence[int]) -> FloatArray:
    """|theta* - theta| / s.d. of every draw, shape (U, B); 0 where all draws give one value."""
    places = {e: u for u, e in enumerate(usable)}
    size_UB = np.zeros((len(usable), intervals.draws))
    for e, values_B, _ in bootstrap_values(evaluation, plan, intervals.draws, intervals.seed):
        if e in places:
            off_B = values_B - evaluation.points_E[e]
            spread = float(np.sqrt(np.nanmean(off_B**2)))
            size_UB[places[e]] = np.nan_to_num(np.abs(off_B) / spread) if spread > SAME else 0.0
    return size_UB


def _freedom(evaluation: Evaluation, plan: Plan, intervals: Intervals) -> FloatArray:
    """Degrees of freedom of every interval, shape (E,): those of the jackknife, of the design where it shows no
    variance, and infinitely many of the paper's intervals."""
    if intervals.method == "paper":
        return np.full(len(evaluation.estimands), np.inf)
    freedom_E = jackknife(evaluation, plan).freedom_E
    design = max(1.0, float(sum(len(stratum.tasks) - 1 for stratum in plan.strata)))
    return np.where(freedom_E > 0, np.maximum(freedom_E, 1.0), design)


def _p_values(
    plain: Sequence[Estimate], usable: Sequence[int], size_UB: FloatArray, freedom_U: FloatArray, level: float
) -> tuple[dict[int, float], dict[int, float]]:
    """Of the contrasts, by number of the estimand: alone by Student's t, and adjusted by stepping down.

    The standard error is that of the arm of the plain interval that points to 0, so that p alone is below 1 - level
    where the plain interval leaves 0 out.
    """
    alone: dict[int, float] = {}
    normal: dict[int, float] = {}
    for u, e in enumerate(usable):
        one = plain[e]
        if one.estimand.kind != "contrast" or one.point is None or one.low is None or one.high is None:
            continue
        arm = one.point - one.low if one.point > 0 else one.high - one.point
        t = abs(one.point) / arm * student(level, float(freedom_U[u])) if arm > SAME else 0.0
        tail = float(special.ndtr(-t) if np.isinf(freedom_U[u]) else special.stdtr(freedom_U[u], -t))
        # What the draws, whose sizes are near normal, are compared with: the normal quantile of the same tail.
        alone[u], normal[u] = 2 * tail, float(-special.ndtri(tail))
    order = sorted(normal, key=lambda u: -normal[u])
    largest_B, later = np.zeros(size_UB.shape[1]), {}
    for u in reversed(order):
        largest_B = np.maximum(largest_B, size_UB[u])
        later[u] = (1 + int((largest_B >= normal[u]).sum())) / (1 + len(largest_B))
    adjusted: dict[int, float] = {}
    least = 0.0
    for u in order:
        least = max(least, later[u], alone[u])
        adjusted[usable[u]] = least
    return {usable[u]: p for u, p in alone.items()}, adjusted
