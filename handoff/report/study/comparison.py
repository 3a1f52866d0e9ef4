"""Two runs side by side: what they differ in, the same estimands of each, and their differences.

Differences are on the same bootstrap draws (paired) if both runs have the same tasks, on independent ones if they have
no task in common, and without an interval in between, where neither holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.canonical import canonical, differing_keys
from handoff.errors import StoreError, UsageError
from handoff.estimation.bootstrap import Estimates
from handoff.estimation.differences import difference, side_by_side
from handoff.estimation.estimands import Estimand
from handoff.estimation.table import Table
from handoff.protocols.frontier.study import Study, require_consistent
from handoff.report import format
from handoff.report.study.document import Json, Options, describe, value

#: Facts of a run that its numbers hang on, apart from the environment, which makes them another thing altogether.
SETTINGS = {
    "protocol.depth": "the frontiers are not the same states",
    "protocol.reach_budget": "reachers have different budgets",
    "protocol.solve_budget": "solvers have different budgets",
    "protocol.split": "tasks come from different splits",
}


def compare(first: Study, second: Study, options: Options | None = None, anyway: bool = False) -> Json:
    """Everything that ``handoff compare`` says.

    ``differing`` are the entries of the runs' identities that differ.  ``incomparable`` says why differences mean
    nothing (another environment, or another version of it); then there are none unless ``anyway``.  ``remarks`` are
    what to bear in mind.  ``rows`` has, for every estimand that both runs answer, a value of each run and the
    difference, second minus first (``null`` without one).

    Raises :class:`~handoff.errors.UsageError` if the runs have no estimand in common, and
    :class:`~handoff.errors.StoreError` while records are owed.
    """
    options = options or Options()
    for study in (first, second):
        require_consistent(study)
        if not study.sealed:
            raise StoreError(f"{study.folder} is not complete; type the command that started it again, then compare")
    tables = {"first": first.table(), "second": second.table()}
    made = side_by_side(tables, options.order, budgets=options.budgets, intervals=options.intervals)
    of = {run: {one.estimand: one for one in made.estimates[run].estimates} for run in tables}
    common = [asked for asked in of["first"] if asked in of["second"]]
    if not common:
        raise UsageError(
            f"{first.folder} and {second.folder} have no checkpoint of one name in one role: "
            f"{_roles(first)} and {_roles(second)}"
        )
    incomparable = _incomparable(first, second)
    pairing, remark = _pairing(tables["first"], tables["second"])
    differences = (
        {} if incomparable and not anyway else _differences(tables, common, made.differences, pairing, options)
    )
    return {
        "runs": [describe(first), describe(second)],
        "labels": _labels(first, second),
        "differing": _differing(first, second),
        "incomparable": incomparable,
        "remarks": [*_remarks(first, second), *([] if incomparable and not anyway else [remark])],
        "pairing": pairing,
        "intervals": options.intervals.to_json(),
        "rows": [
            {
                "name": asked.name,
                "label": asked.label,
                "equation": asked.equation,
                "first": value(of["first"][asked]),
                "second": value(of["second"][asked]),
                "difference": differences.get(asked),
            }
            for asked in common
        ],
    }


def _differences(
    tables: Mapping[str, Table],
    common: list[Estimand],
    paired: Mapping[str, Estimates],
    pairing: str,
    options: Options,
) -> dict[Estimand, Json]:
    if pairing == "paired":
        by_key = {dict(one.estimand.arguments)["of"]: one for one in paired["second"].estimates}
        return {asked: value(by_key[str(asked)]) for asked in common}
    found = difference(tables["first"], tables["second"], common, options.intervals, paired=False).estimates
    if pairing == "neither":
        reason = "refused: the runs share some tasks but not all, so they are neither paired nor independent"
        found = tuple(attrs.evolve(one, low=None, high=None, interval_reason=reason) for one in found)
    return {asked: value(one) for asked, one in zip(common, found, strict=True)}


def _pairing(first: Table, second: Table) -> tuple[str, str]:
    shared = len(set(first.tasks) & set(second.tasks))
    if (first.tasks, first.strata) == (second.tasks, second.strata) and len(first.slots) == len(second.slots):
        return "paired", f"Both runs have the same {format.plural(shared, 'task')}: differences are paired."
    if not shared:
        return "independent", "The runs have no task in common: differences are of independent samples."
    return "neither", (
        f"The runs share {shared} of {len(first.tasks)} and {len(second.tasks)} tasks, or have other seed slots: "
        "differences have no interval."
    )


def _incomparable(first: Study, second: Study) -> list[str]:
    found = []
    for key in differing_keys(first.identity["environment"], second.identity["environment"]):
        a, b = (_shown(_entry(study.identity["environment"], key)) for study in (first, second))
        found.append(f"environment.{key} {a} and {b}")
    return [f"the runs were not made in the same environment ({', '.join(found)})"] if found else []


def _remarks(first: Study, second: Study) -> list[str]:
    found = []
    for key, meaning in SETTINGS.items():
        a, b = (_entry(study.identity, key) for study in (first, second))
        if a != b:
            found.append(f"{key} is {_shown(a)} and {_shown(b)}: {meaning}.")
    for name, facts in first.policies.items():
        if name in second.policies:
            keys = differing_keys(facts, second.policies[name])
            if keys:
                told = ", ".join(
                    f"{key} {_shown(_entry(facts, key))} and {_shown(_entry(second.policies[name], key))}"
                    for key in keys
                )
                found.append(f"{name} is not the same checkpoint in both runs: {told}.")
    return found


def _differing(first: Study, second: Study) -> list[Json]:
    found = []
    for key in differing_keys(first.identity, second.identity):
        if key == "tasks":
            a, b = ({task.id for task in study.tasks} for study in (first, second))
            shown = [
                f"{format.plural(len(ids), 'task')}, {len(ids - other)} of its own" for ids, other in ((a, b), (b, a))
            ]
        else:
            shown = [_shown(_entry(study.identity, key)) for study in (first, second)]
        found.append({"key": key, "first": shown[0], "second": shown[1]})
    return found


_ABSENT = object()


def _entry(form: Any, dotted: str) -> Any:
    """What stands under a dotted name.  Names may have dots in them, so the longest that is there is taken."""
    if not dotted:
        return form
    if not isinstance(form, Mapping):
        return _ABSENT
    for key in sorted(form, key=len, reverse=True):
        if dotted == key:
            return form[key]
        if dotted.startswith(f"{key}."):
            return _entry(form[key], dotted[len(key) + 1 :])
    return _ABSENT


def _shown(entry: Any) -> str:
    if entry is _ABSENT:
        return "absent"
    text = entry if isinstance(entry, str) else canonical(entry).decode()
    return text if len(text) <= 24 else f"{text[:20]}..."


def _labels(first: Study, second: Study) -> list[str]:
    names = [study.folder.resolve().name for study in (first, second)]
    return names if names[0] != names[1] else [f"{name} ({n})" for n, name in enumerate(names, start=1)]


def _roles(study: Study) -> str:
    return f"reachers {', '.join(study.reachers)} with solvers {', '.join(study.solvers)}"
