"""What the report of the sharpening tax says, as values.  The JSON twin has the same shape."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from handoff.passk.comparison import Contribution, PolicyCurves, TaxComparison
from handoff.passk.early import EarlyEstimate
from handoff.passk.estimators import TaxEstimate
from handoff.passk.routing import RoutedCoverage, Routing
from handoff.passk.tax import PAPER
from handoff.report.format import OPTIONAL, Json, Measure, plain

#: Bins of success rates: upper edges are inclusive, and 0 and 1 have their own bins.
BINS = ("never", "≤ 25%", "≤ 50%", "≤ 75%", "< 100%", "always")


@attrs.frozen
class SuccessRates:
    """Tasks per bin of success rate, of both policies."""

    bins: tuple[str, ...]
    base: tuple[int, ...]
    post: tuple[int, ...]


@attrs.frozen
class Trade:
    """What a pair of policies lost in coverage and gained in efficiency."""

    base: str
    post: str
    tasks: int
    budget: int
    coverage_lost: TaxEstimate
    efficiency_gained: TaxEstimate
    tax_s: TaxEstimate


@attrs.frozen
class TaxDocument:
    """Everything that is reported of a base and a post-trained policy."""

    comparison: TaxComparison
    routing: Routing
    early: EarlyEstimate | None
    #: Names of the two policies; never equal.
    names: tuple[str, str]
    #: All tasks by their part of Tax_S, the highest first.
    contributions: tuple[Contribution, ...]
    rates: SuccessRates
    #: This pair and all further pairs.
    trade: tuple[Trade, ...]
    sentences: Mapping[str, list[str]] = attrs.field(factory=dict)
    #: Tasks whose rollouts are all equal, by policy; stated of policies for which these are most tasks.
    alike: Mapping[str, int] = attrs.field(factory=dict)
    #: The coverage of the tax rule with intervals, with ``--more``.
    routed: RoutedCoverage | None = attrs.field(default=None, metadata=OPTIONAL)

    @property
    def sides(self) -> tuple[tuple[str, PolicyCurves], tuple[str, PolicyCurves]]:
        """Both policies with their names."""
        return (self.names[0], self.comparison.base), (self.names[1], self.comparison.post)

    def to_json(self) -> Json:
        form: Json = {"paper": PAPER, **plain(self)}
        return form if self.alike else {key: value for key, value in form.items() if key != "alike"}


def measure(estimate: TaxEstimate) -> Measure:
    """An estimate in short."""
    note = estimate.reason or estimate.interval_reason or estimate.note
    return Measure(None, estimate.point, estimate.low, estimate.high, note=note)


def budgets(budget: int) -> list[int]:
    """1, 2, 4, ... and K."""
    return sorted({*(2**i for i in range(budget.bit_length())), budget})
