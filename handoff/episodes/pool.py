"""Many episodes at once: environments in workers, policies batched.

One episode is one coroutine.  An environment call goes to the worker that holds the episode's environment; a decision
joins the requests that wait for the same policy, and they are made as one batch.  Results never depend on the number of
workers, the order in which they finish, or the rest of a batch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import attrs

from handoff.episodes.host import Ask, View, WorkerLost
from handoff.episodes.places import Workers
from handoff.errors import Interrupted
from handoff.records import AnswerVerdict, Message, Record, Task

T = TypeVar("T")


class Pool:
    """Environments by episode, on ``workers``.

    An episode whose worker is lost goes on with another one: its environment is reset there and its actions are
    replayed, each record equal to the earlier one.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._open = [0] * workers.count
        self._count = 0

    @property
    def workers(self) -> int:
        """How many workers there are (one if it is this process)."""
        return self._workers.count

    @contextlib.asynccontextmanager
    async def episode(self) -> AsyncIterator[Episode]:
        """An environment for one episode, on the worker that has the fewest.

        Raises :class:`~handoff.errors.Interrupted`, here or at any later call, if no worker can go on with it.
        """
        self._count += 1
        episode = Episode(self._workers, self._open, self._count, await self._workers.choose(self._open))
        self._open[episode.worker] += 1
        try:
            yield episode
        except asyncio.CancelledError:  # all work ends: the environment goes with its worker
            raise
        except BaseException:
            await self._close(episode)
            raise
        await self._close(episode)

    async def _close(self, episode: Episode) -> None:
        self._open[episode.worker] -= 1
        with contextlib.suppress(WorkerLost):
            await self._workers.call(episode.worker, "close", episode.number)

    def remarks(self) -> list[str]:
        """Remarks for the user on how the work went."""
        return self._workers.remarks()

    def close(self) -> None:
        self._workers.close()


@attrs.define
class _Past:
    """What an episode's environment was told and showed, enough to bring another one to the same state."""

    task: Task
    seed: int
    actions: list[str]
    records: list[Record]

    def more(self, actions: Sequence[str], records: Sequence[Record]) -> None:
        self.actions.extend(actions)
        self.records.extend(records)


@attrs.define
class Episode:
    """One episode's environment, wherever it runs."""

    _workers: Workers
    _open: list[int]
    number: int
    worker: int
    _past: _Past | None = None

    async def reset(self, task: Task, seed: int, ask: Ask) -> View:
        view: View = await self._call("reset", task, seed, ask, anew=True)
        self._past = _Past(task, seed, [], [view.record])
        return view

    async def step(self, action: str, ask: Ask) -> View:
        view: View = await self._call("step", action, ask)
        assert self._past is not None
        self._past.more([action], [view.record])
        return view

    async def replay(self, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask) -> View:
        """Clone by replay (:func:`handoff.replay.replay`); raises at the first record that differs."""
        view: View = await self._call("replay", task, seed, tuple(actions), tuple(recorded), ask, anew=True)
        self._past = _Past(task, seed, list(actions), list(recorded))
        return view

    async def certify_along(
        self, task: Task, seed: int, actions: Sequence[str], recorded: Sequence[Record], ask: Ask
    ) -> list[View]:
        """Replay as :meth:`replay` does, with what is asked of every state on the way (``len(recorded)`` views)."""
        views: list[View] = await self._call(
            "certify_along", task, seed, tuple(actions), tuple(recorded), ask, anew=True
        )
        self._past = _Past(task, seed, list(actions), list(recorded))
        return views

    async def follow(self, actions: Sequence[str], recorded: Sequence[Record], taken: int, ask: Ask) -> list[View]:
        """Take ``actions`` from the current state, comparing each record with ``recorded`` (whose first is the
        current one); ``taken`` actions came before, for messages.  One view per action."""
        views: list[View] = await self._call("follow", tuple(actions), tuple(recorded), taken, ask)
        assert self._past is not None
        self._past.more(actions, recorded[1:])
        return views

    async def score(self, task: Task, answer: Any) -> AnswerVerdict:
        """How ``answer`` is scored (:class:`handoff.environment.Scored`)."""
        verdict: AnswerVerdict = await self._call("judge", task, "score", task, answer, anew=True)
        return verdict

    async def formatting(self, task: Task, answer: str) -> tuple[Message, ...]:
        """The messages that ask for ``answer`` in the form that is scored (:class:`handoff.environment.Formatted`)."""
        messages: tuple[Message, ...] = await self._call("judge", task, "formatting", task, answer, anew=True)
        return messages

    async def read_formatted(self, task: Task, reply: str) -> Any:
        """What a formatter's reply comes to; ``None`` where it cannot be read."""
        return await self._call("judge", task, "read_formatted", reply, anew=True)

    async def _call(self, method: str, *arguments: Any, anew: bool = False) -> Any:
        """Call the worker; if it is lost, go on with another one.  ``anew``: the call needs nothing of the past."""
        losses = 0
        while True:
            try:
                if losses and not anew:
                    assert self._past is not None
                    past = self._past
                    arguments_of_replay = (past.task, past.seed, tuple(past.actions), tuple(past.records), Ask())
                    await self._workers.call(self.worker, "replay", self.number, *arguments_of_replay)
                return await self._workers.call(self.worker, method, self.number, *arguments)
            except WorkerLost as lost:
                losses += 1
                if losses > self._workers.moves:
                    times = f"; the episode lost {losses} workers at the same place" if losses > 1 else ""
                    raise Interrupted(f"{lost}{times}") from None
            await self._move()

    async def _move(self) -> None:
        worker = await self._workers.choose(self._open)
        self._open[self.worker] -= 1
        self.worker = worker
        self._open[worker] += 1
