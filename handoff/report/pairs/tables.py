"""The sheets of many pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import attrs

from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import SignCount, Signs
from handoff.report import sheet
from handoff.report.format import Measure, decimal, percent, plural
from handoff.report.pairs.sentences import crossing_words
from handoff.report.pairs.values import PairRow, PairsDocument
from handoff.report.sheet import Sheet, SheetCell, SheetRow
from handoff.report.tax.tables import ROUTING_GAINS, early, gap, quantity, rate, routing_gains
from handoff.report.tax.values import budgets

#: The remark on an interval of a pair; how few tasks it are, the comparison of the pair says.
FEW_CARRY = "few tasks carry it: the interval is uncertain"


def sheets(document: PairsDocument) -> dict[str, list[Sheet]]:
    """The sheets of every section; an empty list where there is nothing to show."""
    return {
        "pairs": list(pairs(document)),
        "signs": [signs(document)],
        "curves": [means(document), curves(document)],
        "trade": [],
        "recovered": list(recovered(document)),
        "early": early(document.early),
        "routing": list(routing(document)),
    }


def numbered(document: PairsDocument) -> list[tuple[int, PairRow]]:
    """Every pair with its number, which the figures use, too."""
    return list(enumerate(document.pairs, start=1))


def pairs(document: PairsDocument) -> Iterator[Sheet]:
    """A sheet per benchmark, with a line between families."""
    families = any(row.family for row in document.pairs)
    columns = ("pair", *(["family"] if families else []), "Tax_A", "Tax_S", "coverage lost", "efficiency gained",
               "base overtakes")  # fmt: skip
    for benchmark, group in groupby(numbered(document), key=lambda one: one[1].benchmark):
        rows, before = [], None
        for place, row in group:
            cells = (
                *([SheetCell(row.family)] if families else []),
                _brief(quantity(row.tax_a, 2), row.tax_a),
                _brief(quantity(row.tax_s), row.tax_s),
                gap(row.coverage_lost),
                gap(row.efficiency_gained),
                SheetCell("never" if row.crossover is None else f"k = {row.crossover}"),
            )
            rows.append(SheetRow(f"{place} {row.name}", cells, divided=before not in (None, row.family)))
            before = row.family
        title = f"{benchmark or 'The pairs'}, K = {document.budget}; coverage and efficiency in points"
        yield Sheet(title, columns, tuple(rows))


def _brief(cell: SheetCell, estimate: TaxEstimate) -> SheetCell:
    """The remark on an interval in the same words for every pair, so that it is listed once."""
    return attrs.evolve(cell, note=FEW_CARRY) if estimate.note and cell.note == estimate.note else cell


def signs(document: PairsDocument) -> Sheet:
    rows, before = [], "all"
    for group in document.signs:
        cells = (
            SheetCell(str(group.pairs)),
            *(_signs(one) for one in (group.tax_a, group.tax_s, group.coverage_lost, group.efficiency_gained)),
            SheetCell(f"{group.overtaken} of {group.pairs}"),
        )
        rows.append(SheetRow(_group(group), cells, divided=group.kind != before))
        before = group.kind
    columns = ("group", "pairs", "Tax_A", "Tax_S", "coverage lost", "efficiency gained", "base overtakes")
    return Sheet("In how many pairs a number is above zero, resolved in brackets", columns, tuple(rows))


def _group(group: Signs) -> str:
    return "all pairs" if group.kind == "all" else group.name or f"no {group.kind}"


def _signs(one: SignCount) -> SheetCell:
    below = f"below: {one.negative} ({one.below})" if one.negative else ""
    return SheetCell(f"{one.positive} of {one.pairs}", str(one.above), below)


def means(document: PairsDocument) -> Sheet:
    one = document.means
    rows = (
        SheetRow("Tax_A", (quantity(one.tax_a, 2),)),
        SheetRow("Tax_S", (quantity(one.tax_s),)),
        SheetRow("coverage lost, points", (gap(one.coverage_lost),)),
        SheetRow("efficiency gained, points", (gap(one.efficiency_gained),)),
        SheetRow("bases overtake at k", (_crossing(document),)),
    )
    return Sheet(f"Means over {plural(one.bases, 'base')} and {plural(one.pairs, 'pair')}", ("", "mean"), rows)


def _crossing(document: PairsDocument) -> SheetCell:
    crossing = document.means.crossing
    if crossing.k is None:
        return SheetCell("never", note=f"the bases' mean pass@k is greater at no k up to {document.budget}")
    text, _, ends = crossing_words(crossing, document.budget).partition(" ")
    return SheetCell(text, interval=ends)


def curves(document: PairsDocument) -> Sheet:
    sides = (document.means.base, document.means.post)
    rows = []
    for k in budgets(document.budget):
        at_k = [(side.pass_at_k[k - 1], side.pass_at_k_band[k - 1]) for side in sides]
        hat_k = [(side.pass_hat_k[k - 1], side.pass_hat_k_band[k - 1]) for side in sides]
        rows.append(SheetRow(str(k), tuple(sheet.rate(Measure(None, at, *ends)) for at, ends in (*at_k, *hat_k))))
    columns = ("k", "pass@k bases", "pass@k post-trained", "pass^k bases", "pass^k post-trained")
    return Sheet("Mean success of k rollouts, in percent of tasks", columns, tuple(rows))


def recovered(document: PairsDocument) -> Iterator[Sheet]:
    """A sheet per base."""
    for (benchmark, base), group in groupby(document.lost_then_solved, key=lambda row: (row.benchmark, row.base)):
        rows = tuple(
            SheetRow(
                f"{row.loser} loses, {row.solver} solves",
                (_tasks(row.lost), _tasks(row.solved), rate(row.share), gap(row.difference)),
            )
            for row in group
        )
        of = f"{base}, {benchmark}" if benchmark else base
        title = f"Lost, then solved: of the tasks that {of}, solves with {document.budget} rollouts"
        columns = ("policies", "lost", "solved", "share solved", "less the other direction, points")
        yield Sheet(title.replace(f"{of}, solves", f"{of} solves"), columns, rows)


def _tasks(count: float) -> SheetCell:
    """A number of tasks; of more rollouts than the budget it is an expectation."""
    return SheetCell(str(round(count)) if abs(count - round(count)) < 1e-9 else decimal(count, 1))


def routing(document: PairsDocument) -> Iterator[Sheet]:
    routed = [(f"{place} {row.name}", row, row.routing) for place, row in numbered(document) if row.routing is not None]
    if not routed:
        return
    rows = tuple(
        SheetRow(
            name,
            (
                rate(row.base_coverage),
                rate(row.post_coverage),
                rate(one.tax),
                SheetCell(percent(one.oracle.point)),
                *routing_gains(one),
            ),
        )
        for name, row, one in routed
    )
    title = (
        f"Routing: pass@{document.budget} of rules for who gets a task's rollouts, pilots of "
        f"{routed[0][2].pilot}, and by tax less the other rules in points"
    )
    yield Sheet(title, ("pair", "base only", "post only", "by tax", "oracle", *ROUTING_GAINS), rows)
