"""Numbers in words: formats, and the sentences of a report, each made from the numbers that it states.

Rates are percentages and differences are percentage points, both with one decimal, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handoff.report.format import (
    Json,
    amount,
    gap_with_interval,
    percent,
    plural,
    points,
    rate_with_interval,
    sign,
)


def notes(values: Sequence[Json]) -> list[str]:
    """Why points or intervals are missing, each reason once with the number of values that it holds for."""
    reasons: dict[str, int] = {}
    for value in values:
        if value["note"]:
            reasons[value["note"]] = reasons.get(value["note"], 0) + 1
    return [reason if count == 1 else f"{reason} ({count} values)" for reason, count in reasons.items()]


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


def sentences(numbers: Json) -> dict[str, list[str]]:
    """The sentences of each section of a complete run's report."""
    tables, run = numbers["tables"], numbers["run"]
    said = {
        "study": study(numbers),
        **answer(numbers),
        "reach": reach(tables["reach"], run),
        "solve": solve(tables["solve"], tables["stages"]),
        "interaction": interaction(tables["endpoints"]),
        "stages": stages(tables["stages"]),
        "budgets": budgets(tables["budgets"]),
        "types": types(tables["types"]),
        "failures": failures(numbers["failures"]),
        "intervals": [method(numbers["intervals"])],
    }
    return {section: [sentence for sentence in found if sentence] for section, found in said.items()}


def study(numbers: Json) -> list[str]:
    run, planned = numbers["run"], numbers["planned"]
    kinds = plural(len(run["types"]), "type")
    size = (
        f"{plural(run['tasks'], 'task')} of {kinds} × {plural(run['slots'], 'seed slot')} × "
        f"{plural(len(run['reachers']), 'reacher')} × {plural(len(run['solvers']), 'solver')}: "
        f"{plural(planned['trajectories'], 'trajectory')} and {plural(planned['endpoints'], 'endpoint')}."
    )
    turns = (
        f"A reacher has {plural(run['reach_budget'], 'action')}; at the first state exactly "
        f"{plural(run['depth'], 'action')} from success it is stopped, and every solver goes on from the same clone "
        f"with {plural(run['solve_budget'], 'action')}."
    )
    return [size, turns]


def answer(numbers: Json) -> dict[str, list[str]]:
    """Where the gain comes from, of the leading contrast; ``missing`` says what this run cannot tell."""
    tables = numbers["tables"]
    leading = headline(tables)
    found: dict[str, list[str]] = {"verdict": [], "gaps": [], "gain": [], "missing": []}
    if leading["reach"] is not None and leading["solve"] is not None:
        found["verdict"].append(verdict(leading["reach"], leading["solve"], numbers["intervals"]["level"]))
    named = (("reach", "Reach gap"), ("solve", "same-state Solve gap"), ("interaction", "interaction"))
    parts = [f"{name} {gap_with_interval(leading[key]['value'])}" for key, name in named if leading[key]]
    if parts:
        told = ", ".join(parts)
        found["gaps"].append(f"{told[0].upper()}{told[1:]}.")
    if tables["endpoints"]["gains"]:
        found["gain"].append(_gain(tables["endpoints"]))
    if tables["endpoints"]["missing"]:
        found["missing"].append(tables["endpoints"]["missing"])
    return found


def headline(tables: Json) -> Json:
    """The leading Reach gap, same-state Solve gap and interaction: each a row with its ``value``, or ``None``."""
    interactions = tables["endpoints"]["interactions"]
    return {
        "reach": next(iter(tables["reach"]["gaps"]), None),
        "solve": next(iter(tables["solve"]["pooled_gaps"]), None),
        "interaction": {**interactions[0], "value": interactions[0]["interaction"]} if interactions else None,
    }


def verdict(reach_gap: Json, solve_gap: Json, level: float) -> str:
    """One plain sentence on which of the two gaps is resolved, by their intervals."""
    better = reach_gap["reachers"][1], solve_gap["solvers"][1]
    reached, solved = sign(reach_gap["value"]), sign(solve_gap["value"])
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


