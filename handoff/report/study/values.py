"""What the report of a handoff study says, as values.

The JSON twin has the same shape: each class is an object, each field a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.estimation.bootstrap import Estimate
from handoff.estimation.estimands import PAPER
from handoff.estimation.method import Intervals
from handoff.estimation.more import More
from handoff.protocols.frontier.failures import Failures
from handoff.protocols.frontier.search import SearchTotals
from handoff.report.format import OPTIONAL, Json, Measure, arrow, plain
from handoff.report.refusals import Refusals

FORMAT = 1

Pair = tuple[str, str]


@attrs.frozen
class StudyFacts:
    """What was run."""

    folder: str
    digest: str
    #: Version of the toolkit that made the run.
    toolkit: str
    environment: Mapping[str, Any]
    split: str
    reachers: tuple[str, ...]
    solvers: tuple[str, ...]
    policies: Mapping[str, Mapping[str, Any]]
    tasks: int
    #: Tasks per type.
    types: Mapping[str, int]
    slots: int
    depth: int
    reach_budget: int
    solve_budget: int

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Every checkpoint once, in either role."""
        return tuple(dict.fromkeys((*self.reachers, *self.solvers)))

    @property
    def styles(self) -> dict[str, int]:
        """A checkpoint's style is its place in the run's order."""
        return {name: place for place, name in enumerate(self.checkpoints)}


@attrs.frozen
class Contrast:
    """A pair of reachers with a pair of solvers, each from weaker to stronger."""

    reachers: Pair
    solvers: Pair

    @property
    def label(self) -> str:
        """``sft → rl``, of both roles or of either."""
        if self.reachers == self.solvers:
            return arrow(self.reachers)
        return f"{arrow(self.reachers)} × {arrow(self.solvers)}"

    @property
    def arguments(self) -> dict[str, str]:
        """Arguments of the estimands of this contrast."""
        return dict(zip("abcd", (*self.reachers, *self.solvers), strict=True))


# One reacher, one solver, one cell of the crossing, and contrasts of one role.


@attrs.frozen
class ReacherMeasure:
    reacher: str
    value: Measure


@attrs.frozen
class SolverMeasure:
    solver: str
    value: Measure


@attrs.frozen
class CellMeasure:
    reacher: str
    solver: str
    value: Measure


@attrs.frozen
class ReacherGap:
    reachers: Pair
    value: Measure


@attrs.frozen
class SolverGap:
    solvers: Pair
    value: Measure


@attrs.frozen
class SolverEffect:
    """Another solver after one reacher."""

    reacher: str
    solvers: Pair
    value: Measure


@attrs.frozen
class ReacherEffect:
    """Another reacher before one solver."""

    solver: str
    reachers: Pair
    value: Measure


# The tables.


@attrs.frozen
class Gain:
    """Another checkpoint in both roles."""

    checkpoints: Pair
    value: Measure


@attrs.frozen
class Interaction(Contrast):
    """The interaction with its two terms (Eqs. 4 and 9), and the survivor-only estimand."""

    interaction: Measure
    arrival_term: Measure
    state_term: Measure
    survivor_only: Measure
    survivor_minus_interaction: Measure


@attrs.frozen
class EndpointTable:
    """Table 1."""

    cells: tuple[CellMeasure, ...]
    solver_effects: tuple[SolverEffect, ...]
    reacher_effects: tuple[ReacherEffect, ...]
    gains: tuple[Gain, ...]
    interactions: tuple[Interaction, ...]
    #: What a crossing without a contrast in one role cannot tell.
    missing: str | None

    @property
    def by_cell(self) -> dict[tuple[str, str], Measure]:
        return {(cell.reacher, cell.solver): cell.value for cell in self.cells}

    def solver_effect(self, reacher: str, solvers: Pair) -> Measure:
        return next(row.value for row in self.solver_effects if (row.reacher, row.solvers) == (reacher, solvers))

    def reacher_effect(self, solver: str, reachers: Pair) -> Measure:
        return next(row.value for row in self.reacher_effects if (row.solver, row.reachers) == (solver, reachers))

    def parts(self) -> GainParts | None:
        """The leading gain taken apart."""
        if not self.gains:
            return None
        pair = self.gains[0].checkpoints
        crossed = next(row for row in self.interactions if row.reachers == row.solvers == pair)
        return GainParts(
            pair, self.solver_effect(pair[0], pair), self.reacher_effect(pair[0], pair), crossed.interaction
        )


@attrs.frozen
class GainParts:
    """endpoint_bb - endpoint_aa = solver alone + reacher alone + interaction (Eqs. 2 and 4)."""

    checkpoints: Pair
    #: Under reacher a.
    solver: Measure
    #: With solver a.
    reacher: Measure
    interaction: Measure


@attrs.frozen
class ReachRow:
    reacher: str
    reach: Measure
    mean_actions: Measure


@attrs.frozen
class ReachTable:
    """Table 2a."""

    rows: tuple[ReachRow, ...]
    gaps: tuple[ReacherGap, ...]

    @property
    def by_reacher(self) -> dict[str, ReachRow]:
        return {row.reacher: row for row in self.rows}


@attrs.frozen
class SolveTable:
    """Table 2b."""

    cells: tuple[CellMeasure, ...]
    effects: tuple[SolverEffect, ...]
    #: Over all reached states.
    pooled: tuple[SolverMeasure, ...]
    pooled_gaps: tuple[SolverGap, ...]

    @property
    def by_solver(self) -> dict[str, Measure]:
        return {row.solver: row.value for row in self.pooled}


