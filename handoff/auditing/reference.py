"""The reference implementation of a run's environment, with the run's tasks found in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from handoff import registry, signals
from handoff.auditing.checks import Audit
from handoff.canonical import differing_keys
from handoff.environment import Certified, Environment
from handoff.episodes import start as places
from handoff.episodes.pool import Pool
from handoff.errors import UsageError
from handoff.protocols.frontier import config as frontier_config
from handoff.protocols.frontier.study import Study
from handoff.protocols.rollouts import config as rollouts_config
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.records import Task
from handoff.runs import selection


def reference_options(environment: Environment, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under which the adapter is its own reference."""
    return dict(environment.reference_options()) if isinstance(environment, Certified) else dict(options)


@attrs.frozen
class _Place:
    """Where the environments of the replays live, and the options that they are given there."""

    overrides: Mapping[str, Any]
    workers: int | None
    ray: str | None


@attrs.define
class _Reference:
    """The environment's reference implementation, with the run's tasks found in it and checked."""

    result: Audit
    study: Study | RolloutStudy
    place: _Place
    config: frontier_config.Config | rollouts_config.Config
    tasks: dict[str, Task] = attrs.Factory(dict)
    pool: Pool | None = None

    def __enter__(self) -> _Reference:
        identity = self.study.identity
        name = str(identity["environment"].get("name"))
        # Options of an untrusted folder: they choose data and engine, never trust.
        host = self.study.manifest.get("host")
        stated = host.get("options") if isinstance(host, dict) else None
        recorded = dict(stated) if isinstance(stated, dict) else {}
        recorded.pop("trust_games", None)
        environment = registry.create(name, {**recorded, **self.place.overrides})
        try:
            options = reference_options(environment, {**recorded, **self.place.overrides})
            available = list(environment.tasks(self.config.split))
            self.tasks = {task.id: task for task in available}
            self._check_tasks(available)
            chosen = [self.tasks[task.id] for task in self.study.tasks if task.id in self.tasks]
            described = {"name": environment.name, **environment.describe(chosen)}
        finally:
            environment.close()
        claim = "versions and digests of the environment are those that the run recorded"
        different = differing_keys(dict(identity["environment"]), described)
        self.result.check("environment", claim).require(not different, f"these differ here: {', '.join(different)}")
        self.pool = Pool(places.start(name, options, self.place.workers, self.place.ray))
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.close()

    def run(self, job: Callable[[Pool, Mapping[str, Task], int], Awaitable[None]]) -> None:
        async def main() -> None:
            assert self.pool is not None
            await job(self.pool, self.tasks, 4 * self.pool.workers)

        signals.run(main)

    def _check_tasks(self, available: Sequence[Task]) -> None:
        check = self.result.check("tasks", "the tasks are what the selection seed draws from the split")
        for task in self.study.tasks:
            found = self.tasks.get(task.id)
            if not check.require(found is not None, f"no game of digest {task.id[:12]}... (task {task.name}) is there"):
                continue
            assert found is not None
            stated, there = f"{task.type} of {task.split}", f"{found.type} of {found.split}"
            check.require(stated == there, f"task {task.name} is stated as {stated}, but is {there}")
            if "data" not in self.place.overrides:  # elsewhere files may have other names
                check.require(task.name == found.name, f"task {task.id[:12]} is called {task.name}, not {found.name}")
        if not check.passed:
            return
        config = self.config
        try:
            drawn = selection.draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        except UsageError as error:
            check.require(False, str(error))
            return
        check.require([t.id for t in drawn] == [t.id for t in self.study.tasks], "the selection seed draws other tasks")
