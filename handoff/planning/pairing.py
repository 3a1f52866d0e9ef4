"""How often arms act on one random number, learned from a pilot.

On a share ``pairing`` of the seed slots all arms of a role act on one random number
(:mod:`handoff.planning.population`).  Of two arms with the success probabilities p and q on a task, the outcomes of one
slot then have the covariance

    pairing x (min(p, q) - p q),

whatever the spread of tasks: differences between tasks drop out where a task's slots are compared with their own mean.
The estimate is the sum of such products over all pairs of arms, over the sum that full pairing would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import attrs
import numpy as np
from scipy.special import expit

from handoff.estimation.arrays import BoolArray, FloatArray
from handoff.estimation.table import Table
from handoff.planning.population import Design, quadrature

#: What is assumed where a pilot cannot tell.
ASSUMED = 0.5
#: A standard error beyond this says that the pilot cannot tell.
TOO_UNSURE = 0.4


@attrs.frozen
class Pairing:
    """The share of seed slots on which arms act on one random number."""

    #: What planning uses, between 0 and 1.
    share: float
    #: The jackknife standard error over the pilot's tasks; ``None`` where the pilot shows nothing of it.
    error: float | None
    #: Whether the pilot told it; else it is :data:`ASSUMED`.
    learned: bool

    def __str__(self) -> str:
        if self.learned:
            return f"pairing {self.share:.2f}, learned from the pilot (standard error {self.error:.2f})"
        cause = (
            "its tasks have no two seed slots of two arms to compare"
            if self.error is None
            else f"its standard error is {self.error:.2f}"
        )
        return f"pairing {self.share:.2f}, assumed: the pilot is too small to tell it ({cause}); --pairing states it"


def learned(table: Table, design: Design) -> Pairing:
    """The pairing of the ``table`` that ``design`` was made of."""
    sums_T, full_T = np.zeros((2, len(table.tasks)))
    type_T = np.array([table.types.index(stratum) for stratum in table.strata])
    for first, second, given_TS, full_G in _arms(table, design):
        counted_T = given_TS.sum(axis=1)
        useful_T = counted_T > 1
        products_TS = _off(first, given_TS) * _off(second, given_TS)
        sums_T += np.where(useful_T, products_TS.sum(axis=1), 0.0)
        full_T += np.where(useful_T, counted_T - 1, 0) * full_G[type_T]
    if not full_T.sum() > 1e-9:
        return Pairing(ASSUMED, None, False)
    share = float(np.clip(sums_T.sum() / full_T.sum(), 0, 1))
    tasks = len(sums_T)
    rest_T = full_T.sum() - full_T
    if tasks < 2 or not (rest_T > 1e-9).all():
        return Pairing(ASSUMED, None, False)
    without_T = (sums_T.sum() - sums_T) / rest_T
    error = float(np.sqrt((tasks - 1) / tasks * ((without_T - without_T.mean()) ** 2).sum()))
    return Pairing(share, error, True) if error <= TOO_UNSURE else Pairing(ASSUMED, error, False)


def _off(outcome_TS: BoolArray, given_TS: BoolArray) -> FloatArray:
    """Outcomes less their task's mean over the slots given; 0 on the others."""
    mean_T = (outcome_TS & given_TS).sum(axis=1) / np.maximum(1, given_TS.sum(axis=1))
    off_TS: FloatArray = np.where(given_TS, outcome_TS - mean_T[:, None], 0.0)
    return off_TS


def _arms(table: Table, design: Design) -> Iterator[tuple[BoolArray, BoolArray, BoolArray, FloatArray]]:
    """Per pair of arms: both outcomes (T, S), the slots on which both are seen, and min(p, q) - p q by type."""
    nodes, weights = quadrature()
    everywhere_TS = np.ones(table.arrived_WTS.shape[1:], bool)

    def full(first_G: FloatArray, second_G: FloatArray, sd: float) -> FloatArray:
        p, q = (expit(logit_G[:, None] + sd * nodes) for logit_G in (first_G, second_G))
        result: FloatArray = (np.minimum(p, q) - p * q) @ weights
        return result

    for w, v in combinations(range(len(table.reachers)), 2):
        covariance_G = full(design.reach_WG[w], design.reach_WG[v], design.reach_sd)
        yield table.arrived_WTS[w], table.arrived_WTS[v], everywhere_TS, covariance_G
    cells = [(w, r) for w in range(len(table.reachers)) for r in range(len(table.solvers))]
    for (w, r), (v, s) in combinations(cells, 2):
        covariance_G = full(design.solve_WRG[w, r], design.solve_WRG[v, s], design.solve_sd)
        yield table.won_WRTS[w, r], table.won_WRTS[v, s], table.arrived_WTS[w] & table.arrived_WTS[v], covariance_G
