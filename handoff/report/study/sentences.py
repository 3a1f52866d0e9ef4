"""The sentences of a handoff study's report, each made from the numbers that it states.

Rates are percentages and differences are percentage points, both with one decimal, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handoff.estimation.method import Intervals
from handoff.report.format import (
    Json,
    decimal,
    gap_with_interval,
    percent,
    plural,
    points,
    rate_with_interval,
    sign,
    told,
)
from handoff.report.study import values
from handoff.report.study.values import StudyFacts, StudyResults


def incomplete(numbers: Json) -> str:
    owed, planned = numbers["owed"], numbers["planned"]
    if not any(owed.values()):
        return "All records are there but the run was not sealed: type its command again to finish it."
    done = {what: planned[what] - owed[what] for what in planned}
    return (
        f"The run is not complete: {done['trajectories']:,} of {plural(planned['trajectories'], 'trajectory')} and "
        f"{done['endpoints']:,} of {plural(planned['endpoints'], 'endpoint')} are done; "
        f"{owed['trajectories']:,} and {owed['endpoints']:,} are owed. Counts are of what is done, and intervals wait "
        "for the rest: type the run's command again to go on."
    )


def lacking(reachers: Sequence[str], solvers: Sequence[str]) -> str | None:
    """What cannot be reported of a crossing that has no contrast in one role or the other."""
    if len(reachers) < 2 and len(solvers) < 2:
        return (
            f"One reacher ({reachers[0]}) and one solver ({solvers[0]}): a Reach gap needs a second reacher, "
            "a Solve gap a second solver, and the interaction (Eq. 4) both."
        )
    if len(reachers) < 2:
        return f"One reacher ({reachers[0]}): a Reach gap and the interaction (Eq. 4) need a second reacher."
    if len(solvers) < 2:
        return f"One solver ({solvers[0]}): a Solve gap and the interaction (Eq. 4) need a second solver."
    return None


def sentences(run: StudyFacts, counts: Json, results: StudyResults) -> dict[str, list[str]]:
    """The sentences of each section of a complete run's report."""
    tables = results.tables
    return {
        "study": list(study(run, counts)),
        **answer(results),
        "reach": list(reach(tables.reach, run)),
        "solve": list(solve(tables.solve, tables.stages)),
        "interaction": list(interaction(tables.endpoints)),
        "stages": list(stages(tables.stages)),
        "budgets": list(budgets(tables.budgets)),
        "types": list(types(tables.types)),
        "failures": list(failures(results.failures)),
        "intervals": [method(results.intervals)],
    }


def study(run: StudyFacts, counts: Json) -> Iterator[str]:
    planned = counts["planned"]
    yield (
        f"{plural(run.tasks, 'task')} of {plural(len(run.types), 'type')} × {plural(run.slots, 'seed slot')} × "
        f"{plural(len(run.reachers), 'reacher')} × {plural(len(run.solvers), 'solver')}: "
        f"{plural(planned['trajectories'], 'trajectory')} and {plural(planned['endpoints'], 'endpoint')}."
    )
    yield (
        f"A reacher has {plural(run.reach_budget, 'action')}; at the first state exactly "
        f"{plural(run.depth, 'action')} from success it is stopped, and every solver goes on from the same clone "
        f"with {plural(run.solve_budget, 'action')}."
    )


def answer(results: StudyResults) -> dict[str, list[str]]:
    """Where the gain comes from, of the leading contrast; ``missing`` says what this run cannot tell."""
    tables = results.tables
    reach_gap, solve_gap, crossed = tables.reach_gap, tables.solve_gap, tables.interaction
    parts = [
        *([f"Reach gap {gap_with_interval(reach_gap.value)}"] if reach_gap else []),
        *([f"same-state Solve gap {gap_with_interval(solve_gap.value)}"] if solve_gap else []),
        *([f"interaction {gap_with_interval(crossed.interaction)}"] if crossed else []),
    ]
    gaps = ", ".join(parts)
    gaps = f"{gaps[:1].upper()}{gaps[1:]}"
    if results.contrasts and max(len(tables.reach.gaps), len(tables.solve.pooled_gaps)) > 1:
        gaps = f"{results.contrasts[0].label}: {gaps}"
    missing = tables.endpoints.missing
    return {
        "verdict": list(_verdicts(results)) if reach_gap and solve_gap else [],
        "gaps": [f"{gaps}."] if gaps else [],
        "gain": [_gain(tables.endpoints)] if tables.endpoints.gains else [],
        "missing": [missing] if missing else [],
    }


