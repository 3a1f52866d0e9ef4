"""The boundary between the toolkit and the protocols of plug-ins.

Whatever a method raises, and whatever else than its declared type it returns, becomes
:class:`~handoff.errors.ProtocolFault`: one sentence that names the protocol and the method.  Errors of the toolkit (an
environment that failed, a damaged folder) pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff.auditing.checks import Audit
from handoff.environment import Environment
from handoff.episodes.pool import Pool
from handoff.errors import ProtocolFault, UsageError
from handoff.guard.failures import contained
from handoff.guard.values import described, json_object, problem
from handoff.policies.policy import Policy
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.protocols.protocol import Protocol, StudyConfig
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.launch import Prepared, Running
from handoff.runs.run import Run
from handoff.settings import Setting

#: Attributes of a protocol's class.
_ATTRIBUTES = ("name", "config", "roles", "more_settings", "report_at", "__doc__")


class _Plugin(Protocol[Any, Any]):
    """A plug-in's protocol behind the boundary."""

    def __init__(self, inner: Protocol[Any, Any]) -> None:
        self.inner = inner

    def plan(self, tasks: Sequence[Task], config: Any) -> list[Key]:
        with self._guarded("plan"):
            keys = list(self.inner.plan(tasks, config))
        problems = (problem(key, tuple[str, ...], f"key {number}") for number, key in enumerate(keys, start=1))
        wrong = next((one for one in problems if one is not None), None)
        if wrong is None and len(set(keys)) != len(keys):
            known: set[Key] = set()
            twice = next(key for key in keys if key in known or known.add(key))  # type: ignore[func-returns-value]
            wrong = f"the key {'/'.join(twice)!r:.120} occurs twice"
        self._require("plan", wrong)
        return keys

    def size(self, tasks: Sequence[Task], config: Any) -> int:
        if type(self.inner).size is Protocol.size:
            return super().size(tasks, config)
        with self._guarded("size"):
            size = self.inner.size(tasks, config)
        self._require("size", problem(size, int))
        return size

    async def play(
        self, config: Any, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        with self._guarded("play"):
            seconds = json_object(await self.inner.play(config, tasks, policies, running))
        if any(type(value) not in (int, float) for value in seconds.values()):
            self._require("play", "it is not a mapping from phases to seconds")
        if running.store.owed:
            raise ProtocolFault(f"{self._where}: play() returned before every planned record was finished")
        return seconds

    def load(self, folder: Path) -> Any:
        with self._guarded("load"):
            run = self.inner.load(folder)
        self._require("load", None if isinstance(run, Run) else f"it is {described(run)}, not a Run")
        return run

    def read(self, folder: Path) -> Any:
        run = self.load(folder)
        with self._guarded("read"):
            run.require_consistent()
        return run

    def contradiction(self, config: Any, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
        with self._guarded("contradiction"):
            clause = self.inner.contradiction(config, key, body, body_of)
        self._require("contradiction", problem(clause, str | None))
        return clause

    def check(self, audit: Audit, run: Any, templates: Sequence[str]) -> None:
        with self._guarded("check"):
            self.inner.check(audit, run, templates)

    async def certify(
        self, audit: Audit, run: Any, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
    ) -> None:
        with self._guarded("certify"):
            await self.inner.certify(audit, run, pool, tasks, progress, concurrency)

    def summary(self, run: Any) -> dict[str, Any]:
        with self._guarded("summary"):
            return json_object(self.inner.summary(run))

    def tables(self, run: Any) -> Mapping[str, ExportTable]:
        with self._guarded("tables"):
            tables = dict(self.inner.tables(run))
        right = all(type(name) is str and isinstance(table, ExportTable) for name, table in tables.items())
        self._require("tables", None if right else "it is not a mapping from names to ExportTable")
        return tables

    def configure(self, values: Mapping[str, Any]) -> Any:
        with self._guarded("configure"):
            return self.inner.configure(values)

    def bindings(self, values: dict[str, Any]) -> Mapping[str, str]:
        with self._guarded("bindings"):
            return {str(name): str(spec) for name, spec in self.inner.bindings(values).items()}

    def suit(self, config: Any, environment: Environment) -> Any:
        with self._guarded("suit"):
            return self.inner.suit(config, environment)

    def settle(self, config: Any, policies: Mapping[str, Policy]) -> Any:
        with self._guarded("settle"):
            return self.inner.settle(config, policies)

    def turns(self, config: Any) -> int | None:
        with self._guarded("turns"):
            turns = self.inner.turns(config)
        self._require("turns", problem(turns, int | None))
        return turns

    def repeats(self, config: Any) -> tuple[int, str]:
        with self._guarded("repeats"):
            count, episodes = self.inner.repeats(config)
        self._require("repeats", problem(count, int, "the count") or problem(episodes, str, "the word"))
        return count, episodes

    def cautions(self, config: Any, policies: Mapping[str, Policy]) -> list[str]:
        with self._guarded("cautions"):
            return [str(caution) for caution in self.inner.cautions(config, policies)]

    def settings(self) -> tuple[Setting, ...]:
        with self._guarded("settings"):
            return self.inner.settings()

    def policies(self, config: Any) -> list[str]:
        with self._guarded("policies"):
            names = list(self.inner.policies(config))
        self._require("policies", problem(tuple(names), tuple[str, ...]))
        return names

    def to_json(self, config: Any) -> dict[str, Any]:
        with self._guarded("to_json"):
            facts = json_object(self.inner.to_json(config))
        stated = facts.get("name")
        wrong = f"its key 'name' is {described(stated)}, but the protocol's name is {self.name!r:.60}"
        self._require("to_json", None if stated == self.name else wrong)
        return facts

    def report(self) -> Any:
        with self._guarded("report"):
            return _Report(self.inner.report(), self._where)

    def prepare(self, *arguments: Any, **named: Any) -> Prepared:
        if type(self.inner).prepare is Protocol.prepare:
            return super().prepare(*arguments, **named)
        with self._guarded("prepare"):
            return self.inner.prepare(*arguments, **named)

    @property
    def _where(self) -> str:
        return f"protocol {self.name!r:.60}"

    def _guarded(self, method: str) -> contextlib.AbstractContextManager[None]:
        return contained(ProtocolFault, f"{self._where}: {method}()")

    def _require(self, method: str, wrong: str | None) -> None:
        if wrong is not None:
            raise ProtocolFault(f"{self._where}: {method}() returned what it must not: {wrong}")


class _Report:
    """A plug-in's report behind the boundary."""

    def __init__(self, inner: Any, where: str) -> None:
        self._inner, self._where = inner, where

    def __getattr__(self, name: str) -> Any:
        with contained(ProtocolFault, f"{self._where}: its report's {name}"):
            value = getattr(self._inner, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            with contained(ProtocolFault, f"{self._where}: its report's {name}()"):
                return value(*arguments, **named)

        return call


def plugin(protocol: Protocol[Any, Any]) -> Protocol[Any, Any]:
    """``protocol`` behind the boundary.  Raises :class:`~handoff.errors.UsageError` for a configuration class that is
    none."""
    if not (isinstance(protocol.config, type) and attrs.has(protocol.config)):
        raise UsageError(f"protocol {protocol.name!r:.60} has no configuration class made by attrs")
    if not issubclass(protocol.config, StudyConfig):
        raise UsageError(f"the configuration class of protocol {protocol.name!r:.60} is no subclass of StudyConfig")
    stated = {name: getattr(protocol, name) for name in _ATTRIBUTES}
    guarded: Protocol[Any, Any] = type("PluginProtocol", (_Plugin,), stated)(protocol)
    return guarded
