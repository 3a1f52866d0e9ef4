"""The console: untrusted names and texts are data, never markup and never control characters."""

from __future__ import annotations

from rich.console import Console as RichConsole


class Console(RichConsole):
    """A console that raises for a closed pipe; the command line ends the process."""

    def on_broken_pipe(self) -> None:
        raise


def plain_console(stderr: bool = False, quiet: bool = False) -> Console:
    """A console without markup, emoji codes and highlighting."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