def _verdicts(results: StudyResults) -> Iterator[str]:
    """The verdict on the leading contrast, named where there are more, then the others in short."""
    tables = results.tables
    reach_gaps = {gap.reachers: gap for gap in tables.reach.gaps}
    solve_gaps = {gap.solvers: gap for gap in tables.solve.pooled_gaps}
    leading, *others = results.contrasts
    main = verdict(reach_gaps[leading.reachers], solve_gaps[leading.solvers], results.intervals.level)
    alone = len(tables.reach.gaps) == len(tables.solve.pooled_gaps) == 1
    yield main if alone else main.replace(": ", f" ({leading.label}): ", 1)
    by_answer: dict[str, list[str]] = {}
    for one in others:
        signs = sign(reach_gaps[one.reachers].value), sign(solve_gaps[one.solvers].value)
        by_answer.setdefault(ANSWERS.get(signs, NO_GAIN), []).append(one.label)
    if others:
        each = "; ".join(f"{answer}: {', '.join(labels)}" for answer, labels in by_answer.items())
        yield f"Of the other {plural(len(others), 'pair')}, {each}."


#: The answer in short, by the signs of the Reach gap and of the Solve gap.
ANSWERS = {(1, 1): "from both", (1, 0): "from reaching", (0, 1): "from solving", (0, 0): "not resolved"}
NO_GAIN = "not a plain gain"


def verdict(reach_gap: values.ReacherGap, solve_gap: values.SolverGap, level: float) -> str:
    """One plain sentence on which of the two gaps is resolved, by their intervals."""
    better = reach_gap.reachers[1], solve_gap.solvers[1]
    reached, solved = sign(reach_gap.value), sign(solve_gap.value)
    who = better[0] if better[0] == better[1] else f"{better[0]} as reacher and {better[1]} as solver"
    if (reached, solved) == (1, 1):
        return f"From both: {who} reaches the frontier more often, and solves better from identical states."
    if (reached, solved) == (1, 0):
        return f"From reaching: {who} reaches the frontier more often; a difference in solving is not resolved."
    if (reached, solved) == (0, 1):
        return f"From solving: {who} solves better from identical states; a difference in reaching is not resolved."
    if (reached, solved) == (0, 0):
        return f"Not resolved: neither the Reach gap nor the Solve gap has a {level:.0%} interval on one side of zero."
    words = {1: "more", -1: "less"}
    parts = [f"reaches the frontier {words[reached]} often" if reached else "shows no resolved difference in reaching"]
    parts.append(
        f"solves {'better' if solved > 0 else 'worse'} from identical states"
        if solved
        else "shows no resolved difference in solving"
    )
    return f"Not a plain gain: {who} {parts[0]} and {parts[1]}."


def _gain(table: values.EndpointTable) -> str:
    """endpoint_bb - endpoint_aa = solver alone + reacher alone + interaction (Eqs. 2 and 4)."""
    a, b = table.gains[0].checkpoints
    cells, parts = table.by_cell, table.parts()
    assert parts is not None
    both = parts.interaction.point or 0.0
    rest = told(
        parts.interaction,
        f"{points(both)} more than their sum (the interaction)",
        f"{points(-both).removeprefix('+')} less than their sum (the interaction is negative)",
        f"{points(both)} beside their sum (the interaction, which is not resolved)",
    )
    return (
        f"From {a} to {b} in both roles, endpoint success goes from {percent(cells[a, a].point)} to "
        f"{percent(cells[b, b].point)}, {gap_with_interval(table.gains[0].value)}: the solver alone brings "
        f"{points(parts.solver.point)}, the reacher alone {points(parts.reacher.point)}, and both together {rest}."
    )


def reach(table: values.ReachTable, run: StudyFacts) -> Iterator[str]:
    if not table.gaps:
        row = table.rows[0]
        yield (
            f"{row.reacher} reaches the frontier in {rate_with_interval(row.reach)} of its trajectories, and "
            f"takes {decimal(row.mean_actions.point)} actions on average until it arrives or stops."
        )
        return
    a, b = (table.by_reacher[name] for name in table.gaps[0].reachers)
    yield (
        f"{b.reacher} reaches the frontier in {percent(b.reach.point)} of its trajectories, {a.reacher} in "
        f"{percent(a.reach.point)}: a Reach gap of {gap_with_interval(table.gaps[0].value)}."
    )
    yield (
        f"They take {decimal(b.mean_actions.point)} and {decimal(a.mean_actions.point)} actions on average until they "
        f"arrive or stop, of at most {run.reach_budget}."
    )


