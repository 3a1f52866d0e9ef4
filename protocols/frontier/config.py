"""Configuration and plan of a verified-frontier run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.records import Task, to_json
from handoff.runs import identity
from handoff.runs.chain import Key

NAME = "frontier"
TRAJECTORY, ENDPOINT = "trajectory", "endpoint"


def _positive(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and value < 1:
        raise UsageError(f"{attribute.name.replace('_', ' ')} must be at least 1, not {value}")


def _named(instance: Any, attribute: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    if not value:
        raise UsageError(f"name at least one {attribute.name[:-1]} (--{attribute.name[:-1]} NAME)")
    if len(set(value)) != len(value):
        raise UsageError(f"a {attribute.name[:-1]} is named twice: {', '.join(value)}")


@attrs.frozen
class Config:
    """The protocol's whole configuration; the defaults are the paper's.

    ``tasks`` tasks are drawn by ``selection_seed`` in equal numbers from each task type (``types`` empty: every type
    that the split has); ``None``: all of them.  ``depth`` is D; ``solve_budget`` is D unless given.  ``distances``
    records the exact distance to success, up to that many actions, at reset and after every action.
    """

    split: str
    reachers: tuple[str, ...] = attrs.field(validator=_named)
    solvers: tuple[str, ...] = attrs.field(validator=_named)
    tasks: int | None = attrs.field(default=30, validator=_positive)
    types: tuple[str, ...] = ()
    slots: int = attrs.field(default=4, validator=_positive)
    reach_budget: int = attrs.field(default=48, validator=_positive)
    depth: int = attrs.field(default=2, validator=_positive)
    solve_budget: int = attrs.field(
        default=attrs.Factory(lambda self: self.depth, takes_self=True), validator=_positive
    )
    run_seed: int = 0
    selection_seed: int = 2029
    distances: int | None = attrs.field(default=None, validator=_positive)

    def __attrs_post_init__(self) -> None:
        if self.solve_budget < self.depth:
            raise UsageError(f"a solver needs at least D = {self.depth} actions, not {self.solve_budget}")

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = to_json(self)
        return {"name": NAME, **form}


def plan(tasks: Sequence[Task], config: Config) -> list[Key]:
    """All records of the study in the order in which they are sealed."""
    identity.require_size(len(tasks) * config.slots * len(config.reachers) * (1 + len(config.solvers)))
    cells = [
        (task.id, str(slot), reacher) for task in tasks for slot in range(config.slots) for reacher in config.reachers
    ]
    return [
        *((TRAJECTORY, *cell) for cell in cells),
        *((ENDPOINT, *cell, solver) for cell in cells for solver in config.solvers),
    ]
