"""Configuration and plan of a rollouts run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.passk.ptgs import PILOTS, TARGET, TAU, EstimateThenSample, Split
from handoff.protocols.protocol import StudyConfig, role
from handoff.protocols.rollouts.records import RolloutCell
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.identity import require_size
from handoff.settings import setting


@attrs.frozen(kw_only=True)
class RolloutsConfig(StudyConfig):
    """The whole configuration."""

    policies: tuple[str, ...] = role(on_command_line=False, in_file=False)
    tasks: int | None = setting(
        "How many tasks, as many of each type; or all.", kind=int, default=None, least=1, most=1_000_000, word="all"
    )
    rollouts: int = setting(
        "N: rollouts per task and policy, pilots included.",
        kind=int,
        default=128,
        least=1,
        most=1_000_000,
        short="n",
    )
    budget: int = setting("Actions per rollout.", kind=int, default=50, least=1, most=1_000_000)
    ptgs: EstimateThenSample | None = None

    def __attrs_post_init__(self) -> None:
        if self.ptgs is not None:
            Split(self.rollouts, self.ptgs.pilots)


@attrs.frozen(kw_only=True)
class PtgsSettings:
    """Settings of PTGS at test time (:class:`handoff.passk.ptgs.EstimateThenSample`)."""

    ptgs: bool = setting("Set each task's temperature from pilot rollouts (PTGS).", kind=bool, default=False)
    pilot: int | None = setting(
        "Pilot rollouts per task, which are not scored.", kind=int, default=None, shown="N/2", **PILOTS
    )
    tau: float | None = setting(
        "Greatest factor on a policy's temperature.", kind=float, default=None, shown="1.5", **TAU
    )
    ptgs_target: float | None = setting(
        "Success rate that the temperature aims at.", kind=float, default=None, shown="0.5", **TARGET
    )


def configure(values: Mapping[str, Any]) -> RolloutsConfig:
    """The configuration from settings of :class:`RolloutsConfig` and :class:`PtgsSettings` by field name."""
    names = [field.name for field in attrs.fields(PtgsSettings)]
    stated = PtgsSettings(**{name: values[name] for name in names if name in values})
    config = RolloutsConfig(**{name: value for name, value in values.items() if name not in names})
    stated_parameters = {"tau": stated.tau, "target": stated.ptgs_target}
    parameters: dict[str, Any] = {name: value for name, value in stated_parameters.items() if value is not None}
    if not stated.ptgs:
        if parameters or stated.pilot is not None:
            raise UsageError("--pilot, --tau and --ptgs-target set up PTGS: add --ptgs")
        return config
    pilots = config.rollouts // 2 if stated.pilot is None else stated.pilot
    return attrs.evolve(config, ptgs=EstimateThenSample(pilots, **parameters))


def size(tasks: Sequence[Task], config: RolloutsConfig) -> int:
    """How many records the plan has."""
    return len(tasks) * len(config.policies) * config.rollouts


def plan(tasks: Sequence[Task], config: RolloutsConfig) -> list[Key]:
    """All records in the order in which they are sealed."""
    require_size(size(tasks, config))
    return [
        RolloutCell(task.id, policy, index).key
        for task in tasks
        for policy in config.policies
        for index in range(config.rollouts)
    ]
