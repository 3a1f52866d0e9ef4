"""Carries out a run that is fully decided: the folder, the pool, resume, and the owed records when it breaks off."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import signals
from handoff.canonical import digest
from handoff.episodes.pool import Pool
from handoff.episodes.start import Where, start
from handoff.errors import HandoffError, Interrupted, PolicyFault, StoreError
from handoff.policies import Policy, Served
from handoff.policies.guard import close, guarded
from handoff.progress import Progress, Silent
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.store import Store


@attrs.frozen
class Running:
    """The means with which a protocol plays."""

    pool: Pool
    store: Store
    progress: Progress
    #: Episodes that may be in flight.
    concurrency: int


@attrs.define
class Prepared:
    """A run that is fully decided and has not begun.  ``--dry-run`` shows it, :meth:`run` carries it out.

    ``carry_out`` finishes every record that the store does not hold and returns wall-clock seconds by phase.
    """

    environment: str
    options: Mapping[str, Any]
    tasks: Sequence[Task]
    policies: dict[str, Policy]
    identity: Mapping[str, Any]
    plan: Sequence[Key]
    carry_out: Callable[[Running], Awaitable[dict[str, float]]]
    #: Further remarks for the manifest's ``host`` part, which is not part of the run's identity.
    remarks: Mapping[str, Any] = attrs.Factory(dict)
    #: Failures that stopped nothing, for the user.
    failures: Sequence[str] = ()

    @property
    def digest(self) -> str:
        return digest(dict(self.identity))

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless told otherwise: the same for the same command, so that typing it again resumes."""
        return Path("runs") / f"{self.environment}-{self.digest[:10]}"

    def run(
        self,
        folder: Path,
        where: Where | None = None,
        progress: Progress | None = None,
        concurrency: int | None = None,
    ) -> list[str]:
        """Carry the run out in ``folder``, or the part that is left of it.

        ``concurrency`` is the number of episodes in flight (default: four per worker, or as many as the policies can
        make use of).  Returns remarks on the folder and on how the work went.  Raises
        :class:`~handoff.errors.Interrupted` if a worker or a server went away, and
        :class:`~handoff.errors.EnvironmentFault` or :class:`~handoff.errors.PolicyFault` if one of these failed; every
        finished record is kept.
        """
        host: dict[str, Any] = {
            "options": dict(self.options),
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        host.update(self.remarks)
        folder, where = folder.absolute(), where or Where()
        if where.step_timeout is not None:
            host["step_timeout"] = where.step_timeout
        with Store(folder, self.identity, self.plan, host) as store:
            try:
                remarks = [*self.failures, *store.dropped]
                if store.owed:
                    remarks += self._work(store, where, progress or Silent(), concurrency)
                store.complete()
                return remarks
            except Interrupted as error:
                # A signal to all processes of the command may have ended a worker first.
                why = signals.reason() if signals.received() else str(error)
                raise Interrupted(f"{why}; {_owed(store)}") from error
            except KeyboardInterrupt:
                raise Interrupted(f"{signals.reason()}; {_owed(store)}") from None
            except MemoryError:
                raise Interrupted(f"out of memory: ask for less at once; {_owed(store)}") from None
            except StoreError:  # it says what is kept
                raise
            except HandoffError as error:
                error.args = (f"{error}; {_owed(store)}",)
                raise

    def _work(self, store: Store, where: Where, progress: Progress, concurrency: int | None) -> list[str]:
        """Finish the owed records.  Returns remarks on how the work went."""
        pool = Pool(start(self.environment, self.options, where))
        remarks: list[str] = []
        try:
            running = Running(pool, store, progress, concurrency or self._lanes(pool.workers))
            seconds = signals.run(lambda: self._carry_out(running, remarks))
        finally:
            pool.close()
            closed = (close(policy, name) for name, policy in self.policies.items())
            remarks += [failure for failure in closed if failure is not None]
        store.note_timings(seconds)
        return [*pool.remarks(), *remarks]

    def _lanes(self, workers: int) -> int:
        return max(4 * workers, *(policy.capacity for policy in self.policies.values()))

    async def _carry_out(self, running: Running, remarks: list[str]) -> dict[str, float]:
        try:
            return await self.carry_out(running)
        finally:
            for name, policy in self.policies.items():
                if isinstance(policy, Served):
                    try:
                        with guarded(policy, "aclose", name):
                            await policy.aclose()
                    except PolicyFault as error:  # it stops nothing
                        remarks.append(str(error))


def _owed(store: Store) -> str:
    return (
        f"{store.owed} of {store.planned} records are owed. What is finished is kept in {store.folder}: "
        "type the same command to go on"
    )
