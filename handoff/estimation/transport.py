"""Transport: predict the interaction from the Reach gap here and the Solve gap elsewhere (Eq. 10).

For task type g with weight n_g / n of the target's tasks (1/G when types are balanced, as in the paper),

    I_pred = sum over g of n_g/n x (Reach^target_{b,g} - Reach^target_{a,g}) x (Solve^ext_{d,g} - Solve^ext_{c,g}),

with the arrival gap of reachers a -> b from the target split and the same-state gap of solvers c -> d from an external
split, pooled over all states that were reached there.  residual = I_observed - I_pred.  In a bootstrap draw the tasks
of each type are drawn from both samples independently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from handoff.canonical import differing_keys
from handoff.errors import UsageError
from handoff.estimation.arrays import FloatArray
from handoff.estimation.bootstrap import Estimate, Estimates, bootstrap
from handoff.estimation.counting import Ratio
from handoff.estimation.equivalence import Equivalence, equivalence
from handoff.estimation.estimands import Argument, Estimand, declare, estimand
from handoff.estimation.evaluation import Evaluated, Evaluation, SumsByType
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import joined, plan_of
from handoff.estimation.table import Table

#: What is reported for every type and for all of them, in this order.
QUANTITIES = ("reach_gap", "external_gap", "predicted", "observed", "residual")

declare(
    "transport_reach_gap",
    "contrast",
    "Reach_b - Reach_a on the target split (Eq. 10).",
    "Reach gap here, {a} → {b}",
)
declare(
    "transport_external_gap",
    "contrast",
    "Solve_d - Solve_c over all states reached on the external split (Eq. 10).",
    "Solve gap there, {c} → {d}",
)
declare(
    "transport_predicted",
    "contrast",
    "I_pred: the two gaps multiplied, types weighted as in the target (Eq. 10).",
    "predicted interaction, {pair}",
)
declare("transport_observed", "contrast", "I on the target split (Eq. 4).", "observed interaction, {pair}", limit=2.0)
declare("transport_residual", "contrast", "I_observed - I_pred (section 4.5).", "residual, {pair}", limit=3.0)


@attrs.frozen
class Sample:
    """The part of a study that transport needs."""

    label: str
    table: Table
    #: Names of the tasks by id, where they are known (a table alone has ids only).
    names: Mapping[str, str] = attrs.field(factory=dict)
    #: Descriptions of the checkpoints by name.
    policies: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    #: Other settings that must agree, such as the depth of the frontier.
    settings: Mapping[str, Any] = attrs.field(factory=dict)


def check_compatible(target: Sample, external: Sample, names: Sequence[str] | None = None) -> None:
    """Refuse two samples that are not independent, or not of the same checkpoints.

    ``names`` are the checkpoints to be compared (all that both describe by default).  Raises
    :class:`~handoff.errors.UsageError` naming a task or game that both have, a checkpoint that differs with the fact
    in which it does, or a setting that differs.
    """
    ids = {*target.table.tasks, *target.names}
    shared = sorted(ids & {*external.table.tasks, *external.names})
    if shared:
        first = shared[0]
        name = target.names.get(first, first)
        raise UsageError(
            f"{target.label} and {external.label} share {len(shared)} tasks or games, the first being {name}"
            f"{f' ({first})' if name != first else ''}; the external split must have none of the target's"
        )
    labels = (target.label, external.label)
    both = [name for name in target.policies if name in external.policies]
    for name in both if names is None else [name for name in both if name in names]:
        key = _difference(target.policies[name], external.policies[name])
        if key is not None:
            facts = _contrast(key, target.policies[name].get(key), external.policies[name].get(key), labels)
            raise UsageError(f"checkpoint {name!r} is not the same in {labels[0]} and {labels[1]}: {facts}")
    kinds = [sample.settings.get("the environment", {}).get("name") for sample in (target, external)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"{labels[0]} is of the environment {kinds[0]!r} and {labels[1]} of {kinds[1]!r}: a prediction goes from "
            "one split of an environment to another split of it"
        )
    for setting, here in target.settings.items():
        there = external.settings.get(setting, here)
        if here != there:
            raise UsageError(f"{_contrast(setting, here, there, labels)}; run both alike")


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    for key in dict.fromkeys((*first, *second)):
        if (key in first) != (key in second) or first.get(key) != second.get(key):
            return key
    return None


def _contrast(name: str, first: Any, second: Any, labels: tuple[str, str]) -> str:
    """How two values differ, in words: which entries of a mapping do, else both values."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = differing_keys(first, second)
        if len(keys) == 1:
            parts = keys[0].split(".")
            return _contrast(f"{name}: {keys[0]}", _entry(first, parts), _entry(second, parts), labels)
        return f"{name} differs in {', '.join(keys[:5])}{' and more' if len(keys) > 5 else ''}"
    if any(isinstance(value, Mapping | list | tuple) for value in (first, second)):
        return f"{name} differs"
    here, there = ("absent" if value is None else f"{value!r:.60}" for value in (first, second))
    return f"{name} is {here} in {labels[0]} and {there} in {labels[1]}"


