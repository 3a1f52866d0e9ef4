"""What an experiment design is: one :class:`Protocol`, behind which everything about it lies.

A protocol states its configuration, its plan (the keys of all records, in the order in which they are sealed), how to
play what the plan owes, how to read a run back, and what its audit checks.  The commands ``run``, ``audit``,
``report``, ``export`` and the study file know protocols by this class alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from handoff import signals
from handoff.auditing.checks import Audit
from handoff.environment import Environment
from handoff.episodes.openings import openings
from handoff.episodes.pool import Pool
from handoff.errors import UsageError
from handoff.guard.adapter import opened
from handoff.policies.bindings import introduce, make_policies
from handoff.policies.guard import guarded, require_attributes
from handoff.policies.language.clock import present
from handoff.policies.language.fit import Fit, Prompting, fit
from handoff.policies.language.options import ModelOptions, is_greedy
from handoff.policies.policy import Policy, Served
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.records import Task, to_json
from handoff.runs.chain import Key
from handoff.runs.identity import describe, identity
from handoff.runs.launch import Prepared, Running
from handoff.runs.run import Run
from handoff.runs.selection import draw_tasks
from handoff.settings import Setting, setting, settings


def _named(instance: Any, attribute: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    role = attribute.name
    if not value:
        one = "policy (-p NAME=SPEC)" if role == "policies" else f"{role[:-1]} (--{role[:-1]} NAME)"
        raise UsageError(f"name at least one {one}")
    if len(set(value)) != len(value):
        raise UsageError(f"a name occurs twice among the {role}: {', '.join(value)}")


def role(help: str = "", **stated: Any) -> Any:
    """A field of a configuration that names policies, each once."""
    return setting(help, kind=str, repeats=True, metavar="NAME", group="policies", validator=_named, **stated)


@attrs.frozen(kw_only=True)
class StudyConfig:
    """The settings that every protocol's configuration has.  A subclass may state other defaults."""

    split: str = setting("Which tasks to draw from.", kind=str, shown="the environment's first split")
    tasks: int | None = setting(
        "How many tasks, as many of each type; or all.", kind=int, default=30, least=1, most=1_000_000, word="all"
    )
    types: tuple[str, ...] = setting(
        "Task types to draw from.",
        kind=str,
        default=(),
        repeats=True,
        singular="type",
        metavar="TYPE",
        shown="all",
    )
    run_seed: int = setting(
        "Seed that every decision's seed derives from.", kind=int, default=0, name="seed", least=0, most=2**63 - 1
    )
    selection_seed: int = setting(
        "Seed that the tasks are drawn with.", kind=int, default=2029, least=0, most=2**63 - 1
    )


C = TypeVar("C", bound=StudyConfig)
R = TypeVar("R", bound=Run)


