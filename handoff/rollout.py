"""Many episodes at once: environments in worker processes, policies batched.

One episode is one coroutine.  An environment call goes to the worker process that holds the episode's environment; a
decision joins whatever requests are waiting for the same policy and is made with them as one batch.  Results never
depend on how many workers there are, which finishes first, or what shares a batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

import attrs

from handoff import environment as registry
from handoff import frontier
from handoff.environment import Environment, Planner
from handoff.errors import Interrupted, UsageError
from handoff.policies.base import Policy, Request, Served
from handoff.records import Certificate, Decision, Record, Task
from handoff.replay import replay, require_equal

T = TypeVar("T")


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


class _Host:
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
        environment, _, _, taken = self._episodes[episode]
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
        task = self._episodes[episode][1]
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


_HOST: _Host | None = None


def _start_worker(name: str, options: Mapping[str, Any]) -> None:
    global _HOST
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A parent that was killed cannot tell its workers to stop.
        threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
    _HOST = _Host(name, options)


def _call_worker(method: str, *arguments: Any) -> Any:
    assert _HOST is not None
    return getattr(_HOST, method)(*arguments)


def _retrieve(call: asyncio.Future[Any]) -> None:
    """Look at a call's outcome, so that one nobody waits for any more is not reported as forgotten."""
    if not call.cancelled():
        call.exception()


class Pool:
    """Environments ``name`` with ``options`` in ``workers`` processes, or in this process if ``workers`` is 0."""

    def __init__(self, name: str, options: Mapping[str, Any], workers: int) -> None:
        if workers < 0:
            raise UsageError(f"the number of workers is 0 (this process) or more, not {workers}")
        self._executors: list[Executor] = []
        self._host = _Host(name, options) if workers == 0 else None
        context = multiprocessing.get_context("spawn")
        for _ in range(workers):
            self._executors.append(
                ProcessPoolExecutor(1, mp_context=context, initializer=_start_worker, initargs=(name, dict(options)))
            )
        self._open = [0] * max(1, workers)
        self._count = 0

    @contextlib.asynccontextmanager
    async def episode(self) -> AsyncIterator[Episode]:
        """An environment of one's own, on the worker that has the fewest."""
        worker = min(range(len(self._open)), key=self._open.__getitem__)
        self._open[worker] += 1
        self._count += 1
        episode = Episode(self, worker, self._count)
        try:
            yield episode
        finally:
            self._open[worker] -= 1
            with contextlib.suppress(Interrupted):
                await self.call(worker, "close", episode.number)

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        if self._host is not None:
            await asyncio.sleep(0)  # let other episodes take their turn
            return getattr(self._host, method)(*arguments)
        try:
            call = asyncio.wrap_future(self._executors[worker].submit(_call_worker, method, *arguments))
            # Shielded: a call that was cancelled when its worker dies makes the executor's own thread fail aloud.
            call.add_done_callback(_retrieve)
            return await asyncio.shield(call)
        except BrokenProcessPool:
            raise Interrupted(f"environment worker {worker} ended unexpectedly (killed, or out of memory)") from None

    def close(self) -> None:
        for executor in self._executors:
            executor.shutdown(wait=False, cancel_futures=True)


@attrs.frozen
class Episode:
    """One episode's environment, wherever it runs."""

    _pool: Pool
    _worker: int
    number: int

    async def reset(self, task: Task, seed: int, ask: Ask) -> View:
        return await self._call("reset", task, seed, ask)

    async def step(self, action: str, ask: Ask) -> View:
        return await self._call("step", action, ask)

    async def replay(self, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask) -> View:
        """Clone by replay (:func:`handoff.replay.replay`); raises at the first record that differs."""
        return await self._call("replay", task, seed, tuple(actions), tuple(recorded), ask)

    async def certify_along(
        self, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> list[View]:
        """Replay as :meth:`replay` does, with what is asked of every state on the way (``len(recorded)`` views)."""
        views: list[View] = await self._pool.call(
            self._worker, "certify_along", self.number, task, seed, tuple(actions), tuple(recorded), ask
        )
        return views

    async def follow(self, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask) -> list[View]:
        """Take ``actions`` from where the episode stands, comparing each record with ``recorded`` (whose first is the
        current one); ``taken`` actions came before, for messages.  One view per action."""
        views: list[View] = await self._pool.call(
            self._worker, "follow", self.number, tuple(actions), tuple(recorded), taken, ask
        )
        return views

    async def _call(self, method: str, *arguments: Any) -> View:
        view: View = await self._pool.call(self._worker, method, self.number, *arguments)
        return view


class Batcher:
    """Makes one batch of the requests that wait for a policy; one that is served elsewhere is asked at once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._waiting: list[tuple[Request, asyncio.Future[Decision]]] = []
        self._running: asyncio.Task[None] | None = None

    async def decide(self, request: Request) -> Decision:
        if isinstance(self.policy, Served):
            return await self.policy.decide_one(request)
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # whoever is ready in this turn of the loop joins the batch
                batch, self._waiting = self._waiting, []
                try:
                    requests = [request for request, _ in batch]
                    if self.policy.blocking:
                        decisions = await asyncio.to_thread(self.policy.decide, requests)
                    else:
                        decisions = self.policy.decide(requests)
                    for (_, future), decision in zip(batch, decisions, strict=True):
                        if not future.done():
                            future.set_result(decision)
                except BaseException as error:
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                    if not isinstance(error, Exception):
                        raise
        finally:
            self._running = None


async def by_policy(
    jobs: Sequence[tuple[str, Callable[[], Awaitable[None]]]], policies: Mapping[str, Policy], concurrency: int
) -> None:
    """Run ``jobs``, each named by the policy that it asks, as :func:`gather` does.

    Policies that can be asked side by side are; each exclusive one has a phase of its own, in which its model is in
    memory and no other is.
    """
    names = list(dict.fromkeys(name for name, _ in jobs))
    exclusive = [name for name in names if policies[name].exclusive]
    for phase in ([name for name in names if name not in exclusive], *([name] for name in exclusive)):
        chosen = [policies[name] for name in phase]
        try:
            for policy in chosen:
                await asyncio.to_thread(policy.activate)
            await gather([job for name, job in jobs if name in phase], concurrency)
        finally:
            for policy in chosen:
                policy.release()


async def gather(jobs: Iterable[Callable[[], Awaitable[T]]], concurrency: int) -> None:
    """Run ``jobs``, at most ``concurrency`` at a time, starting them in order.

    The first error cancels what is in flight and is raised when all of it has stopped.
    """
    queue = iter(jobs)
    failure: list[BaseException] = []

    async def lane() -> None:
        for job in queue:
            if failure:
                return
            try:
                await job()
            except BaseException as error:
                failure.append(error)
                for task in lanes:
                    if task is not asyncio.current_task():
                        task.cancel()
                return

    lanes = [asyncio.create_task(lane()) for _ in range(concurrency)]
    try:
        await asyncio.wait(lanes)
    except asyncio.CancelledError:
        for task in lanes:
            task.cancel()
        await asyncio.wait(lanes)
        raise
    if failure:
        raise failure[0]
