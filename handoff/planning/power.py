"""How many tasks and seeds a study needs, by simulation, with the intervals that the study will get.

Guesses of Reach and Solve, or a pilot's table, make a population of tasks (:mod:`handoff.planning.population`).
Studies of growing size are drawn from it, and each gets the default interval of the estimand in question.  One repeat
uses the same random numbers at every size, so that the curve is smooth in size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from scipy.special import expit

from handoff.errors import UsageError
from handoff.estimation.arrays import FloatArray
from handoff.estimation.bootstrap import estimate
from handoff.estimation.estimands import Estimand, estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.planning.population import NODES, Design, centre

#: Endpoints of one simulated study: more do not fit into memory.
MOST_CELLS = 20_000_000
#: Tasks per type at which the curve is drawn, up to the first that reaches the goal.
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100)
#: Intervals of simulated studies, with fewer draws than a real study has.
QUICK = Intervals(draws=1000)
#: What a study can be planned for, by the name that the command line takes.
QUESTIONS = ("interaction", "reach_gap", "completion_gap", "endpoint_gain", "arrival_term", "survivor_interaction")


@attrs.frozen
class StudySize:
    """One size of study, and the outcome of simulated studies of that size."""

    #: Tasks per type.
    tasks: int
    #: Seed slots per task.
    slots: int
    total_tasks: int
    trajectories: int
    #: Mean over the intervals given.
    half_width: float | None
    #: Share of all studies whose interval lies on the true side of 0.
    power: float
    #: Share of the intervals given that hold the truth.
    coverage: float | None
    #: Share of the studies without an interval.
    refused: float


@attrs.frozen
class Curve:
    """The planning curve of one estimand."""

    question: Estimand
    #: Value of the estimand in the population.
    truth: float
    goal: str
    #: In order of size.
    points: tuple[StudySize, ...]
    #: The smallest size that reached the goal; ``None`` if none did.
    needed: StudySize | None
    #: Simulated studies per size.
    repeats: int

    def to_json(self) -> dict[str, Any]:
        return {
            "estimand": str(self.question),
            "truth": self.truth,
            "goal": self.goal,
            "repeats": self.repeats,
            "needed": attrs.asdict(self.needed) if self.needed else None,
            "points": [attrs.asdict(point) for point in self.points],
        }


def spread_out(
    reach: Mapping[str, float], solve: Mapping[str, float]
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Guesses as :func:`from_guesses` takes them, from Solve by ``solver`` (any reacher) or by ``reacher/solver``.

    A guess for a reacher and solver has precedence over one for the solver alone.  Raises
    :class:`~handoff.errors.UsageError` where a cell has neither.
    """
    solvers = dict.fromkeys(key.rpartition("/")[2] for key in solve)
    cells: dict[tuple[str, str], float] = {}
    for w in reach:
        for r in solvers:
            guess = solve.get(f"{w}/{r}", solve.get(r))
            if guess is None:
                raise UsageError(f"no guess of Solve for reacher {w!r} and solver {r!r}")
            cells[w, r] = guess
    for key in solve:
        w = key.rpartition("/")[0]
        if w and w not in reach:
            raise UsageError(f"a guess of Solve for {w!r}, but none of its Reach")
    return dict(reach), cells


def from_guesses(
    reach: Mapping[str, float],
    solve: Mapping[tuple[str, str], float],
    *,
    types: int = 6,
    spread: float = 1.0,
    pairing: float = 0.5,
) -> Design:
    """A population with Reach by reacher and Solve by (reacher, solver), alike in all ``types``.

    ``spread`` is the standard deviation of tasks on the logit scale, ``pairing`` the share of seeds on which the arms
    act on one random number.  Raises :class:`~handoff.errors.UsageError` for a missing cell, or a value outside (0, 1).
    """
    reachers = tuple(reach)
    solvers = tuple(dict.fromkeys(solver for _, solver in solve))
    if not reachers or not solvers:
        raise UsageError("guess at least Reach of one reacher and Solve of one solver")
    for w in reachers:
        for r in solvers:
            if (w, r) not in solve:
                raise UsageError(f"no guess of Solve for reacher {w!r} and solver {r!r}")
    for w, _ in solve:
        if w not in reach:
            raise UsageError(f"a guess of Solve for {w!r}, but none of its Reach")
    if types < 1:
        raise UsageError("a study has at least one task type")
    reach_WG = np.array([[centre(reach[w], spread)] * types for w in reachers])
    solve_WRG = np.array([[[centre(solve[w, r], spread)] * types for r in solvers] for w in reachers])
    return Design(reachers, solvers, (1,) * types, 1, reach_WG, solve_WRG, spread, spread, pairing=pairing)


