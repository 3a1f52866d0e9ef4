"""Batches of requests by policy, and bounded concurrency over episodes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from handoff.children import RAISE_LIMITS
from handoff.episodes.pool import T
from handoff.errors import HandoffError, Interrupted, PolicyFault
from handoff.policies.guard import activate, ask, checked, guarded
from handoff.policies.policy import Policy, Request, Served
from handoff.records import Decision

R = TypeVar("R")


class Batcher:
    """Makes one batch of the requests that wait for a policy.  A served policy is asked at once.

    ``name`` is the policy's name in the run, for messages.
    """

    def __init__(self, policy: Policy, name: str | None = None) -> None:
        self.policy, self.name = policy, name
        self._waiting: list[tuple[Request, asyncio.Future[Decision]]] = []
        self._running: asyncio.Task[None] | None = None

    async def decide(self, request: Request) -> Decision:
        if isinstance(self.policy, Served):
            with guarded(self.policy, "decide_one", self.name):
                decision = await self.policy.decide_one(request)
                return checked(self.policy, self.name, "decide_one", [request], [decision])[0]
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # every episode that is ready in this turn of the loop joins the batch
                batch, self._waiting = self._waiting, []
                try:
                    work = partial(ask, self.policy, [request for request, _ in batch], self.name)
                    decisions = await in_thread(work) if self.policy.blocking else work()
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


async def in_thread(work: Callable[[], R]) -> R:
    """``work()`` in a thread.  Raises :class:`~handoff.errors.Interrupted` if none can be started."""
    try:
        return await asyncio.to_thread(work)
    except RuntimeError as error:
        if isinstance(error, HandoffError) or "start new thread" not in str(error):
            raise
        raise Interrupted(f"this process cannot start a thread ({error}); {RAISE_LIMITS}") from error


async def by_policy(
    jobs: Sequence[tuple[str, Callable[[], Awaitable[None]]]], policies: Mapping[str, Policy], concurrency: int
) -> None:
    """Run ``jobs``, each with the name of the policy that it asks, as :func:`gather` does.

    Exclusive policies take turns: in the phase of one, its model alone is in memory.  All others share a phase.
    """
    names = list(dict.fromkeys(name for name, _ in jobs))
    exclusive = [name for name in names if policies[name].exclusive]
    for phase in ([name for name in names if name not in exclusive], *([name] for name in exclusive)):
        chosen = {name: policies[name] for name in phase}
        try:
            for name, policy in chosen.items():
                if type(policy).activate is not Policy.activate:
                    await in_thread(partial(activate, policy, name))
            await gather([job for name, job in jobs if name in phase], concurrency)
        except BaseException:
            for name, policy in chosen.items():
                with contextlib.suppress(PolicyFault):  # the first failure is the one to tell
                    _release(policy, name)
            raise
        for name, policy in chosen.items():
            _release(policy, name)


def _release(policy: Policy, name: str) -> None:
    with guarded(policy, "release", name):
        policy.release()


async def gather(jobs: Iterable[Callable[[], Awaitable[T]]], concurrency: int) -> None:
    """Run ``jobs``, at most ``concurrency`` at a time, starting them in order.

    The first error cancels the jobs in flight, and is raised when all of them have stopped.
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
