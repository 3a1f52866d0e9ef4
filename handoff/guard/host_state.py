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
from collections.abc import Iterator
from pathlib import Path

from handoff.signals import SIGNALS


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Put the state of this process back at the end."""
    folder, limit, filters = _folder(), sys.getrecursionlimit(), warnings.filters[:]
    streams, mask = (sys.stdout, sys.stderr), os.umask(0o022)
    os.umask(mask)
    handlers = [signal.getsignal(number) for number in SIGNALS]
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        sys.setrecursionlimit(limit)
        os.umask(mask)
        if folder is not None and _folder() != folder:
            with contextlib.suppress(OSError):
                os.chdir(folder)
        if threading.current_thread() is threading.main_thread():
            for number, handler in zip(SIGNALS, handlers, strict=True):
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
        if warnings.filters != filters:
            warnings.resetwarnings()
            warnings.filters[:] = filters  # type: ignore[index]


def working_folder() -> Path:
    """The working folder; ``Path()`` if it was removed."""
    return Path(_folder() or "")


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None
