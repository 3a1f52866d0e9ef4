"""What is printed: names and texts from outside are data, never markup and never control characters."""

from __future__ import annotations

from rich.console import Console as RichConsole


class Console(RichConsole):
    """A console that leaves it to the command line what becomes of a pipe that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """The console that every command prints to."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
