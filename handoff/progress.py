"""The console, and the progress of long work on it: a live bar on a terminal, plain lines elsewhere, or silence."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

import attrs
from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text


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
class Pace:
    """How long a phase has taken, and how long it may take yet.

    The time left follows from the pace of the last :attr:`WINDOW` seconds.  What comes before the first finished unit
    (workers start, models load) says nothing about the pace.  There is no estimate before :attr:`LEAST_UNITS` units
    and :attr:`LEAST_SECONDS` seconds after it: a first unit that comes late would be taken for the pace of all.
    """

    LEAST_UNITS = 5
    LEAST_SECONDS = 5.0
    WINDOW = 60.0

    total: int
    clock: Callable[[], float] = time.monotonic
    #: Finished units, those of an earlier part of the run included.
    done: int = 0
    resumed: int = 0
    _started: float = attrs.field(init=False)
    #: Moments of the window with the units finished until then; the first is the first unit's, or before the window.
    _moments: deque[tuple[float, int]] = attrs.field(init=False, factory=deque)
    _first: tuple[float, int] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._started = self.clock()

    def tick(self, resumed: bool = False) -> None:
        self.done += 1
        self.resumed += resumed
        if resumed:
            return
        moment = (self.clock(), self.done - self.resumed)
        self._first = self._first or moment
        self._moments.append(moment)
        while len(self._moments) > self.LEAST_UNITS + 1 and self._moments[1][0] <= moment[0] - self.WINDOW:
            self._moments.popleft()

    @property
    def elapsed(self) -> float:
        return self.clock() - self._started

    @property
    def left(self) -> float | None:
        """Seconds left, or ``None`` while nothing can be said."""
        if self.done >= self.total:
            return 0.0
        if self._first is None:
            return None
        (before, units), (last, count) = self._moments[0], self._moments[-1]
        if count - self._first[1] < self.LEAST_UNITS or last - self._first[0] < self.LEAST_SECONDS or last <= before:
            return None
        return max(0.0, (self.total - self.done) * (last - before) / (count - units) - (self.clock() - last))

    def __str__(self) -> str:
        left = self.left
        about = f", about {duration(left)} left" if left is not None and self.done < self.total else ""
        return f"elapsed {duration(self.elapsed)}{about}"


def duration(seconds: float) -> str:
    """``45 s``, ``4 min``, ``2.5 h``: two digits, as an estimate deserves."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


@attrs.define
class Plain:
    """A line when a phase ends, and at most every ``every`` seconds before."""

    console: RichConsole
    every: float = 10.0
    clock: Callable[[], float] = time.monotonic

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Tick]:
        pace = Pace(total, self.clock)
        shown = 0.0

        def tick(resumed: bool = False) -> None:
            nonlocal shown
            pace.tick(resumed)
            if pace.elapsed - shown >= self.every and not resumed and pace.done < total:
                shown = pace.elapsed
                self._say(f"{name}: {pace.done}/{total}, {pace}")

        yield tick
        extra = f" ({pace.resumed} from before)" if pace.resumed else ""
        self._say(f"{name}: {pace.done}/{total} done in {pace.elapsed:.1f} s{extra}")

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


class _Times(ProgressColumn):
    """The times of a phase, in words."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["pace"]))


@attrs.define
class Live:
    """A bar with counts and times."""

    console: RichConsole

    @contextlib.contextmanager
    def phase(self, name: str, total: int) -> Iterator[Tick]:
        columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), _Times())
        pace = Pace(total)
        with Bar(*columns, console=self.console) as bar:
            line = bar.add_task(name, total=total, pace=pace)

            def tick(resumed: bool = False) -> None:
                pace.tick(resumed)
                bar.advance(line)

            yield tick


def for_console(console: RichConsole, quiet: bool = False) -> Progress:
    """The progress display that fits ``console``."""
    if quiet:
        return Silent()
    return Live(console) if console.is_terminal else Plain(console)
