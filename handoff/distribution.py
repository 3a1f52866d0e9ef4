"""What the draws of one estimand come to: how often it was undefined, its range, its quantiles."""

from __future__ import annotations

import math
from collections.abc import Collection

import attrs
import numpy as np

from handoff.evaluation import Evaluation
from handoff.intervals import percentiles
from handoff.lookup import Lookup
from handoff.resampling import Block, Plan
from handoff.sums import FloatArray
from handoff.table import IntArray

#: Where values were not kept.
NOTHING: FloatArray = np.empty(0)


@attrs.frozen(eq=False)
class Distribution:
    """The values of one estimand in its draws.

    ``draws`` were made, of which ``excluded`` gave no value (NaN); the others lie between ``least`` and ``most``
    (infinities the wrong way round where there are none).  They are ``values_V`` (empty if they were not kept), each
    drawn once or as often as ``times_V`` says.
    """

    draws: int
    excluded: int
    least: float
    most: float
    values_V: FloatArray = NOTHING
    times_V: IntArray | None = None

    def percentiles(self, low: float, high: float) -> tuple[float, float]:
        """Quantiles, interpolated linearly.  ``values_V`` may be left in another order."""
        return percentiles(self.values_V, low, high, self.times_V)


def distribution(values_V: FloatArray, times_V: IntArray | None = None, *, keep: bool = True) -> Distribution:
    """Of values among which may be NaN."""

    def number() -> int:
        return len(values_V) if times_V is None else int(times_V.sum())

    draws = number()
    excluded = 0
    least = float(values_V.min(initial=math.inf))
    if math.isnan(least):  # cheaper than to look for NaN where there are none
        defined_V = ~np.isnan(values_V)
        values_V = values_V[defined_V]
        times_V = None if times_V is None else times_V[defined_V]
        excluded = draws - number()
        least = float(values_V.min(initial=math.inf))
    most = float(values_V.max(initial=-math.inf))
    return Distribution(draws, excluded, least, most, *((values_V, times_V) if keep else ()))


def _together(parts: list[Distribution]) -> Distribution:
    """All their draws, no values kept."""
    return Distribution(
        sum(part.draws for part in parts),
        sum(part.excluded for part in parts),
        min((part.least for part in parts), default=math.inf),
        max((part.most for part in parts), default=-math.inf),
    )


def distributions(
    evaluation: Evaluation, plan: Plan, draws: int, seed: int, keep: Collection[int] | None = None
) -> list[Distribution]:
    """Of every estimand (without draws where it is undefined on the data).  Values are kept of those numbered ``keep``,
    all by default.

    An estimand of one type whose stratum has a menu is evaluated once a line of it instead of once a draw.
    """
    lookup = Lookup(evaluation.counts_KT, evaluation.strata, plan)
    listed = {type: entry for type, entry in lookup.entries.items() if plan.strata[entry.stratum].menu is not None}
    defined = [e for e, point in enumerate(evaluation.points_E) if not math.isnan(point)]
    drawn = [e for e in defined if evaluation.estimands[e].type not in listed]
    types = {type for e in drawn if (type := evaluation.estimands[e].type) is not None}
    kept = [e for e in drawn if keep is None or e in keep]
    values = dict(zip(kept, np.empty((len(kept), draws)), strict=True))

    def work(block: Block) -> tuple[dict[int, IntArray], dict[int, Distribution]]:
        """How often each line of a menu was drawn, by stratum; and what is not kept."""
        times = {
            entry.stratum: np.bincount(block.picks[entry.stratum][:, 0], minlength=len(entry.counts_LK))
            for entry in listed.values()
        }
        passing = {}
        for e, values_B in evaluation.formulas(lookup.sums(block, types), drawn):
            if e in values:
                values[e][block.first : block.first + block.draws] = values_B
            else:
                passing[e] = distribution(values_B, keep=False)
        return times, passing

    done = [work(block) for block in plan.blocks(draws, seed)]
    found = [_together([passing[e] for _, passing in done if e in passing]) for e in range(len(evaluation.estimands))]
    for e, values_B in values.items():
        found[e] = distribution(values_B)
    times: dict[str | None, IntArray] = {
        type: np.sum([times[entry.stratum] for times, _ in done], axis=0) for type, entry in listed.items()
    }
    lines: dict[str | None, FloatArray] = {type: entry.sums_KL[:, times[type] > 0] for type, entry in listed.items()}
    from_menu = [e for e in defined if evaluation.estimands[e].type in listed]
    for e, values_L in evaluation.formulas(lines, from_menu):
        times_L = times[evaluation.estimands[e].type]
        found[e] = distribution(values_L, times_L[times_L > 0])
    return found
