"""A run that is fully decided, and carrying it out: what every protocol shares.

A protocol decides its tasks, its identity (everything that the run is) and its plan (the keys of its records in their
sealed order), and says how to carry it out.  Here: the folder, the pool, resume, and what is owed when it breaks off.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import __version__, interrupts
from handoff import workers as places
from handoff.canonical import digest
from handoff.environment import Environment
from handoff.errors import Interrupted, UsageError
from handoff.names import require_printable
from handoff.policies import Policy, Served
from handoff.progress import Progress
from handoff.records import Task, to_json
from handoff.rollout import Pool
from handoff.seeds import derive
from handoff.store import Key, Store


@attrs.frozen
class Running:
    """What a protocol runs with: environments, the store, progress, and how many episodes may be in flight."""

    pool: Pool
    store: Store
    progress: Progress
    concurrency: int


@attrs.define
class Prepared:
    """A run that is fully decided and has not begun: what ``--dry-run`` shows and :meth:`run` carries out.

    ``carry_out`` finishes every record that the store does not hold and returns wall-clock seconds by phase.
    """

    environment: str
    options: Mapping[str, Any]
    tasks: Sequence[Task]
    policies: dict[str, Policy]
    identity: Mapping[str, Any]
    plan: Sequence[Key]
    carry_out: Callable[[Running], Awaitable[dict[str, float]]]
    #: Further remarks for the manifest's ``host`` part, which takes no part in what the run is.
    remarks: Mapping[str, Any] = attrs.Factory(dict)

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
        workers: int | None,
        progress: Progress,
        concurrency: int | None = None,
        ray: str | None = None,
    ) -> list[str]:
        """Carry the run out in ``folder``, or what is left of it.  Returns remarks on what was found there and on how
        the work went.

        ``workers`` and ``ray`` say where environments live (:func:`handoff.workers.start`); ``concurrency`` is how many
        episodes are in flight (default: four a worker, or as many as the policies can make use of).  Raises
        :class:`~handoff.errors.Interrupted` if a worker or a server went away; what is finished is kept.
        """
        host = {"options": dict(self.options), "python": platform.python_version(), "platform": platform.platform()}
        host.update(self.remarks)
        with Store(folder, self.identity, self.plan, host) as store:
            try:
                remarks = list(store.dropped)
                if store.owed:
                    remarks += self._work(store, workers, progress, concurrency, ray)
                store.complete()
                return remarks
            except Interrupted as error:
                # A signal to all processes of the command may have ended a worker first.
                why = interrupts.reason() if interrupts.received() else str(error)
                raise Interrupted(f"{why}; {_owed(store)}") from error
            except KeyboardInterrupt:
                raise Interrupted(f"{interrupts.reason()}; {_owed(store)}") from None

    def _work(
        self, store: Store, workers: int | None, progress: Progress, concurrency: int | None, ray: str | None
    ) -> list[str]:
        """Finish what is owed.  Returns remarks on how the work went."""
        pool = Pool(places.start(self.environment, self.options, workers, ray))
        try:
            running = Running(pool, store, progress, concurrency or self._lanes(pool.workers))
            seconds = interrupts.run(lambda: self._carry_out(running))
        finally:
            pool.close()
            for policy in self.policies.values():
                policy.close()
        store.note_timings(seconds)
        return pool.remarks()

    def _lanes(self, workers: int) -> int:
        return max(4 * workers, *(policy.capacity for policy in self.policies.values()))

    async def _carry_out(self, running: Running) -> dict[str, float]:
        try:
            return await self.carry_out(running)
        finally:
            for policy in self.policies.values():
                if isinstance(policy, Served):
                    await policy.aclose()


def _owed(store: Store) -> str:
    return (
        f"{store.owed} of {store.planned} records are owed. What is finished is kept in {store.folder}: "
        "type the same command to go on"
    )


#: Records that a plan may have: beyond this a typing error is likelier than a study.
MOST_RECORDS = 20_000_000


def require_size(records: int) -> None:
    """Raise :class:`~handoff.errors.UsageError` if a plan of so many ``records`` cannot be meant."""
    if records > MOST_RECORDS:
        raise UsageError(f"this would be {records} records; ask for at most {MOST_RECORDS} (fewer slots or rollouts)")


def stated_seeds(run_seed: int) -> dict[str, Any]:
    """What a manifest says of seeds."""
    return {"run": run_seed, "schedule": "sha256 of [run, task, slot, purpose, position], first 63 bits"}


def identity(
    environment: Environment,
    protocol: Mapping[str, Any],
    run_seed: int,
    tasks: Sequence[Task],
    policies: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """All that a run is, JSON-safe and free of paths: what its manifest holds and its digest covers.

    Raises :class:`~handoff.errors.DataError` for names that nobody could read back.
    """
    require_printable("policy", policies)
    require_printable("task", [word for task in tasks for word in (task.id, task.name, task.type, task.split)])
    return {
        "handoff": __version__,
        "protocol": dict(protocol),
        "environment": {"name": environment.name, **environment.describe(tasks)},
        "tasks": [to_json(attrs.evolve(task, source="")) for task in tasks],
        "policies": {name: dict(policies[name]) for name in sorted(policies)},
        "seeds": stated_seeds(run_seed),
    }


def draw_tasks(
    tasks: Sequence[Task], split: str, count: int | None, types: Sequence[str], selection_seed: int
) -> list[Task]:
    """``count`` of ``tasks``, as many of each type, drawn by a seed; all of them if ``count`` is ``None``.

    A task's place in the draw is a hash of (selection seed, task id), so the draw does not depend on the order or the
    paths of the tasks, and a smaller sample is part of a larger one.  Raises :class:`~handoff.errors.UsageError` if
    the number does not divide by the types or a type has too few tasks.
    """
    by_type: dict[str, list[Task]] = {}
    for task in tasks:
        by_type.setdefault(task.type, []).append(task)
    wanted = sorted(set(types or by_type))
    for name in wanted:
        if name not in by_type:
            raise UsageError(f"split {split!r} has no task of type {name!r} (it has: {', '.join(sorted(by_type))})")
    if count is None:
        return [task for name in wanted for task in by_type[name]]
    each, rest = divmod(count, len(wanted))
    if rest or not each:
        raise UsageError(
            f"{count} tasks cannot be drawn in equal numbers from {len(wanted)} task types; "
            f"ask for a multiple of {len(wanted)} (--tasks), or name the types (--type)"
        )
    chosen: list[Task] = []
    for name in wanted:
        if len(by_type[name]) < each:
            raise UsageError(
                f"type {name!r} has {len(by_type[name])} tasks in split {split!r}, but {each} are asked for"
            )
        drawn = sorted(by_type[name], key=lambda task: (derive(selection_seed, "select", task.id), task.id))
        chosen.extend(drawn[:each])
    return chosen
