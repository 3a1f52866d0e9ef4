"""The estimands: each is a pure formula in ratios of counts, declared once.

``formula(sums, ...)`` gives an array of B values, one per weighting of the tasks: the observed data are one weighting,
a bootstrap draw is another.  A ratio with an empty denominator is NaN here and becomes a null with its reason in
:mod:`handoff.estimation.bootstrap`.

Notation of the docstrings (paper: "Reach or Solve?"): A_w(i, s) says whether reacher w arrives on task i, seed slot s;
Y_{w,r}(i, s) whether solver r then wins, 0 without arrival; a -> b is a contrast from checkpoint a to checkpoint b (SFT
to RL in the paper), in the role named.  Means run over all tasks and seed slots unless said otherwise.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Literal, TypeVar

import attrs

from handoff.errors import UsageError
from handoff.estimation import counting as count
from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import Sums
from handoff.estimation.table import Table

#: The paper of all equations, sections, tables and figures that this package names by number.
PAPER = "Reach or Solve? Deep Diving into Agentic RL Gains with Checkpoint Handoffs"

Formula = Callable[..., FloatArray]
F = TypeVar("F", bound=Formula)
Argument = str | int | tuple[str, ...]
#: A rate is one ratio of a count to a count that contains it, between 0 and 1.  A contrast is a difference or product
#: of rates, in points.  A mean is a mean number of actions.
Kind = Literal["rate", "contrast", "mean"]


@attrs.frozen
class Declaration:
    """What is the same for all estimands of one name."""

    name: str
    kind: Kind
    equation: str
    #: Template of the label, filled from the arguments; ``{pair}`` is the contrast a -> b, or both contrasts.
    label: str
    #: The largest size that a value can have.
    limit: float
    #: ``None`` for what other modules compute from several tables.
    formula: Formula | None


DECLARED: dict[str, Declaration] = {}


def declare(
    name: str, kind: Kind, equation: str, label: str, limit: float = 1.0, formula: Formula | None = None
) -> None:
    """Declare the estimands called ``name``."""
    DECLARED[name] = Declaration(name, kind, equation, label, limit, formula)


@attrs.frozen
class Estimand:
    """A declared name, its arguments, and one task type or all of them (``None``)."""

    name: str
    arguments: tuple[tuple[str, Argument], ...] = ()
    type: str | None = None

    def __call__(self, sums: Sums) -> FloatArray:
        formula = self.declaration.formula
        assert formula is not None, f"{self.name} has no formula"
        return formula(sums, **dict(self.arguments))

    def __str__(self) -> str:
        arguments = ", ".join(
            f"{name}={' + '.join(value) if isinstance(value, tuple) else value}" for name, value in self.arguments
        )
        where = f" [{self.type}]" if self.type is not None else ""
        return f"{self.name}({arguments}){where}"

    @property
    def declaration(self) -> Declaration:
        return DECLARED[self.name]

    @property
    def kind(self) -> Kind:
        return self.declaration.kind

    @property
    def equation(self) -> str:
        """The first paragraph of the formula's docstring, on one line."""
        return self.declaration.equation

    @property
    def limit(self) -> float:
        """The largest size that a value can have."""
        return self.declaration.limit

    @property
    def label(self) -> str:
        """The name that people see, without the type: ``Reach, rl``, ``completion gap, sft → rl``."""
        arguments = {name: " → ".join(value) if isinstance(value, tuple) else value for name, value in self.arguments}
        pair = f"{arguments.get('a')} → {arguments.get('b')}"
        if "c" in arguments and (arguments["c"], arguments["d"]) != (arguments["a"], arguments["b"]):
            pair += f" × {arguments['c']} → {arguments['d']}"
        return self.declaration.label.format(pair=pair, **arguments)


