"""Configuration and plan of a recorded-history run."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from handoff.protocols.frontier.prompt_groups import Groups
from handoff.protocols.frontier.records import Cell, EndpointCell
from handoff.protocols.protocol import StudyConfig, role
from handoff.protocols.recorded.cut import FORMS, Cut
from handoff.protocols.recorded.records import CONTINUATION, OF_ROWS, VERDICT, row_key, trajectory_key
from handoff.records import Task
from handoff.runs.chain import Key
from handoff.runs.identity import require_size
from handoff.settings import setting

#: The formatter that asks no model.
PLAIN = "plan"


def _cut(instance: object, attribute: object, value: str) -> None:
    Cut.parse(value)


@attrs.frozen(kw_only=True)
class RecordedConfig(StudyConfig):
    """The whole configuration; the defaults are the paper's (section 4.1 and appendix B)."""

    reachers: tuple[str, ...] = role("Whose history is handed over.", singular="reacher")
    solvers: tuple[str, ...] = role("Who goes on from the cut.", singular="solver")
    tasks: int | None = setting(
        "How many tasks, as many of each type; or all.", kind=int, default=None, least=1, most=1_000_000, word="all"
    )
    slots: int = setting("Paired seed slots per task.", kind=int, default=1, least=1, most=1_000_000)
    run_seed: int = setting(
        "Seed that every decision's seed derives from.", kind=int, default=2027, name="seed", least=0, most=2**63 - 1
    )
    cut: str = setting(f"Where the history is cut: {FORMS}.", kind=str, default="final", metavar="RULE", validator=_cut)
    decisions: int = setting("Decisions that a reacher has.", kind=int, default=60, least=1, most=1_000_000)
    calls: int = setting("Decisions of a reacher that may call tools.", kind=int, default=60, least=1, most=1_000_000)
    solve_budget: int | None = setting(
        "Decisions that a solver has: B = 1 to N come from one run.",
        kind=int,
        default=None,
        name="solver_budget",
        least=1,
        most=1_000_000,
        shown="4; after turn:K, what is left of --decisions",
    )
    context: int | None = setting(
        "Prompt tokens beyond which the environment asks for a last reply.",
        kind=int,
        default=None,
        name="context_limit",
        least=1,
        most=100_000_000,
        shown="none",
    )
    formatter: str | None = setting(
        "Who brings answers into the form that is scored, as NAME=SPEC, NAME or SPEC.",
        kind=str,
        default=PLAIN,
        metavar="NAME=SPEC",
        group="policies",
        shown="plan, which reads an answer as it is",
    )

    #: What the environment asks for at the end of a context; a fact about it.
    last_request: str = ""
    #: Solvers by the prompts that they get from equal histories; empty: all get the same.  The run finds it out.
    prompt_groups: Groups = ()

    @property
    def rule(self) -> Cut:
        return Cut.parse(self.cut)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of records that each row has."""
        return OF_ROWS if self.formatter is not None else (CONTINUATION, VERDICT)

    def budget_after(self, cut: int) -> int:
        """Decisions that a solver has after ``cut`` decisions were handed over."""
        if self.solve_budget is not None:
            return self.solve_budget
        return max(self.decisions - cut, 1) if self.rule.of_turns else 4

    @property
    def budgets(self) -> tuple[int, ...]:
        """The solver budgets B that are reported apart; empty after a cut before a turn."""
        if self.rule.of_turns:
            return ()
        most = self.solve_budget or 4
        return tuple(range(1, most + 1)) if most <= 8 else tuple(2**i for i in range(most.bit_length()))


def cells(tasks: Sequence[Task], config: RecordedConfig) -> list[Cell]:
    """Every (task, slot, reacher) of the crossing."""
    return [Cell(task.id, slot, name) for task in tasks for slot in range(config.slots) for name in config.reachers]


def rows(tasks: Sequence[Task], config: RecordedConfig) -> list[EndpointCell]:
    """Every (task, slot, reacher, solver) of the crossing."""
    return [EndpointCell(*cell, solver) for cell in cells(tasks, config) for solver in config.solvers]


def size(tasks: Sequence[Task], config: RecordedConfig) -> int:
    """How many records the plan has."""
    count = len(tasks) * config.slots * len(config.reachers)
    return count * (1 + len(config.solvers) * len(config.kinds))


def plan(tasks: Sequence[Task], config: RecordedConfig) -> list[Key]:
    """All records in the order in which they are sealed: by kind, then by row."""
    require_size(size(tasks, config))
    crossing = rows(tasks, config)
    return [
        *(trajectory_key(cell) for cell in cells(tasks, config)),
        *(row_key(kind, row) for kind in config.kinds for row in crossing),
    ]
