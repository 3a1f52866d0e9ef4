"""Environments in worker processes of this machine."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool, _ExceptionWithTraceback
from functools import partial
from typing import Any

import attrs

from handoff.children import Children
from handoff.episodes.host import Host, WorkerLost
from handoff.episodes.places import Workers
from handoff.errors import UsageError

_HOST: Host | None = None


def _start_worker(name: str, options: Mapping[str, Any]) -> None:
    global _HOST
    _HOST = Host(name, options)


def _call_worker(calls: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[list[tuple[bool, Any]], float]:
    """The result of each call (true, value) or its exception (false, error), and the seconds of all of them."""
    assert _HOST is not None
    started = time.perf_counter()
    results: list[tuple[bool, Any]] = []
    for method, arguments in calls:
        try:
            results.append((True, getattr(_HOST, method)(*arguments)))
        except Exception as error:
            trace = error.__traceback__
            assert trace is not None  # it was just raised
            try:
                pickle.dumps(error)
            except Exception:
                error = RuntimeError(f"{type(error).__name__}: {error}")
            results.append((False, _ExceptionWithTraceback(error, trace)))
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
    waiting: deque[tuple[str, tuple[Any, ...], asyncio.Future[Any]]] = attrs.Factory(deque)
    sent: set[asyncio.Future[Any]] = attrs.Factory(set)
    soon: bool = False
    #: Mean seconds of a call.
    seconds: float = SENT

    def call(self, method: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
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
        error = asyncio.CancelledError() if call.cancelled() else call.exception()
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

    def _lose(self, answers: Sequence[asyncio.Future[Any]]) -> None:
        for answer in answers:
            if not answer.done():
                reason = f"environment worker {self.number} ended unexpectedly (killed, or out of memory)"
                answer.set_exception(WorkerLost(reason))


class Processes(Workers):
    """Processes of this machine."""

    def __init__(self, name: str, options: Mapping[str, Any], count: int) -> None:
        if count < 0:
            raise UsageError(f"the number of workers is 0 (this process) or more, not {count}")
        if count and getattr(multiprocessing.current_process(), "_inheriting", False):  # as multiprocessing itself asks
            raise UsageError(
                'the script is being imported by a worker process: put the call under `if __name__ == "__main__":`, '
                "or ask for workers=0"
            )
        self.count = count
        self._lines = [_Line(number, Children(1, _start_worker, (name, dict(options)))) for number in range(count)]

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        return await self._lines[worker].call(method, arguments)

    def close(self) -> None:
        for line in self._lines:
            if line.sent or line.waiting:  # nobody waits for them any more
                line.executor.end()
            else:
                line.executor.shutdown(wait=False)
        for line in self._lines:
            line.executor.join()
