"""Sums of all counts in every draw, looked up instead of multiplied.

A draw is a few random picks per stratum (:class:`handoff.estimation.resampling.Block`).  What a pick adds to each count
is worked out once, and counts lie side by side in 64-bit words, so that one look-up adds several counts.  The sums
equal the matrix product of draws x tasks by tasks x counts, to the bit, at a fraction of its cost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from handoff.estimation.arrays import FloatArray, IntArray
from handoff.estimation.resampling import Block, PickArray, Plan

#: Picks looked up at a time, where a draw has several: their words should stay in the cache.
PICKS = 2**14

WordArray = NDArray[np.uint64]


@attrs.frozen(eq=False)
class Entry:
    """What the picks of one task type add to the counts."""

    #: Number of the stratum that the type is drawn in.
    stratum: int
    #: Weight of a taken task.
    scale: float
    #: What each of the L possible picks adds to each count.
    counts_LK: IntArray
    #: The same, packed.
    words_WL: WordArray

    @property
    def sums_KL(self) -> FloatArray:
        """The weighted sums of a draw that is one pick from a menu."""
        sums_KL: FloatArray = self.counts_LK.T * np.float64(self.scale)
        return sums_KL


class Lookup:
    """Sums under ``plan`` of ``counts_KT``, whole numbers from 0 up, of tasks whose types are ``strata``.

    ``first`` is the first of these tasks in the plan, which may hold another sample's tasks before and after them.
    """

    def __init__(self, counts_KT: IntArray, strata: tuple[str, ...], plan: Plan, first: int = 0) -> None:
        scale_T = plan.scale_T()
        mine = [(h, s.tasks - first, s) for h, s in enumerate(plan.strata) if 0 <= s.tasks[0] - first < len(strata)]
        # A draw takes each stratum's task with the largest count at most every time.
        self._packing = packing(
            len(counts_KT), sum(s.takes * int(counts_KT[:, tasks_N].max(initial=0)) for _, tasks_N, s in mine)
        )
        self._even = bool((scale_T == 1.0).all())
        self.entries: dict[str, Entry] = {}
        types_T = np.array(strata)
        for type in dict.fromkeys(strata):
            h, tasks_N, stratum = next(one for one in mine if type in types_T[one[1]])
            # A stratum may hold several types; the tasks of the others add nothing to this one's sums.
            counts_NK = np.where((types_T[tasks_N] == type)[:, None], counts_KT[:, tasks_N].T, 0)
            counts_LK = counts_NK if stratum.menu is None else stratum.menu @ counts_NK
            scale = float(scale_T[stratum.tasks[0]])
            self.entries[type] = Entry(h, scale, counts_LK, self._packing.pack(counts_LK))

    def sums(self, block: Block, types: Collection[str]) -> dict[str | None, FloatArray]:
        """Shape (K, B) for each of ``types``, and for all tasks under ``None``."""
        by_type: dict[str | None, FloatArray] = {}
        together_WB = np.zeros((self._packing.words, block.draws), np.uint64)
        whole_KB: FloatArray | None = None
        for type, entry in self.entries.items():
            words_WB = _added(entry.words_WL, block.picks(entry.stratum))
            if self._even:
                together_WB += words_WB
            if type in types or not self._even:
                sums_KB = self._packing.unpack(words_WB)
                sums_KB *= entry.scale
                by_type[type] = sums_KB
            if not self._even:
                whole_KB = sums_KB if whole_KB is None else whole_KB + sums_KB
        by_type[None] = self._packing.unpack(together_WB) if whole_KB is None else whole_KB
        return by_type


def _added(words_WL: WordArray, picks_BJ: PickArray) -> WordArray:
    """Shape (W, B): what the J picks of each draw add."""
    draws, times = picks_BJ.shape
    words_WB = np.empty((len(words_WL), draws), np.uint64)
    if times == 1:
        picked_B = picks_BJ[:, 0].astype(np.intp)
        for words_L, sums_B in zip(words_WL, words_WB, strict=True):
            np.take(words_L, picked_B, out=sums_B, mode="clip")  # the default mode would copy
        return words_WB
    size = max(1, PICKS // times)
    for first in range(0, draws, size):
        span = slice(first, first + size)
        picked_BJ = picks_BJ[span].astype(np.intp)
        for words_L, sums_B in zip(words_WL, words_WB, strict=True):
            np.take(words_L, picked_BJ).sum(axis=1, out=sums_B[span])
    return words_WB


@attrs.frozen
class Packing:
    """Non-negative numbers, several in each 64-bit word."""

    #: How many numbers (K).
    many: int
    #: Type of one number.
    field: type[np.unsignedinteger[Any]]

    @property
    def per_word(self) -> int:
        return 8 // np.dtype(self.field).itemsize

    @property
    def words(self) -> int:
        return -(-self.many // self.per_word)

    def pack(self, numbers_LK: IntArray) -> WordArray:
        """Shape (W, L): the words of each of L rows of numbers."""
        padded_LK = np.zeros((len(numbers_LK), self.words * self.per_word), self.field)
        padded_LK[:, : self.many] = numbers_LK
        return np.ascontiguousarray(padded_LK.view(np.uint64).T)

    def unpack(self, words_WB: WordArray) -> FloatArray:
        """Shape (K, B): the numbers in each of B words or sums of words."""
        fields_WBF = words_WB.view(self.field).reshape(*words_WB.shape, self.per_word)
        numbers_KB = np.empty((self.many, words_WB.shape[1]))
        for k in range(self.many):
            numbers_KB[k] = fields_WBF[k // self.per_word, :, k % self.per_word]
        return numbers_KB


def packing(many: int, largest: int) -> Packing:
    """The densest packing of ``many`` numbers whose sums are all at most ``largest``."""
    for field in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(field).max:
            return Packing(many, field)
    return Packing(many, np.uint64)
