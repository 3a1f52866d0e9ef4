"""Bootstrap draws in plain form: how often each task was taken, and every estimand in every draw."""

from __future__ import annotations

import numpy as np

from handoff.estimation.draws import bootstrap_values
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.resampling import Plan


def counts_of(plan: Plan, draws: int, seed: int) -> np.ndarray:
    """Shape (B, T)."""
    counts_BT = np.zeros((draws, plan.tasks), int)
    for block in plan.blocks(draws, seed):
        for h, stratum in enumerate(plan.strata):
            for b, picks_J in enumerate(block.picks(h), start=block.first):
                if stratum.menu is None:
                    np.add.at(counts_BT[b], stratum.tasks[picks_J], 1)
                else:
                    counts_BT[b, stratum.tasks] = stratum.menu[picks_J[0]]
    return counts_BT


def values_of(evaluated: Evaluated, plan: Plan, draws: int, seed: int) -> np.ndarray:
    """Shape (E, B): NaN where an estimand is undefined.  Of an estimand that is evaluated by menu the order is lost."""
    values_EB = np.full((len(evaluated.estimands), draws), np.nan)
    for e, values_V, times_V in bootstrap_values(evaluated, plan, draws, seed):
        values_EB[e] = values_V if times_V is None else np.repeat(values_V, times_V)
    return values_EB
