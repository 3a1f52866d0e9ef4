"""How strong selection on difficulty would have to be to explain that solver effects differ.

The solver effects after two reachers are means over different arrivals, whose slots may differ in difficulty.  If the
share of slots of some difficulty differs by at most a factor e between the two sets of arrivals, and the solver effect
by at most a factor e between difficulties, then the ratio of the two effects is off by at most e^2 / (2 e - 1)
(P. Ding and T. J. VanderWeele, "Sensitivity analysis without assumptions", Epidemiology 27 (2016)).  The E-value is the
least e that turns the ratio to 1 (T. J. VanderWeele and P. Ding, "Sensitivity analysis in observational research:
introducing the E-value", Annals of Internal Medicine 167 (2017)).

Assumes that the solver effect has one sign at every difficulty, as where no state is won by the weaker solver only.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from handoff.estimation.ratios import RatioEstimate


def e_value(ratio: float) -> float:
    """r + sqrt(r (r - 1)) for r = ``ratio`` or its inverse, the greater one; 1 says that no selection is needed."""
    greater = max(ratio, 1 / ratio)
    return greater + math.sqrt(greater * (greater - 1))


@attrs.frozen
class Sensitivity:
    """E-values of the ratio of two solver effects."""

    ratio: RatioEstimate
    #: Of the point: factor that would make both effects equal.  ``None`` without a ratio.
    point: float | None
    #: Of the end of the interval nearer to 1: factor that would make the difference unresolved.  1 where the interval
    #: holds 1, ``None`` without an interval.
    limit: float | None

    def to_json(self) -> dict[str, Any]:
        return {"ratio": self.ratio.to_json(), "e_value": self.point, "e_value_of_interval": self.limit}


def sensitivity(ratio: RatioEstimate) -> Sensitivity:
    """The E-values of a ratio and of its interval."""
    point = None if ratio.point is None else e_value(ratio.point)
    if ratio.low is None or ratio.high is None:
        return Sensitivity(ratio, point, None)
    inside = ratio.low <= 1 <= ratio.high
    return Sensitivity(ratio, point, 1.0 if inside else e_value(ratio.low if ratio.low > 1 else ratio.high))
