"""Rates of task types drawn towards their common mean: a hierarchical beta-binomial model.

Types of five tasks say little each.  If their true rates are like draws of one Beta distribution, all types together
say which one, and each type's rate is a weighing of its own and the common one (C. N. Morris, "Parametric empirical
Bayes inference: theory and applications", JASA 78 (1983)).  Its mean m and its spread rho = 1 / (1 + alpha + beta) are
not fixed at their likeliest values, which are often "no spread at all" for six types: they are averaged over a grid,
each weighing as the counts make it likely.  Slots of one task are alike, so counts are divided by a design effect, the
same for all types.

Assumes that no type is known in advance to be special.  The rows are beside the raw ones, not in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from scipy import special

from handoff.estimation.arrays import FloatArray, IntArray
from handoff.estimation.table import Table

#: Points of the grid for the mean and for the spread, both flat between 0 and 1.
MEANS, SPREADS = 100, 40


@attrs.frozen
class ShrunkenValue:
    """One type's value."""

    type: str
    #: From the type's counts alone.
    raw: float
    point: float
    low: float
    high: float


@attrs.frozen
class Shrinkage:
    """One quantity by type."""

    name: str
    rows: tuple[ShrunkenValue, ...]

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen(eq=False)
class ShrunkenRates:
    """Mean and variance of the true rates of G types."""

    mean_G: FloatArray
    variance_G: FloatArray

    def quantile(self, share: float) -> FloatArray:
        """Of the Beta distributions with these means and variances, shape (G,)."""
        trials_G = self.mean_G * (1 - self.mean_G) / self.variance_G - 1
        ends_G: FloatArray = special.betaincinv(self.mean_G * trials_G, (1 - self.mean_G) * trials_G, share)
        return ends_G


def design_effect(wins_T: IntArray, trials_T: IntArray, strata: Sequence[str]) -> float:
    """Variance of the types' counts between tasks over that of independent trials, pooled over types; at least 1."""
    between = independent = 0.0
    for type in dict.fromkeys(strata):
        mine_T = np.array([stratum == type for stratum in strata]) & (trials_T > 0)
        n, k, tasks = int(trials_T[mine_T].sum()), int(wins_T[mine_T].sum()), int(mine_T.sum())
        if tasks > 1:
            off_T = wins_T[mine_T] - k / n * trials_T[mine_T]
            between += tasks / (tasks - 1) * float((off_T**2).sum())
            independent += k * (1 - k / n)
    return max(1.0, between / independent) if independent else 1.0


def posterior(wins_G: FloatArray, trials_G: FloatArray) -> ShrunkenRates:
    """Of every type, given all; counts need not be whole."""
    m_M, rho_R = (np.arange(size) / size + 1 / (2 * size) for size in (MEANS, SPREADS))
    m_MR, strength_MR = np.meshgrid(m_M, 1 / rho_R - 1, indexing="ij")
    alpha_P, beta_P = (m_MR * strength_MR).ravel(), ((1 - m_MR) * strength_MR).ravel()
    alpha_PG, beta_PG = alpha_P[:, None] + wins_G, beta_P[:, None] + trials_G - wins_G
    log_P = (special.betaln(alpha_PG, beta_PG) - special.betaln(alpha_P, beta_P)[:, None]).sum(axis=1)
    weight_P = np.exp(log_P - log_P.max())
    weight_P /= weight_P.sum()
    total_PG = alpha_PG + beta_PG
    mean_PG = alpha_PG / total_PG
    square_PG = mean_PG * (1 - mean_PG) / (total_PG + 1) + mean_PG**2
    mean_G = weight_P @ mean_PG
    return ShrunkenRates(mean_G, weight_P @ square_PG - mean_G**2)


def shrunken(table: Table, contrast: tuple[str, str, str, str], level: float) -> tuple[Shrinkage, ...]:
    """By type: Reach of each reacher, endpoint of each cell of the contrast, and its interaction.

    The interaction is that of the four shrunken endpoints, with a normal interval that leaves their pairing out; that
    is wide of the mark on the safe side where arms agree on slots.
    """
    a, b, c, d = contrast
    trials_T = np.full(len(table.tasks), len(table.slots), np.int64)
    reach = {w: table.arrived_WTS[table.reacher(w)].sum(axis=1) for w in (a, b)}
    cells = {(w, r): table.won_WRTS[table.reacher(w), table.solver(r)].sum(axis=1) for w in (a, b) for r in (c, d)}
    rows = [_rate(table, f"Reach, {w}", wins_T, trials_T, level)[0] for w, wins_T in reach.items()]
    posteriors = {}
    for (w, r), wins_T in cells.items():
        row, posteriors[w, r] = _rate(table, f"endpoint, {w} then {r}", wins_T, trials_T, level)
        rows.append(row)
    signs = {(b, d): 1, (b, c): -1, (a, d): -1, (a, c): 1}
    raw_G = [sum(sign * _mean(table, cells[cell], type) for cell, sign in signs.items()) for type in table.types]
    mean_G, variance_G = np.zeros((2, len(table.types)))
    for cell, sign in signs.items():
        mean_G += sign * posteriors[cell].mean_G
        variance_G += posteriors[cell].variance_G
    half_G = float(special.ndtri((1 + level) / 2)) * np.sqrt(variance_G)
    low_G, high_G = np.maximum(mean_G - half_G, -2), np.minimum(mean_G + half_G, 2)
    values = zip(table.types, raw_G, mean_G, low_G, high_G, strict=True)
    return (*rows, Shrinkage("interaction", tuple(ShrunkenValue(type, *map(float, row)) for type, *row in values)))


def _mean(table: Table, wins_T: IntArray, type: str) -> float:
    mine_T = np.array([stratum == type for stratum in table.strata])
    return float(wins_T[mine_T].sum() / (mine_T.sum() * len(table.slots)))


def _rate(
    table: Table, name: str, wins_T: IntArray, trials_T: IntArray, level: float
) -> tuple[Shrinkage, ShrunkenRates]:
    effect = design_effect(wins_T, trials_T, table.strata)
    wins_G, trials_G = (
        np.array([counts_T[[stratum == type for stratum in table.strata]].sum() for type in table.types]) / effect
        for counts_T in (wins_T, trials_T)
    )
    given = posterior(wins_G, trials_G)
    ends = (given.quantile(share) for share in ((1 - level) / 2, (1 + level) / 2))
    values = zip(table.types, wins_G / trials_G, given.mean_G, *ends, strict=True)
    return Shrinkage(name, tuple(ShrunkenValue(type, *map(float, row)) for type, *row in values)), given
