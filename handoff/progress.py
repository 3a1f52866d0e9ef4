"""The console, and the progress of long work on it: a live bar on a terminal, plain lines elsewhere, or silence."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Protocol

import attrs
from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Console(RichConsole):
    """A console that raises for a closed pipe; the command line ends the process."""

    def on_broken_pipe(self) -> None:
        raise


def plain_console(stderr: bool = False, quiet: bool = False) -> Console:
    """A console without markup, emoji codes and highlighting: untrusted names and texts are data."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


class Tick(Protocol):
    """Called once per finished unit; ``resumed`` for one that an earlier part of the run had finished."""

    def __call__(self, resumed: bool = False) -> None: ...


class Progress(Protocol):
    def phase(self, name: str, total: int) -> contextlib.AbstractContextManager[Tick]:
        """A phase of ``total`` units; the value is to be called once per finished unit."""


class Silent:
    """Shows nothing."""

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Tick]:
        def tick(resumed: bool = False) -> None:
            pass

        yield tick


@attrs.define
class Plain:
    """A line when a phase starts and ends and at most every ``every`` seconds between."""

    console: RichConsole
    every: float = 10.0

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Tick]:
        started = shown = time.monotonic()
        done = resumed_count = 0

        def tick(resumed: bool = False) -> None:
            nonlocal done, resumed_count, shown
            done += 1
            resumed_count += resumed
            now = time.monotonic()
            if now - shown >= self.every and not resumed:
                shown = now
                fresh = done - resumed_count
                left = (total - done) * (now - started) / max(1, fresh)
                self._say(f"{name}: {done}/{total}, about {left:.0f} s to go")

        yield tick
        extra = f" ({resumed_count} from before)" if resumed_count else ""
        self._say(f"{name}: {done}/{total} done in {time.monotonic() - started:.1f} s{extra}")

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


@attrs.define
class Live:
    """A bar with counts and times."""

    console: RichConsole

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Tick]:
        columns = (
            TextColumn("{task.description:>8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=self.console) as bar:
            line = bar.add_task(name, total=total)

            def tick(resumed: bool = False) -> None:
                bar.advance(line)

            yield tick


def for_console(console: RichConsole, quiet: bool = False) -> Progress:
    """The progress display that fits ``console``."""
    if quiet:
        return Silent()
    return Live(console) if console.is_terminal else Plain(console)
