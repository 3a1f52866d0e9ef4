"""Figures as inline SVG with classes: the page's style sheet sets the colours.

Colour never stands alone: a style, a number, has a colour, a marker and a line style.  Classes ``c0`` to ``c5`` are the
colours, set for light and for dark; ``e`` is that of text.  Every figure is 400 units wide, so that on a narrow screen
its letters keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, TypeVar
from xml.sax.saxutils import escape, quoteattr

import attrs

from handoff.report.format import MINUS, Measure, counted, percent

WIDTH = 400.0
STYLES = 6
#: Width of a letter of the figures' text (12 units high), on average, in a wide font; bold letters are wider.
LETTER = 6.7
BOLD = 1.15

R = TypeVar("R")
#: Rows under heads; an empty head is not drawn.
Groups: TypeAlias = Sequence[tuple[str, Sequence[R]]]
Range = tuple[float, float]
Show = Callable[[Measure], str]


@attrs.frozen
class Figure:
    """One figure of a page."""

    #: Also the element's id.
    name: str
    caption: str
    #: The SVG element as text.
    svg: str


class Canvas:
    """SVG elements, added one by one.  All text is escaped here."""

    def __init__(self, height: float) -> None:
        self.height = height
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def path(self, places: Sequence[tuple[float, float]], kind: str, close: bool = False) -> None:
        steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self._parts.append(f'<path class="{kind}" d="M{steps}{"Z" if close else ""}"/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, title: str) -> None:
        size = f'width="{max(width, 0):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}><title>{escape(title)}</title></rect>')

    def text(self, x: float, y: float, words: str, kind: str = "t", anchor: str = "start", room: float = 0) -> None:
        """``room`` is the most width that the words may take: longer ones are cut, with the whole as their title."""
        shown, whole = words, ""
        letter = LETTER * BOLD if "head" in kind else LETTER
        if room and len(words) * letter > room:
            shown, whole = words[: max(1, int(room / letter) - 1)] + "…", f"<title>{escape(words)}</title>"
        self._parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(shown)}{whole}</text>'
        )

    def marker(self, x: float, y: float, style: int, title: str, size: float = 4.5, colour: str = "") -> None:
        """Circle, square, triangle, diamond, triangle upside down, slanted bar: by style, as is the colour."""
        shape, s = style % STYLES, size
        about = f"<title>{escape(title)}</title>"
        kind = f'class="m {colour or f"c{shape}"}"'
        if shape == 0:
            self._parts.append(f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}">{about}</circle>')
            return
        corners = {
            1: [(-s, -s), (s, -s), (s, s), (-s, s)],
            2: [(0, -1.2 * s), (1.2 * s, s), (-1.2 * s, s)],
            3: [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
            4: [(0, 1.2 * s), (1.2 * s, -s), (-1.2 * s, -s)],
            5: [(-s, -s / 3), (-s / 3, -s), (s, s / 3), (s / 3, s)],
        }[shape]
        places = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        self._parts.append(f'<polygon {kind} points="{places}">{about}</polygon>')

    def legend(self, names: Iterable[tuple[str, int]], lines: bool = True) -> float:
        """Marker (and line) beside each name, wrapped, at the top; returns the height below it."""
        x, y = 8.0, 14.0
        for name, style in names:
            width = 40 + min(len(name) * LETTER, 150)
            if x > 8 and x + width > WIDTH:
                x, y = 8.0, y + 18
            if lines:
                self.line(x, y - 4, x + 20, y - 4, stroke(style))
            self.marker(x + 10, y - 4, style, name)
            self.text(x + 26, y, name, room=152)
            x += width
        return y + 22

    def figure(self, name: str, title: str, caption: str) -> Figure:
        """``title`` is the figure's accessible name."""
        head = f'<svg id="{name}" viewBox="0 0 {WIDTH:.0f} {self.height:.0f}" role="img" aria-label={quoteattr(title)}>'
        return Figure(name, caption, f"{head}{''.join(self._parts)}</svg>")


def stroke(style: int) -> str:
    """Classes of a line of this style."""
    return f"l c{style % STYLES} d{style % STYLES}"