def _gain(endpoints: Json) -> str:
    """endpoint_bb - endpoint_aa = solver alone + reacher alone + interaction (Eqs. 2 and 4)."""
    gain = endpoints["gains"][0]
    a, b = gain["checkpoints"]
    cells = {(cell["reacher"], cell["solver"]): cell["value"] for cell in endpoints["cells"]}
    parts = split(endpoints)
    assert parts is not None
    both = parts["interaction"]["point"]
    rest = (
        f"{points(both)} more than their sum (the interaction)"
        if both >= 0
        else f"{points(-both).removeprefix('+')} less than their sum (the interaction is negative)"
    )
    return (
        f"From {a} to {b} in both roles, endpoint success goes from {percent(cells[a, a]['point'])} to "
        f"{percent(cells[b, b]['point'])}, {gap_with_interval(gain['value'])}: the solver alone brings "
        f"{points(parts['solver']['point'])}, the reacher alone {points(parts['reacher']['point'])}, and both together "
        f"{rest}."
    )


def split(endpoints: Json) -> Json | None:
    """The whole gain a -> b as solver alone (under reacher a), reacher alone (with solver a) and interaction."""
    if not endpoints["gains"]:
        return None
    pair = endpoints["gains"][0]["checkpoints"]
    a = pair[0]
    return {
        "checkpoints": pair,
        "solver": _of(endpoints["solver_effects"], reacher=a, solvers=pair)["value"],
        "reacher": _of(endpoints["reacher_effects"], solver=a, reachers=pair)["value"],
        "interaction": _of(endpoints["interactions"], reachers=pair, solvers=pair)["interaction"],
        "gain": endpoints["gains"][0]["value"],
    }


def _of(rows: Sequence[Json], **wanted: Any) -> Json:
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def reach(table: Json, run: Json) -> list[str]:
    found = []
    rows = {row["reacher"]: row for row in table["rows"]}
    for gap in table["gaps"][:1]:
        a, b = gap["reachers"]
        found.append(
            f"{b} reaches the frontier in {percent(rows[b]['reach']['point'])} of its trajectories, {a} in "
            f"{percent(rows[a]['reach']['point'])}: a Reach gap of {gap_with_interval(gap['value'])}."
        )
        found.append(
            f"They take {amount(rows[b]['mean_actions']['point'])} and {amount(rows[a]['mean_actions']['point'])} "
            f"actions on average until they arrive or stop, of at most {run['reach_budget']}."
        )
    if not table["gaps"]:
        row = table["rows"][0]
        found.append(
            f"{row['reacher']} reaches the frontier in {rate_with_interval(row['reach'])} of its trajectories, and "
            f"takes {amount(row['mean_actions']['point'])} actions on average until it arrives or stops."
        )
    return found


def solve(table: Json, stages: Json) -> list[str]:
    found = []
    pooled = {row["solver"]: row["value"] for row in table["pooled"]}
    for gap in table["pooled_gaps"][:1]:
        a, b = gap["solvers"]
        found.append(
            f"From the same {plural(stages['states'], 'reached state')}, {b} completes {percent(pooled[b]['point'])} "
            f"and {a} {percent(pooled[a]['point'])}: a same-state Solve gap of {gap_with_interval(gap['value'])}."
        )
        effects = [row for row in table["effects"] if row["solvers"] == [a, b] and row["value"]["point"] is not None]
        if len(effects) > 1:
            each = " and ".join(f"{points(row['value']['point'])} on those of {row['reacher']}" for row in effects)
            found.append(f"By who reached the states, the gap is {each}.")
    if not table["pooled_gaps"]:
        row = table["pooled"][0]
        found.append(
            f"From {plural(stages['states'], 'reached state')}, {row['solver']} completes "
            f"{rate_with_interval(row['value'])}."
        )
    return found


