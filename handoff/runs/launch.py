"""Carries out a run that is fully decided: the folder, the pool, resume, and the owed records when it breaks off."""

from __future__ import annotations

import contextlib
import os
import platform
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from handoff import signals
from handoff.canonical import canonical, digest
from handoff.episodes.pool import Pool
from handoff.episodes.start import Where, start
from handoff.errors import HandoffError, Interrupted, MissingExtra, PolicyFault, StoreError, UsageError
from handoff.guard.host_state import kept
from handoff.policies import Policy, Served
from handoff.policies.guard import guarded
from handoff.policies.language.fit import Fit
from handoff.progress import Progress, Silent
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.identity import OBSERVED_BY_PROTOCOLS, commanded
from handoff.runs.run import protocol_of
from handoff.runs.store import Contradiction, Store, no_contradiction
from handoff.text import reason, shell_word


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
    #: What a user should know before the run, one sentence each.
    cautions: Sequence[str] = ()
    #: How many turns fit in the prompts of each language model.
    fits: Mapping[str, Fit] = attrs.Factory(dict)
    #: How a finished record contradicts itself (:meth:`handoff.protocols.protocol.Protocol.contradiction`).
    contradiction: Contradiction = no_contradiction

    @property
    def digest(self) -> str:
        return digest(dict(self.identity))

    @property
    def plan_digest(self) -> str:
        """Digest of the part of the identity that follows from the command alone."""
        return digest(commanded(self.identity))

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless told otherwise: the same for the same command, so that typing it again resumes."""
        return Path("runs") / f"{self.environment}-{self.plan_digest[:10]}"

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
            "options": _located(self.options),
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        host.update(self.remarks)
        folder, where = folder.absolute(), where or Where()
        if where.step_timeout is not None:
            host["step_timeout"] = where.step_timeout
        hold = partial(self._hold, folder)
        with Store(folder, self.identity, self.plan, host, hold, self.contradiction) as store:
            pool: Pool | None = None
            try:
                remarks = [*self.failures, *store.dropped, *store.remarks]
                if store.owed:
                    pool = Pool(start(self.environment, self.options, where))
                    remarks += self._work(pool, store, progress or Silent(), concurrency)
                store.complete()
                return remarks
            except Interrupted as error:
                # A signal to all processes of the command may have ended a worker first.
                why = signals.reason() if signals.received() else str(error)
                raise Interrupted(f"{why}; {_owed(store)}") from error
            except (KeyboardInterrupt, SystemExit, CancelledError, signals.LoopStopped) as error:
                # But for Ctrl-C, a policy's code outside of any call of the toolkit has done this.
                why = signals.reason() if signals.from_user(error) else f"code of a plug-in ended it ({reason(error)})"
                raise Interrupted(f"{why}; {_owed(store)}") from None
            except MemoryError:
                raise Interrupted(f"out of memory: ask for less at once; {_owed(store)}") from None
            except (StoreError, MissingExtra):  # the one says what is kept, the other comes before any work
                raise
            except HandoffError as error:
                if pool is not None or not isinstance(error, UsageError):  # else the request was wrong, and no more
                    error.args = (f"{error}; {_owed(store)}",)
                raise

    def _hold(self, folder: Path, theirs: Mapping[str, Any]) -> list[str]:
        """Whether the models that answer now are those of the run in ``folder``, which ``theirs`` identifies."""
        remarks = []
        for name, policy in self.policies.items():
            try:
                with guarded(policy, "resume_from", name):
                    more = [str(remark) for remark in policy.resume_from(theirs["policies"][name])]
                remarks += [f"policy {name}: {remark}" for remark in more]
            except UsageError as error:
                raise StoreError(
                    f"{folder} cannot go on: policy {name}: {error}. Nothing was changed there: serve the model that "
                    "the run was begun with and type the same command, or choose another --out"
                ) from error
        for key in sorted(OBSERVED_BY_PROTOCOLS):
            before, now = (canonical(protocol_of(one).get(key)).decode() for one in (theirs, self.identity))
            if before not in (now, "null"):
                raise StoreError(f"{folder} cannot go on: its {key} were {before}, and are {now}; choose another --out")
            if before != now:
                remarks.append(f"the {key} are {now}, which the run does not declare: its audit will say so")
        return remarks

    def _work(self, pool: Pool, store: Store, progress: Progress, concurrency: int | None) -> list[str]:
        """Finish the owed records.  Returns remarks on how the work went."""
        seconds: dict[str, float] = {}
        remarks: list[str] = []
        try:
            running = Running(pool, store, progress, concurrency or self._lanes(pool.workers))
            with kept():  # a policy may print, and change this process, at any moment
                seconds = signals.run(lambda: self._carry_out(running, remarks))
        finally:
            pool.close()
            named: dict[str, list[str]] = {}
            for name, policy in self.policies.items():
                with _remarked(remarks), guarded(policy, "close", name):
                    policy.close()
                with _remarked(remarks), guarded(policy, "system_fingerprints", name):
                    named[name] = [str(entry) for entry in policy.system_fingerprints()]
            systems = store.note_timings(seconds, named)
        for name, policy in self.policies.items():
            with _remarked(remarks), guarded(policy, "remarks", name):
                remarks += [f"policy {name}: {remark}" for remark in policy.remarks()]
            entries = systems.get(name, [])
            if len(entries) > 1:
                remarks.append(
                    f"policy {name}: its servers named {len(entries)} system fingerprints ({', '.join(entries)}): "
                    "their software or hardware is not the same, or changed while the run went on"
                )
        return [*pool.remarks(), *remarks]

    def _lanes(self, workers: int) -> int:
        return max(4 * workers, *(policy.capacity for policy in self.policies.values()))

    async def _carry_out(self, running: Running, remarks: list[str]) -> dict[str, float]:
        try:
            return await self.carry_out(running)
        finally:
            for name, policy in self.policies.items():
                if isinstance(policy, Served):
                    with _remarked(remarks), guarded(policy, "aclose", name):
                        await policy.aclose()


@contextlib.contextmanager
def _remarked(remarks: list[str]) -> Iterator[None]:
    """Add the failure of a policy that is closed to ``remarks``: it stops nothing."""
    try:
        yield
    except PolicyFault as error:
        remarks.append(str(error))


def _located(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with the paths of ``data`` and ``flights`` absolute, so that an audit finds them from any folder."""
    located = dict(options)
    for name in ("data", "flights"):
        place = options.get(name)
        if isinstance(place, str) and place and os.path.exists(place):  # no error for what is no path
            located[name] = str(Path(place).absolute())
    return located


def _owed(store: Store) -> str:
    return (
        f"{store.owed} of {store.planned} records are owed. What is finished is kept in {shell_word(store.folder)}: "
        "type the same command to go on"
    )
