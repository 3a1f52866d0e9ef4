"""Does the interaction transport?  Predict it from the Reach gap here and the Solve gap elsewhere (Eq. 10).

For task type g with weight n_g / n of the target's tasks (1/G when types are balanced, as in the paper),

    I_pred = sum over g of n_g/n x (Reach^target_{b,g} - Reach^target_{a,g}) x (Solve^ext_{d,g} - Solve^ext_{c,g}),

with the arrival gap of reachers a -> b from the target split and the same-state gap of solvers c -> d from an external
split, pooled over all states that were reached there.  residual = I_observed - I_pred.  In a bootstrap draw the tasks
of each type are drawn from both samples independently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from handoff.canonical import differing_keys
from handoff.errors import UsageError
from handoff.estimation.bootstrap import INTERVALS, Estimates, bootstrap_values, plan_of
from handoff.estimation.counting import FloatArray, Ratio
from handoff.estimation.estimands import CONTRAST, Estimand, declare, estimand
from handoff.estimation.evaluation import Combination, Evaluation
from handoff.estimation.intervals import Intervals
from handoff.estimation.resampling import joined
from handoff.estimation.table import Table

#: The reported quantities of every type and of all of them, in this order.
QUANTITIES = ("reach_gap", "external_gap", "predicted", "observed", "residual")

declare("transport_reach_gap", CONTRAST, "Reach gap here, {a} → {b}", "Reach_b - Reach_a on the target split (Eq. 10).")
declare(
    "transport_external_gap",
    CONTRAST,
    "Solve gap there, {c} → {d}",
    "Solve_d - Solve_c over all states reached on the external split (Eq. 10).",
)
declare(
    "transport_predicted",
    CONTRAST,
    "predicted interaction, {pair}",
    "I_pred: the two gaps multiplied, types weighted as in the target (Eq. 10).",
)
declare("transport_observed", CONTRAST, "observed interaction, {pair}", "I on the target split (Eq. 4).", limit=2.0)
declare("transport_residual", CONTRAST, "residual, {pair}", "I_observed - I_pred (section 4.5).", limit=3.0)


@attrs.frozen
class Sample:
    """A study as far as transport needs it.

    ``tasks`` are names by task id where they are known (a table alone has ids only), ``policies`` the descriptions of
    its checkpoints by name, ``settings`` what else must agree, such as the depth of the frontier.
    """

    label: str
    table: Table
    tasks: Mapping[str, str] = attrs.field(factory=dict)
    policies: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    settings: Mapping[str, Any] = attrs.field(factory=dict)


def check_compatible(target: Sample, external: Sample, names: Sequence[str] | None = None) -> None:
    """Refuse two samples that are not independent, or not of the same checkpoints.

    ``names`` are the checkpoints to be compared (all that both describe by default).  Raises
    :class:`~handoff.errors.UsageError` naming a task or game that both have, a checkpoint that differs with the fact
    in which it does, or a setting that differs.
    """
    ids = {id: id for id in target.table.tasks} | dict(target.tasks)
    shared = sorted({*external.table.tasks, *external.tasks} & set(ids))
    if shared:
        what = ids[shared[0]]
        raise UsageError(
            f"{target.label} and {external.label} share {len(shared)} tasks or games, the first being {what}"
            f"{f' ({shared[0]})' if what != shared[0] else ''}; the external split must have none of the target's"
        )
    labels = (target.label, external.label)
    both = [name for name in target.policies if name in external.policies]
    for name in both if names is None else [name for name in both if name in names]:
        key = _difference(target.policies[name], external.policies[name])
        if key is not None:
            told = _told(key, target.policies[name].get(key), external.policies[name].get(key), labels)
            raise UsageError(f"checkpoint {name!r} is not the same in {labels[0]} and {labels[1]}: {told}")
    for setting in target.settings.keys() & external.settings.keys():
        here, there = target.settings[setting], external.settings[setting]
        if here != there:
            raise UsageError(f"{_told(setting, here, there, labels)}; run both alike")


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    for key in dict.fromkeys((*first, *second)):
        if (key in first) != (key in second) or first.get(key) != second.get(key):
            return key
    return None


def _told(name: str, first: Any, second: Any, labels: tuple[str, str]) -> str:
    """How two values differ, in words: which entries of a mapping do, else both values."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = differing_keys(first, second)
        if len(keys) == 1:
            parts = keys[0].split(".")
            return _told(f"{name}: {keys[0]}", _entry(first, parts), _entry(second, parts), labels)
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


