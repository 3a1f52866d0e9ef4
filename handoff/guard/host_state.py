"""What an adapter may change in the process of the toolkit, put back after each of its calls.

The working folder, the standard streams, the file mode mask, the recursion limit, the handlers of the signals that end
a run, and the filters of warnings.  Standard output belongs to results, so an adapter's own goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, TextIO

from handoff.signals import SIGNALS, loop_runs


def handlers() -> tuple[Any, ...]:
    """The handlers of the signals that end a run."""
    return tuple(signal.getsignal(number) for number in SIGNALS)


def put_back(expected: tuple[Any, ...]) -> None:
    """Install the ``expected`` handlers (:func:`handlers`) where others are.  Only the main thread can."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in zip(SIGNALS, expected, strict=True):
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


class Kept:
    """The context in which an adapter is called: puts the state of this process back at the end.

    ``expected`` are the handlers of signals to put back, if others are installed then (``None``: they are not looked
    at, which takes longer than a short step does).
    """

    __slots__ = ("expected", "filters", "folder", "limit", "mask", "streams")

    def __init__(self, expected: tuple[Any, ...] | None) -> None:
        self.expected = expected

    def __enter__(self) -> None:
        self.folder, self.limit, self.filters = _folder(), sys.getrecursionlimit(), warnings.filters[:]
        self.mask = os.umask(0o022)
        os.umask(self.mask)
        self.streams = (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self.streams
        if getattr(sys.stdout, "closed", False) or getattr(sys.stderr, "closed", False):
            sys.stdout, sys.stderr = _open(sys.stdout, 1), _open(sys.stderr, 2)
        if sys.getrecursionlimit() != self.limit:
            sys.setrecursionlimit(self.limit)
        os.umask(self.mask)
        if self.folder is not None and _folder() != self.folder:
            with contextlib.suppress(OSError):
                os.chdir(self.folder)
        if warnings.filters != self.filters:
            warnings.resetwarnings()
            warnings.filters[:] = self.filters  # type: ignore[index]
        if self.expected is not None:
            put_back(self.expected)


def _open(stream: TextIO, number: int) -> TextIO:
    """``stream``, or another one over the descriptor ``number``, which stays open, where ``stream`` was closed."""
    if not stream.closed:
        return stream
    with contextlib.suppress(OSError):  # the descriptor was closed, too
        return open(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    return open(os.devnull, "w", encoding="utf-8")


def kept() -> Kept:
    """The context of a call that happens once: signals are put back, too."""
    return Kept(handlers())


def kept_if_alone() -> contextlib.AbstractContextManager[None]:
    """:func:`kept` in the main thread and outside of event loops.  Elsewhere calls overlap, and nothing is kept."""
    alone = threading.current_thread() is threading.main_thread() and not loop_runs()
    return kept() if alone else contextlib.nullcontext()


def working_folder() -> Path:
    """The working folder; ``Path()`` if it was removed."""
    return Path(_folder() or "")


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None
