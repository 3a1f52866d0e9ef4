"""Every number of the tax page, computed once: the terminal, the page and its twin show what stands here."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from handoff.passk.comparison import EarlyEstimate, TaxComparison, compare, ranked
from handoff.passk.counts import Counts
from handoff.passk.routing import Routing
from handoff.report.format import Json
from handoff.report.tax import sentences

#: Success rates are told in these bins: the edges are inclusive above, and 0 and 1 stand alone.
BINS = ("never", "≤ 25%", "≤ 50%", "≤ 75%", "< 100%", "always")
_EDGES = (0.0, 0.25, 0.5, 0.75)


def document(
    base: Counts,
    post: Counts,
    compared: TaxComparison,
    routed: Routing,
    early: EarlyEstimate | None,
    pairs: Sequence[tuple[Counts, Counts]] = (),
) -> Json:
    """All numbers of a comparison, JSON-safe: missing ones are ``None`` beside their reason.

    ``contributions`` are all tasks by their part of Tax_S, the highest first.  ``rates`` count each policy's tasks by
    success rate in :data:`BINS`.  ``trade`` has, of this pair and of all further ``pairs``, what was lost in coverage
    and gained in efficiency.  ``sentences`` say the main numbers in words.
    """
    numbers: Json = {
        "comparison": compared.to_json(),
        "routing": attrs.asdict(routed),
        "early": None if early is None else attrs.asdict(early),
        "names": list(sentences.names(compared.base.name, compared.post.name)),
        "contributions": [attrs.asdict(row) for row in ranked(base, post, compared.budget)],
        "rates": {"bins": list(BINS), "base": rates(base), "post": rates(post)},
        "trade": [_trade(compared)],
    }
    for one, other in pairs:
        numbers["trade"].append(_trade(compare(one, other, draws=compared.draws, seed=compared.seed)))
    numbers["sentences"] = sentences.sentences(numbers)
    return numbers


def rates(counts: Counts) -> list[int]:
    """How many tasks have a success rate in each of :data:`BINS`."""
    rate_T = counts.c_T / counts.n_T
    place_T = np.where(rate_T == 1, len(BINS) - 1, np.searchsorted(_EDGES, rate_T, side="left"))
    return [int(count) for count in np.bincount(place_T, minlength=len(BINS))]


def _trade(compared: TaxComparison) -> Json:
    return {
        "base": compared.base.name,
        "post": compared.post.name,
        "tasks": compared.tasks,
        "budget": compared.budget,
        "coverage_lost": attrs.asdict(compared.coverage_lost),
        "efficiency_gained": attrs.asdict(compared.efficiency_gained),
        "tax_s": attrs.asdict(compared.tax_s),
    }