def solve(table: values.SolveTable, stages: values.StageTable) -> Iterator[str]:
    states, pooled = plural(stages.states, "reached state"), table.by_solver
    if not table.pooled_gaps:
        row = table.pooled[0]
        yield f"From {states}, {row.solver} completes {rate_with_interval(row.value)}."
        return
    gap = table.pooled_gaps[0]
    a, b = gap.solvers
    yield (
        f"From the same {states}, {b} completes {percent(pooled[b].point)} and {a} {percent(pooled[a].point)}: "
        f"a same-state Solve gap of {gap_with_interval(gap.value)}."
    )
    effects = [row for row in table.effects if row.solvers == gap.solvers and row.value.point is not None]
    if len(effects) > 1:
        each = " and ".join(f"{points(row.value.point)} on those of {row.reacher}" for row in effects)
        yield f"By who reached the states, the gap is {each}."


def interaction(table: values.EndpointTable) -> Iterator[str]:
    """The leading interaction, if there is one."""
    for row in table.interactions[:1]:
        (a, b), (c, d) = row.reachers, row.solvers
        before, after = (points(table.solver_effect(reacher, row.solvers).point) for reacher in (a, b))
        yield (
            f"Exchanging the solver {c} for {d} changes endpoint success by {after} points under reacher {b} and by "
            f"{before} under {a}: "
            f"an interaction of {gap_with_interval(row.interaction)}."
        )
        if row.arrival_term.point is not None and row.state_term.point is not None:
            yield (
                f"In sample, {points(row.arrival_term.point)} of it is the arrival term and "
                f"{points(row.state_term.point)} the state term (Eq. 9)."
            )
        if row.survivor_only.point is not None:
            yield (
                "With non-arrivals dropped, which is another estimand, it would read "
                f"{gap_with_interval(row.survivor_only)}, {gap_with_interval(row.survivor_minus_interaction)} "
                "from the interaction."
            )


def stages(table: values.StageTable) -> Iterator[str]:
    rows = {row.solver: row for row in table.rows}
    for gap in table.gaps[:1]:
        a, b = gap.solvers
        if rows[a].bridge.point is None:
            yield "No state was reached, so there is nothing to solve from."
            return
        each = "; ".join(
            f"{name} chooses a bridge action on {percent(rows[name].bridge.point)} of the states and finishes "
            f"from {percent(rows[name].finish.point)} of those"
            for name in (a, b)
        )
        yield f"{each}."
        yield (
            f"Of the {plural(table.states, 'state')}, {gap.won_by_second_only.numerator} are won by {b} only "
            f"and {gap.won_by_first_only.numerator} by {a} only."
        )


def budgets(table: values.BudgetTable) -> Iterator[str]:
    """The second reacher with the least budget against the first with the most."""
    ends = (table.steps[-1], table.steps[0]) if len(table.steps) > 1 else None
    for gap in [row for row in table.gaps if row.steps == ends and row.value.point is not None][:1]:
        a, b = gap.reachers
        words = told(gap.value, "exceeds", "stays below", "is not told apart from")
        yield f"{b} with {gap.steps[1]} actions {words} {a} with {gap.steps[0]}: {gap_with_interval(gap.value)}."


def types(table: values.TypeTable) -> Iterator[str]:
    if table.prediction is None:
        if table.rows[0].interactions:
            source = "takes its Solve gaps from a run of other tasks: --external RUN"
            yield f"A prediction of the interaction (Eq. 10) {source}."
        return
    whole = table.prediction.whole
    if whole.predicted.point is None:
        yield f"There is no prediction: {whole.predicted.note}."
        return
    yield (
        "From the Reach gaps here and the Solve gaps of the external run, an interaction of "
        f"{gap_with_interval(whole.predicted)} is predicted (Eq. 10); observed is "
        f"{gap_with_interval(whole.observed)}, a residual of {gap_with_interval(whole.residual)}."
    )


def failures(table: values.FailureTable) -> Iterator[str]:
    """Who fails to arrive, and the most frequent way."""
    for one in table.reachers:
        if not one.trajectories:
            yield f"{one.reacher} always arrives."
            continue
        most = max(one.labels.values())
        labels = [label.replace("_", " ") for label, count in one.labels.items() if count == most]
        yield (
            f"{one.reacher} fails to arrive in {plural(one.trajectories, 'trajectory')}, most often by "
            f"{' and '.join(labels)} ({most:,}{' each' if len(labels) > 1 else ''}), and leaves the state unchanged on "
            f"{percent(one.unchanged)} of their steps."
        )
    for refusals in table.refusals or ():
        yield refusals.sentence()


def method(intervals: Intervals) -> str:
    names = {
        "rescaled": "Student's t on the jackknife variance and one discordant episode, or the percentiles of the "
        "rescaled task-stratified paired bootstrap where they reach farther; rates: Wilson's score on the trials that "
        "their variance is worth",
        "paper": "ordinary task-stratified paired bootstrap, percentiles, as in the paper",
    }
    return (
        f"{intervals.level:.0%} intervals in brackets: {names.get(intervals.method, intervals.method)}; "
        f"{intervals.draws:,} draws, seed {intervals.seed}."
    )