def estimand(name: str, *, type: str | None = None, **arguments: Argument) -> Estimand:
    """The estimand called ``name``.  Raises :class:`~handoff.errors.UsageError` if no formula has this name."""
    if name not in DECLARED or DECLARED[name].formula is None:
        known = ", ".join(name for name, one in DECLARED.items() if one.formula is not None)
        raise UsageError(f"no estimand is named {name!r}; known: {known}")
    return Estimand(name, tuple(arguments.items()), type)


def formula(kind: Kind, label: str, limit: float = 1.0) -> Callable[[F], F]:
    """Declare the estimands that the decorated function computes, under its name; its docstring has the equation."""

    def declared(function: F) -> F:
        paragraph = (inspect.getdoc(function) or "").split("\n\n")[0]
        declare(function.__name__, kind, " ".join(paragraph.split()), label, limit, function)
        return function

    return declared


# One reacher or one cell of the crossing.


@formula("rate", "Reach, {reacher}")
def reach(sums: Sums, reacher: str) -> FloatArray:
    """Reach_w = mean of A_w (section 3.2)."""
    return sums.ratio(count.arrived(reacher), count.EPISODES)


@formula("rate", "Solve, {reacher} then {solver}")
def solve(sums: Sums, reacher: str, solver: str) -> FloatArray:
    """Solve_{w,r} = mean of Y_{w,r} over the arrived (i, s) of reacher w (section 3.2)."""
    return sums.ratio(count.won(reacher, solver), count.arrived(reacher))


@formula("rate", "endpoint, {reacher} then {solver}")
def endpoint(sums: Sums, reacher: str, solver: str) -> FloatArray:
    """endpoint_{w,r} = mean of Y_{w,r} = Reach_w x Solve_{w,r} (Eq. 2)."""
    return sums.ratio(count.won(reacher, solver), count.EPISODES)


@formula("mean", "mean actions, {reacher}", limit=math.inf)
def mean_actions(sums: Sums, reacher: str) -> FloatArray:
    """Mean number of reacher actions until arrival or stopping (Table 2a)."""
    return sums.ratio(count.actions(reacher), count.EPISODES)


@formula("rate", "Reach within {steps}, {reacher}")
def reach_within(sums: Sums, reacher: str, steps: int) -> FloatArray:
    """Reach_w(t) = mean of [tau_D <= t]: the arrival curve at t actions (Figure 2, Table 7)."""
    return sums.ratio(count.arrived_within(reacher, steps), count.EPISODES)


# All reached states, whoever reached them.


@formula("rate", "completion, {solver}")
def completion(sums: Sums, reachers: tuple[str, ...], solver: str) -> FloatArray:
    """Same-state completion: wins of solver r over all reached states, pooled over the reachers (section 4.4)."""
    return sums.ratio(
        tuple(count.won(reacher, solver) for reacher in reachers), tuple(count.arrived(reacher) for reacher in reachers)
    )


@formula("rate", "bridge, {solver}")
def bridge(sums: Sums, reachers: tuple[str, ...], solver: str) -> FloatArray:
    """Bridge rate: share of the reached states where solver r's first action stays on a shortest path (Table 3)."""
    return sums.ratio(
        tuple(count.bridged(reacher, solver) for reacher in reachers),
        tuple(count.arrived(reacher) for reacher in reachers),
    )


@formula("rate", "finish, {solver}")
def finish(sums: Sums, reachers: tuple[str, ...], solver: str) -> FloatArray:
    """Finish rate: share of solver r's bridge actions that it goes on to win from (Table 3).

    With a solver budget of D, bridge rate x finish rate = completion: nothing else can win.
    """
    return sums.ratio(
        tuple(count.finished(reacher, solver) for reacher in reachers),
        tuple(count.bridged(reacher, solver) for reacher in reachers),
    )


