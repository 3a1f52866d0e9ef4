"""Worker processes that only their parent ends: no terminal signal reaches them, and none outlives the parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar

from handoff.errors import Interrupted

P = ParamSpec("P")
T = TypeVar("T")

#: The way out where a process or a thread cannot be started.
RAISE_LIMITS = "raise the limits on memory and processes (ulimit -v, ulimit -u) or ask for fewer --workers"

#: Threads of this process that one executor needs.
THREADS = 2

#: What a terminal sends to every process of a command.
TERMINAL = (signal.SIGINT, signal.SIGHUP)

#: Seconds in which a process that was told to end has ended.
MOST_WAIT = 5.0


def usable_cores() -> int:
    """The number of cores that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


def require_threads(count: int) -> None:
    """Raise :class:`~handoff.errors.Interrupted` unless this process can start ``count`` threads.

    An executor whose own threads cannot be started would be waited for without an end.
    """
    done = threading.Event()
    threads = [threading.Thread(target=done.wait, daemon=True) for _ in range(count)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise Interrupted(f"this process cannot start a thread ({error}); {RAISE_LIMITS}") from error
    finally:
        done.set()
        for thread in started:
            thread.join()


class Children(ProcessPoolExecutor):
    """An executor with ``count`` new processes; each calls ``prepare(*arguments)`` first.

    Raises :class:`~handoff.errors.Interrupted` where the system starts no thread or process.
    """

    def __init__(
        self, count: int, prepare: Callable[..., object] | None = None, arguments: tuple[Any, ...] = ()
    ) -> None:
        self._count, self._mine = count, list[BaseProcess]()
        self._manager: threading.Thread | None = None
        require_threads(THREADS)
        with _deaf():
            context = multiprocessing.get_context("spawn")
            super().__init__(count, context, initializer=_begin, initargs=(prepare, arguments))

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if len(self._mine) == self._count:
            return super().submit(call, *args, **kwargs)
        # A process is started by the first call that finds none idle, with the mask of this thread: the terminal's
        # signals wait from its first moment on.
        with _deaf():
            before = multiprocessing.active_children()
            try:
                future = super().submit(call, *args, **kwargs)
            except (OSError, MemoryError) as error:
                raise Interrupted(f"this process cannot start another one ({error}); {RAISE_LIMITS}") from error
            except RuntimeError as error:
                if "start new thread" not in str(error):
                    raise
                raise Interrupted(f"this process cannot start a thread ({error}); {RAISE_LIMITS}") from error
            self._mine += [child for child in multiprocessing.active_children() if child not in before]
            return future

    @property
    def stuck(self) -> bool:
        """Whether the thread that receives results has failed: what was submitted is never answered."""
        manager: Any = self._executor_manager_thread
        return manager is not None and not manager.is_alive()

    def end(self) -> None:
        """End the processes at once, in the middle of a call too.  May be called twice."""
        self.shutdown(wait=False, cancel_futures=True)
        self._kill()
        self.join()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._manager = getattr(self, "_executor_manager_thread", None) or self._manager
        super().shutdown(wait=wait, cancel_futures=cancel_futures)

    def join(self, seconds: float = MOST_WAIT) -> bool:
        """Wait until the processes have ended after :meth:`shutdown`.  One that has not after ``seconds`` is killed: a
        thread of somebody's code keeps it.  Returns whether that was so.

        An interpreter that exits in the moment in which the executor's thread closes its pipe ends in a traceback.
        """
        if self._manager is None:
            return False
        self._manager.join(max(0.0, seconds))
        if not self._manager.is_alive():
            return False
        self._kill()
        self._manager.join(MOST_WAIT)
        return True

    def _kill(self) -> None:
        for child in self._mine:
            with contextlib.suppress(ValueError):  # it was closed: it is gone
                child.kill()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Hold back the terminal's signals in this thread, and in what it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(prepare: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    for number in TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A parent that was killed cannot tell its workers to stop.
        try:
            threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
        except RuntimeError:  # the parent says that this process ended
            os._exit(1)
    if prepare is not None:
        prepare(*arguments)
