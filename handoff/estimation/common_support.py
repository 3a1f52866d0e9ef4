"""The interaction among slots where both reachers arrive, and its bounds where that cannot be seen.

A solver effect after one reacher and after another are means over different slots, since harder slots have fewer
arrivals.  Among slots where *both* arrive, neither is selected.  Three statements, by what they assume:

* ``common_interaction`` is observed.  It describes the slots of this study.  As an effect on slots that always arrive
  it assumes that a slot's seed decides whether a reacher arrives, so that both outcomes of one slot belong together.
* ``always_arriving_lower`` and ``..._upper`` bound it from the margins alone (J. L. Zhang and D. B. Rubin, "Estimation
  of causal effects via principal stratification when some outcomes are truncated by 'death'", JEBS 28 (2003)).  They
  assume monotone arrival: where the reacher that arrives less often arrives, so does the other.
* ``unordered_lower`` and ``..._upper`` bound it without that assumption.  They are -2 and +2 where the two rates of
  arrival add up to no more than 1.
"""

from __future__ import annotations

import numpy as np

from handoff.estimation import counting as count
from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import Sums, empty_allowed
from handoff.estimation.estimands import formula, reach


@formula("rate", "both arrive, {a} and {b}")
def common_share(sums: Sums, a: str, b: str) -> FloatArray:
    """Share of the seed slots on which both reachers arrive: mean of A_a A_b (section 3.2)."""
    return sums.ratio(count.both_arrived(a, b), count.EPISODES)


@formula("contrast", "interaction where both arrive, {pair}", limit=2.0)
def common_interaction(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Difference of the solver effects of c -> d after b and after a, over the slots where both arrive (Eq. 4 there).

    Assumes nothing as a description; as an effect, that a slot's seed decides whether each reacher arrives.
    """
    both = count.both_arrived(a, b)

    def effect(reacher: str, other: str) -> FloatArray:
        return sums.ratio(count.won_beside(reacher, other, d), both) - sums.ratio(
            count.won_beside(reacher, other, c), both
        )

    return effect(b, a) - effect(a, b)


def _extreme(sums: Sums, reacher: str, share: FloatArray, c: str, d: str) -> FloatArray:
    """The greatest mean of Y_d - Y_c that a ``share`` of the reacher's arrivals can have.

    Of all arrivals a part p wins by d only and a part m by c only.  The best share q takes p first, then draws, then m.
    A share of 0 bounds nothing: the mean is at most 1.
    """
    arrived = count.arrived(reacher)
    better = sums.ratio(count.won_only(reacher, d, c), arrived)
    worse = sums.ratio(count.won_only(reacher, c, d), arrived)
    with empty_allowed():
        best = (np.minimum(better, share) - np.maximum(share - 1 + worse, 0)) / share
    return np.where(share > 0, best, np.where(np.isnan(better), np.nan, 1.0))


def _upper(sums: Sums, stratum: FloatArray, a: str, b: str, c: str, d: str) -> FloatArray:
    """The greatest interaction within a stratum of slots that is this share of all."""
    with empty_allowed():
        after_a, after_b = stratum / reach(sums, a), stratum / reach(sums, b)
    # The least mean of Y_d - Y_c is minus the greatest of Y_c - Y_d.
    return _extreme(sums, b, after_b, c, d) + _extreme(sums, a, after_a, d, c)


def _monotone(sums: Sums, a: str, b: str) -> FloatArray:
    return np.minimum(reach(sums, a), reach(sums, b))


def _unordered(sums: Sums, a: str, b: str) -> FloatArray:
    """The least share of slots where both arrive, rounding error taken for 0."""
    overlap = reach(sums, a) + reach(sums, b) - 1
    return np.where(overlap > 1e-12, overlap, np.where(np.isnan(overlap), np.nan, 0.0))


@formula("contrast", "lower bound where both always arrive, {pair}", limit=2.0)
def always_arriving_lower(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Least interaction (Eq. 4) that the slots where both always arrive can have, with monotone arrival.

    Assumes that the reacher which arrives more often arrives wherever the other does (Zhang and Rubin 2003).
    """
    return -_upper(sums, _monotone(sums, a, b), a, b, d, c)


@formula("contrast", "upper bound where both always arrive, {pair}", limit=2.0)
def always_arriving_upper(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Greatest interaction (Eq. 4) that the slots where both always arrive can have, with monotone arrival.

    Assumes that the reacher which arrives more often arrives wherever the other does (Zhang and Rubin 2003).
    """
    return _upper(sums, _monotone(sums, a, b), a, b, c, d)


@formula("contrast", "lower bound without monotone arrival, {pair}", limit=2.0)
def unordered_lower(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Least interaction (Eq. 4) that the slots where both always arrive can have, whichever slots these are.

    Assumes nothing of who arrives where; the stratum is as small as the two rates of arrival allow.
    """
    return -_upper(sums, _unordered(sums, a, b), a, b, d, c)


@formula("contrast", "upper bound without monotone arrival, {pair}", limit=2.0)
def unordered_upper(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Greatest interaction (Eq. 4) that the slots where both always arrive can have, whichever slots these are.

    Assumes nothing of who arrives where; the stratum is as small as the two rates of arrival allow.
    """
    return _upper(sums, _unordered(sums, a, b), a, b, c, d)


#: Of one contrast, in the order of a report.
BOUNDS = ("always_arriving_lower", "always_arriving_upper", "unordered_lower", "unordered_upper")
