"""Environments in worker processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool, _ExceptionWithTraceback
from functools import partial
from typing import Any

import attrs

from handoff.children import MOST_WAIT, RAISE_LIMITS, THREADS, Children, require_threads
from handoff.episodes.host import Host, WorkerLost
from handoff.episodes.places import Workers
from handoff.errors import EnvironmentFault, Interrupted, UsageError
from handoff.guard.watch import SIZE, Monitor, Watch
from handoff.text import printable, reason

_HOST: Host | None = None


def _start_worker(name: str, options: Mapping[str, Any], block: Any) -> None:
    global _HOST
    os.dup2(2, 1)  # standard output belongs to results: what an adapter prints goes to standard error
    _HOST = Host(name, options, Watch(block), shared=False)


def _call_worker(calls: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[list[tuple[bool, Any]], float]:
    """The result of each call (true, value) or its exception (false, error), and the seconds of all of them."""
    assert _HOST is not None
    started = time.perf_counter()
    results: list[tuple[bool, Any]] = []
    for method, arguments in calls:
        try:
            results.append((True, getattr(_HOST, method)(*arguments)))
        except BaseException as error:
            trace = error.__traceback__
            assert trace is not None  # it was just raised
            try:
                pickle.dumps(error)
                answer = error if isinstance(error, Exception) else RuntimeError(reason(error))
            except Exception:
                answer = RuntimeError(reason(error))
            results.append((False, _ExceptionWithTraceback(answer, trace)))
    return results, time.perf_counter() - started


#: The most seconds of work that are sent to a worker at once, where its calls are short.
SENT = 0.005
#: Batches per worker: one in work, one waiting.
AHEAD = 2


@attrs.define
class _Line:
    """The calls to one worker.

    Sending costs many times the work of a short call, so waiting calls are sent together, as many as the worker does in
    a moment.  An answer waits for the others of its batch.
    """

    number: int
    executor: Children
    #: The call that the worker is in.
    watch: Watch
    waiting: deque[tuple[str, tuple[Any, ...], asyncio.Future[Any]]] = attrs.Factory(deque)
    sent: set[asyncio.Future[Any]] = attrs.Factory(set)
    soon: bool = False
    #: Mean seconds of a call.
    seconds: float = SENT
    #: Why the worker was ended; ``None``: it was not.
    expired: str | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def call(self, method: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        self.loop = loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self.waiting.append((method, arguments, answer))
        if not self.soon:
            self.soon = True
            loop.call_soon(self._send)
        return answer

    def _send(self) -> None:
        self.soon = False
        while self.waiting and len(self.sent) < AHEAD:
            many = min(len(self.waiting), max(1, int(SENT / max(self.seconds, 1e-6))))
            batch = [self.waiting.popleft() for _ in range(many)]
            answers = [answer for _, _, answer in batch]
            try:
                sent = self.executor.submit(_call_worker, [(method, arguments) for method, arguments, _ in batch])
            except BrokenProcessPool:
                self._lose(answers)
                continue
            except Exception as error:  # nobody else would tell those who wait
                for answer in answers:
                    answer.set_exception(error)
                continue
            call: asyncio.Future[Any] = asyncio.wrap_future(sent)
            self.sent.add(call)
            call.add_done_callback(partial(self._receive, answers))

    def _receive(self, answers: Sequence[asyncio.Future[Any]], call: asyncio.Future[Any]) -> None:
        self.sent.discard(call)
        if call.cancelled():
            error: BaseException | None = Interrupted(f"this process cannot start a thread; {RAISE_LIMITS}")
        else:
            error = call.exception()
        if isinstance(error, BrokenProcessPool):
            self._lose(answers)
        elif error is not None:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
        else:
            results, seconds = call.result()
            self.seconds += (seconds / len(results) - self.seconds) / 4
            for answer, (good, value) in zip(answers, results, strict=True):
                if answer.done():  # nobody waits for it any more
                    continue
                if good:
                    answer.set_result(value)
                else:
                    answer.set_exception(value)
        self._send()

    def give_up(self) -> None:
        """Nothing that was sent is answered any more."""
        for call in list(self.sent):
            call.cancel()

    def end(self, why: str) -> None:
        """End the worker in the middle of its call."""
        self.expired = why
        self.executor.end()

    def _lose(self, answers: Sequence[asyncio.Future[Any]]) -> None:
        pending = self.watch.pending()
        during = "" if pending is None else f"; {printable(pending[1])} had not returned"
        lost = f"environment worker {self.number} ended unexpectedly (killed, or out of memory){during}"
        for answer in answers:
            if not answer.done():
                expired = self.expired
                answer.set_exception(WorkerLost(lost) if expired is None else EnvironmentFault(expired))


class Processes(Workers):
    """Processes of this machine.  One is ended in a call of the environment that takes longer than ``timeout``
    seconds."""

    def __init__(self, name: str, options: Mapping[str, Any], count: int, timeout: float | None = None) -> None:
        if count < 0:
            raise UsageError(f"the number of workers is 0 (this process) or more, not {count}")
        if count and getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself asks
            raise UsageError(
                'the script is being imported by a worker process: put the call under `if __name__ == "__main__":`, '
                "or ask for workers=0"
            )
        self.count = count
        self._name = name
        #: Workers that did not end by themselves.
        self._kept: set[int] = set()
        self._timeout = timeout
        self._lines = [self._line(number, name, options) for number in range(count)]
        require_threads(THREADS * count + 1)
        self._monitor = Monitor([line.watch for line in self._lines], timeout, self._expire, self._look)

    def _line(self, number: int, name: str, options: Mapping[str, Any]) -> _Line:
        block = multiprocessing.get_context("spawn").RawArray("B", SIZE)
        return _Line(number, Children(1, _start_worker, (name, dict(options), block)), Watch(block))

    def _expire(self, number: int, words: str) -> None:
        self._lines[number].end(f"{printable(words)} has not returned for {self._timeout:g} s (--step-timeout)")

    def _look(self) -> None:
        """Tell the lines whose executor has failed, from another thread."""
        for line in self._lines:
            if line.sent and line.loop is not None and line.executor.stuck:
                with contextlib.suppress(RuntimeError):  # the event loop is closed
                    line.loop.call_soon_threadsafe(line.give_up)

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        return await self._lines[worker].call(method, arguments)

    def close(self) -> None:
        self._monitor.close()
        for line in self._lines:
            if line.sent or line.waiting:  # nobody waits for them any more
                line.executor.end()
            else:
                line.executor.shutdown(wait=False)
        deadline = time.monotonic() + MOST_WAIT
        self._kept |= {line.number for line in self._lines if line.executor.join(deadline - time.monotonic())}

    def remarks(self) -> list[str]:
        if not self._kept:
            return []
        numbers = ", ".join(map(str, sorted(self._kept)))
        left = f"environment {self._name!r:.60} left a thread that does not end: its worker processes ({numbers})"
        return [f"{left} were killed after the work; start threads with daemon=True, or end them in close()"]
