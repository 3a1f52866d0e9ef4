"""Sheets and sentences on the terminal.  Names are data, never markup."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from handoff.report.sheet import Content, Section, Sheet, SheetCell
from handoff.text import printable

TONES = {"good": "green", "bad": "bold red", "skipped": "yellow"}


def show(console: Console, content: Content) -> None:
    """A whole report."""
    line(console, content.kicker, "dim")
    console.print(content.heading, style="bold", markup=False, highlight=False)
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
    grid = Grid(header_style="")
    for index, column in enumerate(sheet.columns):
        grid.add_column(column, justify="left" if index == 0 or sheet.wordy else "right", overflow="fold")
    for row in sheet.rows[: sheet.most]:
        if row.divided:
            grid.add_section()
        lone = len(row.cells) == 1
        grid.add_row(
            Text(row.name), *(Text(_words(cell, reasons, lone), TONES.get(cell.tone, "")) for cell in row.cells)
        )
    # Not the grid's own title: that is folded to the grid's width.
    console.print(sheet.title, style="bold", markup=False, highlight=False)
    console.print(grid)
    for reason, number in reasons.items():
        say(console, f"({number}) {reason}", style="dim")
    if sheet.most is not None and len(sheet.rows) > sheet.most:
        say(console, f"and {len(sheet.rows) - sheet.most:,} more rows, which the page shows (--html)", style="dim")


def _words(cell: SheetCell, reasons: dict[str, int], lone: bool) -> str:
    first = f"{cell.text} ({cell.counts})" if cell.counts else cell.text
    mark = f"({reasons.setdefault(cell.note, len(reasons) + 1)})" if cell.note else ""
    below = f"{cell.interval} {mark}".strip()
    return f"{first}{' ' if lone else chr(10)}{below}" if below else first


def say(console: Console, *sentences: str, style: str = "") -> None:
    """Sentences as one paragraph."""
    if sentences:
        console.print(" ".join(sentences), markup=False, highlight=False, style=style)


def line(console: Console, text: str, style: str = "") -> None:
    """Text from outside on one line, however long it is."""
    console.print(printable(text), style=style, markup=False, highlight=False, soft_wrap=True)
