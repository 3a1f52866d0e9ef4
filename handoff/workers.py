"""Where environments live: in this process, in worker processes of this machine, or elsewhere.

Everything that a :class:`~handoff.rollout.Pool` needs of a place is :class:`Workers`; what a place needs of the toolkit
is :class:`Host`.  A new kind of place is a subclass of the one that calls the other.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool, _ExceptionWithTraceback
from functools import partial
from typing import Any, ClassVar

import attrs

from handoff import environment as registry
from handoff import frontier
from handoff.children import Children
from handoff.environment import Environment, Planner
from handoff.errors import UsageError
from handoff.records import Certificate, Record, Task
from handoff.replay import replay, require_equal


class WorkerLost(Exception):
    """The worker that held an episode's environment is gone, and the environment with it.  One sentence, no period."""


@attrs.frozen
class View:
    """What an environment showed, with what was asked of it beside the record."""

    record: Record
    certificate: Certificate | None = None
    plan: tuple[str, ...] | None = None
    distance: int | None = None


@attrs.frozen
class Ask:
    """What to ask of the environment beside the record: frontier membership at ``depth``, a plan, the distance to
    success up to ``distances``."""

    depth: int | None = None
    plan: bool = False
    distances: int | None = None


class Host:
    """Holds the environments of one process: one per open episode, reused when the episode is over."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name, self._options = name, dict(options)
        self._free: list[Environment] = []
        self._episodes: dict[int, tuple[Environment, Task, int, list[str]]] = {}

    def reset(self, episode: int, task: Task, seed: int, ask: Ask) -> View:
        environment = self._take(episode)
        self._episodes[episode] = (environment, task, seed, [])
        return self._view(episode, environment.reset(task, seed), ask)

    def step(self, episode: int, action: str, ask: Ask) -> View:
        environment, _, _, taken = self._held(episode)
        record = environment.step(action)
        taken.append(action)
        return self._view(episode, record, ask)

    def replay(
        self, episode: int, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> View:
        environment = self._take(episode)
        self._episodes[episode] = (environment, task, seed, [action for action in actions if action])
        return self._view(episode, replay(environment, task, seed, actions, recorded)[-1], ask)

    def certify_along(
        self, episode: int, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> list[View]:
        views = [self.replay(episode, task, seed, (), recorded[:1], ask)]
        views += self._along(episode, actions, recorded, 0, ask, views[0])
        return views

    def follow(
        self, episode: int, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask
    ) -> list[View]:
        return self._along(episode, actions, recorded, taken, ask, View(recorded[0]))

    def _along(
        self, episode: int, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask, view: View
    ) -> list[View]:
        task = self._held(episode)[1]
        views = []
        for step, action in enumerate(actions, start=1):
            if action:
                view = self.step(episode, action, ask)
            require_equal(recorded[step], view.record, task, taken + step)
            views.append(view)
        return views

    def close(self, episode: int) -> None:
        held = self._episodes.pop(episode, None)
        if held is not None:
            self._free.append(held[0])

    def _held(self, episode: int) -> tuple[Environment, Task, int, list[str]]:
        if episode not in self._episodes:
            raise WorkerLost("an environment worker was started anew in the middle of an episode")
        return self._episodes[episode]

    def _take(self, episode: int) -> Environment:
        self.close(episode)
        return self._free.pop() if self._free else registry.create(self._name, self._options)

    def _view(self, episode: int, record: Record, ask: Ask) -> View:
        environment, task, seed, taken = self._episodes[episode]
        certificate = plan = distance = None
        if ask.depth is not None:
            certificate = frontier.certify(environment, task, seed, taken, record, ask.depth)
        if ask.plan and not (record.won or record.done):
            plan = environment.plan() if isinstance(environment, Planner) else ()
        if ask.distances is not None:
            distance = frontier.distance(environment, task, seed, taken, record, ask.distances)
        return View(record, certificate, plan, distance)


class Workers(ABC):
    """``count`` workers with a :class:`Host` each.

    An episode whose worker is lost goes on with another one, ``moves`` times at most.
    """

    moves: ClassVar[int] = 0
    count: int

    async def choose(self, load: Sequence[int]) -> int:
        """The worker that the next episode goes to; ``load`` are the episodes that each holds.

        Raises :class:`~handoff.errors.Interrupted` if none can be had.
        """
        return min(range(self.count), key=load.__getitem__)

    @abstractmethod
    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        """What ``method`` of the worker's host returns or raises.  Raises :class:`WorkerLost` if the worker is gone,
        whether or not it has done its work."""

    def remarks(self) -> list[str]:
        """What a user should know about how the work went."""
        return []

    def close(self) -> None:  # noqa: B027 - optional
        """Stop the workers.  May be called twice."""


class Here(Workers):
    """This process."""

    count = 1

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._host = Host(name, options)

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        await asyncio.sleep(0)  # let other episodes take their turn
        return getattr(self._host, method)(*arguments)


_HOST: Host | None = None


def _start_worker(name: str, options: Mapping[str, Any]) -> None:
    global _HOST
    _HOST = Host(name, options)


def _call_worker(calls: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[list[tuple[bool, Any]], float]:
    """What each of ``calls`` returned (true) or raised (false), and the seconds that all of them took."""
    assert _HOST is not None
    started = time.perf_counter()
    found: list[tuple[bool, Any]] = []
    for method, arguments in calls:
        try:
            found.append((True, getattr(_HOST, method)(*arguments)))
        except Exception as error:
            trace = error.__traceback__
            assert trace is not None  # it was just raised
            try:
                pickle.dumps(error)
            except Exception:
                error = RuntimeError(f"{type(error).__name__}: {error}")
            found.append((False, _ExceptionWithTraceback(error, trace)))
    return found, time.perf_counter() - started


#: Seconds of work that are sent to a worker at a time, at most, where its calls are short.
SENT = 0.005
#: Batches that a worker may have: one that it works on, one that waits there.
AHEAD = 2


@attrs.define
class _Line:
    """The calls to one worker.  Sending one costs many times what a short one takes, so calls that wait go together, as
    many as are done in a moment: an answer waits for the others of its batch."""

    number: int
    executor: Children
    waiting: deque[tuple[str, tuple[Any, ...], asyncio.Future[Any]]] = attrs.Factory(deque)
    sent: set[asyncio.Future[Any]] = attrs.Factory(set)
    soon: bool = False
    seconds: float = SENT  # that a call takes

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
            found, seconds = call.result()
            self.seconds += (seconds / len(found) - self.seconds) / 4
            for answer, (good, value) in zip(answers, found, strict=True):
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


def start(name: str, options: Mapping[str, Any], count: int | None, ray: str | None = None) -> Workers:
    """Workers for environments ``name`` with ``options``: ``count`` processes (0: this one), or as many actors of the
    Ray cluster at the address ``ray`` (``None``: one per free core there)."""
    if ray is not None:
        from handoff.ray_pool import RayWorkers

        return RayWorkers(name, options, ray, count)
    if count is None:
        count = usable_cores()
    return Processes(name, options, count) if count else Here(name, options)


def usable_cores() -> int:
    """Cores that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)
