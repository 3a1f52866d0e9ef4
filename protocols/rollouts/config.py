"""Configuration and plan of a rollouts run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.passk.ptgs import EstimateThenSample, Split
from handoff.records import Task, to_json
from handoff.runs import identity
from handoff.runs.chain import Key

NAME = "rollouts"
KIND = "rollout"


def _positive(instance: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 1:
        raise UsageError(f"{attribute.name.replace('_', ' ')} must be at least 1, not {value}")


@attrs.frozen
class Config:
    """The protocol's whole configuration.  ``tasks`` is ``None`` for every task of the split; else as many of each type
    as :func:`handoff.runs.selection.draw_tasks` draws.  ``rollouts`` are those of each task and policy, pilots included."""

    split: str
    policies: tuple[str, ...]
    rollouts: int = attrs.field(default=128, validator=_positive)
    tasks: int | None = attrs.field(default=None, validator=attrs.validators.optional(_positive))
    types: tuple[str, ...] = ()
    budget: int = attrs.field(default=50, validator=_positive)
    run_seed: int = 0
    selection_seed: int = 2029
    ptgs: EstimateThenSample | None = None

    def __attrs_post_init__(self) -> None:
        if not self.policies:
            raise UsageError("name at least one policy (-p NAME=SPEC)")
        if self.ptgs is not None:
            Split(self.rollouts, self.ptgs.pilots)

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = to_json(self)
        return {"name": NAME, **form}


def plan(tasks: Sequence[Task], config: Config) -> list[Key]:
    """All records in the order in which they are sealed."""
    identity.require_size(len(tasks) * len(config.policies) * config.rollouts)
    return [
        _key(task, policy, index) for task in tasks for policy in config.policies for index in range(config.rollouts)
    ]


def _key(task: Task, policy: str, index: int) -> Key:
    return (KIND, task.id, policy, str(index))