def from_pilot(table: Table, *, pairing: float = 0.5) -> Design:
    """A population like the pilot: its types, its Reach and Solve, tasks that differ as much as its tasks do.

    Rates of a type are drawn towards those of all types by two tasks' worth of episodes, and no rate is 0 or 1.  The
    spread of tasks within type is the logit-scale standard deviation whose variance of rates equals the pilot's
    between-task component (analysis of variance, seed slots within tasks).
    """
    slots = len(table.slots)
    reach_sd = _spread(table.arrived_WTS.sum(axis=2), np.full(table.arrived_WTS.shape[:2], slots), table.strata)
    reached_WT = table.arrived_WTS.sum(axis=2)
    won_WRT = table.won_WRTS.sum(axis=3)
    many_RWT = np.broadcast_to(reached_WT, (len(table.solvers), *reached_WT.shape)).transpose(1, 0, 2)
    solve_sd = _spread(won_WRT.reshape(-1, len(table.tasks)), many_RWT.reshape(-1, len(table.tasks)), table.strata)
    reach_WG = np.empty((len(table.reachers), len(table.types)))
    solve_WRG = np.empty((len(table.reachers), len(table.solvers), len(table.types)))
    tasks_G = []
    for g, type in enumerate(table.types):
        mine_T = np.array([stratum == type for stratum in table.strata])
        tasks_G.append(int(mine_T.sum()))
        for w in range(len(table.reachers)):
            episodes = slots * int(mine_T.sum())
            whole = (reached_WT[w].sum() + 0.5) / (slots * len(table.tasks) + 1)
            rate = (reached_WT[w, mine_T].sum() + 2 * slots * whole) / (episodes + 2 * slots)
            reach_WG[w, g] = centre(float(rate), reach_sd)
            for r in range(len(table.solvers)):
                reached = int(reached_WT[w, mine_T].sum())
                whole = (won_WRT[w, r].sum() + 0.5) / (reached_WT[w].sum() + 1)
                rate = (won_WRT[w, r, mine_T].sum() + 2 * slots * whole) / (reached + 2 * slots)
                solve_WRG[w, r, g] = centre(float(rate), solve_sd)
    return Design(
        table.reachers, table.solvers, tuple(tasks_G), slots, reach_WG, solve_WRG, reach_sd, solve_sd, pairing=pairing
    )