@formula("rate", "won by {winner}, not {loser}")
def won_only(sums: Sums, reachers: tuple[str, ...], winner: str, loser: str) -> FloatArray:
    """Share of the reached states that ``winner`` completes and ``loser`` does not (Table 3; its numerator there)."""
    return sums.ratio(
        tuple(count.won_only(reacher, winner, loser) for reacher in reachers),
        tuple(count.arrived(reacher) for reacher in reachers),
    )


# Contrasts a -> b of one role, the other fixed.


@formula("contrast", "Reach gap, {pair}")
def reach_gap(sums: Sums, a: str, b: str) -> FloatArray:
    """Arrival gap: Reach_b - Reach_a (section 4.3)."""
    return reach(sums, b) - reach(sums, a)


@formula("contrast", "Reach gap, {a} within {a_steps} → {b} within {b_steps}")
def reach_within_gap(sums: Sums, a: str, a_steps: int, b: str, b_steps: int) -> FloatArray:
    """Reach_b(t_b) - Reach_a(t_a): the arrival gap at one budget or across two (Table 7)."""
    return reach_within(sums, b, b_steps) - reach_within(sums, a, a_steps)


@formula("contrast", "completion gap, {pair}")
def completion_gap(sums: Sums, reachers: tuple[str, ...], a: str, b: str) -> FloatArray:
    """Same-state gap: completion_b - completion_a over all reached states (section 4.4)."""
    return completion(sums, reachers, b) - completion(sums, reachers, a)


@formula("contrast", "bridge gap, {pair}")
def bridge_gap(sums: Sums, reachers: tuple[str, ...], a: str, b: str) -> FloatArray:
    """Bridge rate of solver b minus that of solver a (Table 3)."""
    return bridge(sums, reachers, b) - bridge(sums, reachers, a)


@formula("contrast", "finish gap, {pair}")
def finish_gap(sums: Sums, reachers: tuple[str, ...], a: str, b: str) -> FloatArray:
    """Finish rate of solver b minus that of solver a (Table 3)."""
    return finish(sums, reachers, b) - finish(sums, reachers, a)


@formula("contrast", "Solve effect of {pair} after {reacher}")
def solver_effect(sums: Sums, reacher: str, a: str, b: str) -> FloatArray:
    """Delta_w = Solve_{w,b} - Solve_{w,a}: the solver effect on the states that w reached (section 3.2)."""
    return solve(sums, reacher, b) - solve(sums, reacher, a)


@formula("contrast", "endpoint effect of {pair} after {reacher}")
def endpoint_effect(sums: Sums, reacher: str, a: str, b: str) -> FloatArray:
    """E_w = endpoint_{w,b} - endpoint_{w,a}: the solver effect under reacher w in the full population (Table 1)."""
    return endpoint(sums, reacher, b) - endpoint(sums, reacher, a)


@formula("contrast", "endpoint effect of {pair} before {solver}")
def reacher_effect(sums: Sums, solver: str, a: str, b: str) -> FloatArray:
    """endpoint_{b,r} - endpoint_{a,r}: what another reacher brings to solver r in the full population."""
    return endpoint(sums, b, solver) - endpoint(sums, a, solver)


# Both roles.


@formula("contrast", "endpoint gain, {pair}")
def endpoint_gain(sums: Sums, a: str, b: str) -> FloatArray:
    """endpoint_{b,b} - endpoint_{a,a}: the whole gain, both roles exchanged (section 2.1)."""
    return endpoint(sums, b, b) - endpoint(sums, a, a)