@attrs.frozen
class StageRow:
    solver: str
    bridge: Measure
    finish: Measure
    completion: Measure


@attrs.frozen
class StageGap:
    solvers: Pair
    bridge: Measure
    finish: Measure
    completion: Measure
    #: Reached states.
    won_by_both: int
    won_by_neither: int
    won_by_second_only: Measure
    won_by_first_only: Measure


@attrs.frozen
class StageTable:
    """Table 3."""

    #: Reached states.
    states: int
    rows: tuple[StageRow, ...]
    gaps: tuple[StageGap, ...]


@attrs.frozen
class ContrastMeasure(Contrast):
    value: Measure


@attrs.frozen
class TypeRow:
    """One task type."""

    type: str
    tasks: int
    reach: tuple[ReacherMeasure, ...]
    reach_gaps: tuple[ReacherGap, ...]
    completion: tuple[SolverMeasure, ...]
    completion_gaps: tuple[SolverGap, ...]
    interactions: tuple[ContrastMeasure, ...]


@attrs.frozen
class PredictionRow:
    """Eq. 10 for one task type, or for all of them (``type`` is ``None``), which have no gaps."""

    type: str | None
    reach_gap: Measure | None = attrs.field(metadata=OPTIONAL)
    external_gap: Measure | None = attrs.field(metadata=OPTIONAL)
    predicted: Measure
    observed: Measure
    residual: Measure


@attrs.frozen
class PredictionTable(Contrast):
    """Eq. 10."""

    rows: tuple[PredictionRow, ...]
    whole: PredictionRow


@attrs.frozen
class TypeTable:
    """Table 6."""

    rows: tuple[TypeRow, ...]
    prediction: PredictionTable | None


@attrs.frozen
class BudgetLevel:
    reacher: str
    steps: int
    value: Measure


@attrs.frozen
class BudgetGap:
    """The second reacher within the second budget, less the first within the first."""

    reachers: Pair
    steps: tuple[int, int]
    value: Measure


@attrs.frozen
class BudgetTable:
    """Table 7."""

    steps: tuple[int, ...]
    levels: tuple[BudgetLevel, ...]
    gaps: tuple[BudgetGap, ...]


@attrs.frozen
class StudyTables:
    """The paper's tables."""

    endpoints: EndpointTable
    reach: ReachTable
    solve: SolveTable
    stages: StageTable
    types: TypeTable
    budgets: BudgetTable

    @property
    def reach_gap(self) -> ReacherGap | None:
        """The leading Reach gap: of the leading contrast, if there is one."""
        lead = self.interaction
        return next((gap for gap in self.reach.gaps if lead is None or gap.reachers == lead.reachers), None)

    @property
    def solve_gap(self) -> SolverGap | None:
        """The leading same-state Solve gap: of the leading contrast, if there is one."""
        lead = self.interaction
        return next((gap for gap in self.solve.pooled_gaps if lead is None or gap.solvers == lead.solvers), None)

    @property
    def interaction(self) -> Interaction | None:
        """The leading interaction."""
        return next(iter(self.endpoints.interactions), None)


@attrs.frozen
class ArrivalPoint:
    steps: int
    point: float | None
    low: float | None
    high: float | None
    numerator: int | None


@attrs.frozen
class ArrivalCurve:
    reacher: str
    points: tuple[ArrivalPoint, ...]


@attrs.frozen
class StudyCurves:
    arrival: tuple[ArrivalCurve, ...]


@attrs.frozen
class FailureTable:
    """The non-arrivals (Appendix D)."""

    reachers: tuple[Failures, ...]
    #: Gaps of the share of loops.
    loop_gaps: tuple[ReacherGap, ...]
    #: Of policies that have any, in all of their turns; ``None`` if there are none.
    refusals: tuple[Refusals, ...] | None = attrs.field(default=None, metadata={"optional": True})


@attrs.frozen
class StudyResults:
    """What a complete run tells."""

    intervals: Intervals
    contrasts: tuple[Contrast, ...]
    tables: StudyTables
    curves: StudyCurves
    failures: FailureTable


@attrs.frozen
class StudyDocument:
    """Everything that is reported of a run."""

    run: StudyFacts
    #: As far as the run has got (:func:`handoff.protocols.frontier.summary.summary`).
    counts: Json
    #: What is owed, in words; ``None`` of a complete run.
    incomplete: str | None
    #: ``None`` while records are owed.
    results: StudyResults | None = None
    #: Sentences per section.
    sentences: Mapping[str, list[str]] = attrs.field(factory=dict)
    #: Every estimand in full.
    estimates: tuple[Estimate, ...] = ()
    #: What lies beside the plain intervals, where it was asked for.
    more: More | None = None
    #: The frontier search, where ``more`` was asked for.
    search: SearchTotals | None = None

    def to_json(self) -> Json:
        nothing: Json = {"intervals": None, "contrasts": [], "tables": None, "curves": None, "failures": None}
        return {
            "format": FORMAT,
            "paper": PAPER,
            "run": plain(self.run),
            **self.counts,
            "incomplete": self.incomplete,
            **(nothing if self.results is None else plain(self.results)),
            "sentences": dict(self.sentences),
            "estimates": [estimate.to_json() for estimate in self.estimates],
            **({} if self.more is None else {"more": {**self.more.to_json(), "search": plain(self.search)}}),
        }
