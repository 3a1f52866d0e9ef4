"""Where environments live: in this process, in worker processes of this machine, or elsewhere.

Everything that a :class:`~handoff.rollout.Pool` needs of a place is :class:`Workers`; what a place needs of the toolkit
is :class:`Host`.  A new kind of place is a subclass of the one that calls the other.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
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


def _call_worker(method: str, *arguments: Any) -> Any:
    assert _HOST is not None
    return getattr(_HOST, method)(*arguments)


def _retrieve(call: asyncio.Future[Any]) -> None:
    """Look at a call's outcome, so that one nobody waits for any more is not reported as forgotten."""
    if not call.cancelled():
        call.exception()


class Processes(Workers):
    """Processes of this machine."""

    def __init__(self, name: str, options: Mapping[str, Any], count: int) -> None:
        if count < 0:
            raise UsageError(f"the number of workers is 0 (this process) or more, not {count}")
        self.count = count
        self._executors = [Children(1, _start_worker, (name, dict(options))) for _ in range(count)]
        self._calls: list[set[asyncio.Future[Any]]] = [set() for _ in range(count)]

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        try:
            call = asyncio.wrap_future(self._executors[worker].submit(_call_worker, method, *arguments))
            # Shielded: a call that was cancelled when its worker dies makes the executor's own thread fail aloud.
            self._calls[worker].add(call)
            call.add_done_callback(self._calls[worker].discard)
            call.add_done_callback(_retrieve)
            return await asyncio.shield(call)
        except BrokenProcessPool:
            raise WorkerLost(f"environment worker {worker} ended unexpectedly (killed, or out of memory)") from None

    def close(self) -> None:
        for executor, calls in zip(self._executors, self._calls, strict=True):
            if calls:  # nobody waits for them any more
                executor.end()
            else:
                executor.shutdown(wait=False)


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
