"""Which tasks a bootstrap draw takes: with replacement within task type, type counts fixed, explicit generator.

A drawn task brings all of its seed slots and all cells of the crossing with it (paired).  Draws come in blocks with a
generator each, so that one seed gives the same draws however many are asked for and in whatever order blocks are
worked on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from handoff.sums import FloatArray
from handoff.table import IntArray

#: A stratum that can be drawn in at most so many ways has them listed: a draw is then one number, not one a task.
MENU = 2**13


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

    def menu(self) -> FloatArray | None:
        """``counts_MN`` of all M equally likely ways to take from these N tasks, where these are few; else ``None``."""
        n, m = len(self.tasks), self.takes
        if n**m > MENU:
            return None
        counts_MN = np.zeros((n**m, n))
        ways = np.arange(n**m)
        for _ in range(m):
            ways, chosen_M = np.divmod(ways, n)
            counts_MN[np.arange(n**m), chosen_M] += 1
        return counts_MN


@attrs.frozen(eq=False)
class Block:
    """Draws ``first`` and following.

    ``counts_BT`` says how often each task was taken, ``picks`` for every stratum which line of its menu that was
    (``None`` where it has no menu).
    """

    first: int
    counts_BT: FloatArray
    picks: tuple[NDArray[np.uint16] | None, ...]


@attrs.frozen(eq=False)
class Plan:
    """How draws are taken.  ``lone`` names the task types that have one task only."""

    strata: tuple[Stratum, ...]
    lone: tuple[str, ...]

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

    def menus(self) -> tuple[FloatArray | None, ...]:
        """:meth:`Stratum.menu` of every stratum."""
        return tuple(stratum.menu() for stratum in self.strata)

    def blocks(self, draws: int, seed: int, stream: int = 0) -> Iterator[Block]:
        """The draws in blocks.  ``stream`` separates samples that are drawn independently under one ``seed``."""
        size = max(1, min(2**15, 2**20 // self.tasks))
        menus = self.menus()
        for number, first in enumerate(range(0, draws, size)):
            yield self._block(first, min(size, draws - first), menus, (seed, stream, number))

    def _block(self, first: int, draws: int, menus: tuple[FloatArray | None, ...], key: tuple[int, int, int]) -> Block:
        seed, *address = key
        counts_BT = np.empty((draws, self.tasks))
        picks: list[NDArray[np.uint16] | None] = []
        for h, (stratum, menu) in enumerate(zip(self.strata, menus, strict=True)):
            # A generator for every stratum and block: the first draws are the same however many are wanted.
            rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(*address, h))))
            if menu is not None:
                picked_B = rng.integers(len(menu), size=draws, dtype=np.uint16)
                counts_BT[:, stratum.columns] = np.take(menu, picked_B, axis=0)
                picks.append(picked_B)
                continue
            n = len(stratum.tasks)
            narrow: type[np.unsignedinteger[Any]] = np.uint16 if n < 2**16 else np.uint32
            chosen_BM = rng.integers(n, size=(draws, stratum.takes), dtype=narrow)
            cells_BM = np.add(chosen_BM, np.arange(0, draws * n, n)[:, None])
            counts_BT[:, stratum.columns] = np.bincount(cells_BM.ravel(), minlength=draws * n).reshape(draws, n)
            picks.append(None)
        return Block(first, counts_BT, tuple(picks))


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
    return Plan((*first.strata, *shifted), tuple(dict.fromkeys((*first.lone, *second.lone))))


def _members(strata: Sequence[str]) -> dict[str, IntArray]:
    found: dict[str, list[int]] = {}
    for task, type in enumerate(strata):
        found.setdefault(type, []).append(task)
    return {type: np.array(tasks, np.int64) for type, tasks in sorted(found.items())}


def _lone(members: dict[str, IntArray]) -> tuple[str, ...]:
    return tuple(type for type, tasks in members.items() if len(tasks) == 1)