class Axes:
    """A rectangle of a canvas in which numbers have places: x to the right, y upwards."""

    def __init__(
        self,
        canvas: Canvas,
        x: Range,
        y: Range = (0.0, 1.0),
        *,
        left: float = 40.0,
        right: float = 12.0,
        top: float = 10.0,
        foot: float = 38.0,
        log: bool = False,
    ) -> None:
        self.canvas = canvas
        self.left, self.right, self.top, self.bottom = left, WIDTH - right, top, canvas.height - foot
        self._x, self._y, self._log = x, y, log

    def x(self, at: float) -> float:
        first, last = self._x
        share = math.log(at / first) / math.log(last / first) if self._log else (at - first) / (last - first)
        return self.left + share * (self.right - self.left)

    def y(self, at: float) -> float:
        low, high = self._y
        return self.bottom - (at - low) / (high - low) * (self.bottom - self.top)

    def places(self, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in points]

    def rows(self, most: int = 5) -> None:
        """Horizontal grid lines with their ticks."""
        for tick in round_ticks(*self._y, most):
            zero = tick == 0 and self._y[0] < 0
            self.canvas.line(self.left, self.y(tick), self.right, self.y(tick), "zero" if zero else "grid")
            self.canvas.text(self.left - 6, self.y(tick) + 4, plain(tick), "t soft", "end")

    def columns(self, most: int = 5, grid: bool = True) -> None:
        """Ticks below, with vertical grid lines."""
        for tick in self._doublings() if self._log else round_ticks(*self._x, most):
            if grid:
                zero = tick == 0 and self._x[0] < 0
                self.canvas.line(self.x(tick), self.top, self.x(tick), self.bottom, "zero" if zero else "grid")
            self.canvas.text(self.x(tick), self.bottom + 16, plain(tick), "t soft", "middle")

    def _doublings(self) -> list[float]:
        first, last = self._x
        each = [2.0**i for i in range(int(last).bit_length()) if first <= 2**i <= last]
        return [*(k for k in each if self.x(last) - self.x(k) > 26), last]

    def below(self, words: str, offset: float = 31.0) -> None:
        """The title of the horizontal axis."""
        self.canvas.text((self.left + self.right) / 2, self.bottom + offset, words, "t soft", "middle")

    def box(self, x1: float, x2: float, height: float, kind: str, title: str, inset: float = 0.0) -> None:
        """A bar between two x, from zero to ``height``."""
        top, bottom = sorted((self.y(0), self.y(height)))
        left, right = self.x(x1) + inset, self.x(x2) - inset
        self.canvas.box(left, top, right - left, max(0.8, bottom - top), kind, title)

    def whiskers(self, x: float, y: float, across: Range | None, along: Range | None, kind: str) -> None:
        """Intervals of a point in one or both directions."""
        if across is not None:
            self.canvas.line(self.x(across[0]), self.y(y), self.x(across[1]), self.y(y), kind)
        if along is not None:
            self.canvas.line(self.x(x), self.y(along[0]), self.x(x), self.y(along[1]), kind)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    span = high - low
    step = 10 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10):
        if span / (step * factor) <= most:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 9) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def plain(value: float) -> str:
    """A tick's label."""
    return f"{value:g}".replace("-", MINUS) if abs(value) < 1e5 else f"{value:.0f}"


def ends_of(value: Measure, scale: float = 100.0) -> Range | None:
    """Both ends of the interval; ``None`` where there is none."""
    return None if value.low is None or value.high is None else (scale * value.low, scale * value.high)


def range_of(values: Iterable[Measure], scale: float, margin: float) -> Range:
    """From the least to the greatest point or end of an interval, zero among them, and a margin beyond zero."""
    ends = [0.0]
    for value in values:
        ends += [*([] if value.point is None else [scale * value.point]), *(ends_of(value, scale) or ())]
    low, high = min(ends), max(ends)
    if low == high:
        return 0.0, 1.0
    space = margin * (high - low)
    return low - space if low < 0 else 0.0, high + space if high > 0 else 0.0


# Points with intervals, one row each.


@attrs.frozen
class Mark:
    """One row of a forest."""

    name: str
    value: Measure
    #: Marker and colour.
    style: int
    #: Another colour class in the place of the style's.
    colour: str = ""


