"""Tables that obey every margin the paper prints, for want of its per-task tables.

30 tasks (five of each of six types) x 4 seeds x reachers {sft, rl} x solvers {sft, rl}.  What the paper does not print,
which task has which of the ones, is drawn at random, with tasks that differ (``spread``, on the logit scale).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handoff.estimation.table import Table

NAMES = ("sft", "rl")
TYPES = tuple(f"type {1 + t // 5}" for t in range(30))


def _choose(
    rng: np.random.Generator, among_TS: NDArray[np.bool_], number: int, spread: float, each: bool = False
) -> NDArray[np.bool_]:
    """``number`` of the slots that are true in ``among_TS``; ``each`` gives every task that has any at least one."""
    score_TS = spread * rng.standard_normal((len(among_TS), 1)) + rng.gumbel(size=among_TS.shape)
    if each:
        first_T = np.where(among_TS, score_TS, -np.inf).argmax(axis=1)
        score_TS[np.arange(len(among_TS)), first_T] = np.inf
    score_TS = np.where(among_TS, score_TS, -np.inf)
    chosen_TS = np.zeros(among_TS.size, bool)
    chosen_TS[np.argsort(-score_TS, axis=None, kind="stable")[:number]] = True
    assert (chosen_TS.reshape(among_TS.shape) <= among_TS).all()
    return chosen_TS.reshape(among_TS.shape)


def _slots(tasks: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask_TS = np.zeros((30, 4), bool)
    mask_TS[tasks] = True
    return mask_TS


def unseen(seed: int = 0, spread: float = 1.0) -> Table:
    """The unseen split: 16 arrivals of SFT on six tasks of four types, 99 of RL on 28 tasks, and all printed wins."""
    rng = np.random.default_rng(seed)
    per_type = (1, 1, 2, 2, 0, 0)
    sft_tasks = np.concatenate([5 * g + rng.choice(5, k, replace=False) for g, k in enumerate(per_type)])
    rl_tasks = np.sort(rng.choice(30, 28, replace=False))
    sft_TS = _choose(rng, _slots(sft_tasks), 16, spread, each=True)
    rl_TS = _choose(rng, _slots(rl_tasks), 99, spread, each=True)
    won_by_rl = [_choose(rng, sft_TS, 15, spread), _choose(rng, rl_TS, 95, spread)]
    # 45 states won by RL only and none by SFT only: SFT wins where RL does.
    won_by_sft = [_choose(rng, won_by_rl[0], 7, spread), _choose(rng, won_by_rl[1], 58, spread)]
    won_WRTS = np.array([[won_by_sft[w], won_by_rl[w]] for w in range(2)])
    arrived_WTS = np.array([sft_TS, rl_TS])
    bridge_WRTS = _bridges(rng, arrived_WTS, won_WRTS, (83, 112))
    return _table(arrived_WTS, won_WRTS, bridge_WRTS)


def seen(seed: int = 0, spread: float = 1.0) -> Table:
    """The seen split: 19 and 98 arrivals; of 117 states SFT completes 58, RL 89, RL alone 41, SFT alone 10; the
    solvers' difference is 5 on SFT-reached states and 26 on RL-reached ones."""
    rng = np.random.default_rng(seed)
    arrived_WTS = np.array([_choose(rng, np.ones((30, 4), bool), n, spread) for n in (19, 98)])
    # Won by both, RL only, SFT only, per reacher: 48 = 8 + 40, 41 = 7 + 34, 10 = 2 + 8; 7 - 2 = 5 and 34 - 8 = 26.
    won_WRTS = np.zeros((2, 2, 30, 4), bool)
    for w, (both, rl_only, sft_only) in enumerate(((8, 7, 2), (40, 34, 8))):
        left_TS = arrived_WTS[w].copy()
        for number, solvers in ((both, (0, 1)), (rl_only, (1,)), (sft_only, (0,))):
            chosen_TS = _choose(rng, left_TS, number, spread)
            left_TS &= ~chosen_TS
            for r in solvers:
                won_WRTS[w, r] |= chosen_TS
    return _table(arrived_WTS, won_WRTS, _bridges(rng, arrived_WTS, won_WRTS, (85, 108)))


def _bridges(
    rng: np.random.Generator, arrived_WTS: NDArray[np.bool_], won_WRTS: NDArray[np.bool_], totals: tuple[int, int]
) -> NDArray[np.bool_]:
    """Every win has a bridge action; the other bridge actions are spread over the reached states that were lost."""
    bridge_WRTS = won_WRTS.copy()
    for r, total in enumerate(totals):
        lost_WTS = arrived_WTS & ~won_WRTS[:, r]
        extra = _choose(rng, lost_WTS.reshape(-1, 4), total - int(won_WRTS[:, r].sum()), 0.0)
        bridge_WRTS[:, r] |= extra.reshape(lost_WTS.shape)
    return bridge_WRTS


def _table(
    arrived_WTS: NDArray[np.bool_], won_WRTS: NDArray[np.bool_], bridge_WRTS: NDArray[np.bool_] | None = None
) -> Table:
    return Table(
        reachers=NAMES,
        solvers=NAMES,
        tasks=tuple(f"task {t:02d}" for t in range(30)),
        strata=TYPES,
        slots=(0, 1, 2, 3),
        arrived_WTS=arrived_WTS,
        won_WRTS=won_WRTS,
        bridge_WRTS=bridge_WRTS,
    )
