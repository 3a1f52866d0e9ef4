"""What figures are drawn with: inline SVG with classes, so that the page's style sheet sets the colours.

Colour never stands alone: a style, a number, has a colour, a marker and a line style.  Classes ``c0`` to ``c5`` are the
colours, set for light and for dark; ``e`` is that of text.  Every figure is 400 units wide, so that on a narrow screen
its letters keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape, quoteattr

import attrs

from handoff.report.format import MINUS, Json, counted

WIDTH = 400
STYLES = 6
#: Width of a letter of the figures' text (12 units high), on average, in a wide font; bold letters are wider.
LETTER = 6.7
BOLD = 1.15


@attrs.frozen
class Figure:
    """``name`` (also the element's id), ``caption``, and the SVG element as text."""

    name: str
    caption: str
    svg: str


class Canvas:
    """SVG elements, added one by one.  Everything that is text is escaped here."""

    def __init__(self, height: float) -> None:
        self.height = height
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def path(self, places: Sequence[tuple[float, float]], kind: str, close: bool = False) -> None:
        steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self._parts.append(f'<path class="{kind}" d="M{steps}{"Z" if close else ""}"/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, title: str = "") -> None:
        told = f"<title>{escape(title)}</title>" if title else ""
        size = f'width="{max(width, 0):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}>{told}</rect>')

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
        shape = style % STYLES
        told = f"<title>{escape(title)}</title>"
        kind = f'class="m {colour or f"c{shape}"}"'
        if shape == 0:
            self._parts.append(f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}">{told}</circle>')
            return
        s = size
        corners = {
            1: [(-s, -s), (s, -s), (s, s), (-s, s)],
            2: [(0, -1.2 * s), (1.2 * s, s), (-1.2 * s, s)],
            3: [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
            4: [(0, 1.2 * s), (1.2 * s, -s), (-1.2 * s, -s)],
            5: [(-s, -s / 3), (-s / 3, -s), (s, s / 3), (s / 3, s)],
        }[shape]
        places = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        self._parts.append(f'<polygon {kind} points="{places}">{told}</polygon>')

    def legend(self, y: float, names: Sequence[tuple[str, int]], lines: bool = False) -> float:
        """Marker (and line) beside each name, wrapped; returns the height that it took."""
        x, top = 8.0, y
        for name, style in names:
            room = min(len(name) * LETTER, 150)
            width = 26 + room + 14
            if x > 8 and x + width > WIDTH:
                x, y = 8.0, y + 18
            if lines:
                self.line(x, y - 4, x + 20, y - 4, f"l c{style % STYLES} d{style % STYLES}")
            self.marker(x + 10, y - 4, style, name)
            self.text(x + 26, y, name, room=152)
            x += width
        return y - top + 18

    def figure(self, name: str, caption: str, title: str) -> Figure:
        body = "".join(self._parts)
        svg = (
            f'<svg id="{name}" viewBox="0 0 {WIDTH} {self.height:.0f}" role="img" aria-label={quoteattr(title)}>'
            f"{body}</svg>"
        )
        return Figure(name, caption, svg)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``."""
    span = high - low
    step = 10 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10):
        if span / (step * factor) <= most:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def plain(value: float) -> str:
    """A tick's label."""
    return f"{value:g}".replace("-", MINUS)


def ends_of(value: Json, scale: float = 100.0) -> tuple[float, float] | None:
    """Both ends of the interval; ``None`` where there is none."""
    return None if value["low"] is None or value["high"] is None else (scale * value["low"], scale * value["high"])


# Points with intervals, one row each.


@attrs.frozen
class Row:
    """``style`` gives marker and colour; ``colour`` is another class in the place of that."""

    name: str
    value: Json
    style: int
    colour: str = ""


Groups = Sequence[tuple[str, Sequence[Row]]]


def forest(
    groups: Groups,
    shown: Callable[[Json], str],
    domain: tuple[float, float] | None = None,
    scale: float = 100.0,
) -> Canvas:
    """Rows of points with intervals, in headed groups.  Values are drawn times ``scale`` (rates as percentages);
    ``domain`` is read from them by default."""
    lines = sum(len(rows) for _, rows in groups)
    heads = sum(bool(head) for head, _ in groups)
    canvas = Canvas(24 * lines + 22 * heads + 34)
    if domain is None:
        ends = [0.0]
        for _, rows in groups:
            for row in rows:
                ends += [] if row.value["point"] is None else [scale * row.value["point"]]
                ends += ends_of(row.value, scale) or ()
        low, high = min(ends), max(ends)
        margin = 0.04 * (high - low)
        domain = (low - margin if low < 0 else 0.0, high + margin if high > 0 or low == 0 else 0.0)
        if domain[0] == domain[1]:
            domain = (0.0, 1.0)
    names = [row.name for _, rows in groups for row in rows]
    left = min(112.0, max(len(name) for name in names) * LETTER + 14)
    right = WIDTH - 118.0

    def x(value: float) -> float:
        return left + (value - domain[0]) / (domain[1] - domain[0]) * (right - left)

    bottom = canvas.height - 24
    for tick in round_ticks(*domain, most=4):
        canvas.line(x(tick), 4, x(tick), bottom, "zero" if tick == 0 and domain[0] < 0 else "grid")
        canvas.text(x(tick), canvas.height - 8, plain(tick), "t soft", "middle")
    y = 4.0
    for head, rows in groups:
        if head:
            y += 22
            canvas.text(0, y - 6, head, "t head", room=WIDTH)
        for row in rows:
            y += 24
            middle = y - 12
            canvas.text(0, middle + 4, row.name, room=left - 8)
            across = ends_of(row.value, scale)
            if across is not None:
                colour = row.colour or f"c{row.style % STYLES}"
                canvas.line(x(across[0]), middle, x(across[1]), middle, f"bar {colour}")
            told = shown(row.value)
            if row.value["point"] is not None:
                about = f"{head}, {row.name}: {told}" if head else f"{row.name}: {told}"
                of = counted(row.value)
                about = f"{about} ({of})" if of else about
                canvas.marker(x(scale * row.value["point"]), middle, row.style, about, colour=row.colour)
            canvas.text(WIDTH, middle + 4, told, "t num", "end")
    return canvas