def forest(groups: Groups[Mark], show: Show, domain: Range | None = None, scale: float = 100.0) -> Canvas:
    """Rows of points with intervals, in headed groups.  Values are drawn times ``scale`` (rates as percentages);
    ``domain`` is read from them by default."""
    marks = [mark for _, group in groups for mark in group]
    canvas = Canvas(_height(groups, 24) + 34)
    left = min(112.0, max(len(mark.name) for mark in marks) * LETTER + 14)
    domain = domain or range_of([mark.value for mark in marks], scale, 0.04)
    axes = Axes(canvas, domain, left=left, right=124, top=4, foot=24)
    axes.columns(4)
    for head, mark, y in _rows(canvas, groups, 24):
        canvas.text(0, y + 4, mark.name, room=left - 8)
        ends, words = ends_of(mark.value, scale), show(mark.value)
        if ends is not None:
            colour = mark.colour or f"c{mark.style % STYLES}"
            canvas.line(axes.x(ends[0]), y, axes.x(ends[1]), y, f"bar {colour}")
        if mark.value.point is not None:
            counts = f" ({counted(mark.value)})" if counted(mark.value) else ""
            title = f"{head + ', ' if head else ''}{mark.name}: {words}{counts}"
            canvas.marker(axes.x(scale * mark.value.point), y, mark.style, title, colour=mark.colour)
        canvas.text(WIDTH, y + 4, words, "t num", "end")
    return canvas


def _height(groups: Groups[Any], row: float) -> float:
    return sum(row * len(group) + (22 if head else 0) for head, group in groups)


def _rows(canvas: Canvas, groups: Groups[R], row: float) -> Iterator[tuple[str, R, float]]:
    """Every row with its head and the y of its middle; draws the heads."""
    y = 4.0
    for head, group in groups:
        if head:
            y += 22
            canvas.text(0, y - 6, head, "t head", room=WIDTH)
        for one in group:
            y += row
            yield head, one, y - row / 2


# Lines with bands.


@attrs.frozen
class Series:
    """One line: values by x in order; a value without a point is not drawn."""

    name: str
    style: int
    points: Sequence[tuple[int, Measure]]


