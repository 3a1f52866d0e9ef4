"""Populations with known truth, from which planning and the coverage benchmark draw studies.

A task i of type g has two latent difficulties (u_i, v_i), standard normal with correlation ``link``.  Reacher w arrives
on each seed slot with probability expit(reach_WG[w, g] + reach_sd u_i), and solver r then wins with probability
expit(solve_WRG[w, r, g] + solve_sd v_i).  Pairing: on a share ``pairing`` of the seed slots both roles' arms use one
common random number, as checkpoints of one family that share seeds do; on the others the arms are independent.

The truth is exact: expected counts per task by two-dimensional Gauss-Hermite quadrature, put through the very formulas
that are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence

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
        if min(self.tasks_G) < 1 or self.slots < 1:
            raise UsageError("a study needs at least one task of every type and one seed slot")
        if not (0 <= self.pairing <= 1 and -1 <= self.link <= 1 and self.reach_sd >= 0 and self.solve_sd >= 0):
            raise UsageError("pairing lies in [0, 1], link in [-1, 1], and the task spreads are not negative")

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
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        weights = weights / weights.sum()
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


def centre(mean: float, sd: float) -> float:
    """The logit at which expit(logit + sd z), z standard normal, has the mean ``mean`` in (0, 1)."""
    from scipy.optimize import brentq

    if not 0 < mean < 1:
        raise UsageError(f"a probability strictly between 0 and 1 is needed, not {mean:g}")
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    start = float(logit(mean))
    reach = abs(start) + 10 * (1 + sd)
    logit_of_mean = brentq(lambda at: float(weights @ expit(at + sd * nodes)) - mean, -reach, reach, xtol=1e-12)
    return float(logit_of_mean)
