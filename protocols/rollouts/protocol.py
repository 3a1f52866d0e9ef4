"""Independent rollouts as a :class:`~handoff.protocols.protocol.Protocol`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from handoff.auditing.checks import Audit
from handoff.episodes.pool import Pool
from handoff.policies.policy import Policy
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.protocols.protocol import Protocol
from handoff.protocols.rollouts import config as configs
from handoff.protocols.rollouts import study as studies
from handoff.protocols.rollouts.certify import CLAIMS, certify
from handoff.protocols.rollouts.checks import check_records
from handoff.protocols.rollouts.config import PtgsSettings, RolloutsConfig
from handoff.protocols.rollouts.play import roll_all, with_references
from handoff.protocols.rollouts.records import ROLLOUT
from handoff.protocols.rollouts.study import RolloutStudy, contradiction
from handoff.protocols.rollouts.summary import summary
from handoff.protocols.rollouts.tables import tables
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.launch import Running


class RolloutsProtocol(Protocol[RolloutsConfig, RolloutStudy]):
    """Roll policies out, many times per task, and count successes per task."""

    name = studies.NAME
    config = RolloutsConfig
    roles = ("policies",)
    replays = CLAIMS
    more_settings = (PtgsSettings,)
    report_at = "handoff.report.rollouts:REPORT"

    def configure(self, values: Mapping[str, Any]) -> RolloutsConfig:
        return configs.configure(values)

    def settle(self, config: RolloutsConfig, policies: Mapping[str, Policy]) -> RolloutsConfig:
        return with_references(config, policies)

    def plan(self, tasks: Sequence[Task], config: RolloutsConfig) -> list[Key]:
        return configs.plan(tasks, config)

    def size(self, tasks: Sequence[Task], config: RolloutsConfig) -> int:
        return configs.size(tasks, config)

    def turns(self, config: RolloutsConfig) -> int:
        return config.budget

    def repeats(self, config: RolloutsConfig) -> tuple[int, str]:
        return config.rollouts, "rollouts"

    async def play(
        self, config: RolloutsConfig, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        started = time.perf_counter()
        await roll_all(tasks, policies, config, running)
        return {ROLLOUT: time.perf_counter() - started}

    def load(self, folder: Path) -> RolloutStudy:
        return studies.load(folder)

    def contradiction(self, config: RolloutsConfig, key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
        return contradiction(config, key, body)

    def check(self, audit: Audit, run: RolloutStudy, templates: Sequence[str]) -> None:
        check_records(audit, run)

    async def certify(
        self,
        audit: Audit,
        run: RolloutStudy,
        pool: Pool,
        tasks: Mapping[str, Task],
        progress: Progress,
        concurrency: int,
    ) -> None:
        await certify(audit, run, pool, tasks, progress, concurrency)

    def summary(self, run: RolloutStudy) -> dict[str, Any]:
        return summary(run)

    def tables(self, run: RolloutStudy) -> Mapping[str, ExportTable]:
        return tables(run)


ROLLOUTS = RolloutsProtocol()
