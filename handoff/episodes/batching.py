"""Batches of requests by policy, and bounded concurrency over episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from handoff.episodes.pool import T
from handoff.errors import DataError
from handoff.policies.form import form_problems
from handoff.policies.policy import Policy, Request, Served
from handoff.records import Decision


class Batcher:
    """Makes one batch of the requests that wait for a policy.  A served policy is asked at once."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._waiting: list[tuple[Request, asyncio.Future[Decision]]] = []
        self._running: asyncio.Task[None] | None = None

    async def decide(self, request: Request) -> Decision:
        """The policy's decision.  Raises :class:`~handoff.errors.DataError` for one that no record may hold."""
        decision = await self._ask(request)
        if not isinstance(decision, Decision):
            raise DataError(f"a policy gave a {type(decision).__name__} instead of a decision")
        for problem in form_problems(decision):
            raise DataError(f"a policy gave a decision that {problem}")
        return decision

    async def _ask(self, request: Request) -> Decision:
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
                await asyncio.sleep(0)  # every episode that is ready in this turn of the loop joins the batch
                batch, self._waiting = self._waiting, []
                try:
                    requests = [request for request, _ in batch]
                    if self.policy.blocking:
                        decisions = await asyncio.to_thread(self.policy.decide, requests)
                    else:
                        decisions = self.policy.decide(requests)
                    if len(decisions) != len(batch):
                        raise DataError(f"a policy gave {len(decisions)} decisions for {len(batch)} requests")
                    for (_, future), decision in zip(batch, decisions, strict=True):
                        if not future.done():
                            future.set_result(decision)
                except BaseException as error:
                    if isinstance(error, SystemExit):  # else the process would end as if the work were done
                        error = DataError("a policy ended the program (SystemExit) instead of deciding")
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
    """Run ``jobs``, each with the name of the policy that it asks, as :func:`gather` does.

    Exclusive policies take turns: in the phase of one, its model alone is in memory.  All others share a phase.
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
