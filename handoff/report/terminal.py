"""Sheets and sentences on the terminal.  Names are data, never markup.

Lines break at blanks only: a word, an identifier or a number that is broken cannot be read, searched or copied.  A
sheet whose words do not fit side by side is shown row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.errors import brief
from handoff.report.sheet import Content, Section, Sheet, SheetCell, SheetRow
from handoff.text import printable

TONES = {"good": "green", "bad": "bold red", "skipped": "yellow"}


def show(console: Console, content: Content) -> None:
    """A whole report."""
    line(console, content.kicker, "dim")
    say(console, content.heading, style="bold")
    say(console, *filter(None, (content.verdict, *content.lead)), style="yellow" if content.warn else "")
    show_sections(console, *content.sections)
    console.print()
    say(console, *content.notes)


def show_sections(console: Console, *sections: Section) -> None:
    for section in sections:
        for sheet in section.sheets:
            console.print()
            show_sheet(console, sheet)
        say(console, *section.sentences)


def show_sheet(console: Console, sheet: Sheet) -> None:
    """A table with the reasons for what is missing from it, each once, numbered."""
    reasons: dict[str, int] = {}
    shown = sheet.rows[: sheet.most]
    rows = [(row.name, *(_words(cell, reasons, len(row.cells) == 1) for cell in row.cells)) for row in shown]
    widths = _widths([sheet.columns, *rows], console.width - 3 * len(sheet.columns) - 1)
    # Not the grid's own title: that is folded to the grid's width.
    say(console, sheet.title, style="bold")
    if widths is None:
        for row, texts in zip(shown, rows, strict=True):
            _show_stacked(console, sheet, row, texts)
    else:
        grid = Grid(header_style="")
        for index, (column, width) in enumerate(zip(sheet.columns, widths, strict=True)):
            grid.add_column(column, justify="left" if index == 0 or sheet.wordy else "right", width=width)
        for row, texts in zip(shown, rows, strict=True):
            if row.divided:
                grid.add_section()
            styles = ["", *(TONES.get(cell.tone, "") for cell in row.cells)]
            grid.add_row(*map(Text, texts, styles))
        console.print(grid)
    for reason, number in reasons.items():
        say(console, f"({number}) {reason}", style="dim")
    if sheet.most is not None and len(sheet.rows) > sheet.most:
        say(console, f"and {len(sheet.rows) - sheet.most:,} more rows, which the page shows (--html)", style="dim")


def _widths(rows: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Widths of the columns, in cells: all texts on one line if that fits, and no column narrower than its words.

    ``None`` where the words do not fit.
    """
    columns = [[row[index] for row in rows if index < len(row)] for index in range(len(rows[0]))]
    least = [max(cell_len(word) for text in column for word in (text.split() or [""])) for column in columns]
    most = [max(cell_len(line) for text in column for line in text.split("\n")) for column in columns]
    spare = available - sum(least)
    if spare < 0:
        return None
    wanted = [full - need for need, full in zip(least, most, strict=True)]
    # The columns that want least get it first, so that few columns have broken lines.
    widths = list(least)
    for place, index in enumerate(sorted(range(len(columns)), key=lambda index: wanted[index])):
        share = min(wanted[index], spare // (len(columns) - place))
        widths[index] += share
        spare -= share
    return widths


def _show_stacked(console: Console, sheet: Sheet, row: SheetRow, texts: Sequence[str]) -> None:
    """One row as a list: its name, then its cells, each after the heading of its column."""
    say(console, f"{sheet.columns[0]}  {texts[0]}".strip(), style="bold")
    for column, text, cell in zip(sheet.columns[1:], texts[1:], row.cells, strict=False):
        if text:
            say(console, f"  {column}  {' '.join(text.split())}", style=TONES.get(cell.tone, ""))


def _words(cell: SheetCell, reasons: dict[str, int], lone: bool) -> str:
    first = f"{cell.text} ({cell.counts})" if cell.counts else cell.text
    mark = f"({reasons.setdefault(cell.note, len(reasons) + 1)})" if cell.note else ""
    below = f"{cell.interval} {mark}".strip()
    return f"{first}{' ' if lone else chr(10)}{below}" if below else first


def say(console: Console, *sentences: str, style: str = "") -> None:
    """Sentences as one paragraph."""
    if sentences:
        _print(console, _broken(" ".join(map(brief, sentences)), console.width), style)


def line(console: Console, text: str, style: str = "") -> None:
    """Text from outside on one line, without the middle of a very long one; a terminal breaks it at blanks."""
    text = brief(printable(text))
    _print(console, _broken(text, console.width) if console.is_terminal else [text], style)


def _print(console: Console, lines: Sequence[str] | Iterator[str], style: str) -> None:
    for text in lines:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _broken(text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` cells, broken at blanks; a longer word has a line of its own."""
    words, used = [text[: len(text) - len(text.lstrip(" "))]], 0
    used = len(words[0])
    for word in text.lstrip(" ").split(" "):
        length = cell_len(word)
        if used + length > width and len(words) > 1:
            yield "".join(words).rstrip(" ")
            words, used = [""], 0
        words.append(f"{word} ")
        used += length + 1
    yield "".join(words).removesuffix(" ")
