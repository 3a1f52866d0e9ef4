"""What a careful reader asks beside the plain intervals of one table, computed together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from handoff.estimation import orders, trends
from handoff.estimation.bootstrap import Estimate, estimate
from handoff.estimation.common_support import BOUNDS
from handoff.estimation.estimands import Estimand, crossed, estimand, pairs
from handoff.estimation.evaluation import Evaluation
from handoff.estimation.method import Intervals
from handoff.estimation.ratios import RatioEstimate, exponential
from handoff.estimation.sensitivity import Sensitivity, sensitivity
from handoff.estimation.shrinkage import Shrinkage, shrunken
from handoff.estimation.simultaneous import Member, Simultaneous, main_family, of_pairs, pairwise_family, simultaneous
from handoff.estimation.table import Table


@attrs.frozen
class SplitOrder:
    """The two terms of the interaction in one order (Eq. 9)."""

    name: str
    arrival: Estimate
    state: Estimate


@attrs.frozen
class Rung:
    """One step of a ladder; each contrast with its simultaneous interval over all steps."""

    pair: tuple[str, str]
    reach: Member
    completion: Member
    endpoint: Member


@attrs.frozen
class Ladder:
    """Checkpoints in an order that was given in advance."""

    rungs: tuple[str, ...]
    steps: tuple[Rung, ...]
    #: Slopes of Reach, completion and endpoint per rung.
    trends: tuple[Estimate, ...]


@attrs.frozen
class Ranked:
    """One checkpoint of those without an order."""

    name: str
    #: In both roles.
    endpoint: Estimate
    reach: Estimate
    completion: Estimate


@attrs.frozen
class More:
    """Everything beside the plain intervals; a part that the table has no question for is empty."""

    #: Reachers a -> b and solvers c -> d of the leading contrast; ``None`` of a table without one.
    contrast: tuple[str, str, str, str] | None
    families: tuple[Simultaneous, ...] = ()
    orders: tuple[SplitOrder, ...] = ()
    #: The share of common slots, the interaction there, and the bounds.
    common: tuple[Estimate, ...] = ()
    sensitivity: Sensitivity | None = None
    ratios: tuple[RatioEstimate, ...] = ()
    ladder: Ladder | None = None
    #: From the best endpoint down.
    ranking: tuple[Ranked, ...] = ()
    types: tuple[Shrinkage, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "contrast": None if self.contrast is None else list(self.contrast),
            "families": [one.to_json() for one in self.families],
            "orders": [
                {"name": one.name, "arrival_term": one.arrival.to_json(), "state_term": one.state.to_json()}
                for one in self.orders
            ],
            "common_support": [one.to_json() for one in self.common],
            "sensitivity": None if self.sensitivity is None else self.sensitivity.to_json(),
            "ratios": [one.to_json() for one in self.ratios],
            "ladder": None
            if self.ladder is None
            else {
                "rungs": list(self.ladder.rungs),
                "steps": [
                    {
                        "pair": list(step.pair),
                        **{name: getattr(step, name).to_json() for name in ("reach", "completion", "endpoint")},
                    }
                    for step in self.ladder.steps
                ],
                "trends": [one.to_json() for one in self.ladder.trends],
            },
            "ranking": [
                {
                    "name": one.name,
                    **{name: getattr(one, name).to_json() for name in ("endpoint", "reach", "completion")},
                }
                for one in self.ranking
            ],
            "types": [one.to_json() for one in self.types],
        }


def more(
    table: Table,
    order: Sequence[str] | None = None,
    intervals: Intervals = Intervals(),
    ladder: bool | None = None,
) -> More:
    """All of it for one table.

    ``order`` is weakest first; the leading contrast is from the first to the last.  Three or more checkpoints that have
    both roles are a ``ladder``, or ranked without an order; by default they are a ladder where ``order`` is given.
    """
    ladder = order is not None if ladder is None else ladder
    every = crossed(table, order)
    if not every:
        return More(None)
    contrast = every[0][0], every[-1][1], every[0][2], every[-1][3]
    a, b, c, d = contrast
    cross = dict(zip("abcd", contrast, strict=True))
    both = tuple(dict.fromkeys(name for pair in pairs(table, order) for name in pair))
    terms = {name: [estimand(term, **cross) for term in pair] for name, pair in orders.ORDERS.items()}
    common = [
        estimand("common_share", a=a, b=b),
        *(estimand(name, **cross) for name in ("common_interaction", *BOUNDS)),
    ]
    ratios = [
        estimand("log_reach_ratio", a=a, b=b),
        estimand("log_completion_ratio", reachers=table.reachers, a=c, b=d),
        *([estimand("log_endpoint_ratio", a=a, b=b)] if (a, b) == (c, d) else []),
    ]
    effects = estimand("log_effect_ratio", **cross)
    wanted = [*(term for pair in terms.values() for term in pair), *common, *ratios, effects]
    by_estimand = _estimates(table, wanted, intervals)
    families = [simultaneous(table, main_family(table, contrast), intervals)]
    many = len(both) > 2
    if many:
        families.append(simultaneous(table, pairwise_family(table, order), intervals))
    return More(
        contrast,
        tuple(families),
        tuple(SplitOrder(name, *(by_estimand[term] for term in pair)) for name, pair in terms.items()),
        tuple(by_estimand[one] for one in common),
        sensitivity(exponential(by_estimand[effects])),
        tuple(exponential(by_estimand[one]) for one in ratios),
        _ladder(table, both, intervals) if many and ladder else None,
        _ranking(table, both, intervals) if many and not ladder else (),
        shrunken(table, contrast, intervals.level) if len(table.types) > 1 else (),
    )


def _estimates(table: Table, wanted: Sequence[Estimand], intervals: Intervals) -> dict[Estimand, Estimate]:
    """Estimates; a ratio that has no logarithm although no denominator is empty is undefined, with the reason."""
    evaluation = Evaluation(table, wanted)
    without = {
        one
        for one, point, ratios in zip(wanted, evaluation.points_E, evaluation.ratios_E, strict=True)
        if np.isnan(point) and all(ratio.denominator for ratio in ratios)
    }
    estimates = {
        one.estimand: one for one in estimate(table, [one for one in wanted if one not in without], intervals).estimates
    }
    reason = "undefined: the two effects do not have one sign, so they have no ratio above 0"
    ratios_of = dict(zip(wanted, evaluation.ratios_E, strict=True))
    return {
        one: Estimate(one, None, None, None, ratios_of[one], reason=reason, interval_reason=reason)
        if one in without
        else estimates[one]
        for one in wanted
    }


def _ladder(table: Table, rungs: tuple[str, ...], intervals: Intervals) -> Ladder:
    some = list(pairwise(rungs))
    steps = simultaneous(table, of_pairs(table, some, "steps of the ladder"), intervals)
    slopes = [
        estimand(trends.reach_trend.__name__, rungs=rungs),
        estimand(trends.completion_trend.__name__, reachers=table.reachers, rungs=rungs),
        estimand(trends.endpoint_trend.__name__, rungs=rungs),
    ]
    return Ladder(
        rungs,
        tuple(Rung(pair, *steps.members[3 * place : 3 * place + 3]) for place, pair in enumerate(some)),
        estimate(table, slopes, intervals).estimates,
    )


def _ranking(table: Table, names: tuple[str, ...], intervals: Intervals) -> tuple[Ranked, ...]:
    wanted = [
        one
        for name in names
        for one in (
            estimand("endpoint", reacher=name, solver=name),
            estimand("reach", reacher=name),
            estimand("completion", reachers=table.reachers, solver=name),
        )
    ]
    estimates = estimate(table, wanted, intervals).estimates
    ranked = [Ranked(name, *estimates[3 * place : 3 * place + 3]) for place, name in enumerate(names)]
    return tuple(sorted(ranked, key=lambda one: -(one.endpoint.point or 0.0)))
