"""Configuration and plan of a verified-frontier run."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from handoff.errors import UsageError
from handoff.protocols.frontier.prompt_groups import Groups
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.protocol import StudyConfig, role
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.identity import require_size
from handoff.settings import setting


@attrs.frozen(kw_only=True)
class FrontierConfig(StudyConfig):
    """The whole configuration; the defaults are the paper's."""

    reachers: tuple[str, ...] = role("Who acts first.", singular="reacher")
    solvers: tuple[str, ...] = role("Who goes on from the clone.", singular="solver")
    slots: int = setting("Paired seed slots per task.", kind=int, default=4, least=1, most=1_000_000)
    reach_budget: int = setting(
        "Actions that a reacher has.", kind=int, default=48, name="budget", least=1, most=1_000_000
    )
    depth: int = setting("D: actions from success at the handoff.", kind=int, default=2, least=1, most=100)
    solve_budget: int = setting(
        "Actions that a solver has.",
        kind=int,
        default=attrs.Factory(lambda self: self.depth, takes_self=True),
        name="solver_budget",
        least=1,
        most=1_000_000,
        shown="D",
    )
    distances: int | None = setting(
        "Record the distance to success, up to N, at every step.", kind=int, default=None, least=1, most=100
    )

    #: Solvers by the prompts that they get from equal histories; empty: all get the same.  The run finds it out.
    prompt_groups: Groups = ()

    def __attrs_post_init__(self) -> None:
        if self.solve_budget < self.depth:
            raise UsageError(f"a solver needs at least D = {self.depth} actions, not {self.solve_budget}")
        grouped = [name for group in self.prompt_groups for name in group]
        empty = len(self.prompt_groups) == 1 or not all(self.prompt_groups)
        if empty or len(set(grouped)) != len(grouped) or not {*grouped} <= {*self.solvers}:
            raise UsageError(f"{self.prompt_groups} are no groups of the solvers {', '.join(self.solvers)}")


def cells(tasks: Sequence[Task], config: FrontierConfig) -> list[Cell]:
    """Every (task, slot, reacher) of the crossing."""
    return [Cell(task.id, slot, name) for task in tasks for slot in range(config.slots) for name in config.reachers]


def size(tasks: Sequence[Task], config: FrontierConfig) -> int:
    """How many records the plan has."""
    return len(tasks) * config.slots * len(config.reachers) * (1 + len(config.solvers))


def plan(tasks: Sequence[Task], config: FrontierConfig) -> list[Key]:
    """All records of the run in the order in which they are sealed: trajectories, then endpoints."""
    require_size(size(tasks, config))
    crossing = cells(tasks, config)
    return [
        *(cell.key for cell in crossing),
        *(EndpointCell(*cell, solver).key for cell in crossing for solver in config.solvers),
    ]
