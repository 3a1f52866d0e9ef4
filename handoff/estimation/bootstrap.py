"""Points and intervals of estimands: the task-stratified paired bootstrap.

Two kinds of interval are offered.

``paper``
    100,000 draws of the n_h tasks of each type with replacement, 2.5% and 97.5% percentiles.  Its variance is
    (n_h - 1) / n_h of the right one, so with five tasks a type it is too narrow.
``rescaled`` (the default)
    n_h - 1 of n_h tasks are drawn (:func:`handoff.estimation.resampling.rescaled`), and the percentiles are those that
    Student's t asks for, on Satterthwaite's degrees of freedom (:func:`handoff.estimation.intervals.widened`).  A rate,
    which ends at 0 and 1 and shows no variance near them, has Wilson's score interval on as many trials as its variance
    is worth (:func:`handoff.estimation.intervals.score`).  Where there are fewer than ten tasks more than strata, as in
    one task type, draws take so few values that their percentiles cannot reach far enough, and the interval is the
    point plus and minus t jackknife standard errors.

``docs/statistics.md`` has the simulated coverage of both.  Under both, a draw in which an estimand has an empty
denominator is excluded from that estimand and counted, and more than 1% of such draws refuse the interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff.estimation.counting import Ratio
from handoff.estimation.draws import Distribution, Shares, distributions
from handoff.estimation.estimands import RATE, Argument, Estimand, estimand, standard
from handoff.estimation.evaluation import Evaluated, Evaluation
from handoff.estimation.intervals import Intervals, effective_trials, score, student, widened
from handoff.estimation.jackknife import Spread, spread
from handoff.estimation.resampling import Plan, ordinary, rescaled
from handoff.estimation.table import Table

#: The default intervals.
INTERVALS = Intervals()
#: More draws than this share without a denominator refuse an interval.
EXCLUDED_LIMIT = 0.01
#: With fewer tasks more than strata, percentiles give way to t times the standard error.
FEW = 10
#: Values that are held at a time; estimands beyond them are evaluated in a further pass over the same draws.
VALUES = 2**24


@attrs.frozen
class Estimate:
    """One estimand: point, interval, and the counts that it is made of.

    A missing ``point`` or end is ``None`` with its ``reason`` or ``interval_reason``.  ``excluded`` draws had an empty
    denominator.  ``notes`` are remarks on the data, among them "degenerate": all draws gave one value.
    """

    estimand: Estimand
    point: float | None
    low: float | None
    high: float | None
    ratios: tuple[Ratio, ...]
    reason: str | None = None
    interval_reason: str | None = None
    interval: str | None = None
    excluded: int = 0
    notes: tuple[str, ...] = ()

    @property
    def degenerate(self) -> bool:
        return any(note.startswith("degenerate") for note in self.notes)

    def to_json(self) -> dict[str, Any]:
        only = self.ratios[0] if len(self.ratios) == 1 else None
        return {
            "key": str(self.estimand),
            "name": self.estimand.name,
            "arguments": {name: _plain(value) for name, value in self.estimand.arguments},
            "type": self.estimand.type,
            "equation": self.estimand.equation,
            "point": self.point,
            "low": self.low,
            "high": self.high,
            "numerator": only.numerator if only else None,
            "denominator": only.denominator if only else None,
            "ratios": [attrs.asdict(ratio) for ratio in self.ratios],
            "reason": self.reason,
            "interval": self.interval,
            "interval_reason": self.interval_reason,
            "excluded_draws": self.excluded,
            "notes": list(self.notes),
        }


@attrs.frozen
class Estimates:
    """All estimates of one table, and how their intervals were made."""

    estimates: tuple[Estimate, ...]
    intervals: Intervals

    def get(self, name: str, *, type: str | None = None, **arguments: Argument) -> Estimate:
        """The estimate of ``estimand(name, type=type, **arguments)``.  Raises ``KeyError`` if it was not made."""
        wanted = estimand(name, type=type, **arguments)
        for one in self.estimates:
            if one.estimand == wanted:
                return one
        raise KeyError(str(wanted))

    def to_json(self) -> dict[str, Any]:
        """JSON-safe: a missing number is ``None``, with its reason beside it."""
        return {**self.intervals.to_json(), "estimates": [one.to_json() for one in self.estimates]}


def estimate(table: Table, estimands: Sequence[Estimand] | None = None, intervals: Intervals = INTERVALS) -> Estimates:
    """Every estimand (:func:`~handoff.estimation.estimands.standard` by default) with its interval.

    The same seed gives the same intervals on every machine.
    """
    wanted = list(standard(table) if estimands is None else estimands)
    plan = plan_of(table, intervals)
    estimates: list[Estimate] = []
    size = max(1, VALUES // intervals.draws)
    for first in range(0, len(wanted), size):
        evaluation = Evaluation(table, wanted[first : first + size])
        estimates += bootstrap_values(evaluation, plan, intervals)
    return Estimates(tuple(estimates), intervals)


def bootstrap_values(evaluation: Evaluated, plan: Plan, intervals: Intervals) -> list[Estimate]:
    """Points and intervals of all estimands of ``evaluation``, from draws by ``plan``."""
    level = intervals.level
    uncertainty = None if intervals.method == "paper" else spread(evaluation, plan)  # the paper's has no use for it
    freedom = _design_freedom(evaluation, plan)
    shares = _shares(evaluation, uncertainty, freedom, level)
    drawn = distributions(evaluation, plan, intervals.draws, intervals.seed, shares)
    return [
        _judge(evaluation, e, drawn[e], plan, uncertainty, freedom.get(one.type, 0), level)
        for e, one in enumerate(evaluation.estimands)
    ]


def plan_of(table: Table, intervals: Intervals) -> Plan:
    return ordinary(table.strata) if intervals.method == "paper" else rescaled(table.strata)


def _judge(
    evaluation: Evaluated,
    e: int,
    drawn: Distribution,
    plan: Plan,
    uncertainty: Spread | None,
    design_freedom: int,
    level: float,
) -> Estimate:
    asked, point, ratios = evaluation.estimands[e], float(evaluation.points_E[e]), evaluation.ratios_E[e]
    if math.isnan(point):
        empty = next(ratio for ratio in ratios if ratio.denominator == 0)
        reason = f"undefined: the denominator of {empty.label} is 0"
        return Estimate(asked, None, None, None, ratios, reason=reason, interval_reason=reason)
    notes = _lone_notes(plan, asked, uncertainty)

    def without(reason: str) -> Estimate:
        return Estimate(asked, point, None, None, ratios, None, reason, None, drawn.excluded, tuple(notes))

    def within(ends: tuple[float, float], kind: str) -> Estimate:
        return Estimate(asked, point, *ends, ratios, None, None, kind, drawn.excluded, tuple(notes))

    if drawn.excluded > EXCLUDED_LIMIT * drawn.draws:
        return without(
            f"refused: {drawn.excluded:,} of {drawn.draws:,} draws ({drawn.excluded / drawn.draws:.2%}) have an empty "
            f"denominator, more than {EXCLUDED_LIMIT:.0%}"
        )
    degenerate = not drawn.varies
    if degenerate:
        notes.append("degenerate: every draw gives the same value, so the draws say nothing of uncertainty")
    if uncertainty is None:
        assert drawn.ends is not None  # asked for in _shares
        return within(drawn.ends, "percentile")
    variance, freedom = float(uncertainty.variance_E[e]), float(uncertainty.freedom_E[e])
    if asked.kind == RATE:
        tasks = ratios[0].tasks
        if tasks < 2:
            return without("refused: the denominator comes from one task only, which shows no variance between tasks")
        effective = effective_trials(point, variance, ratios[0].denominator, tasks)
        return within(score(point, effective, student(level, design_freedom)), "score")
    if degenerate:
        return without("refused: every draw gives the same value, so an interval would have no width")
    if not freedom > 0:
        return without("refused: without one of its tasks the estimand is undefined, so its variance is unknown")
    if design_freedom < FEW:
        half = student(level, freedom) * math.sqrt(variance)
        limit = float(evaluation.limits_E[e])
        return within((max(point - half, -limit), min(point + half, limit)), "student")
    assert drawn.ends is not None  # asked for in _shares
    return within(drawn.ends, "rescaled")


def _shares(
    evaluation: Evaluated, uncertainty: Spread | None, freedom: Mapping[str | None, int], level: float
) -> dict[int, Shares]:
    """The percentiles wanted, by number of the estimand, of those whose interval is made of percentiles."""
    if uncertainty is None:
        return dict.fromkeys(range(len(evaluation.estimands)), ((1 - level) / 2, (1 + level) / 2))
    return {
        e: widened(level, float(uncertainty.freedom_E[e]))
        for e, asked in enumerate(evaluation.estimands)
        if asked.kind != RATE and freedom.get(asked.type, 0) >= FEW and uncertainty.freedom_E[e] > 0
    }


def _design_freedom(evaluation: Evaluated, plan: Plan) -> dict[str | None, int]:
    """Tasks minus strata, of the strata that have tasks of a type, by type; of all strata under ``None``."""
    found: dict[str | None, int] = {}
    for stratum in plan.strata:
        for type in {None, *(evaluation.strata[task] for task in stratum.tasks)}:
            found[type] = found.get(type, 0) + len(stratum.tasks) - 1
    return found


def _lone_notes(plan: Plan, asked: Estimand, uncertainty: Spread | None) -> list[str]:
    lone = [type for type in plan.lone if asked.type in (None, type)]
    if not lone:
        return []
    what = f"only one task of type {', '.join(lone)}: "
    if uncertainty is None:
        return [what + "it is in every draw and adds no variance, so the interval is too narrow"]
    return [what + "drawn together with another stratum"]


def _plain(value: Argument) -> Any:
    return list(value) if isinstance(value, tuple) else value
