"""Equivalence: is a number within a margin that was stated in advance?  Two one-sided tests.

The number is equivalent to 0 at significance alpha where its interval of level 1 - 2 alpha lies inside the margin
(D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the
equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15 (1987)).  The p value is
the least such alpha, found by halving, so that test and interval always agree, whatever rule makes the interval.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from handoff.settings import require

#: Halvings of the range of alpha: the p value is right to 0.0002.
STEPS = 11
#: The usual significance.
ALPHA = 0.05


@attrs.frozen
class Equivalence:
    """The outcome of both tests."""

    #: Half the width of the range that counts as nothing, in shares (0.1 is ten points).
    margin: float
    #: ``None`` where the number has no interval.
    p: float | None
    #: The significance asked for.
    alpha: float = ALPHA

    @property
    def shown(self) -> bool:
        return self.p is not None and self.p <= self.alpha

    def __str__(self) -> str:
        within = f"within {100 * self.margin:g} points of 0"
        if self.p is None:
            return f"Equivalence {within} cannot be tested: there is no interval."
        told = f"p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'}, two one-sided tests"
        if self.shown:
            return f"Equivalent: {within} at {self.alpha:.0%} ({told})."
        return (
            f"Not shown to be {within} at {self.alpha:.0%} ({told}); `handoff plan --equivalence` says how many tasks "
            "it takes."
        )


def require_margin(margin: float) -> None:
    """Raise :class:`~handoff.errors.UsageError` for a margin that is no share above 0."""
    require("the margin (0.1 is ten points)", margin, least=0, most=2, open=True)


def equivalence(ends_at: Callable[[float], tuple[float, float] | None], margin: float) -> Equivalence:
    """Both tests, of a number whose interval of a level ``ends_at`` gives (``None`` if it has none)."""
    require_margin(margin)

    def inside(alpha: float) -> bool | None:
        ends = ends_at(1 - 2 * alpha)
        return None if ends is None else -margin < ends[0] and ends[1] < margin

    if inside(ALPHA) is None:
        return Equivalence(margin, None)
    low, high = 0.0, 0.5
    if not inside(0.4999):
        return Equivalence(margin, 0.5)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return Equivalence(margin, high)


def within_margin(low: float | None, high: float | None, margin: float) -> bool:
    """Whether an interval lies inside the margin."""
    if low is None or high is None:
        return False
    return -margin < low and high < margin
