"""Ratios with intervals: "six times as often".

Each is estimated as a logarithm, which the interval engine treats as a contrast, and is turned back at the end: the
interval is right on the logarithmic scale and never reaches below 0.  A draw without a logarithm counts as one with an
empty denominator.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from handoff.estimation import counting as count
from handoff.estimation.arrays import FloatArray
from handoff.estimation.bootstrap import Estimate
from handoff.estimation.counting import Sums, empty_allowed
from handoff.estimation.estimands import formula, solver_effect


def _log(values: FloatArray) -> FloatArray:
    """Natural logarithm; NaN of what is not positive or not finite."""
    with empty_allowed():
        logs = np.log(values)
    return np.where(np.isfinite(logs), logs, np.nan)


@formula("contrast", "log Reach ratio, {pair}", limit=math.inf)
def log_reach_ratio(sums: Sums, a: str, b: str) -> FloatArray:
    """Logarithm of Reach_b / Reach_a, from the counts of arrivals (section 4.3)."""
    sums.ratio(count.arrived(a), count.arrived(b))  # no arrival of b: undefined, for this denominator
    return _log(sums.ratio(count.arrived(b), count.arrived(a)))


@formula("contrast", "log completion ratio, {pair}", limit=math.inf)
def log_completion_ratio(sums: Sums, reachers: tuple[str, ...], a: str, b: str) -> FloatArray:
    """Logarithm of completion_b / completion_a over all reached states (section 4.4)."""
    wins_a, wins_b = (tuple(count.won(reacher, solver) for reacher in reachers) for solver in (a, b))
    sums.ratio(wins_a, wins_b)
    return _log(sums.ratio(wins_b, wins_a))


@formula("contrast", "log endpoint ratio, {pair}", limit=math.inf)
def log_endpoint_ratio(sums: Sums, a: str, b: str) -> FloatArray:
    """Logarithm of endpoint_{b,b} / endpoint_{a,a}: both roles exchanged (Eq. 2)."""
    sums.ratio(count.won(a, a), count.won(b, b))
    return _log(sums.ratio(count.won(b, b), count.won(a, a)))


@formula("contrast", "log ratio of solver effects, {pair}", limit=math.inf)
def log_effect_ratio(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Logarithm of Delta_b / Delta_a, the solver effects of c -> d after each reacher (section 3.2).

    Both effects must have one sign.
    """
    after_a, after_b = solver_effect(sums, a, c, d), solver_effect(sums, b, c, d)
    with empty_allowed():
        return _log(after_b / after_a)


@attrs.frozen
class RatioEstimate:
    """A ratio with its interval."""

    #: The estimate of its logarithm.
    logarithm: Estimate
    point: float | None
    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        return self.logarithm.estimand.label.removeprefix("log ")

    @property
    def reason(self) -> str | None:
        """Why the point or the interval is missing, or a remark on the draws."""
        remark = next((note for note in self.logarithm.notes if "denominator" in note), None)
        reason = self.logarithm.reason or self.logarithm.interval_reason or remark
        return reason and reason.replace("have an empty denominator", "have no ratio above 0")

    def to_json(self) -> dict[str, Any]:
        return {
            "key": str(self.logarithm.estimand),
            "label": self.label,
            "point": self.point,
            "low": self.low,
            "high": self.high,
            "reason": self.reason,
        }


def exponential(estimate: Estimate) -> RatioEstimate:
    """The ratio whose logarithm was estimated."""
    return RatioEstimate(
        estimate, *(None if at is None else math.exp(at) for at in (estimate.point, estimate.low, estimate.high))
    )