def _entry(facts: Any, keys: Sequence[str]) -> Any:
    """The entry under nested keys; ``None`` where there is none (or a key holds a point itself)."""
    for key in keys:
        facts = facts.get(key) if isinstance(facts, Mapping) else None
    return facts


class Prediction(Evaluated):
    """Eq. 10 under any weighting of the target's tasks followed by the external ones.

    A type that the data know, and whose few external states a weighting leaves out, has no gap under it; with
    ``pooled`` it takes the gap of all types there.
    """

    paired = False

    def __init__(
        self, target: Table, external: Table, pair: tuple[str, str, str, str], *, pooled: bool = False
    ) -> None:
        a, b, c, d = pair
        cross: dict[str, Argument] = {"a": a, "b": b, "c": c, "d": d}
        self.types = target.types
        self._share_G = np.array([target.strata.count(type) / len(target.tasks) for type in self.types])
        here = [estimand("reach_gap", a=a, b=b, type=type) for type in self.types]
        here += [estimand("interaction", type=type, **cross) for type in (*self.types, None)]
        there = [
            estimand("completion_gap", reachers=external.reachers, a=c, b=d, type=type) for type in (*self.types, None)
        ]
        self._here, self._there = self.parts = (Evaluation(target, here), Evaluation(external, there))
        self.estimands = tuple(
            Estimand(f"transport_{name}", tuple(cross.items()), type)
            for type in (*self.types, None)
            for name in QUANTITIES
            if type is not None or name in ("predicted", "observed", "residual")
        )
        here_E, there_G = self._here.points_E, self._there.points_E[:-1]
        self._pooled_G = ~np.isnan(there_G) & pooled
        self.points_E = self._combine(here_E[:, None], there_G[:, None])[:, 0]
        self.ratios_E = self._ratios()
        self.limits_E = np.array([one.limit for one in self.estimands])
        self.floors_E = self._floors()

    def formulas(self, sums: Sequence[SumsByType], which: Iterable[int]) -> Iterator[tuple[int, FloatArray]]:
        draws = sums[0][None].shape[1]
        parts = []
        for part, own in zip(self.parts, sums, strict=True):
            values_EB = np.full((len(part.estimands), draws), np.nan)
            for e, values_B in part.formulas([own], range(len(part.estimands))):
                values_EB[e] = values_B
            parts.append(values_EB)
        here_EB, there_EB = parts
        lost_GB = np.isnan(there_EB[:-1]) & self._pooled_G[:, None]
        rows_EB = self._combine(here_EB, np.where(lost_GB, there_EB[-1], there_EB[:-1]))
        yield from ((e, rows_EB[e]) for e in which)

    def _combine(self, here_EB: FloatArray, there_GB: FloatArray) -> FloatArray:
        """Shape (E, B): the quantities of every type and then of the whole."""
        types = len(self.types)
        gap_GB, observed_GB, whole_B = here_EB[:types], here_EB[types : 2 * types], here_EB[2 * types]
        predicted_GB = gap_GB * there_GB
        rows = [
            row
            for g in range(types)
            for row in (gap_GB[g], there_GB[g], predicted_GB[g], observed_GB[g], observed_GB[g] - predicted_GB[g])
        ]
        predicted_B = self._share_G @ predicted_GB
        return np.array([*rows, predicted_B, whole_B, whole_B - predicted_B])

    def _floors(self) -> FloatArray:
        """By the product rule from the floors of the gaps."""
        types = len(self.types)
        gap_G, there_G = self._here.points_E[:types], self._there.points_E[:types]
        here_G, observed_G, whole = np.split(self._here.floors_E, [types, 2 * types])
        outside_G = self._there.floors_E[:types]
        predicted_G = there_G**2 * here_G + gap_G**2 * outside_G
        quantities = zip(here_G, outside_G, predicted_G, observed_G, observed_G + predicted_G, strict=True)
        predicted = self._share_G**2 @ predicted_G
        floors_E = np.array([*np.ravel(list(quantities)), predicted, whole[0], whole[0] + predicted], np.float64)
        floors_E[np.isnan(floors_E)] = 0.0  # what the data leave undefined
        return floors_E

    def _ratios(self) -> tuple[tuple[Ratio, ...], ...]:
        types = len(self.types)
        here, there = self._here.ratios_E, self._there.ratios_E[:-1]
        external = [tuple(attrs.evolve(ratio, label=f"external {ratio.label}") for ratio in ratios) for ratios in there]
        rows: list[tuple[Ratio, ...]] = []
        for g in range(types):
            observed = here[types + g]
            predicted = (*here[g], *external[g])
            rows += [here[g], external[g], predicted, observed, (*observed, *predicted)]
        every = tuple(ratio for g in range(types) for ratio in (*here[g], *external[g]))
        return (*rows, every, here[2 * types], (*here[2 * types], *every))


