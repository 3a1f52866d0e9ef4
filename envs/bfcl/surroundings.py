"""What the benchmark's classes find around them in this process, and leave behind: the time zone, precisions, time.

Its timestamps are in local time, and its arithmetic sets the precision of libraries for good.
"""

from __future__ import annotations

import contextlib
import decimal
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any


class OutOfTime(BaseException):
    """A call takes too long.  The benchmark's ``except Exception`` does not stop it."""


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """Local time is UTC inside; afterwards the time zone and all precisions are as they were."""
    with _utc(), decimal.localcontext(), _mpmath():
        yield


@contextlib.contextmanager
def _utc() -> Iterator[None]:
    before = os.environ.get("TZ")
    if before == "UTC":
        yield
        return
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


@contextlib.contextmanager
def _mpmath() -> Iterator[None]:
    library: Any = sys.modules.get("mpmath")
    before = None if library is None else library.mp.prec
    try:
        yield
    finally:
        if before is not None:
            library.mp.prec = before


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` inside after ``seconds``, in the main thread; in another one only at the end.

    A timer that is already at work goes on afterwards; one that rings earlier is left alone.
    """
    began = time.monotonic()
    outer = signal.getitimer(signal.ITIMER_REAL)
    if threading.current_thread() is not threading.main_thread() or 0 < outer[0] <= seconds:
        yield
    else:
        over = False

        def expire(number: int, frame: FrameType | None) -> None:
            if not over:
                raise OutOfTime

        before = signal.signal(signal.SIGALRM, expire)
        # It rings again and again: a bare ``except`` may catch it.
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        try:
            yield
        finally:
            over = True  # a signal on its way must not prevent what follows
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if outer[0]:
                left = max(outer[0] - (time.monotonic() - began), 1e-3)
                signal.setitimer(signal.ITIMER_REAL, left, outer[1])
    if time.monotonic() - began > seconds:
        raise OutOfTime