class Prediction(Combination):
    """Eq. 10 under any weighting of the target's tasks followed by the external ones."""

    def __init__(self, target: Table, external: Table, pair: tuple[str, str, str, str]) -> None:
        a, b, c, d = pair
        self.types = target.types
        self._share_G = np.array([target.strata.count(type) / len(target.tasks) for type in self.types])
        here: list[Estimand] = []
        there: list[Estimand] = []
        for type in self.types:
            here.append(estimand("reach_gap", a=a, b=b, type=type))
            there.append(estimand("completion_gap", reachers=external.reachers, a=c, b=d, type=type))
        cross = {"a": a, "b": b, "c": c, "d": d}
        here += [estimand("interaction", type=type, **cross) for type in (*self.types, None)]
        super().__init__(Evaluation(target, here), Evaluation(external, there), paired=False)
        self.estimands = tuple(
            Estimand(f"transport_{name}", tuple(cross.items()), type)
            for type in (*self.types, None)
            for name in QUANTITIES
            if type is not None or name in ("predicted", "observed", "residual")
        )
        self.points_E = self.combine(self.first.points_E[:, None], self.second.points_E[:, None])[:, 0]
        self.ratios_E = self._ratios()
        self.limits_E: FloatArray = np.array([one.declaration.limit for one in self.estimands])

    def combine(self, here_EB: FloatArray, there_GB: FloatArray) -> FloatArray:
        """Shape (E, B): the quantities of every type, then of the whole."""
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

    def _ratios(self) -> tuple[tuple[Ratio, ...], ...]:
        types = len(self.types)
        here, there = self.first.ratios_E, self.second.ratios_E
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
    """``estimates`` named ``transport_<quantity>`` (``QUANTITIES``), by type and, with type ``None``, for the whole.

    ``without_states`` are types of which the external split reached no state: they have no prediction, and neither has
    the whole.
    """

    pair: tuple[str, str, str, str]
    types: tuple[str, ...]
    estimates: Estimates
    without_states: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        a, b, c, d = self.pair
        return {
            "reachers": [a, b],
            "solvers": [c, d],
            "types_without_external_states": list(self.without_states),
            **self.estimates.to_json(),
        }


def transport(
    target: Sample,
    external: Sample,
    pair: tuple[str, str, str, str],
    intervals: Intervals = INTERVALS,
) -> Transport:
    """Predicted and observed interaction of reachers a -> b and solvers c -> d (``pair``), by type and in all.

    Raises :class:`~handoff.errors.UsageError` as :func:`check_compatible` and
    :func:`~handoff.estimation.bootstrap.estimate` do, or if a checkpoint is missing from a table.
    """
    check_compatible(target, external, pair)
    prediction = Prediction(target.table, external.table, pair)
    plan = joined(plan_of(target.table, intervals), plan_of(external.table, intervals))
    made = bootstrap_values(prediction, plan, intervals)
    missing = tuple(
        found.estimand.type
        for found in made
        if found.estimand.name == "transport_external_gap" and found.point is None and found.estimand.type is not None
    )
    named = []
    for found in made:
        lacking = [type for type in missing if found.estimand.type in (None, type)]
        if found.point is None and lacking:
            reason = (
                f"the external split has no states of type {', '.join(lacking)}: none of its reachers arrived there"
            )
            found = attrs.evolve(found, reason=reason, interval_reason=reason)
        named.append(found)
    return Transport(pair, prediction.types, Estimates(tuple(named), intervals), missing)
