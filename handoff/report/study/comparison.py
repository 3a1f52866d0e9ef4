"""Two runs side by side: what they differ in, the same estimands of each, and their differences.

Differences are on the same bootstrap draws (paired) if both runs have the same tasks, on independent ones if they have
no task in common, and without an interval in between, where neither holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from rich.console import Console

from handoff.canonical import canonical, differing_keys
from handoff.errors import StoreError, UsageError
from handoff.estimation.bootstrap import Estimates
from handoff.estimation.differences import difference, side_by_side
from handoff.estimation.estimands import Estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.protocols.frontier.study import Study
from handoff.report.format import MINUS, Json, Measure, plain, plural
from handoff.report.report import Options
from handoff.report.sheet import Sheet, SheetCell, SheetRow, measure, of_difference, of_estimand
from handoff.report.study.document import facts
from handoff.report.study.values import StudyFacts
from handoff.report.terminal import say, show_sheet

#: Settings on which the numbers of a run depend.  Of another environment they are not comparable at all.
SETTINGS = {
    "protocol.depth": "the frontiers are not the same states",
    "protocol.reach_budget": "reachers have different budgets",
    "protocol.solve_budget": "solvers have different budgets",
    "protocol.split": "tasks come from different splits",
}


@attrs.frozen
class Differing:
    """An entry of the runs' identities that differs."""

    key: str
    first: str
    second: str


@attrs.frozen
class ComparedRow:
    """One estimand that both runs answer."""

    name: str
    label: str
    equation: str
    first: Measure
    second: Measure
    #: Second minus first; ``None`` where none is taken.
    difference: Measure | None


@attrs.frozen
class ComparedRuns:
    """Everything that ``handoff compare`` says."""

    runs: tuple[StudyFacts, StudyFacts]
    labels: tuple[str, str]
    differing: tuple[Differing, ...]
    #: Why differences mean nothing: another environment, or another version of it.
    incomparable: tuple[str, ...]
    #: What to bear in mind.
    remarks: tuple[str, ...]
    #: ``paired``, ``independent`` or ``neither``.
    pairing: str
    intervals: Intervals
    rows: tuple[ComparedRow, ...]

    def to_json(self) -> Json:
        return plain(self)


def compare(first: Study, second: Study, options: Options | None = None, anyway: bool = False) -> ComparedRuns:
    """Set two runs side by side; incomparable runs have differences only with ``anyway``.

    Raises :class:`~handoff.errors.UsageError` if the runs have no estimand in common, and
    :class:`~handoff.errors.StoreError` while records are owed.
    """
    options = options or Options()
    for study in (first, second):
        study.require_consistent()
        if not study.sealed:
            raise StoreError(f"{study.folder} is not complete; type the command that started it again, then compare")
    tables = {"first": first.table, "second": second.table}
    several = side_by_side(
        tables,
        options.order,
        budgets=options.budgets,
        intervals=options.intervals,
    )
    ours, theirs = ({one.estimand: one for one in several.estimates[run].estimates} for run in tables)
    common = [estimand for estimand in ours if estimand in theirs]
    if not common:
        raise UsageError(
            f"{first.folder} and {second.folder} have no checkpoint of one name in one role: "
            f"{_roles(first)} and {_roles(second)}"
        )
    incomparable = _incomparable(first, second)
    pairing, remark = _pairing(tables["first"], tables["second"])
    differences = (
        {} if incomparable and not anyway else _differences(tables, common, several.differences, pairing, options)
    )
    return ComparedRuns(
        (facts(first), facts(second)),
        _labels(first, second),
        tuple(_differing(first, second)),
        tuple(incomparable),
        (*_remarks(first, second), *([] if incomparable and not anyway else [remark])),
        pairing,
        options.intervals,
        tuple(
            ComparedRow(
                estimand.name,
                estimand.label,
                estimand.equation,
                measure(ours[estimand]),
                measure(theirs[estimand]),
                differences.get(estimand),
            )
            for estimand in common
        ),
    )


def _differences(
    tables: Mapping[str, Table],
    common: list[Estimand],
    paired: Mapping[str, Estimates],
    pairing: str,
    options: Options,
) -> dict[Estimand, Measure]:
    if pairing == "paired":
        by_key = {dict(one.estimand.arguments)["of"]: one for one in paired["second"].estimates}
        return {estimand: measure(by_key[str(estimand)]) for estimand in common}
    first, second = tables["first"], tables["second"]
    estimates = difference(first, second, common, options.intervals, paired=False).estimates
    if pairing == "neither":
        reason = "refused: the runs share some tasks but not all, so they are neither paired nor independent"
        estimates = tuple(attrs.evolve(one, low=None, high=None, interval_reason=reason) for one in estimates)
    return {estimand: measure(one) for estimand, one in zip(common, estimates, strict=True)}


