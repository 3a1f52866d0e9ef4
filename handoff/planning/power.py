"""How many tasks and seeds a study needs, by simulation, with the intervals that the study will get.

Guesses of Reach and Solve, or a pilot's table, make a population of tasks (:mod:`handoff.planning.population`).
Studies of growing size are drawn from it, and each gets the default interval of the estimand in question.  One repeat
uses the same random numbers at every size, so that the curve is smooth in size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.estimation.bootstrap import estimate
from handoff.estimation.equivalence import ALPHA, require_margin, within_margin
from handoff.estimation.estimands import Estimand, estimand
from handoff.estimation.method import Intervals
from handoff.estimation.transport import Sample, transport
from handoff.planning.population import Design
from handoff.settings import require

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


def equivalent(
    design: Design,
    pair: tuple[str, str],
    tasks: int,
    slots: int,
    margin: float,
    *,
    repeats: int = 200,
    intervals: Intervals = QUICK,
) -> StudySize:
    """Simulated transports between two splits of ``tasks`` tasks per type each, with a true residual of 0.

    ``power`` is the share whose residual is shown to lie within ``margin`` of 0 at 5%: its 90% interval does.  For the
    residual to be 0, Solve must not depend on who reached the state: each solver gets its mean over the reachers, and a
    task's two difficulties are independent.
    """
    solve_WRG = np.broadcast_to(design.solve_WRG.mean(axis=0), design.solve_WRG.shape)
    sized = attrs.evolve(design, tasks_G=(tasks,) * len(design.tasks_G), slots=slots, solve_WRG=solve_WRG, link=0.0)
    chosen = attrs.evolve(intervals, level=1 - 2 * ALPHA)
    widths, shown = [], 0
    for repeat in range(repeats):
        rng = np.random.default_rng([intervals.seed, repeat])
        here, there = sized.draw(rng), sized.draw(rng)
        there = attrs.evolve(there, tasks=tuple(f"x{task}" for task in there.tasks))
        made = transport(
            Sample("here", here), Sample("there", there), (*pair, *pair), attrs.evolve(chosen, seed=repeat)
        )
        residual = made.estimates.estimates[-1]
        if residual.low is not None and residual.high is not None:
            widths.append((residual.high - residual.low) / 2)
            shown += within_margin(residual.low, residual.high, margin)
    total = tasks * len(design.tasks_G)
    return StudySize(
        tasks=tasks,
        slots=slots,
        total_tasks=total,
        trajectories=total * slots * len(design.reachers),
        half_width=float(np.mean(widths)) if widths else None,
        power=shown / repeats,
        coverage=None,
        refused=1 - len(widths) / repeats,
    )


def equivalence_curve(
    design: Design,
    pair: tuple[str, str],
    slots: int,
    margin: float,
    power: float,
    *,
    sizes: Sequence[int] = SIZES,
    repeats: int = 100,
    intervals: Intervals = QUICK,
) -> Curve:
    """The curve of :func:`equivalent` over ``sizes`` up to the first with at least this ``power``.

    Raises :class:`~handoff.errors.UsageError` for a margin or a power out of range, or a checkpoint without both roles.
    """
    require_margin(margin)
    require("the power", power, least=0, most=1, open=True)
    for name in pair:
        if name not in design.reachers or name not in design.solvers:
            raise UsageError(f"a prediction needs {name!r} among the reachers and the solvers")
    points = []
    needed = None
    for tasks in sorted(sizes):
        points.append(equivalent(design, pair, tasks, slots, margin, repeats=repeats, intervals=intervals))
        if points[-1].power >= power:
            needed = points[-1]
            break
    a, b = pair
    arguments = (("a", a), ("b", b), ("c", a), ("d", b))
    goal = f"equivalence within {100 * margin:g} points, power >= {power:g}"
    return Curve(Estimand("transport_residual", arguments), 0.0, goal, tuple(points), needed, repeats)


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
    require("the number of seed slots", slots, int, least=1)
    require("the number of repeats", repeats, int, least=10)
    if not sizes:
        raise UsageError("name at least one number of tasks to plan for")
    for tasks in sizes:
        require("the number of tasks of a type", tasks, int, least=1)
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