def _spread(counts_AT: FloatArray, trials_AT: FloatArray, strata: Sequence[str]) -> float:
    """Logit-scale standard deviation of tasks within type, from counts of arms A on tasks T."""
    within = between = 0.0
    within_free = between_free = 0
    episodes: list[float] = []
    rates: list[float] = []
    for counts_T, trials_T in zip(counts_AT, trials_AT, strict=True):
        if trials_T.sum() > 0:
            rates.append(float(np.clip(counts_T.sum() / trials_T.sum(), 0.02, 0.98)))
        for type in dict.fromkeys(strata):
            mine = [t for t, stratum in enumerate(strata) if stratum == type and trials_T[t] > 0]
            if len(mine) < 2:
                continue
            n_T, k_T = np.array([trials_T[t] for t in mine], float), np.array([counts_T[t] for t in mine], float)
            mean = k_T.sum() / n_T.sum()
            between += float((n_T * (k_T / n_T - mean) ** 2).sum())
            within += float((k_T * (1 - k_T / n_T)).sum())
            between_free += len(mine) - 1
            within_free += int(n_T.sum()) - len(mine)
            episodes += n_T.tolist()
    if not between_free or not within_free:
        return 1.0  # one seed or one task per type: task differences cannot be told from chance
    component = max(0.0, (between / between_free - within / within_free) / float(np.mean(episodes)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()

    def variance(sd: float) -> float:
        """Of the arms' task rates, on average, if tasks differ by ``sd``."""
        tasks_AN = [expit(centre(rate, sd) + sd * nodes) for rate in rates]
        return float(np.mean([weights @ rate_N**2 - (weights @ rate_N) ** 2 for rate_N in tasks_AN]))

    grid = np.arange(0.0, 4.01, 0.25)
    return float(np.interp(component, [variance(float(sd)) for sd in grid], grid))


def question(name: str, design: Design, a: str | None = None, b: str | None = None) -> Estimand:
    """The estimand of ``QUESTIONS`` called ``name`` for the contrast a -> b, the first two reachers by default.

    Raises :class:`~handoff.errors.UsageError` for another name, or checkpoints that the design lacks in a role.
    """
    if name not in QUESTIONS:
        raise UsageError(f"cannot plan for {name!r}; known: {', '.join(QUESTIONS)}")
    solving = name == "completion_gap"
    names = design.solvers if solving else design.reachers
    if a is None or b is None:
        if len(names) < 2:
            raise UsageError(f"{name} compares two checkpoints; the design has {', '.join(names)}")
        a, b = names[0], names[1]
    roles = {"completion_gap": (design.solvers,), "reach_gap": (design.reachers,)}
    for role in roles.get(name, (design.reachers, design.solvers)):
        for one in (a, b):
            if one not in role:
                raise UsageError(f"{name} needs {one!r} among {', '.join(role)}")
    if solving:
        return estimand(name, reachers=design.reachers, a=a, b=b)
    if name in ("reach_gap", "endpoint_gain"):
        return estimand(name, a=a, b=b)
    return estimand(name, a=a, b=b, c=a, d=b)


def simulate(
    design: Design,
    question: Estimand,
    tasks: int,
    slots: int,
    *,
    repeats: int = 200,
    intervals: Intervals = QUICK,
) -> StudySize:
    """Simulated studies with ``tasks`` tasks of every type of ``design`` and ``slots`` seed slots.

    The seed of ``intervals`` is that of the simulated studies.
    """
    sized = attrs.evolve(design, tasks_G=(tasks,) * len(design.tasks_G), slots=slots)
    truth = float(sized.truth([question])[0])
    widths, covered, right = [], 0, 0
    for repeat in range(repeats):
        table = sized.draw(np.random.default_rng([intervals.seed, repeat]))
        (one,) = estimate(table, [question], attrs.evolve(intervals, seed=repeat)).estimates
        if one.low is None or one.high is None:
            continue
        widths.append((one.high - one.low) / 2)
        covered += one.low <= truth <= one.high
        right += (one.low > 0 and truth > 0) or (one.high < 0 and truth < 0)
    given = len(widths)
    return StudySize(
        tasks=tasks,
        slots=slots,
        total_tasks=tasks * len(design.tasks_G),
        trajectories=tasks * len(design.tasks_G) * slots * len(design.reachers),
        half_width=float(np.mean(widths)) if given else None,
        power=right / repeats,
        coverage=covered / given if given else None,
        refused=1 - given / repeats,
    )


def curve(
    design: Design,
    question: Estimand,
    slots: int,
    *,
    half_width: float | None = None,
    power: float | None = None,
    sizes: Sequence[int] = SIZES,
    repeats: int = 200,
    intervals: Intervals = QUICK,
) -> Curve:
    """The curve over ``sizes`` (tasks per type) up to the first that reaches the goal, then bisected to the smallest.

    The goal is a mean half-width of at most ``half_width``, or at least this ``power``; exactly one is given.
    A share over ``repeats`` studies has a standard error of up to 0.5 / sqrt(repeats).  Raises
    :class:`~handoff.errors.UsageError` for no goal, two goals, or one that cannot be reached by any size.
    """
    if (half_width is None) == (power is None):
        raise UsageError("give either a half-width or a power to plan for")
    if half_width is not None and not 0 < half_width < 1:
        raise UsageError(f"the half-width must lie between 0 and 1 (0.1 is ten points), not {half_width:g}")
    if power is not None and not 0 < power < 1:
        raise UsageError(f"the power must lie between 0 and 1, not {power:g}")
    if slots < 1 or repeats < 10:
        raise UsageError("plan for at least one seed, with at least 10 repeats")
    cells = max(sizes) * len(design.tasks_G) * slots * len(design.reachers) * len(design.solvers)
    if cells > MOST_CELLS:
        raise UsageError(
            f"studies of {cells:,} endpoints are too large to simulate (at most {MOST_CELLS:,}): "
            "plan for fewer seeds, types or tasks"
        )
    truth = float(attrs.evolve(design, tasks_G=(1,) * len(design.tasks_G)).truth([question])[0])
    if power is not None and abs(truth) < 1e-9:
        raise UsageError("the guesses make the estimand 0, so no study can find it; plan for a half-width instead")

    points: dict[int, StudySize] = {}

    def reaches(tasks: int) -> bool:
        point = points[tasks] = simulate(design, question, tasks, slots, repeats=repeats, intervals=intervals)
        if half_width is not None:
            return point.half_width is not None and point.half_width <= half_width and point.refused < 0.05
        return power is not None and point.power >= power

    needed: int | None = None
    below = 0
    for tasks in sorted(sizes):
        if reaches(tasks):
            needed = tasks
            break
        below = tasks
    while needed is not None and needed - below > 1 and below >= min(sizes):
        middle = (needed + below) // 2
        if reaches(middle):
            needed = middle
        else:
            below = middle
    goal = f"half-width <= {half_width:g}" if half_width is not None else f"power >= {power:g}"
    ordered = tuple(points[tasks] for tasks in sorted(points))
    return Curve(question, truth, goal, ordered, points[needed] if needed is not None else None, repeats)
