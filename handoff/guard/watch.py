"""Which call of an environment is being waited for, and since when.

A worker process writes this into memory that its parent reads, so that the parent knows it in a call that never returns
and after the process has died.  A thread reads it (:class:`Monitor`): it says on standard error which call takes long,
also where no progress is shown, and tells the owner when one takes longer than it may.
"""

from __future__ import annotations

import contextlib
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from handoff import signals
from handoff.children import RAISE_LIMITS
from handoff.errors import Interrupted

#: Seconds after which a call is spoken of, and then between two lines about it.
PATIENCE, AGAIN = 30.0, 60.0
#: Bytes of a watch: the time at which the call began (0: none runs), the length of its words, the words.
SIZE = 1024
_HEAD = struct.Struct("dI")


class Watch:
    """The call that one process is in."""

    def __init__(self, block: Any = None) -> None:
        """``block`` are :data:`SIZE` bytes that another process may read (``None``: this process alone)."""
        #: Why no further call is made; ``None``: they are.
        self.expired: str | None = None
        self._block = memoryview(bytearray(SIZE) if block is None else block).cast("B")

    def begin(self, words: str) -> None:
        """A call begins; ``words`` name it."""
        text = words.encode("utf-8", "backslashreplace")[: SIZE - _HEAD.size]
        self._block[_HEAD.size : _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._block, 0, time.monotonic(), len(text))

    def end(self) -> None:
        """The call has returned."""
        _HEAD.pack_into(self._block, 0, 0.0, 0)

    def pending(self) -> tuple[float, str] | None:
        """When the current call began (as of ``time.monotonic``), and its words; ``None``: no call runs."""
        began, length = _HEAD.unpack_from(self._block)
        if not began:
            return None
        return began, bytes(self._block[_HEAD.size : _HEAD.size + length]).decode("utf-8", "replace")


class Monitor:
    """A thread that looks at ``watches`` until it is closed.

    ``expire(place, words)`` is called once for the watch at ``place`` if its call takes longer than ``timeout``
    seconds; ``look()`` is called again and again.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        timeout: float | None = None,
        expire: Callable[[int, str], object] = lambda place, words: None,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self._watches, self._timeout, self._expire, self._also = watches, timeout, expire, look
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="handoff-watch", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise Interrupted(f"this process cannot start a thread ({error}); {RAISE_LIMITS}") from error

    def close(self) -> None:
        """Stop looking.  May be called twice."""
        self._closed.set()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        tick = min(PATIENCE, self._timeout or PATIENCE, 10.0) / 10
        spoken: dict[int, tuple[float, float]] = {}
        expired: set[int] = set()
        while not self._closed.wait(tick):
            self._also()
            for place, watch in enumerate(self._watches):
                pending = watch.pending()
                if pending is None:
                    continue
                (began, words), now = pending, time.monotonic()
                if self._timeout is not None and now - began > self._timeout and place not in expired:
                    expired.add(place)
                    self._expire(place, words)
                call, last = spoken.get(place, (0.0, 0.0))
                if now - (last if call == began else began) > (AGAIN if call == began else PATIENCE):
                    spoken[place] = began, now
                    # A live progress bar takes what is written here and shows it above itself.
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.write(f"handoff: {words} has not returned for {now - began:.0f} s\n")
                        sys.stderr.flush()


class TimedOut(BaseException):
    """A call of this process takes too long.  No ``except Exception`` on its way stops it."""


@contextlib.contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Raise :class:`TimedOut` after ``seconds`` in the main thread of this process; elsewhere only the end is late.

    Code that catches everything, or that runs in another thread, may end later or raise something else.  It is raised
    then.
    """
    if seconds is None:
        yield
        return
    began = time.monotonic()
    try:
        with _ringing(seconds):
            yield
    except BaseException as error:
        if signals.from_user(error) or time.monotonic() - began <= seconds:
            raise
        raise TimedOut from error
    if time.monotonic() - began > seconds:
        raise TimedOut


@contextlib.contextmanager
def _ringing(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimedOut

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again every second, for code that catches everything
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
