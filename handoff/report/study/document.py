"""The numbers of a handoff study's report: terminal, page and JSON twin are made from these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import attrs

from handoff.errors import UsageError
from handoff.estimation.bootstrap import Estimate, Estimates, estimate
from handoff.estimation.estimands import Argument, Estimand, arrival_curve, estimand, observed_budget, pairs, standard
from handoff.estimation.more import more
from handoff.estimation.table import Table
from handoff.estimation.transport import Transport, transport
from handoff.protocols.frontier.failures import failures, share_gap
from handoff.protocols.frontier.search import search_totals
from handoff.protocols.frontier.study import Study
from handoff.protocols.frontier.summary import summary
from handoff.report.format import Measure
from handoff.report.refusals import refusals
from handoff.report.report import Options
from handoff.report.sheet import measure
from handoff.report.study import sentences, values
from handoff.report.study.values import Pair

#: Arrival curves have no more points than this: a longer budget is sampled evenly.
TICKS = 64


def document(study: Study, options: Options | None = None, external: Study | None = None) -> values.StudyDocument:
    """Every number that is reported of a run; counts only while records are owed.

    ``external`` is a run of other tasks that Eq. 10 predicts from.  Raises :class:`~handoff.errors.UsageError` for
    options that do not fit or an external run that is not independent, :class:`~handoff.errors.DataError` for a run
    that contradicts itself.
    """
    options = options or Options()
    study.require_consistent()
    run, counts = facts(study), summary(study)
    ladder = options.order is not None
    if options.order is None:
        # One order for both roles: a contrast a -> b of the solvers must be the reachers' too, however they were named.
        options = attrs.evolve(options, order=run.checkpoints)
    if not counts["complete"]:
        return values.StudyDocument(run, counts, sentences.incomplete(counts))
    table = study.table
    estimates = _estimates(table, options)
    transported = None if external is None else _transport(study, table, external, options)
    results = values.StudyResults(
        options.intervals,
        tuple(contrasts(table, options.order)),
        _Tables(table, options, estimates).all(transported),
        values.StudyCurves(tuple(_arrival(table, estimates))),
        _failures(study, options),
    )
    return values.StudyDocument(
        run,
        counts,
        None,
        results,
        sentences.sentences(run, counts, results),
        estimates.estimates + (() if transported is None else transported.estimates.estimates),
        more(table, options.order, options.intervals, ladder) if options.more else None,
        search_totals(study) if options.more else None,
    )


def facts(study: Study) -> values.StudyFacts:
    """Environment, checkpoints, tasks and budgets of a run."""
    config, identity = study.config, study.identity
    return values.StudyFacts(
        folder=study.folder.resolve().name,
        digest=str(study.manifest["digest"]),
        toolkit=str(identity.get("handoff", "")),
        environment=dict(identity["environment"]),
        split=config.split,
        reachers=study.reachers,
        solvers=study.solvers,
        policies={name: dict(described) for name, described in study.policies.items()},
        tasks=len(study.tasks),
        types=dict(sorted(Counter(task.type for task in study.tasks).items())),
        slots=study.slots,
        depth=study.depth,
        reach_budget=config.reach_budget,
        solve_budget=config.solve_budget,
    )


def _estimates(table: Table, options: Options) -> Estimates:
    of_tables = standard(table, options.order, budgets=options.budgets)
    every = list(dict.fromkeys((*of_tables, *arrival_curve(table, ticks(table)))))
    return estimate(table, every, options.intervals)


def ticks(table: Table) -> list[int]:
    """The steps at which arrival curves are drawn: 0 to the budget, evenly."""
    last = observed_budget(table)
    if last <= TICKS:
        return list(range(last + 1))
    return sorted({round(i * last / TICKS) for i in range(TICKS + 1)})


def _transport(study: Study, table: Table, external: Study, options: Options) -> Transport:
    external.require_consistent()
    contrast = next(iter(contrasts(table, options.order)), None)
    if contrast is None:
        raise UsageError("a prediction needs two reachers and two solvers; this run has fewer")
    return transport(
        study.sample(),
        external.sample(),
        (*contrast.reachers, *contrast.solvers),
        options.intervals,
    )


def ordered(names: Sequence[str], order: Sequence[str] | None) -> list[Pair]:
    """Contrasts a -> b of one role: the widest first, then in order."""
    kept = [name for name in order if name in names] if order is not None else list(names)
    return _widest_first([(a, b) for i, a in enumerate(kept) for b in kept[i + 1 :]])


def _widest_first(in_order: list[Pair]) -> list[Pair]:
    if not in_order:
        return []
    widest = (in_order[0][0], in_order[-1][1])
    return [widest, *(pair for pair in in_order if pair != widest)]


def contrasts(table: Table, order: Sequence[str] | None = None) -> list[values.Contrast]:
    """Reacher pair and solver pair of every interaction; the first one, from the weakest to the strongest, leads."""
    same = _widest_first(pairs(table, order))
    if same:
        return [values.Contrast(pair, pair) for pair in same]
    both = product(ordered(table.reachers, order), ordered(table.solvers, order))
    return [values.Contrast(reachers, solvers) for reachers, solvers in both]


class _Tables:
    """The tables, from estimates by name and arguments."""

    def __init__(self, table: Table, options: Options, estimates: Estimates) -> None:
        self.table, self.options = table, options
        self._estimates: dict[Estimand, Estimate] = {one.estimand: one for one in estimates.estimates}
        self._reacher_pairs = ordered(table.reachers, options.order)
        self._solver_pairs = ordered(table.solvers, options.order)
        self._contrasts = contrasts(table, options.order)

    def get(self, name: str, type: str | None = None, **arguments: Argument) -> Measure:
        return measure(self._estimates[estimand(name, type=type, **arguments)])

    def pooled(self, name: str, type: str | None = None, **arguments: Argument) -> Measure:
        """The same over the states that any reacher reached."""
        return self.get(name, type, reachers=self.table.reachers, **arguments)

    def all(self, transported: Transport | None) -> values.StudyTables:
        predicted = None if transported is None else _prediction(transported)
        return values.StudyTables(
            self.endpoints(),
            self.reach(),
            self.solve(),
            self.stages(),
            values.TypeTable(tuple(self.type_row(type) for type in self.table.types), predicted),
            self.budgets(),
        )

    def cells(self, name: str) -> tuple[values.CellMeasure, ...]:
        crossing = product(self.table.reachers, self.table.solvers)
        return tuple(values.CellMeasure(w, r, self.get(name, reacher=w, solver=r)) for w, r in crossing)

    def solver_effects(self, name: str) -> tuple[values.SolverEffect, ...]:
        return tuple(
            values.SolverEffect(w, (a, b), self.get(name, reacher=w, a=a, b=b))
            for a, b in self._solver_pairs
            for w in self.table.reachers
        )

    def endpoints(self) -> values.EndpointTable:
        names = (
            "interaction", "arrival_term", "state_term", "survivor_interaction", "survivor_minus_interaction",
        )  # fmt: skip
        return values.EndpointTable(
            self.cells("endpoint"),
            self.solver_effects("endpoint_effect"),
            tuple(
                values.ReacherEffect(r, (a, b), self.get("reacher_effect", solver=r, a=a, b=b))
                for a, b in self._reacher_pairs
                for r in self.table.solvers
            ),
            tuple(
                values.Gain((a, b), self.get("endpoint_gain", a=a, b=b))
                for a, b in _widest_first(pairs(self.table, self.options.order))
            ),
            tuple(
                values.Interaction(one.reachers, one.solvers, *(self.get(name, **one.arguments) for name in names))
                for one in self._contrasts
            ),
            sentences.lacking(self.table.reachers, self.table.solvers),
        )

    def reach_gaps(self, type: str | None = None) -> tuple[values.ReacherGap, ...]:
        return tuple(values.ReacherGap((a, b), self.get("reach_gap", type, a=a, b=b)) for a, b in self._reacher_pairs)

    def reach(self) -> values.ReachTable:
        rows = (
            values.ReachRow(w, self.get("reach", reacher=w), self.get("mean_actions", reacher=w))
            for w in self.table.reachers
        )
        return values.ReachTable(tuple(rows), self.reach_gaps())

    def completion(self, type: str | None = None) -> tuple[values.SolverMeasure, ...]:
        return tuple(values.SolverMeasure(r, self.pooled("completion", type, solver=r)) for r in self.table.solvers)

    def completion_gaps(self, type: str | None = None) -> tuple[values.SolverGap, ...]:
        return tuple(
            values.SolverGap((a, b), self.pooled("completion_gap", type, a=a, b=b)) for a, b in self._solver_pairs
        )

    def solve(self) -> values.SolveTable:
        effects = self.solver_effects("solver_effect")
        return values.SolveTable(self.cells("solve"), effects, self.completion(), self.completion_gaps())

    def stages(self) -> values.StageTable:
        names = ("bridge", "finish", "completion")
        return values.StageTable(
            int(self.table.arrived_WTS.sum()),
            tuple(values.StageRow(r, *(self.pooled(name, solver=r) for name in names)) for r in self.table.solvers),
            tuple(self.stage_gap(a, b) for a, b in self._solver_pairs),
        )

    def stage_gap(self, a: str, b: str) -> values.StageGap:
        bridge, finish, completion = (
            self.pooled(f"{name}_gap", a=a, b=b) for name in ("bridge", "finish", "completion")
        )
        first_WTS, second_WTS = (self.table.won_WRTS[:, self.table.solver(name)] for name in (a, b))
        return values.StageGap(
            (a, b),
            bridge,
            finish,
            completion,
            won_by_both=int((first_WTS & second_WTS).sum()),
            won_by_neither=int((self.table.arrived_WTS & ~first_WTS & ~second_WTS).sum()),
            won_by_second_only=self.pooled("won_only", winner=b, loser=a),
            won_by_first_only=self.pooled("won_only", winner=a, loser=b),
        )

    def type_row(self, type: str) -> values.TypeRow:
        return values.TypeRow(
            type,
            self.table.strata.count(type),
            tuple(values.ReacherMeasure(w, self.get("reach", type, reacher=w)) for w in self.table.reachers),
            self.reach_gaps(type),
            self.completion(type),
            self.completion_gaps(type),
            tuple(
                values.ContrastMeasure(one.reachers, one.solvers, self.get("interaction", type, **one.arguments))
                for one in self._contrasts
            ),
        )

    def budgets(self) -> values.BudgetTable:
        levels: list[values.BudgetLevel] = []
        gaps: list[values.BudgetGap] = []
        for one in standard(self.table, self.options.order, budgets=self.options.budgets, by_type=False):
            match one.name, dict(one.arguments):
                case "reach_within", {"reacher": str(reacher), "steps": int(steps)}:
                    levels.append(values.BudgetLevel(reacher, steps, measure(self._estimates[one])))
                case "reach_within_gap", {"a": str(a), "b": str(b), "a_steps": int(first), "b_steps": int(second)}:
                    gaps.append(values.BudgetGap((a, b), (first, second), measure(self._estimates[one])))
        gaps.sort(key=lambda gap: self._reacher_pairs.index(gap.reachers))
        return values.BudgetTable(tuple(sorted({level.steps for level in levels})), tuple(levels), tuple(gaps))


def _prediction(transported: Transport) -> values.PredictionTable:
    """Eq. 10, by type and in all."""
    by_type: dict[str | None, dict[str, Measure]] = {type: {} for type in (*transported.types, None)}
    for one in transported.estimates.estimates:
        by_type[one.estimand.type][one.estimand.name.removeprefix("transport_")] = measure(one)
    *rows, whole = (
        values.PredictionRow(
            type, row.get("reach_gap"), row.get("external_gap"), row["predicted"], row["observed"], row["residual"]
        )
        for type, row in by_type.items()
    )
    a, b, c, d = transported.pair
    return values.PredictionTable((a, b), (c, d), tuple(rows), whole)


def _arrival(table: Table, estimates: Estimates) -> list[values.ArrivalCurve]:
    by_estimand = {one.estimand: one for one in estimates.estimates}
    curves = []
    for w in table.reachers:
        points = []
        for steps in ticks(table):
            one = measure(by_estimand[estimand("reach_within", reacher=w, steps=steps)])
            points.append(values.ArrivalPoint(steps, one.point, one.low, one.high, one.numerator))
        curves.append(values.ArrivalCurve(w, tuple(points)))
    return curves


def _failures(study: Study, options: Options) -> values.FailureTable:
    """Labels and step-level shares of the non-arrivals."""
    by_reacher = failures(list(study.trajectories.values()))
    gaps = []
    for a, b in ordered(study.reachers, options.order)[:1]:
        gap = share_gap(by_reacher[a], by_reacher[b], intervals=options.intervals)
        gaps.append(values.ReacherGap((a, b), Measure(None, gap.point, gap.low, gap.high, note=gap.reason)))
    return values.FailureTable(
        tuple(by_reacher[name] for name in study.reachers), tuple(gaps), refusals(study.decisions()) or None
    )
