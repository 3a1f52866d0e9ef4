"""The numbers of a recorded-history run: endpoints, solver effects and interactions at every solver budget B."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from handoff.estimation.bootstrap import Estimate, Estimates, estimate
from handoff.estimation.estimands import Estimand, estimand, pairs
from handoff.estimation.table import Table
from handoff.protocols.recorded.study import RecordedStudy
from handoff.protocols.recorded.summary import summary
from handoff.report.format import Json
from handoff.report.report import Options

Pair = tuple[str, str]


@attrs.frozen
class AtBudget:
    """All estimates at one solver budget."""

    #: ``None``: all decisions that the solver has.
    budget: int | None
    table: Table
    estimates: Estimates

    def of(self, wanted: Estimand) -> Estimate:
        return next(one for one in self.estimates.estimates if one.estimand == wanted)

    @property
    def label(self) -> str:
        return "all decisions" if self.budget is None else f"B = {self.budget}"


@attrs.frozen
class RecordedDocument:
    """Everything that is reported of a recorded-history run."""

    run: RecordedStudy
    counts: Json
    #: Solver pairs and reacher pairs, the widest contrast first.
    solver_pairs: tuple[Pair, ...]
    reacher_pairs: tuple[Pair, ...]
    #: Empty while records are owed.
    budgets: tuple[AtBudget, ...]

    def to_json(self) -> Json:
        return {
            "protocol": "recorded",
            "run": {"folder": self.run.folder.resolve().name, "digest": str(self.run.manifest["digest"])},
            "environment": dict(self.run.identity["environment"]),
            "counts": self.counts,
            "budgets": [{"budget": one.budget, **one.estimates.to_json()} for one in self.budgets],
        }


def document(run: RecordedStudy, options: Options) -> RecordedDocument:
    """Counts, and of a complete run the estimates at every budget."""
    counts = summary(run)
    if run.still_owed:
        return RecordedDocument(run, counts, (), (), ())
    budgets: Sequence[int | None] = run.config.budgets or (None,)
    table = run.table
    order = options.order
    solver_pairs, reacher_pairs = _pairs(table, table.solvers, order), _pairs(table, table.reachers, order)
    wanted = estimands(table, solver_pairs, reacher_pairs)
    at = []
    for budget in budgets:
        of_budget = run.table_at(budget)
        at.append(AtBudget(budget, of_budget, estimate(of_budget, wanted, options.intervals)))
    return RecordedDocument(run, counts, solver_pairs, reacher_pairs, tuple(at))


def _pairs(table: Table, names: Sequence[str], order: Sequence[str] | None) -> tuple[Pair, ...]:
    """Contrasts a -> b of ``names``: in the stated order, else in that of the run."""
    both = [pair for pair in pairs(table, order) if set(pair) <= set(names)]
    kept = [name for name in order if name in names] if order is not None else list(names)
    every = [(a, b) for i, a in enumerate(kept) for b in kept[i + 1 :]]
    return tuple(dict.fromkeys([*both, *every]))


def estimands(table: Table, solver_pairs: Sequence[Pair], reacher_pairs: Sequence[Pair]) -> list[Estimand]:
    """Endpoints, the solver effects E_w = Y_{w,b} - Y_{w,a} per reacher, and I = E_b - E_a (section 4.3)."""
    wanted = [estimand("endpoint", reacher=w, solver=r) for w in table.reachers for r in table.solvers]
    wanted += [endpoint_effect(w, pair) for w in table.reachers for pair in solver_pairs]
    wanted += [interaction(reachers, solvers) for reachers in reacher_pairs for solvers in solver_pairs]
    return wanted


def endpoint(reacher: str, solver: str) -> Estimand:
    return estimand("endpoint", reacher=reacher, solver=solver)


def endpoint_effect(reacher: str, pair: Pair) -> Estimand:
    return estimand("endpoint_effect", reacher=reacher, a=pair[0], b=pair[1])


def interaction(reachers: Pair, solvers: Pair) -> Estimand:
    return estimand("interaction", a=reachers[0], b=reachers[1], c=solvers[0], d=solvers[1])


def rates(checks: dict[str, Any]) -> tuple[int, int]:
    """Passed and applicable checks of all rows of a cell."""
    return sum(one["passed"] for one in checks.values()), sum(one["of"] for one in checks.values())
