"""The reference implementation of a run's environment, with the run's tasks found in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from handoff import signals
from handoff.auditing.checks import Audit
from handoff.canonical import differing_keys
from handoff.environment import Certified, Environment
from handoff.episodes.pool import Pool
from handoff.episodes.start import Where, start
from handoff.errors import UsageError
from handoff.guard.adapter import opened
from handoff.records import Task
from handoff.runs.run import Run
from handoff.runs.selection import draw_tasks


def reference_options(environment: Environment, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under which the adapter is its own reference."""
    return dict(environment.reference_options()) if isinstance(environment, Certified) else dict(options)


@attrs.define
class Reference:
    """A pool of reference environments, and the run's tasks in them, checked."""

    audit: Audit
    run: Run
    #: Options that take the place of those that the run was made with.
    overrides: Mapping[str, Any]
    where: Where
    #: The run's tasks by digest, with their sources here.
    tasks: dict[str, Task] = attrs.Factory(dict)
    pool: Pool | None = None

    def __enter__(self) -> Reference:
        identity = self.run.identity
        name = str(identity["environment"].get("name"))
        # Options of an untrusted folder choose data and engine, never trust.
        host = self.run.manifest.get("host")
        stated = host.get("options") if isinstance(host, dict) else None
        options = dict(stated) if isinstance(stated, dict) else {}
        options.pop("trust_games", None)
        options.update(self.overrides)
        with opened(name, options, self.where.step_timeout) as environment:
            options = reference_options(environment, options)
            available = list(environment.tasks(self.run.config.split))
            self.tasks = {task.id: task for task in available}
            self._check_tasks(available)
            chosen = [self.tasks[task.id] for task in self.run.tasks if task.id in self.tasks]
            described = {"name": environment.name, **environment.describe(chosen)}
        claim = "versions and digests of the environment are those that the run recorded"
        different = differing_keys(dict(identity["environment"]), described)
        check = self.audit.check("environment", claim)
        check.require(not different, f"these differ here: {', '.join(different)}")
        check.notes.extend(environment.call.remarks)
        self.pool = Pool(start(name, options, self.where))
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.close()

    def certify(self, job: Callable[[Pool, Mapping[str, Task], int], Awaitable[None]]) -> None:
        """Run ``job`` with the pool, the tasks and the number of episodes that may be in flight."""

        async def main() -> None:
            assert self.pool is not None
            await job(self.pool, self.tasks, 4 * self.pool.workers)

        signals.run(main)

    def _check_tasks(self, available: Sequence[Task]) -> None:
        check = self.audit.check("tasks", "the tasks are what the selection seed draws from the split")
        for task in self.run.tasks:
            here = self.tasks.get(task.id)
            present = here is not None
            if not check.require(present, f"no game of digest {task.id[:12]}... (task {task.name}) is there"):
                continue
            assert here is not None
            stated, actual = f"{task.type} of {task.split}", f"{here.type} of {here.split}"
            check.require(stated == actual, f"task {task.name} is stated as {stated}, but is {actual}")
            if "data" not in self.overrides:  # elsewhere files may have other names
                check.require(task.name == here.name, f"task {task.id[:12]} is called {task.name}, not {here.name}")
        if not check.passed:
            return
        config = self.run.config
        try:
            drawn = draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        except UsageError as error:
            check.require(False, str(error))
            return
        check.require([t.id for t in drawn] == [t.id for t in self.run.tasks], "the selection seed draws other tasks")
