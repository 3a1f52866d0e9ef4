"""What is printed: names and texts from outside are data, never markup and never control characters."""

from __future__ import annotations

from rich.console import Console


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """The console that every command prints to."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
