"""Whole numbers side by side in words of 64 bits, so that one addition or one look-up serves several of them.

Every number has a field wide enough for the largest total, so no field ever runs over into the next.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from handoff.sums import FloatArray
from handoff.table import IntArray

WordArray = NDArray[np.uint64]


@attrs.frozen
class Packing:
    """``many`` numbers (K), none negative, ``per_word`` of them in each of W words."""

    many: int
    field: type[np.unsignedinteger[Any]]

    @property
    def per_word(self) -> int:
        return 8 // np.dtype(self.field).itemsize

    @property
    def words(self) -> int:
        return -(-self.many // self.per_word)

    def pack(self, numbers_LK: IntArray) -> WordArray:
        """Shape (W, L): what stands for each of L rows of numbers."""
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
    """The densest packing of ``many`` numbers of which every sum that will be made is at most ``largest``."""
    for field in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(field).max:
            return Packing(many, field)
    return Packing(many, np.uint64)