class Protocol(ABC, Generic[C, R]):
    """One experiment design on tasks of one environment."""

    #: Name in manifests and of the entry point.
    name: ClassVar[str]
    #: Frozen configuration class; its settings are the options of the command and the keys of a study file.
    config: type[C]
    #: Fields of the configuration that name policies.
    roles: ClassVar[tuple[str, ...]]
    #: Further classes of settings, which :meth:`configure` turns into fields of the configuration.
    more_settings: ClassVar[tuple[type, ...]] = ()
    #: Claims of the checks that :meth:`certify` adds, by name: an audit without replays lists them as not done.
    replays: ClassVar[Mapping[str, str]] = {"replay": "every episode is equal on the reference engine"}
    #: Where the report lies, as ``module:NAME``; imported when something is shown.
    report_at: ClassVar[str] = "handoff.report.plain:REPORT"

    @abstractmethod
    def plan(self, tasks: Sequence[Task], config: C) -> list[Key]:
        """The keys of all records, in the order in which they are sealed.  A key starts with the kind of record."""

    def size(self, tasks: Sequence[Task], config: C) -> int:
        """How many records :meth:`plan` has.

        An audit compares the number with that of the records before it asks for the plan of a folder, which may state
        any: a subclass says it without making the keys.
        """
        return len(self.plan(tasks, config))

    @abstractmethod
    async def play(
        self, config: C, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        """Finish every record that ``running.store`` does not hold.  Returns wall-clock seconds by phase."""

    @abstractmethod
    def load(self, folder: Path) -> R:
        """Read a run back, complete or not.  Every line is verified.

        Raises :class:`~handoff.errors.StoreError` or :class:`~handoff.errors.DataError`, naming the line.
        """

    def read(self, folder: Path) -> R:
        """The run in ``folder``, complete or not, for everybody but an audit.

        Raises as :meth:`load` does, and :class:`~handoff.errors.DataError` for a run that contradicts itself.
        """
        run = self.load(folder)
        run.require_consistent()
        return run

    def contradiction(self, config: C, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
        """How a finished record in a folder contradicts itself, as a clause: a run does not go on from it.

        ``body_of`` gives the body of another finished record, or ``None``.
        """
        return None

    @abstractmethod
    def check(self, audit: Audit, run: R, templates: Sequence[str]) -> None:
        """Add the checks that need the records alone.  ``templates`` are files of prompt templates to render."""

    @abstractmethod
    async def certify(
        self, audit: Audit, run: R, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
    ) -> None:
        """Add the checks that replay episodes on the reference environments in ``pool``."""

    @abstractmethod
    def summary(self, run: R) -> dict[str, Any]:
        """Counts of the run as far as it has got, as JSON: what a run prints at its end."""

    @abstractmethod
    def tables(self, run: R) -> Mapping[str, ExportTable]:
        """The records as flat tables, by name."""

    def configure(self, values: Mapping[str, Any]) -> C:
        """The configuration from settings by field name, those of :attr:`more_settings` included."""
        return self.config(**values)

    def bindings(self, values: dict[str, Any]) -> Mapping[str, str]:
        """Specs by name that settings bind, such as ``--formatter NAME=SPEC``; these settings keep the name."""
        return {}

    def suit(self, config: C, environment: Environment) -> C:
        """The configuration, completed by facts about the environment.

        Raises :class:`~handoff.errors.UsageError` if the protocol cannot be played there.
        """
        return config

    def settle(self, config: C, policies: Mapping[str, Policy]) -> C:
        """The configuration, completed by facts about the policies."""
        return config

    def turns(self, config: C) -> int | None:
        """The most turns that one episode has; ``None``: no bound is known."""
        return None

    def repeats(self, config: C) -> tuple[int, str]:
        """How often a policy plays one task under seeds that differ, and what these episodes are called."""
        return 1, "episodes"

    def cautions(self, config: C, policies: Mapping[str, Policy]) -> list[str]:
        """What a user should know before the run, one sentence each."""
        cautions, (count, episodes) = [], self.repeats(config)
        for name, policy in policies.items():
            with guarded(policy, "cautions", name):
                cautions += [f"policy {name}: {caution}" for caution in policy.cautions()]
            if count > 1 and policy.temperature is not None and is_greedy(policy.temperature):
                cautions.append(
                    f"policy {name}: it samples at temperature 0, so its {count} {episodes} of a task are one, unless "
                    "the environment is random; give a --temperature above 0"
                )
        return cautions

    def settings(self) -> tuple[Setting, ...]:
        """All settings, roles included."""
        return tuple(one for cls in (self.config, *self.more_settings) for one in settings(cls))

    def policies(self, config: C) -> list[str]:
        """Names of the policies that act, each once."""
        return list(dict.fromkeys(name for role in self.roles for name in getattr(config, role)))

    def report(self) -> Any:
        """The report (:class:`handoff.report.report.Report`)."""
        return resolve_name(self.report_at)

    def to_json(self, config: C) -> dict[str, Any]:
        """The protocol's part of a manifest."""
        form: dict[str, Any] = to_json(config)
        return {"name": self.name, **form}

    def prepare(
        self,
        environment: str,
        options: Mapping[str, Any],
        config: C,
        policies: Mapping[str, str | Policy],
        models: Mapping[str, ModelOptions] | None = None,
        step_timeout: float | None = None,
    ) -> Prepared:
        """Decide everything about a run: its tasks, its policies and its identity.

        ``policies`` are specs by name (or policies themselves), ``models`` the options of those that are language
        models, ``step_timeout`` the seconds that one call of the environment may take.  Raises
        :class:`~handoff.errors.UsageError` for a wrong request.
        """
        with opened(environment, options, step_timeout) as instance:
            config = self.suit(config, instance)
            available = instance.tasks(config.split)
            tasks = draw_tasks(available, config.split, config.tasks, config.types, config.selection_seed)
            acting = _policies({name: policies[name] for name in self.policies(config)}, models)
            signals.run(lambda: introduce(acting))
            for name, policy in acting.items():
                require_attributes(policy, name)
            now = present()
            for name, policy in acting.items():
                with guarded(policy, "set_time", name):
                    policy.set_time(now)
            config = self.settle(config, acting)
            described = {name: describe(policies[name], policy, name) for name, policy in acting.items()}
            stated = identity(instance, self.to_json(config), config.run_seed, tasks, described)
            fits = self._fits(instance, config, tasks, acting)
        failures = instance.call.remarks

        async def play(running: Running) -> dict[str, float]:
            return await self.play(config, tasks, acting, running)

        return Prepared(
            environment,
            options,
            tasks,
            acting,
            stated,
            self.plan(tasks, config),
            play,
            failures=failures,
            cautions=self.cautions(config, acting),
            fits=fits,
            contradiction=partial(self.contradiction, config),
        )

    def _fits(
        self, environment: Environment, config: C, tasks: Sequence[Task], policies: Mapping[str, Policy]
    ) -> dict[str, Fit]:
        """How many turns fit in the prompts of each language model."""
        turns = self.turns(config)
        models: dict[str, Any] = {name: policy for name, policy in policies.items() if isinstance(policy, Prompting)}
        first = openings(environment, tasks, config.run_seed) if models and turns is not None else []

        async def measure() -> dict[str, Fit]:
            fits = {}
            for name, policy in models.items():
                try:
                    with guarded(policy, "count", name):
                        fits[name] = await fit(policy, first, turns or 0)
                finally:
                    if isinstance(policy, Served):
                        await policy.aclose()
            return {name: one for name, one in fits.items() if one is not None}

        return signals.run(measure) if first else {}


def _policies(given: Mapping[str, str | Policy], models: Mapping[str, ModelOptions] | None) -> dict[str, Policy]:
    specs = {name: spec for name, spec in given.items() if isinstance(spec, str)}
    policies = make_policies(specs, models)
    return {name: policies[name] if isinstance(one, str) else one for name, one in given.items()}
