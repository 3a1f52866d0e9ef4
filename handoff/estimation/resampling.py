"""Which tasks a bootstrap draw takes: with replacement within task type, type counts fixed, explicit generator.

A drawn task brings all of its seed slots and all cells of the crossing with it (paired).  Draws come in blocks with a
generator each, so that one seed gives the same draws however many are asked for and in whatever order blocks are
worked on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from handoff.estimation.arrays import IntArray
from handoff.estimation.counting import FloatArray

#: A stratum that can be drawn in at most so many ways has them listed: a draw is then one number, not one a task.
MENU = 2**13
#: Draws in a block: few enough for what is worked out from them to stay in the cache, many enough for numpy to be fast.
BLOCK = 20_000
#: Draws x tasks in a block, at most.
CELLS = 2**24

PickArray = NDArray[np.unsignedinteger[Any]]


@attrs.frozen(eq=False)
class Stratum:
    """The tasks (indices) among which a draw takes ``takes`` with replacement."""

    tasks: IntArray
    takes: int

    @property
    def columns(self) -> IntArray | slice:
        """``tasks`` as a slice where they stand together: much faster to write to."""
        first, last = int(self.tasks[0]), int(self.tasks[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.tasks) else self.tasks

    @property
    def menu(self) -> IntArray | None:
        """``counts_LN`` of all L equally likely ways to take from these N tasks, where these are few; else ``None``."""
        n, m = len(self.tasks), self.takes
        return _ways(n, m) if n**m <= MENU else None

    def counts_BN(self, picks_BJ: PickArray) -> FloatArray:
        """How often each of the N tasks was taken in B draws."""
        if self.menu is not None:
            return self.menu[picks_BJ[:, 0]].astype(np.float64)
        n, draws = len(self.tasks), len(picks_BJ)
        cells_BJ = np.add(picks_BJ, np.arange(0, draws * n, n)[:, None])
        return np.bincount(cells_BJ.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


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
    """Draws ``first`` and following, as random numbers and not yet as counts.

    ``picks`` has for every stratum an array (B, J): one line of its menu (J = 1), or, where it has no menu, each of the
    J tasks taken, counted within the stratum.
    """

    first: int
    picks: tuple[PickArray, ...]
    plan: Plan

    @property
    def draws(self) -> int:
        return len(self.picks[0])

    def parts(self) -> tuple[Block, ...]:
        """The draws of each sample of a :func:`joined` plan."""
        blocks, first = [], 0
        for plan in self.plan.parts:
            blocks.append(Block(self.first, self.picks[first : first + len(plan.strata)], plan))
            first += len(plan.strata)
        return tuple(blocks)

    @property
    def counts_BT(self) -> FloatArray:
        """How often each task was taken."""
        counts_BT = np.empty((self.draws, self.plan.tasks))
        for stratum, picks_BJ in zip(self.plan.strata, self.picks, strict=True):
            counts_BT[:, stratum.columns] = stratum.counts_BN(picks_BJ)
        return counts_BT


@attrs.frozen(eq=False)
class Plan:
    """How draws are taken."""

    strata: tuple[Stratum, ...]
    #: Task types that have one task only.
    lone: tuple[str, ...]
    #: The plans of the samples, if several are :func:`joined`.
    parts: tuple[Plan, ...] = ()

    @property
    def tasks(self) -> int:
        return sum(len(stratum.tasks) for stratum in self.strata)

    def scale_T(self) -> FloatArray:
        """What one taking of a task weighs: n_h / m_h in a stratum of n_h tasks of which m_h are taken.

        Where that is the same in all strata it is 1: a common factor leaves every ratio as it is.
        """
        if len({len(stratum.tasks) / stratum.takes for stratum in self.strata}) == 1:
            return np.ones(self.tasks)
        scale_T = np.empty(self.tasks)
        for stratum in self.strata:
            scale_T[stratum.tasks] = len(stratum.tasks) / stratum.takes
        return scale_T

    def blocks(self, draws: int, seed: int, stream: int = 0) -> Iterator[Block]:
        """The draws in blocks.  ``stream`` separates samples that are drawn independently under one ``seed``."""
        size = max(1, min(BLOCK, CELLS // self.tasks))
        for number, first in enumerate(range(0, draws, size)):
            picks = []
            for h, stratum in enumerate(self.strata):
                # A generator for every stratum and block: the first draws are the same however many are wanted.
                rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(stream, number, h))))
                picks.append(_picks(stratum, rng, min(size, draws - first)))
            yield Block(first, tuple(picks), self)


def _picks(stratum: Stratum, rng: np.random.Generator, draws: int) -> PickArray:
    lines, times = (len(stratum.tasks), stratum.takes) if stratum.menu is None else (len(stratum.menu), 1)
    narrow: type[np.unsignedinteger[Any]] = np.uint16 if lines < 2**16 else np.uint32
    return rng.integers(lines, size=(draws, times), dtype=narrow)


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
    lone = _lone(members)
    groups = [tasks for tasks in members.values() if len(tasks) > 1]
    alone = [tasks for tasks in members.values() if len(tasks) == 1]
    if len(alone) == 1 and groups:
        smallest = min(range(len(groups)), key=lambda h: len(groups[h]))
        alone.append(groups.pop(smallest))
    if alone:
        groups.append(np.sort(np.concatenate(alone)))
    return Plan(tuple(Stratum(tasks, max(1, len(tasks) - 1)) for tasks in groups), lone)


def joined(first: Plan, second: Plan) -> Plan:
    """Both samples drawn independently: the tasks of ``second`` follow those of ``first``."""
    shifted = tuple(Stratum(stratum.tasks + first.tasks, stratum.takes) for stratum in second.strata)
    return Plan((*first.strata, *shifted), tuple(dict.fromkeys((*first.lone, *second.lone))), (first, second))


def _members(strata: Sequence[str]) -> dict[str, IntArray]:
    found: dict[str, list[int]] = {}
    for task, type in enumerate(strata):
        found.setdefault(type, []).append(task)
    return {type: np.array(tasks, np.int64) for type, tasks in sorted(found.items())}


def _lone(members: dict[str, IntArray]) -> tuple[str, ...]:
    return tuple(type for type, tasks in members.items() if len(tasks) == 1)
