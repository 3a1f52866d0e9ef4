"""The sheets and sentences of what stands one step behind the plain tables (:mod:`handoff.estimation.more`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console

from handoff.estimation.bootstrap import Estimate
from handoff.estimation.more import Ladder, More
from handoff.estimation.ratios import RatioEstimate
from handoff.estimation.shrinkage import Shrinkage
from handoff.estimation.simultaneous import Member, Simultaneous
from handoff.report import plots
from handoff.report.format import (
    NONE,
    PAPER,
    Measure,
    arrow,
    decimal,
    gap_with_interval,
    interval,
    percent,
    points,
    rate_with_interval,
)
from handoff.report.plots import Figure, Mark
from handoff.report.sheet import Sheet, SheetCell, SheetRow, gap, measure, rate
from handoff.report.terminal import say, show_sheet


def show(console: Console, more: More) -> None:
    """All of it on the terminal."""
    for sheet in sheets(more):
        console.print()
        show_sheet(console, sheet)
    console.print()
    say(console, *sentences(more))


def sheets(more: More) -> list[Sheet]:
    """One sheet per question."""
    return [
        *(_ladder(more.ladder) if more.ladder else ()),
        *([_ranking(more)] if more.ranking else ()),
        *map(_family, more.families),
        *([_orders(more)] if more.orders else ()),
        *([_common(more)] if more.common else ()),
        *([_ratios(more)] if more.ratios else ()),
        *([_types(more.types)] if more.types else ()),
    ]


def sentences(more: More) -> list[str]:
    """What the sheets answer, in words."""
    return [
        *(_rungs(more.ladder) if more.ladder else ()),
        *(_pairs(more) if more.ranking else ()),
        *(_together(family) for family in more.families),
        *_selection(more),
    ]


def figures(more: More, styles: Mapping[str, int]) -> list[Figure]:
    """Checkpoints without an order, ranked with their intervals; ``styles`` by checkpoint."""
    if not more.ranking:
        return []
    groups = [
        (head, [Mark(one.name, measure(getattr(one, name)), styles[one.name]) for one in more.ranking])
        for name, head in (
            ("endpoint", "Endpoint, both roles"),
            ("reach", "Reach"),
            ("completion", "Completion, all reached states"),
        )
    ]
    ranked = [(head, sorted(marks, key=lambda mark: -(mark.value.point or 0.0))) for head, marks in groups]
    caption = "Checkpoints ranked by each rate, in percent with intervals. A rank is not a resolved difference."
    canvas = plots.forest(ranked, rate_with_interval, (0.0, 100.0))
    return [canvas.figure("fig-ranking", "Ranked checkpoints", caption)]


def together(member: Member) -> Measure:
    """A member with its simultaneous interval."""
    reason = member.plain.reason or member.plain.interval_reason
    return Measure(str(member.plain.estimand), member.point, member.low, member.high, note=reason)


def _p(p: float | None) -> SheetCell:
    return SheetCell(NONE if p is None else "< 0.001" if p < 0.001 else decimal(p, 3))


def _family(family: Simultaneous) -> Sheet:
    rows = tuple(
        SheetRow(
            one.plain.estimand.label,
            (
                gap(measure(one.plain)),
                SheetCell(interval(together(one)) or NONE),
                _p(one.p),
                _p(one.p_adjusted),
            ),
        )
        for one in family.members
    )
    title = f"Intervals that hold together ({family.name}, {family.level:.0%} for all), in points"
    return Sheet(title, ("contrast", "alone", "together", "p alone", "p adjusted"), rows)


def _together(family: Simultaneous) -> str:
    given = [one for one in family.members if one.low is not None]
    resolved = sum(one.resolved for one in given)
    return (
        f"Of the {len(given)} contrasts with an interval ({family.name}), {resolved} "
        f"{'is' if resolved == 1 else 'are'} resolved by intervals that hold together."
    )


def _orders(more: More) -> Sheet:
    rows = tuple(SheetRow(one.name, (gap(measure(one.arrival)), gap(measure(one.state)))) for one in more.orders)
    title = f"The interaction split in three orders ({PAPER}, Eq. 9), in points"
    return Sheet(title, ("order", "arrival term", "state term"), rows)


def _common(more: More) -> Sheet:
    share, observed, *bounds = more.common
    lower, upper, loose_lower, loose_upper = bounds
    rows = [
        SheetRow("share of slots where both arrive", (rate(measure(share)),)),
        SheetRow("interaction on these slots", (gap(measure(observed)),)),
        SheetRow("bounds, monotone arrival assumed", (_bounds(lower, upper),), divided=True),
        SheetRow("bounds, no assumption on arrival", (_bounds(loose_lower, loose_upper),)),
    ]
    return Sheet("The interaction where both reachers arrive, in points", ("quantity", "value"), tuple(rows))


def _bounds(lower: Estimate, upper: Estimate) -> SheetCell:
    """Both bounds; below them the outer ends of their intervals."""
    note = lower.reason or upper.reason
    if lower.point is None or upper.point is None:
        return SheetCell(NONE, note=note)
    words = f"{points(lower.point)} to {points(upper.point)}"
    if (lower.point, upper.point) == (-2.0, 2.0):
        return SheetCell(words, note="the two rates of arrival do not tell that any slot has both: nothing is bounded")
    return SheetCell(words, "", interval(Measure(None, None, lower.low, upper.high)))


def _times(ratio: RatioEstimate) -> SheetCell:
    ends = Measure(None, ratio.point, ratio.low, ratio.high)
    return SheetCell(decimal(ratio.point, 2), "", interval(ends, 1.0, 2), ratio.reason)


def _ratios(more: More) -> Sheet:
    rows = [SheetRow(one.label, (_times(one),)) for one in more.ratios]
    if more.sensitivity is not None:
        rows.append(SheetRow(more.sensitivity.ratio.label, (_times(more.sensitivity.ratio),), divided=True))
        rows.append(SheetRow("E-value of its point", (SheetCell(decimal(more.sensitivity.point, 2)),)))
        rows.append(SheetRow("E-value of its interval", (SheetCell(decimal(more.sensitivity.limit, 2)),)))
    return Sheet("Ratios: how many times as often", ("ratio", "times"), tuple(rows))


def _selection(more: More) -> Iterator[str]:
    """How strong selection on difficulty would have to be."""
    if more.sensitivity is None or more.sensitivity.point is None or more.contrast is None:
        return
    a, b, _, _ = more.contrast
    yield (
        f"To make the solver effects after {a} and after {b} equal, some difficulty would have to be "
        f"{decimal(more.sensitivity.point, 2)} times as frequent among the arrivals of one as of the other, and the "
        "solver effect as many times greater at one difficulty than at another (E-value)."
    )
    if more.sensitivity.limit == 1.0:
        yield "The interval of their ratio holds 1: that they differ is not resolved without any selection."


def _ladder(ladder: Ladder) -> Iterator[Sheet]:
    rows = [
        SheetRow(arrow(step.pair), tuple(gap(together(one)) for one in (step.reach, step.completion, step.endpoint)))
        for step in ladder.steps
    ]
    rows.append(SheetRow("trend, per rung", tuple(gap(measure(one)) for one in ladder.trends), divided=True))
    title = f"The ladder {' → '.join(ladder.rungs)}, in points; the steps' intervals hold together"
    yield Sheet(title, ("step", "Reach", "completion", "endpoint"), tuple(rows))


def _rungs(ladder: Ladder) -> Iterator[str]:
    """Every rung, and whether its step is resolved."""
    parts = [
        f"{step.pair[1]} over {step.pair[0]}: reaching {_resolved(step.reach)}, solving {_resolved(step.completion)}, "
        f"endpoint {_resolved(step.endpoint)}"
        for step in ladder.steps
    ]
    yield f"Step by step, {'; '.join(parts)}."
    reach, completion, endpoint = (measure(one) for one in ladder.trends)
    yield (
        f"Over the whole ladder the trend per rung is {gap_with_interval(reach)} in reaching, "
        f"{gap_with_interval(completion)} in solving and {gap_with_interval(endpoint)} in endpoint success."
    )


def _resolved(member: Member) -> str:
    if not member.resolved:
        return "not resolved"
    return f"{'better' if (member.low or 0) > 0 else 'worse'} ({points(member.point)} points)"


def _ranking(more: More) -> Sheet:
    rows = tuple(
        SheetRow(one.name, tuple(rate(measure(each)) for each in (one.endpoint, one.reach, one.completion)))
        for one in more.ranking
    )
    return Sheet("Checkpoints ranked by endpoint success", ("checkpoint", "endpoint", "Reach", "completion"), rows)


def _pairs(more: More) -> Iterator[str]:
    """Which pairwise differences are resolved, if any."""
    family = next(one for one in more.families if one.name == "all pairs")
    resolved = [one for one in family.members if one.resolved]
    if not resolved:
        yield "No pairwise difference between the checkpoints is resolved: their order here may be chance."
        return
    each = "; ".join(f"{one.plain.estimand.label} {gap_with_interval(together(one))}" for one in resolved)
    verb = "is" if len(resolved) == 1 else "are"
    yield f"Of {len(family.members)} pairwise differences, {len(resolved)} {verb} resolved: {each}."


def _types(types: tuple[Shrinkage, ...]) -> Sheet:
    """Reach and the interaction of each type; the endpoints are in the JSON form."""
    some = [one for one in types if not one.name.startswith("endpoint")]

    def cell(one: Shrinkage, place: int) -> SheetCell:
        value = one.rows[place]
        shown = points if one.name == "interaction" else percent
        ends = Measure(None, value.point, value.low, value.high)
        return SheetCell(shown(value.point), f"raw {shown(value.raw)}", interval(ends))

    rows = tuple(SheetRow(row.type, tuple(cell(one, place) for one in some)) for place, row in enumerate(some[0].rows))
    title = "Task types drawn towards their mean (hierarchical beta-binomial), beside the raw values"
    return Sheet(title, ("task type", *(one.name for one in some)), rows)
