"""Eq. 9 of "Reach or Solve?" in both orders, and symmetric.

The interaction is a difference of two products, I = Reach_b Delta_b - Reach_a Delta_a.  To split it, one factor changes
first.  The paper lets Delta change at Reach_a and Reach at Delta_b; the other order is as valid, and the mean of both
favours neither (E. M. Kitagawa, "Components of a difference between two rates", JASA 50 (1955)).  Each split is an
identity and needs no assumption; that a term is an effect of arrival or of states alone is an assumption.
"""

from __future__ import annotations

from handoff.estimation.arrays import FloatArray
from handoff.estimation.counting import Sums
from handoff.estimation.estimands import arrival_term, formula, reach, reach_gap, solver_effect, state_term
from handoff.estimation.estimands import survivor_interaction as effect_gap

#: Arrival term and state term of each order.
ORDERS = {
    "as printed": ("arrival_term", "state_term"),
    "other order": ("arrival_term_other", "state_term_other"),
    "symmetric": ("arrival_term_symmetric", "state_term_symmetric"),
}


@formula("contrast", "arrival term in the other order, {pair}")
def arrival_term_other(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Arrival term of I with Reach changed first: (Reach_b - Reach_a) x Delta_a (Eq. 9 in the other order)."""
    return reach_gap(sums, a, b) * solver_effect(sums, a, c, d)


@formula("contrast", "state term in the other order, {pair}", limit=2.0)
def state_term_other(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """State term of I with Reach changed first: Reach_b x (Delta_b - Delta_a) (Eq. 9 in the other order)."""
    return reach(sums, b) * effect_gap(sums, a, b, c, d)


@formula("contrast", "symmetric arrival term, {pair}")
def arrival_term_symmetric(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Mean of the arrival terms of both orders: (Reach_b - Reach_a) x (Delta_a + Delta_b) / 2 (Eq. 9, symmetric)."""
    return (arrival_term(sums, a, b, c, d) + arrival_term_other(sums, a, b, c, d)) / 2


@formula("contrast", "symmetric state term, {pair}", limit=2.0)
def state_term_symmetric(sums: Sums, a: str, b: str, c: str, d: str) -> FloatArray:
    """Mean of the state terms of both orders: (Reach_a + Reach_b) / 2 x (Delta_b - Delta_a) (Eq. 9, symmetric)."""
    return (state_term(sums, a, b, c, d) + state_term_other(sums, a, b, c, d)) / 2
