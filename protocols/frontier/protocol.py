"""Verified-frontier handoff as a :class:`~handoff.protocols.protocol.Protocol`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import signals
from handoff.auditing.checks import Audit
from handoff.environment import Environment, Messages
from handoff.episodes.pool import Pool
from handoff.errors import UsageError
from handoff.policies.policy import Policy
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.protocols.frontier import logic
from handoff.protocols.frontier import study as studies
from handoff.protocols.frontier.certify import CLAIMS, certify
from handoff.protocols.frontier.checks import check_records
from handoff.protocols.frontier.config import FrontierConfig, plan, size
from handoff.protocols.frontier.flat_tables import tables
from handoff.protocols.frontier.play import Player
from handoff.protocols.frontier.prompt_groups import prompt_groups
from handoff.protocols.frontier.prompts import check_prompts
from handoff.protocols.frontier.study import Study
from handoff.protocols.frontier.summary import summary
from handoff.protocols.protocol import Protocol
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.launch import Running


class FrontierProtocol(Protocol[FrontierConfig, Study]):
    """Reachers act until the state is D actions from success, solvers go on from exact clones."""

    name = studies.NAME
    config = FrontierConfig
    roles = ("reachers", "solvers")
    replays = CLAIMS
    report_at = "handoff.report.study:REPORT"

    def suit(self, config: FrontierConfig, environment: Environment) -> FrontierConfig:
        if isinstance(environment, Messages):
            raise UsageError(
                f"the state of {environment.name} is a conversation, which has no frontier; hand over its recorded "
                f"histories: handoff run {environment.name} --protocol recorded"
            )
        return config

    def settle(self, config: FrontierConfig, policies: Mapping[str, Policy]) -> FrontierConfig:
        solvers = {name: policies[name] for name in config.solvers}
        groups = signals.run(lambda: prompt_groups(solvers, config.reach_budget))
        return attrs.evolve(config, prompt_groups=groups)

    def to_json(self, config: FrontierConfig) -> dict[str, Any]:
        form = super().to_json(config)
        if not config.prompt_groups:
            del form["prompt_groups"]
        return form

    def plan(self, tasks: Sequence[Task], config: FrontierConfig) -> list[Key]:
        return plan(tasks, config)

    def size(self, tasks: Sequence[Task], config: FrontierConfig) -> int:
        return size(tasks, config)

    def turns(self, config: FrontierConfig) -> int:
        return config.reach_budget

    def repeats(self, config: FrontierConfig) -> tuple[int, str]:
        return config.slots, "seed slots"

    async def play(
        self, config: FrontierConfig, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        return await Player(config, tasks, policies, running).play()

    def load(self, folder: Path) -> Study:
        return studies.load(folder)

    def contradiction(self, config: FrontierConfig, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
        return logic.contradiction(config, key, body, body_of)

    def check(self, audit: Audit, run: Study, templates: Sequence[str]) -> None:
        check_records(audit, run)
        check_prompts(audit, run, templates)

    async def certify(
        self, audit: Audit, run: Study, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
    ) -> None:
        await certify(audit, run, pool, tasks, progress, concurrency)

    def summary(self, run: Study) -> dict[str, Any]:
        return summary(run)

    def tables(self, run: Study) -> Mapping[str, ExportTable]:
        return tables(run)


FRONTIER = FrontierProtocol()