def _pairing(first: Table, second: Table) -> tuple[str, str]:
    shared = len(set(first.tasks) & set(second.tasks))
    if (first.tasks, first.strata) == (second.tasks, second.strata) and len(first.slots) == len(second.slots):
        return "paired", f"Both runs have the same {plural(shared, 'task')}: differences are paired."
    if not shared:
        return "independent", "The runs have no task in common: differences are of independent samples."
    return "neither", (
        f"The runs share {shared} of {len(first.tasks)} and {len(second.tasks)} tasks, or have other seed slots: "
        "differences have no interval."
    )


def _incomparable(first: Study, second: Study) -> list[str]:
    here, there = first.identity["environment"], second.identity["environment"]
    parts = [f"environment.{key} {_both(here, there, key)}" for key in differing_keys(here, there)]
    return [f"the runs were not made in the same environment ({', '.join(parts)})"] if parts else []


def _remarks(first: Study, second: Study) -> list[str]:
    remarks = []
    for key, meaning in SETTINGS.items():
        if _entry(first.identity, key) != _entry(second.identity, key):
            remarks.append(f"{key} is {_both(first.identity, second.identity, key)}: {meaning}.")
    for name, described in first.policies.items():
        other = second.policies.get(name, described)
        parts = [f"{key} {_both(described, other, key)}" for key in differing_keys(described, other)]
        if parts:
            remarks.append(f"{name} is not the same checkpoint in both runs: {', '.join(parts)}.")
    return remarks


def _both(first: Any, second: Any, key: str) -> str:
    return f"{_text(_entry(first, key))} and {_text(_entry(second, key))}"


def _differing(first: Study, second: Study) -> list[Differing]:
    rows = []
    for key in differing_keys(first.identity, second.identity):
        if key == "tasks":
            a, b = ({task.id for task in study.tasks} for study in (first, second))
            texts = [f"{plural(len(ids), 'task')}, {len(ids - other)} of its own" for ids, other in ((a, b), (b, a))]
        else:
            texts = [_text(_entry(study.identity, key)) for study in (first, second)]
        rows.append(Differing(key, *texts))
    return rows


_ABSENT = object()


def _entry(form: Any, dotted: str) -> Any:
    """The entry under a dotted name.  Names may have dots in them: the longest name wins."""
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


def _text(entry: Any) -> str:
    if entry is _ABSENT:
        return "absent"
    text = entry if isinstance(entry, str) else canonical(entry).decode()
    return text if len(text) <= 24 else f"{text[:20]}..."


def _labels(first: Study, second: Study) -> tuple[str, str]:
    a, b = (study.folder.resolve().name for study in (first, second))
    return (a, b) if a != b else (f"{a} (1)", f"{b} (2)")


def _roles(study: Study) -> str:
    return f"reachers {', '.join(study.reachers)} with solvers {', '.join(study.solvers)}"


def show(console: Console, compared: ComparedRuns) -> None:
    """The comparison on the terminal."""
    first, second = compared.labels
    if compared.differing:
        differing = tuple(
            SheetRow(row.key, (SheetCell(row.first), SheetCell(row.second))) for row in compared.differing
        )
        show_sheet(console, Sheet(f"{first} and {second} differ in", ("differs", first, second), differing))
    else:
        say(console, f"{first} and {second} are the same run: nothing that determines them differs.")
    for reason in compared.incomparable:
        say(console, f"Not comparable: {reason}.", style="bold red")
    if compared.incomparable and all(row.difference is None for row in compared.rows):
        say(console, "No differences are taken (--anyway takes them).", style="red")
    say(console, *compared.remarks)
    console.print()
    rows = tuple(
        SheetRow(
            row.label,
            (
                *(attrs.evolve(of_estimand(row.name, value), counts="") for value in (row.first, row.second)),
                of_difference(row.name, row.difference),
            ),
        )
        for row in compared.rows
    )
    title = "The same estimands of both runs; rates in percent, contrasts and differences in points"
    show_sheet(console, Sheet(title, ("estimand", first, second, f"{second} {MINUS} {first}"), rows))