def interaction(endpoints: Json) -> list[str]:
    found = []
    for row in endpoints["interactions"][:1]:
        (a, b), (c, d) = row["reachers"], row["solvers"]
        effects = {e["reacher"]: e["value"] for e in endpoints["solver_effects"] if e["solvers"] == [c, d]}
        found.append(
            f"Exchanging the solver {c} for {d} gains {points(effects[b]['point'])} points under reacher {b} and "
            f"{points(effects[a]['point'])} under {a}: an interaction of {gap_with_interval(row['interaction'])}."
        )
        if row["arrival_term"]["point"] is not None and row["state_term"]["point"] is not None:
            found.append(
                f"In sample, {points(row['arrival_term']['point'])} of it is the arrival term and "
                f"{points(row['state_term']['point'])} the state term (Eq. 9)."
            )
        if row["survivor_only"]["point"] is not None:
            found.append(
                "With non-arrivals dropped, which is another estimand, it would read "
                f"{gap_with_interval(row['survivor_only'])}, {gap_with_interval(row['survivor_minus_interaction'])} "
                "from the interaction."
            )
    return found


def stages(table: Json) -> list[str]:
    found = []
    rows = {row["solver"]: row for row in table["rows"]}
    for gap in table["gaps"][:1]:
        a, b = gap["solvers"]
        if rows[a]["bridge"]["point"] is None:
            return ["No state was reached, so there is nothing to solve from."]
        each = "; ".join(
            f"{name} chooses a bridge action on {percent(rows[name]['bridge']['point'])} of the states and finishes "
            f"from {percent(rows[name]['finish']['point'])} of those"
            for name in (a, b)
        )
        found.append(f"{each}.")
        found.append(
            f"Of the {plural(table['states'], 'state')}, {gap['won_by_second_only']['numerator']} are won by {b} only "
            f"and {gap['won_by_first_only']['numerator']} by {a} only."
        )
    return found


def budgets(table: Json) -> list[str]:
    if len(table["steps"]) < 2 or not table["gaps"]:
        return []
    first, last = table["steps"][0], table["steps"][-1]
    gap = next((row for row in table["gaps"] if row["steps"] == [last, first]), None)
    if gap is None:
        return []
    a, b = gap["reachers"]
    value = gap["value"]
    if value["point"] is None:
        return []
    words = "exceeds" if value["point"] > 0 else "stays below" if value["point"] < 0 else "equals"
    return [f"{b} with {first} actions {words} {a} with {last}: {gap_with_interval(value)}."]


def types(table: Json) -> list[str]:
    prediction = table["prediction"]
    if prediction is None and not table["rows"][0]["interactions"]:
        return []
    if prediction is None:
        return [
            "A prediction of the interaction (Eq. 10) takes its Solve gaps from a run of other tasks: --external RUN."
        ]
    whole = prediction["whole"]
    if whole["predicted"]["point"] is None:
        return [f"There is no prediction: {whole['predicted']['note']}."]
    found = (
        "From the Reach gaps here and the Solve gaps of the external run, an interaction of "
        f"{gap_with_interval(whole['predicted'])} is predicted (Eq. 10); observed is "
        f"{gap_with_interval(whole['observed'])}, a residual of {gap_with_interval(whole['residual'])}."
    )
    return [found]


def failures(table: Json) -> list[str]:
    """Who fails to arrive, and the most frequent way."""
    found = []
    for one in table["reachers"]:
        if not one["trajectories"]:
            found.append(f"{one['reacher']} always arrives.")
            continue
        label, count = max(one["labels"].items(), key=lambda item: item[1])
        found.append(
            f"{one['reacher']} fails to arrive in {plural(one['trajectories'], 'trajectory')}, most often by "
            f"{label.replace('_', ' ')} ({count:,}), and leaves the state unchanged on {percent(one['unchanged'])} of "
            "their steps."
        )
    return found


def method(intervals: Json) -> str:
    named = {
        "rescaled": "rescaled task-stratified paired bootstrap, Student's t percentiles; rates: Wilson's score on the "
        "trials that their variance is worth",
        "paper": "ordinary task-stratified paired bootstrap, percentiles, as in the paper",
    }
    return (
        f"{intervals['level']:.0%} intervals in brackets: {named.get(intervals['method'], intervals['method'])}; "
        f"{intervals['draws']:,} draws, seed {intervals['seed']}."
    )
