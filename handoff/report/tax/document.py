"""The numbers of the sharpening tax: terminal, page and JSON twin are made from these."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from handoff.passk.comparison import TaxComparison, compare, ranked
from handoff.passk.counts import Counts
from handoff.passk.early import EarlyEstimate
from handoff.passk.routing import Routing
from handoff.report.tax import sentences
from handoff.report.tax.values import BINS, SuccessRates, TaxDocument, Trade

_EDGES = (0.0, 0.25, 0.5, 0.75)


def document(
    base: Counts,
    post: Counts,
    compared: TaxComparison,
    routed: Routing,
    early: EarlyEstimate | None,
    pairs: Sequence[tuple[Counts, Counts]] = (),
) -> TaxDocument:
    """All numbers of a comparison; further ``pairs`` take part in the trade-off."""
    others = [
        compare(one, other, draws=compared.draws, seed=compared.seed, method=compared.interval) for one, other in pairs
    ]
    names = (compared.base.name, compared.post.name)
    numbers = TaxDocument(
        compared,
        routed,
        early,
        names if names[0] != names[1] else (f"{names[0]} (base)", f"{names[1]} (post)"),
        ranked(base, post, compared.budget),
        SuccessRates(BINS, rates(base), rates(post)),
        tuple(_trade(one) for one in (compared, *others)),
    )
    words = sentences.sentences(numbers)
    repeated = {name: one for name, one in zip(numbers.names, (base, post), strict=True) if one.repeated is not None}
    words["verdict"] += [str(one.repeated) for one in repeated.values()]
    return attrs.evolve(numbers, sentences=words, alike={name: one.alike or 0 for name, one in repeated.items()})


def rates(counts: Counts) -> tuple[int, ...]:
    """How many tasks have a success rate in each of :data:`~handoff.report.tax.values.BINS`."""
    rate_T = counts.c_T / counts.n_T
    place_T = np.where(rate_T == 1, len(BINS) - 1, np.searchsorted(_EDGES, rate_T, side="left"))
    return tuple(int(count) for count in np.bincount(place_T, minlength=len(BINS)))


def _trade(one: TaxComparison) -> Trade:
    return Trade(
        one.base.name, one.post.name, one.tasks, one.budget, one.coverage_lost, one.efficiency_gained, one.tax_s
    )
