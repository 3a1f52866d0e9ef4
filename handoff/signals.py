"""Ctrl-C, SIGTERM and SIGHUP on the command line: one sentence and exit code 3, at any moment.

Python would raise ``KeyboardInterrupt`` between any two instructions, and where that cannot pass (a module in C that is
being imported, a finalizer, a callback of the event loop) it is lost or ends in a traceback.  So a signal is noted, and
takes effect where it can: in an event loop the work is cancelled (:func:`run`); while a module is imported nothing is
open yet, and the process ends at once; elsewhere ``KeyboardInterrupt`` is raised.  A second signal, a moment later,
ends the process at once: finished records are on disk already, and the workers end with it.

Only the command line installs this.  A program that uses the toolkit as a library keeps its own signals.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_CODE = 3  # as of handoff.errors.Interrupted
_MOMENT = 1.0  # seconds: a group and its leader may be told of one event twice


class LoopStopped(RuntimeError):
    """Somebody's code stopped the event loop that this process runs its work in."""


class _State:
    """The signal received, and the reaction to it."""

    received: int | None = None
    at: float = 0.0
    #: Called in place of raising; ``None``: raise.
    instead: Callable[[], object] | None = None


_state = _State()


def install() -> None:
    """Handle the signals of this process, except one that it ignores (``nohup``, a job in the background).

    Does nothing outside the main thread, or where another handler is installed.
    """
    with contextlib.suppress(ValueError):
        for number in SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _received)


def received() -> bool:
    """Whether a signal has arrived."""
    return _state.received is not None


class UserStop(KeyboardInterrupt):
    """Ctrl-C in a thread that waits for the work of another."""


def from_user(error: BaseException) -> bool:
    """Whether ``error`` is Ctrl-C, and not a ``KeyboardInterrupt`` that somebody's code raised by itself."""
    if type(error) is UserStop:
        return True
    if not issubclass(type(error), KeyboardInterrupt):  # an object may lie about its class
        return False
    return received() or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def reason() -> str:
    """Who stopped the process, in words."""
    number = _state.received
    return "stopped by the user" if number in (None, signal.SIGINT) else f"stopped by {signal.Signals(number).name}"


def ending() -> None:
    """From here on the process only ends: a signal is no longer raised."""
    _state.instead = _nothing


def run(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """``asyncio.run(job())``, which a signal cancels.  Raises ``KeyboardInterrupt`` when all of it has stopped.

    Where an event loop runs already, as in a notebook, ``job`` gets a thread, and this one waits for it."""
    import asyncio

    if loop_runs():
        return _run_beside(job)
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(job())

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        _state.instead = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            if received():
                raise asyncio.CancelledError
            return await job()
        finally:
            _state.instead = _nothing

    before, _state.instead = _state.instead, _nothing
    try:
        result = asyncio.run(main())
    except asyncio.CancelledError:
        if not received():
            raise
    except RuntimeError as error:
        if "Event loop stopped" not in str(error):
            raise
        raise LoopStopped("it stopped the event loop") from error
    finally:
        _state.instead = before
    if received():
        raise KeyboardInterrupt
    return result


def loop_runs() -> bool:
    """Whether an event loop runs in this thread, as in a notebook."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_beside(job: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``job`` in an event loop of another thread and wait for it; Ctrl-C cancels it."""
    import asyncio

    from handoff.errors import Interrupted

    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    stopped = threading.Event()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        if stopped.is_set():
            raise asyncio.CancelledError
        return await job()

    with ThreadPoolExecutor(1) as executor:
        future: Future[T] | None = None
        try:
            with _raised():  # before the work starts: a signal of its first moment counts
                future = executor.submit(lambda: asyncio.run(main()))
                return future.result()
        except RuntimeError as error:
            if future is not None:
                raise
            raise Interrupted(f"this process cannot start a thread ({error}); raise its limits (ulimit -v)") from error
        except KeyboardInterrupt:
            theirs = future is not None and future.done()  # else it was raised here, by the signal
            stopped.set()
            for loop, task in started:
                loop.call_soon_threadsafe(task.cancel)
            if theirs:
                raise
            raise UserStop from None


@contextlib.contextmanager
def _raised() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt`` here.  The loop that waits would only note the first one."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, _received, None):
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _nothing() -> None:
    """The signal is noted, and that is all for now."""


def _received(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if _state.received is None:
        _state.received, _state.at = number, now
    elif now - _state.at < _MOMENT:
        return
    else:
        _end_at_once()
    if _state.instead is not None:
        _state.instead()
    elif _importing(frame):
        _end_at_once()
    else:
        raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _end_at_once() -> NoReturn:
    with contextlib.suppress(OSError):
        cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar hides the cursor
        os.write(2, cursor + f"handoff: {reason()}\n".encode())
    os._exit(EXIT_CODE)
