"""Values of estimands under the draws of a plan, as the toolkit's bootstrap computes them."""

from __future__ import annotations

import numpy as np

from handoff.estimation.counting import FloatArray
from handoff.estimation.evaluation import Evaluated
from handoff.estimation.resampling import Plan


def drawn(evaluation: Evaluated, plan: Plan, draws: int, seed: int) -> FloatArray:
    """Shape (E, B): every estimand in every draw, NaN where a denominator is empty."""
    sampler = evaluation.sampler(plan)
    values_EB = np.full((len(evaluation.estimands), draws), np.nan)
    with np.errstate(all="ignore"):
        for block in plan.blocks(draws, seed):
            for e, values_B in sampler.values(block, range(len(values_EB))):
                values_EB[e, block.first : block.first + block.draws] = values_B
    return values_EB
