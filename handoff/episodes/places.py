"""Where environments live: in this process, in worker processes of this machine, or elsewhere.

A :class:`~handoff.episodes.pool.Pool` needs only :class:`Workers` of a place, and a place needs only
:class:`~handoff.episodes.host.Host` of the toolkit.  A new kind of place is a subclass of :class:`Workers`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from handoff.episodes.host import Host
from handoff.guard.host_state import handlers, put_back
from handoff.guard.watch import Monitor, Watch


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
        """Call ``method`` of the worker's host.

        Raises what the method raises, and :class:`~handoff.episodes.host.WorkerLost` if the worker is gone, whether or
        not it has done its work.
        """

    def remarks(self) -> list[str]:
        """Remarks for the user on how the work went."""
        return []

    def close(self) -> None:  # noqa: B027 - optional
        """Stop the workers.  May be called twice."""


class Here(Workers):
    """This process.  A call that takes longer than ``timeout`` seconds is ended where that is possible."""

    count = 1

    def __init__(self, name: str, options: Mapping[str, Any], timeout: float | None = None) -> None:
        watch, self._handlers = Watch(), handlers()
        self._host = Host(name, options, watch, timeout)
        self._monitor = Monitor([watch])

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        await asyncio.sleep(0)  # let other episodes take their turn
        return getattr(self._host, method)(*arguments)

    def close(self) -> None:
        self._monitor.close()
        put_back(self._handlers)
