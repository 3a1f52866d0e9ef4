"""What the report of many pairs says, as values.  The JSON twin has the same shape."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from handoff.passk.crossing import MeanCurves
from handoff.passk.early import EarlyEstimate
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import Signs
from handoff.passk.recovery import LostThenSolved
from handoff.passk.routing import RoutedCoverage
from handoff.report.format import OPTIONAL, Json, plain


@attrs.frozen
class PairRow:
    """One pair."""

    name: str
    family: str
    benchmark: str
    #: Names of the policies.
    base: str
    post: str
    recipe: str
    tasks: int
    tax_a: TaxEstimate
    tax_s: TaxEstimate
    coverage_lost: TaxEstimate
    efficiency_gained: TaxEstimate
    #: pass@K of each policy.
    base_coverage: TaxEstimate
    post_coverage: TaxEstimate
    #: The least k at which the base's pass@k is greater, and the share of the draws in which it is at some k.
    crossover: int | None
    crossed_share: float
    #: With ``--more``.
    routing: RoutedCoverage | None = attrs.field(default=None, metadata=OPTIONAL)


@attrs.frozen
class PairsDocument:
    """Everything that is reported of many pairs."""

    budget: int
    draws: int
    seed: int
    level: float
    #: How the intervals of single pairs were made.
    interval: str
    #: By benchmark, and by family within it.
    pairs: tuple[PairRow, ...]
    signs: tuple[Signs, ...]
    means: MeanCurves
    #: Two recipes that share a base, in both directions.
    lost_then_solved: tuple[LostThenSolved, ...]
    #: ``None`` for fewer than three pairs.
    early: EarlyEstimate | None
    sentences: Mapping[str, list[str]] = attrs.field(factory=dict)
    #: Tasks whose rollouts are all equal, by policy; stated of policies for which these are most tasks.
    alike: Mapping[str, int] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        return plain(self)
