"""Points and intervals of estimands: the task-stratified paired bootstrap.

Two kinds of interval are offered.

``paper``
    100,000 draws of the n_h tasks of each type with replacement, 2.5% and 97.5% percentiles.  Its variance is
    (n_h - 1) / n_h of the right one, so with five tasks per type it is too narrow.
``rescaled`` (the default)
    Student's t on the jackknife variance and one discordant pseudo-episode, or the percentiles of draws that take
    n_h - 1 of n_h tasks (:func:`handoff.estimation.resampling.rescaled`), whichever reach farther
    (:func:`handoff.estimation.intervals.interval`).  A rate, which ends at 0 and 1 and shows no variance near them, has
    Wilson's score interval on as many trials as its variance is worth (:func:`handoff.estimation.intervals.wilson`).
    Percentiles are left out where there are fewer than ten tasks more than strata, as in one task type, because the
    draws take too few values, and where more than 1% of the draws have an empty denominator.

``docs/statistics.md`` has the simulated coverage of both.  A draw in which an estimand has an empty denominator is
excluded from that estimand and counted.  More than 1% of such draws refuse the paper's interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.estimation.counting import Ratio
from handoff.estimation.draws import Distribution, distributions
from handoff.estimation.estimands import PAPER, Argument, Estimand, estimand, standard
from handoff.estimation.evaluation import Evaluated, Evaluation
from handoff.estimation.intervals import Spread, clipped, effective_trials, expanded, interval, normal, wilson
from handoff.estimation.jackknife import Jackknife, jackknife
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import Plan, plan_of
from handoff.estimation.table import Table

#: More draws than this share without a denominator refuse an interval.
EXCLUDED_LIMIT = 0.01
#: With fewer tasks more than strata, percentiles give way to t times the standard error.
FEW = 10
#: How a remark ends that says why percentiles took no part.
T_ALONE = "the interval is Student's t alone"


@attrs.frozen
class Estimate:
    """One estimand: point, interval, and the counts that it is made of."""

    estimand: Estimand
    #: ``None`` where undefined, with the ``reason``.
    point: float | None
    #: Ends of the interval; ``None`` without one, with the ``interval_reason``.
    low: float | None
    high: float | None
    ratios: tuple[Ratio, ...]
    reason: str | None = None
    interval_reason: str | None = None
    #: How the interval was made: percentile, rescaled, score or student.
    interval: str | None = None
    #: Draws with an empty denominator.
    excluded: int = 0
    #: Remarks on the data, among them "degenerate": all draws gave one value.
    notes: tuple[str, ...] = ()

    @property
    def degenerate(self) -> bool:
        return any(note.startswith("degenerate") for note in self.notes)

    @property
    def mark(self) -> str | None:
        """The remark that belongs beside the interval wherever it is printed."""
        return next((note for note in self.notes if note.endswith(T_ALONE)), None)

    def to_json(self) -> dict[str, Any]:
        only = self.ratios[0] if len(self.ratios) == 1 else None
        return {
            "key": str(self.estimand),
            "name": self.estimand.name,
            "arguments": {
                name: list(value) if isinstance(value, tuple) else value for name, value in self.estimand.arguments
            },
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
        """The estimate of ``estimand(name, type=type, **arguments)``.

        Raises :class:`~handoff.errors.UsageError` if there is none, with the estimates of this name.
        """
        key = estimand(name, type=type, **arguments)
        for estimate in self.estimates:
            if estimate.estimand == key:
                return estimate
        same = [str(estimate.estimand) for estimate in self.estimates if estimate.estimand.name == name]
        raise UsageError(f"there is no estimate of {key}; of this name there are: {', '.join(same) or 'none'}")

    def to_json(self) -> dict[str, Any]:
        """JSON-safe: a missing number is ``None``, with its reason beside it."""
        return {
            "paper": PAPER,
            **self.intervals.to_json(),
            "estimates": [estimate.to_json() for estimate in self.estimates],
        }


def estimate(
    table: Table, estimands: Sequence[Estimand] | None = None, intervals: Intervals = Intervals()
) -> Estimates:
    """Every estimand (:func:`~handoff.estimation.estimands.standard` by default) with its interval.

    The same seed gives the same intervals on every machine.
    """
    evaluation = Evaluation(table, standard(table) if estimands is None else estimands)
    return bootstrap(evaluation, plan_of(table.strata, intervals.method), intervals)


def bootstrap(evaluated: Evaluated, plan: Plan, intervals: Intervals) -> Estimates:
    """The estimands of one or several tables with their intervals, from the draws of ``plan``."""
    spread = None if intervals.method == "paper" else jackknife(evaluated, plan)
    freedom_E = _design_freedom(evaluated, plan)
    shares = _shares(evaluated, spread, freedom_E, intervals)
    draws = distributions(evaluated, plan, intervals.draws, intervals.seed, shares)
    estimates = (
        _estimate(evaluated, e, draws[e], plan, spread, freedom_E[e], intervals.level)
        for e in range(len(evaluated.estimands))
    )
    return Estimates(tuple(estimates), intervals)


def _estimate(
    evaluated: Evaluated,
    e: int,
    drawn: Distribution,
    plan: Plan,
    spread: Jackknife | None,
    design_freedom: int,
    level: float,
) -> Estimate:
    estimand, point, ratios = evaluated.estimands[e], float(evaluated.points_E[e]), evaluated.ratios_E[e]
    if math.isnan(point):
        empty = next(ratio for ratio in ratios if ratio.denominator == 0)
        reason = f"undefined: the denominator of {empty.label} is 0"
        return Estimate(estimand, None, None, None, ratios, reason=reason, interval_reason=reason)
    notes = _lone_notes(plan, estimand, spread)

    def without(reason: str) -> Estimate:
        return Estimate(estimand, point, None, None, ratios, None, reason, None, drawn.excluded, tuple(notes))

    def within(ends: tuple[float, float] | None, kind: str) -> Estimate:
        assert ends is not None  # asked for in _shares
        return Estimate(estimand, point, *ends, ratios, None, None, kind, drawn.excluded, tuple(notes))

    lost = (
        f"{drawn.excluded:,} of {drawn.draws:,} draws ({drawn.excluded / max(1, drawn.draws):.2%}) have an empty "
        f"denominator, more than {EXCLUDED_LIMIT:.0%}"
    )
    enough = drawn.excluded <= EXCLUDED_LIMIT * drawn.draws
    if spread is None and not enough:
        return without(f"refused: {lost}")
    if not drawn.varies:
        notes.append("degenerate: every draw gives the same value, so the draws say nothing of uncertainty")
    if spread is None:
        return within(drawn.ends, "percentile")
    variance, limit = float(spread.variance_E[e]), float(evaluated.limits_E[e])
    floor = float(evaluated.floors_E[e])
    if design_freedom >= FEW:  # below, Student's t alone is wide enough
        notes += _width_notes(variance, floor)
    if estimand.kind == "rate":
        tasks = ratios[0].tasks
        if tasks < 2:
            return without("refused: the denominator comes from one task only, which shows no variance between tasks")
        freedom = float(spread.freedom_E[e]) if spread.freedom_E[e] > 0 else design_freedom
        trials = effective_trials(point, variance, ratios[0].denominator, tasks, level, freedom)
        ends = wilson(point, trials, normal(level))
        return within(clipped(ends, 0.0, limit), "score")
    if math.isnan(variance):
        return without("refused: without one of its tasks the estimand is undefined, so its variance is unknown")
    if design_freedom < 1:
        return without("refused: one task shows no variance between tasks")
    if not enough:
        notes.append(f"{lost}: {T_ALONE}")
    percentiles = drawn.ends if enough else None
    freedom = float(spread.freedom_E[e])
    reach = interval(point, Spread(variance, freedom, floor, design_freedom, percentiles), level)
    if reach is None:
        return without("refused: every draw gives the same value, so an interval would have no width")
    least = 0.0 if estimand.kind == "mean" else -limit
    return within(clipped(reach, least, limit), "student" if percentiles is None else "rescaled")


def _shares(
    evaluated: Evaluated, spread: Jackknife | None, freedom_E: Sequence[int], intervals: Intervals
) -> dict[int, tuple[float, float]]:
    """The shares below both ends, by number of the estimand, of the intervals that percentiles take part in."""
    if spread is None:
        return dict.fromkeys(range(len(evaluated.estimands)), intervals.tails)
    return {
        e: expanded(intervals.level, float(spread.freedom_E[e]))
        for e, one in enumerate(evaluated.estimands)
        if one.kind != "rate" and freedom_E[e] >= FEW and spread.freedom_E[e] > 0
    }


def _design_freedom(evaluated: Evaluated, plan: Plan) -> list[int]:
    """By estimand: tasks minus strata, of the strata that hold a task on which it depends."""
    known: dict[bytes, int] = {}
    freedom = []
    for e in range(len(evaluated.estimands)):
        depends_T = evaluated.depends_on(e)
        key = depends_T.tobytes()
        if key not in known:
            strata = (stratum for stratum in plan.strata if depends_T[stratum.tasks].any())
            known[key] = sum(len(stratum.tasks) - 1 for stratum in strata)
        freedom.append(known[key])
    return freedom


def _width_notes(variance: float, floor: float) -> list[str]:
    """What simulation says of an interval's width (the near-equal designs of docs/statistics.md)."""
    if not variance > 0 or floor <= variance / 5:
        return []
    return ["next to nothing differs: the episode that is added makes much of the interval, which may be too wide"]


def _lone_notes(plan: Plan, estimand: Estimand, spread: Jackknife | None) -> list[str]:
    lone = [type for type in plan.lone if estimand.type in (None, type)]
    if not lone:
        return []
    consequence = (
        "it is in every draw and adds no variance, so the interval is too narrow"
        if spread is None
        else "drawn together with another stratum"
    )
    return [f"only one task of type {', '.join(lone)}: {consequence}"]