def curves(
    series: Sequence[Series],
    show: Show,
    *,
    below: str,
    at: str,
    y: Range | None = None,
    scale: float = 100.0,
    log: bool = False,
    stairs: bool = False,
    legend: bool = True,
    dashed: int | None = None,
) -> Canvas:
    """Lines with their bands.  ``at`` says in a marker's title where it is ("at k = 4" from "at k = {}"); ``stairs``
    draws steps, ``log`` a logarithmic x axis, ``dashed`` a vertical line."""
    canvas = Canvas(286.0 if legend else 240.0)
    top = canvas.legend((line.name, line.style) for line in series) if legend else 10.0
    xs = [x for line in series for x, value in line.points if value.point is not None]
    values = [value for line in series for _, value in line.points]
    first, last = (min(xs), max(xs)) if log else (0, max(1, *xs))
    axes = Axes(canvas, (first, last), y or range_of(values, scale, 0.06), top=top, log=log)
    axes.rows()
    axes.columns(7, grid=False)
    axes.below(below)
    draw = _staircase if stairs else list
    for line in series:
        banded = [(x, ends) for x, value in line.points if (ends := ends_of(value, scale)) is not None]
        if len(banded) > 1:
            upper, lower = (draw(axes.places((x, ends[end]) for x, ends in banded)) for end in (1, 0))
            canvas.path([*upper, *reversed(lower)], f"band c{line.style % STYLES}", close=True)
    if dashed is not None:
        canvas.line(axes.x(dashed), top, axes.x(dashed), axes.bottom, "link")
    for line in series:
        points = [(x, value, scale * value.point) for x, value in line.points if value.point is not None]
        canvas.path(draw(axes.places((x, height) for x, _, height in points)), stroke(line.style))
        every = max(1, len(points) // 6)
        for place, (x, value, height) in enumerate(points):
            if place == len(points) - 1 or (x & (x - 1) == 0 if log else place % every == 0):
                title = f"{line.name} {at.format(x)}: {show(value)}"
                canvas.marker(axes.x(x), axes.y(height), line.style, title, 4)
    return canvas


def _staircase(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    steps = list(places[:1])
    for (_, before), (x, y) in pairwise(places):
        steps += [(x, before), (x, y)]
    return steps


# Parts that add up.


@attrs.frozen
class Part:
    """One bar of a cascade: ``step`` is added to the parts before it, or, for a ``total``, their sum."""

    name: str
    step: float
    text: str
    kind: str
    total: bool = False


def cascade(parts: Sequence[Part]) -> Canvas:
    """A row per part: each bar begins where the one before it ended, a total at zero."""
    sums = list(accumulate(0.0 if part.total else part.step for part in parts))
    starts = [0.0 if part.total else before for part, before in zip(parts, (0.0, *sums), strict=False)]
    low, high = min(0.0, *sums), max(0.0, *sums)
    canvas = Canvas(44 * len(parts) + 8)
    axes = Axes(canvas, (low, high if high > low else low + 1.0), left=4, right=4)
    for row, total in enumerate(sums[:-1]):
        canvas.line(axes.x(total), 22 + 44 * row, axes.x(total), 66 + 44 * row, "link")  # under the words
    for row, (part, start, end) in enumerate(zip(parts, starts, sums, strict=True)):
        y = 4.0 + 44 * row
        canvas.text(4, y + 12, part.name, room=WIDTH - 16 - len(part.text) * LETTER)
        canvas.text(WIDTH - 4, y + 12, part.text, "t num", "end")
        left, right = sorted((axes.x(start), axes.x(end)))
        canvas.box(left, y + 18, max(1.5, right - left), 14, part.kind, f"{part.name}: {part.text}")
        if low < 0:
            canvas.line(axes.x(0), y + 16, axes.x(0), y + 34, "zero")
    return canvas


# Counts as bars.


@attrs.frozen
class Bar:
    """``count`` of ``total``, as a box of class ``kind``, or as a line with the marker of ``style``."""

    name: str
    count: int
    total: int
    kind: str = ""
    style: int = 0


def bars(groups: Groups[Bar], most: int) -> Canvas:
    """Horizontal bars in headed groups, the longest of which could be ``most``."""
    canvas = Canvas(_height(groups, 28) + 8)
    axes = Axes(canvas, (0, most), left=128, right=90)
    for head, bar, y in _rows(canvas, groups, 28):
        title = f"{head + ': ' if head else ''}{bar.name}, {bar.count} of {bar.total}"
        canvas.text(0, y + 4, bar.name, room=axes.left - 8)
        if bar.kind:
            canvas.box(axes.left, y - 8, axes.x(bar.count) - axes.left, 16, bar.kind, title)
        else:
            canvas.line(axes.left, y, axes.x(bar.count), y, f"bar c{bar.style % STYLES}")
            canvas.marker(axes.x(bar.count), y, bar.style, title)
        canvas.text(WIDTH, y + 4, f"{bar.count} ({percent(bar.count / bar.total)})", "t num", "end")
    return canvas


# Points in a plane.


@attrs.frozen
class Dot:
    """A point with intervals in both directions.  Without a ``label`` it has a number, explained below the figure."""

    name: str
    across: Measure
    along: Measure
    style: int = 3
    label: str = ""


def scatter(
    dots: Sequence[Dot],
    names: tuple[str, str],
    show: Show,
    *,
    unit: str = "",
    scale: float = 100.0,
    diagonal: bool = False,
) -> Canvas:
    """Points over the axes called ``names`` (across, along).  With a ``diagonal`` both axes have one range."""
    listed = [dot for dot in dots if not dot.label]
    canvas = Canvas(312 + 16 * len(listed))
    x = range_of([dot.across for dot in dots], scale, 0.07)
    y = range_of([dot.along for dot in dots], scale, 0.07)
    if diagonal:
        x = y = (min(x[0], y[0]), max(x[1], y[1]))
    axes = Axes(canvas, x, y, left=44, top=22, foot=50 + 16 * len(listed))
    axes.columns()
    axes.rows()
    if diagonal:
        canvas.line(axes.x(x[0]), axes.y(y[0]), axes.x(x[1]), axes.y(y[1]), "link")
    canvas.text(0, 10, names[1] + unit, "t soft")
    canvas.text(axes.right, axes.bottom + 32, names[0] + unit, "t soft", "end")
    places = [(dot, scale * (dot.across.point or 0.0), scale * (dot.along.point or 0.0)) for dot in dots]
    for dot, px, py in places:
        axes.whiskers(px, py, ends_of(dot.across, scale), ends_of(dot.along, scale), f"thin c{dot.style}")
    for number, (dot, px, py) in enumerate(places, start=1):
        title = f"{dot.name}: {names[0]} {show(dot.across)}, {names[1]} {show(dot.along)}"
        canvas.marker(axes.x(px), axes.y(py), dot.style, title, 5)
        canvas.text(axes.x(px) + 8, axes.y(py) - 6, dot.label or str(number), "t head")
        if not dot.label:
            y_name = axes.bottom + 50 + 16 * (number - 1)
            canvas.text(axes.left, y_name, f"{number} {dot.name}", room=WIDTH - axes.left)
    return canvas
