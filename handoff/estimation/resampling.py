"""Which tasks a bootstrap draw takes: with replacement within task type, type counts fixed, explicit generators.

A drawn task brings all its seed slots and all cells of the crossing with it (paired).  Every stratum of every block of
draws has a generator, so one seed gives the same draws however many are asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from handoff.estimation.arrays import FloatArray, IntArray

#: A stratum that can be drawn in at most so many ways lists them: a draw is then one number, not one per task.
MENU = 2**13
#: Draws in a block: few enough for the block's arrays to stay in the cache, many enough for numpy to be fast.
BLOCK = 20_000
#: Draws x tasks in a block, at most.
CELLS = 2**24
#: Picks of a stratum, in bytes, up to which a block keeps them.
KEPT = 2**20

PickArray = NDArray[np.unsignedinteger[Any]]


@attrs.frozen(eq=False)
class Stratum:
    """Tasks among which a draw takes some with replacement."""

    #: Indices of the N tasks.
    tasks: IntArray
    #: How many a draw takes.
    takes: int
    #: ``counts_LN`` of all L equally likely ways to take from these N tasks, where these are few.
    menu: IntArray | None = attrs.field(init=False)

    @menu.default
    def _menu(self) -> IntArray | None:
        n, m = len(self.tasks), self.takes
        return _ways(n, m) if n**m <= MENU else None

    @property
    def lines(self) -> int:
        """How many outcomes one pick has: the lines of the menu (L), or the tasks (N)."""
        return len(self.tasks) if self.menu is None else len(self.menu)

    def picks(self, rng: np.random.Generator, draws: int) -> PickArray:
        """Shape (B, J): one line of the menu per draw (J = 1), or without a menu the J tasks taken, counted within the
        stratum."""
        narrow: type[np.unsignedinteger[Any]] = np.uint16 if self.lines < 2**16 else np.uint32
        return rng.integers(self.lines, size=(draws, self.takes if self.menu is None else 1), dtype=narrow)


@functools.lru_cache(maxsize=16)
def _ways(n: int, m: int) -> IntArray:
    """Shape (n^m, n): how often each of n things is taken, in every sequence of m takings."""
    counts_LN = np.zeros((n**m, n), np.int64)
    ways = np.arange(n**m)
    for _ in range(m):
        ways, chosen_L = np.divmod(ways, n)
        counts_LN[np.arange(n**m), chosen_L] += 1
    counts_LN.flags.writeable = False
    return counts_LN


@attrs.frozen(eq=False)
class Block:
    """Successive draws, as random picks that are generated when asked for."""

    strata: tuple[Stratum, ...]
    seed: int
    #: Number of the block.
    number: int
    #: Number of the first draw.
    first: int
    draws: int
    _kept: dict[int, PickArray] = attrs.field(factory=dict, init=False)

    @property
    def span(self) -> slice:
        return slice(self.first, self.first + self.draws)

    def picks(self, h: int) -> PickArray:
        """The picks of stratum number ``h`` (:meth:`Stratum.picks`)."""
        picks_BJ = self._kept.get(h)
        if picks_BJ is None:
            rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=(0, self.number, h))))
            picks_BJ = self.strata[h].picks(rng, self.draws)
            if picks_BJ.nbytes <= KEPT:
                self._kept[h] = picks_BJ
        return picks_BJ


@attrs.frozen(eq=False)
class Plan:
    """How draws are taken."""

    strata: tuple[Stratum, ...]
    #: Task types that have one task only.
    lone: tuple[str, ...]

    @property
    def tasks(self) -> int:
        return sum(len(stratum.tasks) for stratum in self.strata)

    def scale_T(self) -> FloatArray:
        """The weight of a taken task: n_h / m_h, where a draw takes m_h of the stratum's n_h tasks.

        Where that is the same in all strata it is 1: a common factor leaves every ratio unchanged.
        """
        if len({len(stratum.tasks) / stratum.takes for stratum in self.strata}) == 1:
            return np.ones(self.tasks)
        scale_T = np.empty(self.tasks)
        for stratum in self.strata:
            scale_T[stratum.tasks] = len(stratum.tasks) / stratum.takes
        return scale_T

    def blocks(self, draws: int, seed: int) -> Iterator[Block]:
        """The draws in blocks."""
        size = max(1, min(BLOCK, CELLS // self.tasks))
        for number, first in enumerate(range(0, draws, size)):
            yield Block(self.strata, seed, number, first, min(size, draws - first))


def plan_of(strata: Sequence[str], method: str) -> Plan:
    """The plan of an interval's method, for tasks of these types."""
    return ordinary(strata) if method == "paper" else rescaled(strata)


def ordinary(strata: Sequence[str]) -> Plan:
    """The paper's draws: n_h of the n_h tasks of every type.  Their variance is (n_h - 1) / n_h of the right one."""
    members = _members(strata)
    return Plan(tuple(Stratum(tasks, len(tasks)) for tasks in members.values()), _lone(members))


def rescaled(strata: Sequence[str]) -> Plan:
    """Draws of the right variance: n_h - 1 of n_h tasks, each weighing n_h / (n_h - 1).

    J. N. K. Rao and C. F. J. Wu, "Resampling inference with complex survey data", JASA 83 (1988), with m_h = n_h - 1.
    A type with one task shows no variance, so such types are drawn from together (collapsed strata), a single one
    together with the smallest other type.  With one task in all there is nothing to draw from: the plan is
    :func:`ordinary` and its callers refuse intervals.
    """
    members = _members(strata)
    groups = [tasks for tasks in members.values() if len(tasks) > 1]
    alone = [tasks for tasks in members.values() if len(tasks) == 1]
    if len(alone) == 1 and groups:
        smallest = min(range(len(groups)), key=lambda h: len(groups[h]))
        alone.append(groups.pop(smallest))
    if alone:
        groups.append(np.sort(np.concatenate(alone)))
    return Plan(tuple(Stratum(tasks, max(1, len(tasks) - 1)) for tasks in groups), _lone(members))


def joined(first: Plan, second: Plan) -> Plan:
    """Both samples drawn independently: the tasks of ``second`` follow those of ``first``."""
    shifted = tuple(Stratum(stratum.tasks + first.tasks, stratum.takes) for stratum in second.strata)
    return Plan((*first.strata, *shifted), tuple(dict.fromkeys((*first.lone, *second.lone))))


def _members(strata: Sequence[str]) -> dict[str, IntArray]:
    tasks_by_type: dict[str, list[int]] = {}
    for task, type in enumerate(strata):
        tasks_by_type.setdefault(type, []).append(task)
    return {type: np.array(tasks, np.int64) for type, tasks in sorted(tasks_by_type.items())}


def _lone(members: dict[str, IntArray]) -> tuple[str, ...]:
    return tuple(type for type, tasks in members.items() if len(tasks) == 1)
