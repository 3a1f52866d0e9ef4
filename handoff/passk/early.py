"""Does the tax at few rollouts foretell the tax at more?  An honest split of every task's rollouts.

The early tax is computed from ``early`` of a task's n rollouts, drawn at random (their successes are hypergeometric),
and the late tax from the rest: no rollout is in both.  Over many pairs, the rank correlation (Spearman's) of the two
says how well the early tax orders the pairs.  Two taxes at two budgets of the same rollouts share their noise, so that
their rank correlation foretells nothing; it is given beside the honest one, by its name.

The split is drawn many times.  The correlation is the mean over splits, with percentiles over splits; and, since the
pairs are a sample too, percentiles over draws in which pairs are taken with replacement, one draw per split.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.passk.comparison import LEVEL
from handoff.passk.counts import Counts
from handoff.passk.curves import FloatArray, IntArray, mean_pass_at_k
from handoff.passk.pairs import Pair
from handoff.passk.tax import SAME, calibrated_scalability
from handoff.settings import require

EARLY = 8
LATE = 32
SPLITS = 200
#: The fewest pairs that have a rank correlation.
LEAST_PAIRS = 3


@attrs.frozen
class EarlyEstimate:
    """Tax_S from a few rollouts and from the rest of them over many pairs, and their rank correlation."""

    #: Rollouts of each task from which the early tax is computed, which are also its budget.
    early: int
    #: Budget of the late tax, computed from the other rollouts.
    late: int
    #: Name of the pair, and both taxes, means over the splits; ``None`` where undefined in every split.
    pairs: tuple[tuple[str, float | None, float | None], ...]
    #: Spearman's rho, the mean over splits; ``None`` with the ``reason``.
    rho: float | None
    reason: str | None = None
    #: Percentiles of rho over splits.
    low: float | None = None
    high: float | None = None
    #: Percentiles of rho over splits and drawn pairs.
    pairs_low: float | None = None
    pairs_high: float | None = None
    level: float = LEVEL
    splits: int = 0
    #: Splits without a rank correlation.
    excluded: int = 0
    #: The rank correlation of the taxes at both budgets from all rollouts: it foretells nothing.
    rho_of_same_rollouts: float | None = None


def early_estimate(
    pairs: Sequence[Pair],
    early: int | None = None,
    late: int | None = None,
    *,
    splits: int = SPLITS,
    seed: int = 0,
    level: float = LEVEL,
) -> EarlyEstimate:
    """How well the tax from ``early`` rollouts per task foretells the tax at ``late`` from the others, over ``pairs``.

    Default of ``early`` are 8 rollouts, at most half of the fewest that a task has, and of ``late`` 32, at most the
    rest.  A pair without a tax in a split is left out of that split.  Raises :class:`~handoff.errors.UsageError`
    unless ``early`` and ``late`` are at least 2 and their sum at most the rollouts of every task.
    """
    if not pairs:
        raise UsageError("an early estimate needs pairs")
    fewest = min(pair.rollouts for pair in pairs)
    for name, value in (("early", early), ("late", late)):
        if value is not None:
            require(name, value, int, least=2)
    require("splits", splits, int, least=1)
    require("seed", seed, int, least=0)
    require("level", level, least=0, most=1, open=True)
    few = early is None and late is None and fewest < 4
    early = max(2, min(EARLY, fewest // 2)) if early is None else early
    late = max(2, min(LATE, fewest - early)) if late is None else late
    if few:
        nothing = tuple((pair.name, None, None) for pair in pairs)
        return EarlyEstimate(early, late, nothing, None, f"a split needs 4 rollouts of every task, not {fewest}")
    if early + late > fewest:
        raise UsageError(
            f"a task has {fewest} rollouts: {early} for the early tax and {late} others for the late one are too many"
        )
    rng = np.random.Generator(np.random.PCG64(seed))
    early_SP, late_SP = np.full((2, splits, len(pairs)), np.nan)
    for p, pair in enumerate(pairs):
        for s in range(splits):
            parts = [_split(counts, early, rng) for counts in (pair.base, pair.post)]
            early_SP[s, p] = _tax(parts[0][0], parts[1][0], early)
            late_SP[s, p] = _tax(parts[0][1], parts[1][1], late)
    rows = tuple((pair.name, _mean(early_SP[:, p]), _mean(late_SP[:, p])) for p, pair in enumerate(pairs))
    known = int((~np.isnan(early_SP) & ~np.isnan(late_SP)).any(axis=0).sum())
    if known < LEAST_PAIRS:
        return EarlyEstimate(early, late, rows, None, f"{known} pairs with both taxes; three are needed")
    rho_S = np.array([_rank_correlation(x, y) for x, y in zip(early_SP, late_SP, strict=True)])
    if np.isnan(rho_S).all():
        return EarlyEstimate(early, late, rows, None, "the taxes at one budget are all equal")
    drawn_SP = rng.integers(len(pairs), size=(splits, len(pairs)))
    drawn_S = np.array([_rank_correlation(x[d], y[d]) for x, y, d in zip(early_SP, late_SP, drawn_SP, strict=True)])
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = np.nanquantile(rho_S, tails)
    pairs_low, pairs_high = (None, None) if np.isnan(drawn_S).all() else np.nanquantile(drawn_S, tails).tolist()
    same = [[_tax(pair.base, pair.post, budget) for pair in pairs] for budget in (early, late)]
    return EarlyEstimate(
        early,
        late,
        rows,
        float(np.nanmean(rho_S)),
        low=float(low),
        high=float(high),
        pairs_low=pairs_low,
        pairs_high=pairs_high,
        level=level,
        splits=splits,
        excluded=int(np.isnan(rho_S).sum()),
        rho_of_same_rollouts=_number(_rank_correlation(*np.array(same))),
    )


@attrs.frozen(eq=False)
class _Outcomes:
    """Rollouts and successes of every task: :class:`Counts` without names and checks."""

    n_T: IntArray
    c_T: IntArray


def _split(counts: Counts, early: int, rng: np.random.Generator) -> tuple[_Outcomes, _Outcomes]:
    """A random ``early`` of every task's rollouts, and the others."""
    c_T = rng.hypergeometric(counts.c_T, counts.n_T - counts.c_T, early)
    return _Outcomes(np.full_like(counts.n_T, early), c_T), _Outcomes(counts.n_T - early, counts.c_T - c_T)


def _tax(base: _Outcomes | Counts, post: _Outcomes | Counts, budget: int) -> float:
    """Tax_S; NaN where undefined."""
    before, after = (calibrated_scalability(mean_pass_at_k(one.n_T, one.c_T, budget)) for one in (base, post))
    return np.nan if before is None or after is None else before - after


def _rank_correlation(x_P: FloatArray, y_P: FloatArray) -> float:
    """Spearman's rho of the pairs that have both numbers; NaN where fewer than three do or one side has no spread."""
    from scipy import stats

    known_P = ~np.isnan(x_P) & ~np.isnan(y_P)
    x_P, y_P = x_P[known_P], y_P[known_P]
    if len(x_P) < LEAST_PAIRS or np.ptp(x_P) < SAME or np.ptp(y_P) < SAME:
        return np.nan
    return float(np.corrcoef(stats.rankdata(x_P), stats.rankdata(y_P))[0, 1])


def _mean(values_S: FloatArray) -> float | None:
    known = values_S[~np.isnan(values_S)]
    return float(known.mean()) if len(known) else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
