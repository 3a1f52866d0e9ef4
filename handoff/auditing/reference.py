"""The reference implementation of a run's environment, with the run's tasks found in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from handoff import signals
from handoff.auditing.checks import Audit, Check
from handoff.canonical import differing_keys
from handoff.environment import Certified, Environment
from handoff.episodes.pool import Pool
from handoff.episodes.start import Where, start
from handoff.errors import DataError, EnvironmentFault, HandoffError, UsageError, brief
from handoff.guard.adapter import load, opened
from handoff.records import Task
from handoff.runs.run import Run
from handoff.runs.selection import draw_tasks


def reference_options(environment: Environment, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under which the adapter is its own reference."""
    return dict(environment.reference_options()) if isinstance(environment, Certified) else dict(options)


#: Seconds that a call may take with options that the run folder states: its data may be a whole disk.
STATED_TIMEOUT = 60.0


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
    #: Why the options that the run folder states were not used.
    unused: str | None = None

    def __enter__(self) -> Reference:
        identity = self.run.identity
        name = str(identity["environment"].get("name"))
        # Options of an untrusted folder choose data and engine, never trust.
        host = self.run.manifest.get("host")
        stated = host.get("options") if isinstance(host, dict) else None
        options = dict(stated) if isinstance(stated, dict) else {}
        options.pop("trust_games", None)
        named = options.get("data")
        options, available = self._find(name, options)
        self.tasks = {task.id: task for task in available}
        self._check_tasks(available)
        self._note_place(named, options.get("data"), len(available))
        with opened(name, options, self.where.step_timeout) as environment:
            check = self._check_environment(environment, available)
            options = reference_options(environment, options)
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

    def _find(self, name: str, stated: Mapping[str, Any]) -> tuple[dict[str, Any], list[Task]]:
        """The options under which the run's tasks are found, and all tasks of their split there.

        ``stated`` are those of the run folder, which anybody may have written: where none of them can be used, the
        overrides alone are.
        """
        try:
            return self._first({**stated, **self.overrides}, bool(set(stated) - set(self.overrides)))
        except (UsageError, DataError, EnvironmentFault) as error:
            if not set(stated) - set(self.overrides):
                raise
            self.unused = brief(str(error))
            try:
                return self._first(self.overrides, False)
            except HandoffError:
                raise error from None

    def _first(self, options: Mapping[str, Any], untrusted: bool) -> tuple[dict[str, Any], list[Task]]:
        """The options and tasks of the first place that has the run's tasks.

        After ``options`` the adapter's own places are tried (:attr:`Environment.places`).  The first place from which
        the selection seed draws the run's tasks is taken, else the one with most of them.  Raises
        :class:`~handoff.errors.UsageError` or :class:`~handoff.errors.DataError` if none can be read, or if one cannot
        and the others have none of them.
        """
        name = str(self.run.identity["environment"].get("name"))
        timeout = self.where.step_timeout or (STATED_TIMEOUT if untrusted else None)
        refusals = (UsageError, DataError, EnvironmentFault) if untrusted else (UsageError, DataError)
        places: list[tuple[int, dict[str, Any], list[Task]]] = []
        refusal: HandoffError | None = None
        for place in ({}, *load(name).places):
            chosen = {**options, **place}
            try:
                with opened(name, chosen, timeout) as environment:
                    available = list(environment.tasks(self.run.config.split))
            except refusals as error:
                refusal = refusal or error
                continue
            if self._draw(available) == self._ids:
                return chosen, available
            ids = {task.id for task in available}
            places.append((sum(id in ids for id in self._ids), chosen, available))
        most = max((count for count, *_ in places), default=0)
        if refusal is not None and not most:
            raise refusal
        return next((chosen, available) for count, chosen, available in places if count == most)

    @property
    def _ids(self) -> list[str]:
        return [task.id for task in self.run.tasks]

    def _draw(self, available: Sequence[Task]) -> list[str] | str:
        """Digests of the tasks that the selection seed draws, or why it draws none."""
        config = self.run.config
        try:
            drawn = draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
        except UsageError as error:
            return str(error)
        return [task.id for task in drawn]

    def _note_place(self, named: Any, data: Any, tasks: int) -> None:
        """Say what came of the run folder's statement ``named``: its maker may have picked the games of ``data``."""
        notes = next(check for check in self.audit.checks if check.name == "tasks").notes
        if self.unused is not None:
            notes.append(f"the options of the environment that the run states are of no use here: {self.unused}")
        if named is None or "data" in self.overrides:
            return
        if data == named:
            notes.append(
                f"the tasks were looked for in {named!s:.200}, which the run itself names ({tasks} tasks of the split "
                "there); --data PATH draws them from another place"
            )
        elif self.unused is None:
            notes.append(
                f"the tasks were not found in {named!s:.200}, which the run names; they were looked for elsewhere"
            )

    def _check_environment(self, environment: Environment, available: Sequence[Task]) -> Check:
        claim = "versions and digests of the environment are those that the run recorded"
        check = self.audit.check("environment", claim)
        recorded = dict(self.run.identity["environment"])
        ids = set(self._ids)
        described = {"name": environment.name, **environment.describe([task for task in available if task.id in ids])}
        missing = len(ids - set(self.tasks))
        if missing:
            # What is said of the tasks would be said of others: only the rest can be compared.
            without, some = environment.describe(), environment.describe(available[:1])
            of_tasks = differing_keys(dict(without), dict(some))
            for key in {key.partition(".")[0] for key in of_tasks}:
                recorded.pop(key, None)
                described.pop(key, None)
            if of_tasks:
                check.owe(f"{missing} of {len(ids)} tasks were not found; {', '.join(of_tasks)} not compared")
        different = differing_keys(recorded, described)
        check.require(not different, f"these differ here: {', '.join(different)}")
        return check

    def _check_tasks(self, available: Sequence[Task]) -> None:
        check = self.audit.check("tasks", "the tasks are what the selection seed draws from the split")
        config = self.run.config
        for task in self.run.tasks:
            failure = f"task {task.name} is stated as of split {task.split}, but the protocol's split is {config.split}"
            check.require(task.split == config.split, failure)
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
        drawn = self._draw(available)
        check.require(drawn == self._ids, drawn if isinstance(drawn, str) else "the selection seed draws other tasks")
