"""The numbers of a run, as plain JSON: what the terminal and the page show is generated from these.

A *value* is one estimate in short: ``key`` (it is in ``estimates`` in full), ``point``, ``low``, ``high`` (fractions,
not percentages; a missing one is ``null`` and ``note`` says why), ``numerator`` and ``denominator`` where the estimand
is one ratio.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.estimation.bootstrap import Estimate, Estimates, estimate
from handoff.estimation.estimands import Argument, Estimand, arrival_curve, estimand, observed_budget, pairs, standard
from handoff.estimation.intervals import Intervals
from handoff.estimation.table import Table
from handoff.estimation.transport import Transport, transport
from handoff.protocols.frontier.failures import failures, share_gap
from handoff.protocols.frontier.study import Study, require_consistent, sample_of
from handoff.protocols.frontier.summary import summary
from handoff.report.study import sentences

FORMAT = 1
#: Arrival curves have no more points than this: a longer budget is sampled evenly.
TICKS = 64

Json = dict[str, Any]


@attrs.frozen
class Options:
    """How intervals are made and which contrasts are shown.

    ``order`` names checkpoints from the weakest to the strongest (the run's own order by default); ``budgets`` are
    those of Table 7 (8, 16 and 48 as far as they were observed, by default).
    """

    intervals: Intervals = Intervals()
    order: Sequence[str] | None = None
    budgets: Sequence[int] | None = None


def document(study: Study, options: Options | None = None, external: Study | None = None) -> Json:
    """Every number that is reported of a run.

    On top of :func:`summary`: ``run`` (what it is), ``tables`` (the paper's Tables 1, 2, 3, 6 and 7, by name),
    ``curves``, ``failures``, ``sentences`` and ``estimates`` (every estimand in full).  ``external`` is a run of other
    tasks that Eq. 10 predicts from.  While records are owed there are counts only: ``tables`` and ``intervals`` are
    ``null`` and ``incomplete`` says what is owed.

    Raises :class:`~handoff.errors.UsageError` for options that cannot be met or an external run that is not
    independent, :class:`~handoff.errors.DataError` for a run that contradicts itself.
    """
    options = options or Options()
    require_consistent(study)
    if options.order is None:
        # One order for both roles: a contrast a -> b of the solvers must be the reachers' too, however they were named.
        options = attrs.evolve(options, order=tuple(dict.fromkeys((*study.reachers, *study.solvers))))
    result: Json = {"format": FORMAT, "run": describe(study), **summary(study)}
    if not result["complete"]:
        nothing: Json = {"incomplete": sentences.incomplete(result), "intervals": None, "contrasts": [], "tables": None}
        return {**result, **nothing, "curves": None, "failures": None, "sentences": {}, "estimates": []}
    table = study.table()
    made = _estimates(table, options)
    transported = None if external is None else _transport(study, table, external, options)
    result |= {
        "incomplete": None,
        "intervals": options.intervals.to_json(),
        "contrasts": contrasts(table, options.order),
        "tables": _tables(table, options, made, transported),
        "curves": {"arrival": _curves(table, made)},
        "failures": _failures(study, options),
    }
    result["sentences"] = sentences.sentences(result)
    full = [one.to_json() for one in made.estimates]
    result["estimates"] = full + ([] if transported is None else transported.to_json()["estimates"])
    return result


def describe(study: Study) -> Json:
    """What a run is: environment, checkpoints, tasks and budgets."""
    protocol, identity = study.protocol, study.identity
    return {
        "folder": study.folder.resolve().name,
        "digest": str(study.manifest["digest"]),
        "toolkit": str(identity.get("handoff", "")),
        "environment": dict(identity["environment"]),
        "split": str(protocol["split"]),
        "reachers": list(study.reachers),
        "solvers": list(study.solvers),
        "policies": {name: dict(facts) for name, facts in study.policies.items()},
        "tasks": len(study.tasks),
        "types": dict(sorted(Counter(task.type for task in study.tasks).items())),
        "slots": study.slots,
        "depth": study.depth,
        "reach_budget": int(protocol["reach_budget"]),
        "solve_budget": int(protocol["solve_budget"]),
    }


def _estimates(table: Table, options: Options) -> Estimates:
    asked = standard(table, options.order, budgets=options.budgets)
    wanted = list(dict.fromkeys((*asked, *arrival_curve(table, ticks(table)))))
    return estimate(table, wanted, options.intervals)


def ticks(table: Table) -> list[int]:
    """The steps at which arrival curves are drawn: 0 to the budget, evenly."""
    last = observed_budget(table)
    if last <= TICKS:
        return list(range(last + 1))
    return sorted({round(i * last / TICKS) for i in range(TICKS + 1)})


def _transport(study: Study, table: Table, external: Study, options: Options) -> Transport:
    require_consistent(external)
    shown = contrasts(table, options.order)
    if not shown:
        raise UsageError("a prediction (Eq. 10) needs two reachers and two solvers; this run has fewer")
    pair = _four(shown[0])
    return transport(sample_of(study, table), sample_of(external), pair, options.intervals)


def ordered(names: Sequence[str], order: Sequence[str] | None) -> list[tuple[str, str]]:
    """Contrasts a -> b of one role: the widest first, then in order."""
    kept = [name for name in order if name in names] if order is not None else list(names)
    return _widest_first([(a, b) for i, a in enumerate(kept) for b in kept[i + 1 :]])


def _widest_first(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if not found:
        return []
    widest = (found[0][0], found[-1][1])
    return [widest, *(pair for pair in found if pair != widest)]


def contrasts(table: Table, order: Sequence[str] | None = None) -> list[Json]:
    """Reacher pair and solver pair of every interaction; the first one, from the weakest to the strongest, leads."""
    same = _widest_first(pairs(table, order))
    if same:
        return [{"reachers": list(pair), "solvers": list(pair)} for pair in same]
    return [
        {"reachers": list(first), "solvers": list(second)}
        for first in ordered(table.reachers, order)
        for second in ordered(table.solvers, order)
    ]


def value(found: Estimate) -> Json:
    """An estimate in short."""
    only = found.ratios[0] if len(found.ratios) == 1 else None
    return {
        "key": str(found.estimand),
        "point": found.point,
        "low": found.low,
        "high": found.high,
        "numerator": only.numerator if only else None,
        "denominator": only.denominator if only else None,
        "note": found.reason or found.interval_reason,
    }


class _Values:
    """Values by name and arguments."""

    def __init__(self, made: Estimates) -> None:
        self._by_estimand: dict[Estimand, Estimate] = {one.estimand: one for one in made.estimates}

    def __call__(self, name: str, type: str | None = None, **arguments: Argument) -> Json:
        return value(self._by_estimand[estimand(name, type=type, **arguments)])


def _tables(table: Table, options: Options, made: Estimates, transported: Transport | None) -> Json:
    get = _Values(made)
    reacher_pairs, solver_pairs = ordered(table.reachers, options.order), ordered(table.solvers, options.order)
    return {
        "endpoints": _endpoints(table, options, get, reacher_pairs, solver_pairs),
        "reach": {
            "rows": [
                {"reacher": w, "reach": get("reach", reacher=w), "mean_actions": get("mean_actions", reacher=w)}
                for w in table.reachers
            ],
            "gaps": [{"reachers": [a, b], "value": get("reach_gap", a=a, b=b)} for a, b in reacher_pairs],
        },
        "solve": _solve(table, get, solver_pairs),
        "stages": _stages(table, get, solver_pairs),
        "types": _types(table, options, get, reacher_pairs, solver_pairs, transported),
        "budgets": _budgets(table, made, reacher_pairs, options),
    }


Pairs = Sequence[tuple[str, str]]


def _endpoints(table: Table, options: Options, get: _Values, reacher_pairs: Pairs, solver_pairs: Pairs) -> Json:
    interactions = []
    for contrast in contrasts(table, options.order):
        a, b, c, d = _four(contrast)
        cross = {"a": a, "b": b, "c": c, "d": d}
        interactions.append(
            {
                **contrast,
                "interaction": get("interaction", **cross),
                "arrival_term": get("arrival_term", **cross),
                "state_term": get("state_term", **cross),
                "survivor_only": get("survivor_interaction", **cross),
                "survivor_minus_interaction": get("survivor_minus_interaction", **cross),
            }
        )
    return {
        "cells": [
            {"reacher": w, "solver": r, "value": get("endpoint", reacher=w, solver=r)}
            for w in table.reachers
            for r in table.solvers
        ],
        "solver_effects": [
            {"reacher": w, "solvers": [a, b], "value": get("endpoint_effect", reacher=w, a=a, b=b)}
            for a, b in solver_pairs
            for w in table.reachers
        ],
        "reacher_effects": [
            {"solver": r, "reachers": [a, b], "value": get("reacher_effect", solver=r, a=a, b=b)}
            for a, b in reacher_pairs
            for r in table.solvers
        ],
        "gains": [
            {"checkpoints": [a, b], "value": get("endpoint_gain", a=a, b=b)}
            for a, b in _widest_first(pairs(table, options.order))
        ],
        "interactions": interactions,
        "missing": sentences.lacking(table.reachers, table.solvers),
    }


def _solve(table: Table, get: _Values, solver_pairs: Pairs) -> Json:
    everyone = table.reachers
    return {
        "cells": [
            {"reacher": w, "solver": r, "value": get("solve", reacher=w, solver=r)}
            for w in table.reachers
            for r in table.solvers
        ],
        "effects": [
            {"reacher": w, "solvers": [a, b], "value": get("solver_effect", reacher=w, a=a, b=b)}
            for a, b in solver_pairs
            for w in table.reachers
        ],
        "pooled": [{"solver": r, "value": get("completion", reachers=everyone, solver=r)} for r in table.solvers],
        "pooled_gaps": [
            {"solvers": [a, b], "value": get("completion_gap", reachers=everyone, a=a, b=b)} for a, b in solver_pairs
        ],
    }


def _stages(table: Table, get: _Values, solver_pairs: Pairs) -> Json:
    everyone = table.reachers
    return {
        "states": int(table.arrived_WTS.sum()),
        "rows": [
            {
                "solver": r,
                **{name: get(name, reachers=everyone, solver=r) for name in ("bridge", "finish", "completion")},
            }
            for r in table.solvers
        ],
        "gaps": [
            {
                "solvers": [a, b],
                **{
                    name: get(f"{name}_gap", reachers=everyone, a=a, b=b) for name in ("bridge", "finish", "completion")
                },
                **_both(table, a, b),
                "won_by_second_only": get("won_only", reachers=everyone, winner=b, loser=a),
                "won_by_first_only": get("won_only", reachers=everyone, winner=a, loser=b),
            }
            for a, b in solver_pairs
        ],
    }


def _both(table: Table, a: str, b: str) -> Json:
    """States that both solvers of a pair win, and that neither does."""
    first_WTS, second_WTS = (table.won_WRTS[:, table.solver(name)] for name in (a, b))
    return {
        "won_by_both": int((first_WTS & second_WTS).sum()),
        "won_by_neither": int((table.arrived_WTS & ~first_WTS & ~second_WTS).sum()),
    }


def _types(
    table: Table,
    options: Options,
    get: _Values,
    reacher_pairs: Pairs,
    solver_pairs: Pairs,
    transported: Transport | None,
) -> Json:
    everyone = table.reachers
    rows = []
    for type in table.types:
        rows.append(
            {
                "type": type,
                "tasks": table.strata.count(type),
                "reach": [{"reacher": w, "value": get("reach", type, reacher=w)} for w in table.reachers],
                "reach_gaps": [
                    {"reachers": [a, b], "value": get("reach_gap", type, a=a, b=b)} for a, b in reacher_pairs
                ],
                "completion": [
                    {"solver": r, "value": get("completion", type, reachers=everyone, solver=r)} for r in table.solvers
                ],
                "completion_gaps": [
                    {"solvers": [a, b], "value": get("completion_gap", type, reachers=everyone, a=a, b=b)}
                    for a, b in solver_pairs
                ],
                "interactions": [
                    {**both, "value": get("interaction", type, **dict(zip("abcd", _four(both), strict=True)))}
                    for both in contrasts(table, options.order)
                ],
            }
        )
    return {"rows": rows, "prediction": None if transported is None else _prediction(transported)}


def _four(contrast: Json) -> tuple[str, str, str, str]:
    (a, b), (c, d) = contrast["reachers"], contrast["solvers"]
    return a, b, c, d


def _prediction(transported: Transport) -> Json:
    """Eq. 10, by type and in all (``type`` null)."""
    by_type: dict[str | None, Json] = {type: {"type": type} for type in (*transported.types, None)}
    for found in transported.estimates.estimates:
        by_type[found.estimand.type][found.estimand.name.removeprefix("transport_")] = value(found)
    whole = by_type.pop(None)
    a, b, c, d = transported.pair
    return {"reachers": [a, b], "solvers": [c, d], "rows": list(by_type.values()), "whole": whole}


def _budgets(table: Table, made: Estimates, reacher_pairs: Pairs, options: Options) -> Json:
    asked = set(standard(table, options.order, budgets=options.budgets, by_type=False))
    levels: list[Json] = []
    gaps: list[Json] = []
    for one in made.estimates:
        told = dict(one.estimand.arguments)
        if one.estimand not in asked:
            continue
        if one.estimand.name == "reach_within":
            levels.append({"reacher": told["reacher"], "steps": told["steps"], "value": value(one)})
        elif one.estimand.name == "reach_within_gap":
            gaps.append({"reachers": [told["a"], told["b"]], "steps": [told["a_steps"], told["b_steps"]]})
            gaps[-1]["value"] = value(one)
    rank = {pair: i for i, pair in enumerate(reacher_pairs)}
    gaps.sort(key=lambda gap: rank[gap["reachers"][0], gap["reachers"][1]])
    return {"steps": sorted({level["steps"] for level in levels}), "levels": levels, "gaps": gaps}


def _curves(table: Table, made: Estimates) -> list[Json]:
    get = _Values(made)
    curves = []
    for w in table.reachers:
        points = []
        for step in ticks(table):
            found = get("reach_within", reacher=w, steps=step)
            points.append({"steps": step, **{name: found[name] for name in ("point", "low", "high", "numerator")}})
        curves.append({"reacher": w, "points": points})
    return curves


def _failures(study: Study, options: Options) -> Json:
    """Labels and step-level shares of the non-arrivals (Appendix D); ``loop_gaps`` compares the share of loops."""
    found = failures(list(study.trajectories.values()))
    gaps = []
    for a, b in ordered(study.reachers, options.order)[:1]:
        gap = share_gap(found[a], found[b], intervals=options.intervals)
        short = {"point": gap.point, "low": gap.low, "high": gap.high, "note": gap.reason}
        gaps.append({"reachers": [a, b], "value": {"key": None, "numerator": None, "denominator": None, **short}})
    return {"reachers": [found[name].to_json() for name in study.reachers], "loop_gaps": gaps}