def pair_of(target: Table, external: Table, names: Sequence[str] | None = None) -> tuple[str, str, str, str]:
    """The contrast from the first of ``names`` to the second, in both roles; by default of the target's first two
    reachers that are solvers in both tables, else of its first two reachers and the external table's first two solvers.

    Raises :class:`~handoff.errors.UsageError` where there are no two.
    """
    if names is not None:
        if len(names) != 2:
            raise UsageError(f"a contrast has two checkpoints, not {len(names)}")
        return names[0], names[1], names[0], names[1]
    solvers = [name for name in external.solvers if name in target.solvers]
    both = [name for name in target.reachers if name in solvers]
    if len(both) >= 2:
        return both[0], both[1], both[0], both[1]
    if len(target.reachers) < 2 or len(solvers) < 2:
        raise UsageError("a prediction needs two reachers in the target and two solvers that both tables have")
    return target.reachers[0], target.reachers[1], solvers[0], solvers[1]


@attrs.frozen
class Transport:
    """The prediction (Eq. 10) of an interaction."""

    #: Reachers a -> b and solvers c -> d.
    pair: tuple[str, str, str, str]
    types: tuple[str, ...]
    #: Named ``transport_<quantity>`` (``QUANTITIES``), by type and, with type ``None``, for the whole.
    estimates: Estimates
    #: Types without a reached state in the external split.  They have no prediction, and neither has the whole.
    without_states: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        a, b, c, d = self.pair
        return {
            "reachers": [a, b],
            "solvers": [c, d],
            "types_without_external_states": list(self.without_states),
            **self.estimates.to_json(),
        }


#: Quantities of one table, by the name that the estimand has there.
ALONE = {"reach_gap": "reach_gap", "completion_gap": "external_gap", "interaction": "observed"}


def _of_one_table(prediction: Prediction, intervals: Intervals) -> dict[tuple[str, str | None], Estimate]:
    """What concerns one of the tables, as that table's own estimates have it, by quantity and type."""
    return {
        (f"transport_{ALONE[one.estimand.name]}", one.estimand.type): one
        for part in prediction.parts
        for one in bootstrap(part, plan_of(part.table.strata, intervals.method), intervals).estimates
    }


def _key(estimand: Estimand) -> tuple[str, str | None]:
    return estimand.name, estimand.type


def _with_interval_of(one: Estimate, alone: Estimate | None) -> Estimate:
    """The same estimate with the interval of ``alone``: one estimand has one interval wherever it is printed."""
    if alone is None:
        return one
    names = ("low", "high", "reason", "interval_reason", "interval", "excluded", "notes")
    return attrs.evolve(one, **{name: getattr(alone, name) for name in names})


def residual_equivalence(
    target: Sample,
    external: Sample,
    pair: tuple[str, str, str, str],
    margin: float,
    intervals: Intervals = Intervals(),
) -> Equivalence:
    """Whether the residual of :func:`transport` lies within ``margin`` of 0, which was stated in advance."""
    prediction = Prediction(target.table, external.table, pair)
    plan = joined(*(plan_of(sample.table.strata, intervals.method) for sample in (target, external)))

    def ends_at(level: float) -> tuple[float, float] | None:
        whole = bootstrap(prediction, plan, attrs.evolve(intervals, level=level)).estimates[-1]
        return None if whole.low is None or whole.high is None else (whole.low, whole.high)

    return equivalence(ends_at, margin)


def transport(
    target: Sample, external: Sample, pair: tuple[str, str, str, str], intervals: Intervals = Intervals()
) -> Transport:
    """Predicted and observed interaction of reachers a -> b and solvers c -> d (``pair``), by type and in all.

    Raises :class:`~handoff.errors.UsageError` as :func:`check_compatible` does, or if a table lacks a checkpoint.
    """
    check_compatible(target, external, pair)
    prediction = Prediction(target.table, external.table, pair, pooled=intervals.method != "paper")
    plan = joined(*(plan_of(sample.table.strata, intervals.method) for sample in (target, external)))
    estimates = bootstrap(prediction, plan, intervals)
    if intervals.method != "paper":
        alone = _of_one_table(prediction, intervals)
        both = (_with_interval_of(one, alone.get(_key(one.estimand))) for one in estimates.estimates)
        estimates = attrs.evolve(estimates, estimates=tuple(both))
    missing = tuple(
        one.estimand.type
        for one in estimates.estimates
        if one.estimand.name == "transport_external_gap" and one.point is None and one.estimand.type is not None
    )

    def explained(one: Estimate) -> Estimate:
        lacking = [type for type in missing if one.estimand.type in (None, type)]
        if one.point is not None or not lacking:
            return one
        reason = f"the external split has no states of type {', '.join(lacking)}: none of its reachers arrived there"
        return attrs.evolve(one, reason=reason, interval_reason=reason)

    estimates = attrs.evolve(estimates, estimates=tuple(explained(one) for one in estimates.estimates))
    return Transport(pair, prediction.types, estimates, missing)
