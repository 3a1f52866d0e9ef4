"""Populations with known truth, from which planning and the coverage benchmark draw studies.

A task i of type g has two latent difficulties (u_i, v_i), standard normal with correlation ``link``.  Reacher w arrives
on each seed slot with probability expit(reach_WG[w, g] + reach_sd u_i), and solver r then wins with probability
expit(solve_WRG[w, r, g] + solve_sd v_i).  Pairing: on a share ``pairing`` of the seed slots both roles' arms use one
common random number, as checkpoints of one family that share seeds do; on the others the arms are independent.

The truth is exact: expected counts per task by two-dimensional Gauss-Hermite quadrature, put through the very formulas
that are estimated.  :func:`from_guesses` and :func:`from_pilot` make a population from guessed rates and from a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from handoff.errors import UsageError
from handoff.estimation import counting
from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import Count, Sums
from handoff.estimation.estimands import Estimand
from handoff.estimation.table import Table
from handoff.settings import require

#: Nodes of a quadrature.
NODES = 48


@attrs.frozen(eq=False)
class Design:
    """A population of tasks, and the size of a study drawn from it."""

    reachers: tuple[str, ...]
    solvers: tuple[str, ...]
    #: Tasks drawn of each type.
    tasks_G: tuple[int, ...]
    #: Seed slots per task.
    slots: int
    #: Logits at the centre of a type's tasks.
    reach_WG: FloatArray
    solve_WRG: FloatArray
    #: Standard deviation of a type's tasks on the logit scale.
    reach_sd: float = 1.0
    solve_sd: float = 1.0
    #: Correlation of a task's two difficulties.
    link: float = 0.5
    #: Share of the seed slots on which arms share a random number.
    pairing: float = 0.5

    def __attrs_post_init__(self) -> None:
        w, r, g = len(self.reachers), len(self.solvers), len(self.tasks_G)
        if self.reach_WG.shape != (w, g) or self.solve_WRG.shape != (w, r, g):
            raise UsageError(f"the logits do not have the shapes that {w} reachers, {r} solvers and {g} types need")
        for tasks in self.tasks_G:
            require("the number of tasks of a type", tasks, int, least=1, most=1_000_000)
        require("the number of seed slots", self.slots, int, least=1, most=1_000_000)
        require("pairing", self.pairing, least=0, most=1)
        require("link", self.link, least=-1, most=1)
        require("the spread of Reach over tasks", self.reach_sd, least=0)
        require("the spread of Solve over tasks", self.solve_sd, least=0)
        if not (np.isfinite(self.reach_WG).all() and np.isfinite(self.solve_WRG).all()):
            raise UsageError("the logits must be finite")

    @property
    def types(self) -> tuple[str, ...]:
        width = len(str(len(self.tasks_G)))
        return tuple(f"type {g + 1:0{width}d}" for g in range(len(self.tasks_G)))

    def draw(self, rng: np.random.Generator) -> Table:
        """One study: new tasks, new outcomes."""
        types_T = np.repeat(np.arange(len(self.tasks_G)), self.tasks_G)
        tasks, slots = len(types_T), self.slots
        u_T = rng.standard_normal(tasks)
        v_T = self.link * u_T + np.sqrt(1 - self.link**2) * rng.standard_normal(tasks)
        reach_WT = expit(self.reach_WG[:, types_T] + self.reach_sd * u_T)
        solve_WRT = expit(self.solve_WRG[:, :, types_T] + self.solve_sd * v_T)
        arrived_WTS = self._uniforms(rng, (len(self.reachers),), tasks) < reach_WT[..., None]
        wins_WRTS = self._uniforms(rng, (len(self.reachers), len(self.solvers)), tasks) < solve_WRT[..., None]
        return Table(
            reachers=self.reachers,
            solvers=self.solvers,
            tasks=tuple(f"{t:06d}" for t in range(tasks)),
            strata=tuple(self.types[g] for g in types_T),
            slots=tuple(range(slots)),
            arrived_WTS=arrived_WTS,
            won_WRTS=wins_WRTS & arrived_WTS[:, None],
        )

    def _uniforms(self, rng: np.random.Generator, arms: tuple[int, ...], tasks: int) -> FloatArray:
        """Shape (*arms, T, S): the same number in every arm on a share ``pairing`` of the slots."""
        own = rng.random((*arms, tasks, self.slots))
        common_TS = rng.random((tasks, self.slots))
        together_TS: NDArray[np.bool_] = rng.random((tasks, self.slots)) < self.pairing
        return np.where(together_TS, common_TS, own)

    def truth(self, estimands: Sequence[Estimand]) -> FloatArray:
        """Shape (E,): the estimands of the population, types weighted as the study weights them."""
        per_type = [self._expected(g) for g in range(len(self.tasks_G))]
        index = {count: k for k, count in enumerate(per_type[0])}
        sums_GK = np.array([[row[count] * n for count in index] for row, n in zip(per_type, self.tasks_G, strict=True)])
        by_type = {type: Sums(index, sums_GK[g][:, None]) for g, type in enumerate(self.types)}
        whole = Sums(index, sums_GK.sum(axis=0)[:, None])
        with counting.empty_allowed():
            return np.array([float(e(whole if e.type is None else by_type[e.type])[0]) for e in estimands])

    def _expected(self, g: int) -> dict[Count, float]:
        """Expected counts of one task of type ``g``, per seed slot."""
        nodes, weights = quadrature()
        u, e = np.meshgrid(nodes, nodes, indexing="ij")
        v = self.link * u + np.sqrt(1 - self.link**2) * e
        mass = np.outer(weights, weights)
        expected: dict[Count, float] = {counting.EPISODES: 1.0}
        for w, reacher in enumerate(self.reachers):
            reach = expit(self.reach_WG[w, g] + self.reach_sd * u)
            expected[counting.arrived(reacher)] = float((mass * reach).sum())
            solve = [expit(self.solve_WRG[w, r, g] + self.solve_sd * v) for r in range(len(self.solvers))]
            for r, solver in enumerate(self.solvers):
                expected[counting.won(reacher, solver)] = float((mass * reach * solve[r]).sum())
                for q, other in enumerate(self.solvers):
                    both = self.pairing * np.minimum(solve[r], solve[q]) + (1 - self.pairing) * solve[r] * solve[q]
                    only = expected[counting.won(reacher, solver)] - float((mass * reach * both).sum())
                    expected[counting.won_only(reacher, solver, other)] = only
        return expected


def quadrature() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the mean over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes, weights / weights.sum()


def centre(mean: float, sd: float) -> float:
    """The logit at which expit(logit + sd z), z standard normal, has the mean ``mean`` in (0, 1)."""
    from scipy.optimize import brentq

    if not 0 < mean < 1:
        raise UsageError(f"a probability strictly between 0 and 1 is needed, not {mean:g}")
    require("the spread of tasks", sd, least=0, most=100)
    nodes, weights = quadrature()
    start = float(logit(mean))
    reach = abs(start) + 10 * (1 + sd)
    logit_of_mean = brentq(lambda at: float(weights @ expit(at + sd * nodes)) - mean, -reach, reach, xtol=1e-12)
    return float(logit_of_mean)


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
    require("the number of task types", types, int, least=1, most=1_000_000)
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
    nodes, weights = quadrature()

    def variance(sd: float) -> float:
        """Of the arms' task rates, on average, if tasks differ by ``sd``."""
        tasks_AN = [expit(centre(rate, sd) + sd * nodes) for rate in rates]
        return float(np.mean([weights @ rate_N**2 - (weights @ rate_N) ** 2 for rate_N in tasks_AN]))

    grid = np.arange(0.0, 4.01, 0.25)
    return float(np.interp(component, [variance(float(sd)) for sd in grid], grid))