@formula("contrast", "interaction, {pair}", limit=2.0)
def interaction(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """I = E_b - E_a for reachers a -> b and solvers c -> d, the paper's I being a = c, b = d (Eq. 4)."""
    return endpoint_effect(sums, b, c, d) - endpoint_effect(sums, a, c, d)


@formula("contrast", "survivor interaction, {pair}", limit=2.0)
def survivor_interaction(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Survivor-only interaction: Delta_b - Delta_a, each on the states its own reacher reached (section 2.4).

    Another estimand than I, with non-arrivals dropped: selection on who arrives is part of it.
    """
    return solver_effect(sums, b, c, d) - solver_effect(sums, a, c, d)


@formula("contrast", "survivor minus interaction, {pair}", limit=4.0)
def survivor_minus_interaction(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Survivor-only interaction minus I, paired (Appendix D, non-arrival retention)."""
    return survivor_interaction(sums, a, b, c, d) - interaction(sums, a, b, c, d)


@formula("contrast", "arrival term, {pair}")
def arrival_term(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Arrival term of I: (Reach_b - Reach_a) x Delta_b (Eq. 9)."""
    return reach_gap(sums, a, b) * solver_effect(sums, b, c, d)


@formula("contrast", "state term, {pair}", limit=2.0)
def state_term(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """State term of I: Reach_a x (Delta_b - Delta_a); arrival term + state term = I (Eq. 9)."""
    return reach(sums, a) * survivor_interaction(sums, a, b, c, d)


PAIRED = ("interaction", "survivor_interaction", "survivor_minus_interaction", "arrival_term", "state_term")


def pairs(table: Table, order: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Every contrast a -> b between checkpoints that are reachers and solvers both: the ladder.

    ``order`` (weakest first) says which comes first in a pair; without it the table's order of reachers does.
    Raises :class:`~handoff.errors.UsageError` if ``order`` names something that the table lacks.
    """
    both = [name for name in table.reachers if name in table.solvers]
    if order is None:
        return list(combinations(both, 2))
    known = dict.fromkeys((*table.reachers, *table.solvers))
    for name in order:
        if name not in known:
            raise UsageError(f"no checkpoint is named {name!r}; the table has {', '.join(known)}")
    return list(combinations([name for name in order if name in both], 2))


def _ordered(names: Sequence[str], order: Sequence[str] | None) -> list[tuple[str, str]]:
    return list(combinations([name for name in order if name in names] if order is not None else names, 2))


def standard(
    table: Table,
    order: Sequence[str] | None = None,
    *,
    budgets: Sequence[int] | None = None,
    by_type: bool = True,
) -> list[Estimand]:
    """All estimands that ``table`` can answer, in the order of a report.

    ``order`` as for :func:`pairs`.  ``budgets`` (8, 16 and 48 by default, as far as the reachers had so many actions)
    are used where the table knows when a reacher arrived.  ``by_type`` adds the per-type table.  Raises
    :class:`~handoff.errors.UsageError` for budgets that were not observed.
    """
    if budgets is not None and table.arrival_WTS is None:
        raise UsageError("arrival by budget needs to know after how many actions a reacher arrived (column `arrival`)")
    estimands = list(_whole(table, order, budgets))
    if by_type:
        estimands += [one for type in table.types for one in _of_type(table, order, type)]
    return estimands


def _whole(table: Table, order: Sequence[str] | None, budgets: Sequence[int] | None) -> Iterator[Estimand]:
    make = estimand
    for w in table.reachers:
        yield make("reach", reacher=w)
        if table.actions_WTS is not None:
            yield make("mean_actions", reacher=w)
    for w in table.reachers:
        for r in table.solvers:
            yield make("endpoint", reacher=w, solver=r)
            yield make("solve", reacher=w, solver=r)
    reacher_pairs, solver_pairs = _ordered(table.reachers, order), _ordered(table.solvers, order)
    for a, b in reacher_pairs:
        yield make("reach_gap", a=a, b=b)
        for r in table.solvers:
            yield make("reacher_effect", solver=r, a=a, b=b)
    for a, b in solver_pairs:
        for w in table.reachers:
            yield make("endpoint_effect", reacher=w, a=a, b=b)
            yield make("solver_effect", reacher=w, a=a, b=b)
    yield from _same_state(table, solver_pairs)
    for a, b in pairs(table, order):
        yield make("endpoint_gain", a=a, b=b)
    for a, b, c, d in crossed(table, order):
        for name in PAIRED:
            yield make(name, a=a, b=b, c=c, d=d)
    if table.arrival_WTS is not None:
        yield from _budgets(table, reacher_pairs, budgets)


def _same_state(table: Table, solver_pairs: Sequence[tuple[str, str]]) -> Iterator[Estimand]:
    everyone = table.reachers
    for r in table.solvers:
        yield estimand("completion", reachers=everyone, solver=r)
    for a, b in solver_pairs:
        yield estimand("completion_gap", reachers=everyone, a=a, b=b)
        yield estimand("won_only", reachers=everyone, winner=b, loser=a)
        yield estimand("won_only", reachers=everyone, winner=a, loser=b)
    if table.bridge_WRTS is None:
        return
    for name in ("bridge", "finish"):
        for r in table.solvers:
            yield estimand(name, reachers=everyone, solver=r)
        for a, b in solver_pairs:
            yield estimand(f"{name}_gap", reachers=everyone, a=a, b=b)


def crossed(table: Table, order: Sequence[str] | None) -> list[tuple[str, str, str, str]]:
    """Reacher pair and solver pair of every interaction: the same two checkpoints in both roles, or, where no two
    checkpoints have both roles, every reacher pair with every solver pair."""
    same = pairs(table, order)
    if same:
        return [(a, b, a, b) for a, b in same]
    return [(*first, *second) for first in _ordered(table.reachers, order) for second in _ordered(table.solvers, order)]


def observed_budget(table: Table) -> int:
    """The most reacher actions up to which arrival was observed: the budget, or else the longest turn taken."""
    if table.budget is not None:
        return table.budget
    steps = [int(array.max()) for array in (table.arrival_WTS, table.actions_WTS) if array is not None]
    return max(steps, default=0)


def _budgets(
    table: Table, reacher_pairs: Sequence[tuple[str, str]], budgets: Sequence[int] | None
) -> Iterator[Estimand]:
    limit = observed_budget(table)
    steps = sorted({t for t in (budgets if budgets is not None else (8, 16, 48)) if budgets is not None or t <= limit})
    for t in steps:
        if t < 0 or t > limit:
            raise UsageError(f"budget {t} is outside what was observed: 0 to {limit} actions")
    for w in table.reachers:
        for t in steps:
            yield estimand("reach_within", reacher=w, steps=t)
    for a, b in reacher_pairs:
        for t in steps:
            yield estimand("reach_within_gap", a=a, a_steps=t, b=b, b_steps=t)
        for b_steps, a_steps in combinations(steps, 2):
            yield estimand("reach_within_gap", a=a, a_steps=a_steps, b=b, b_steps=b_steps)


def arrival_curve(table: Table, steps: Sequence[int] | None = None) -> list[Estimand]:
    """Reach_w(t) for every reacher and every t of ``steps`` (0 to the budget): Figure 2, bands and all."""
    ticks = range(observed_budget(table) + 1) if steps is None else steps
    return [estimand("reach_within", reacher=w, steps=t) for w in table.reachers for t in ticks]


def _of_type(table: Table, order: Sequence[str] | None, type: str) -> Iterator[Estimand]:
    for w in table.reachers:
        yield estimand("reach", reacher=w, type=type)
    for a, b in _ordered(table.reachers, order):
        yield estimand("reach_gap", a=a, b=b, type=type)
    for r in table.solvers:
        yield estimand("completion", reachers=table.reachers, solver=r, type=type)
    for a, b in _ordered(table.solvers, order):
        yield estimand("completion_gap", reachers=table.reachers, a=a, b=b, type=type)
    for w in table.reachers:
        for r in table.solvers:
            yield estimand("endpoint", reacher=w, solver=r, type=type)
    for a, b, c, d in crossed(table, order):
        yield estimand("interaction", a=a, b=b, c=c, d=d, type=type)
