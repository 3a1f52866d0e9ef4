"""Families of operators whose conditions differ in one fact only, looked up together.

A few tests decide which of thousands of operators apply: per family one test of the shared condition, and one
intersection whose set bits are the applicable operators (and whose population count is their number).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from handoff.envs.alfworld.compiled.bit_task import Op, each


class Family:
    """Where all of ``pos`` and none of ``neg`` are set, the bits of ``state & mask`` are those of the applicable
    ``ops``, and all of ``always`` apply too."""

    __slots__ = ("always", "mask", "neg", "ops", "pos")

    def __init__(self, pos: int, neg: int) -> None:
        self.pos, self.neg, self.mask = pos, neg, 0
        self.ops: dict[int, Op] = {}
        self.always: list[Op] = []


def families(ops: Iterable[Op], ignore: int = 0) -> tuple[Family, ...]:
    """The families of ``ops``, whose conditions ignore the bits of ``ignore``."""
    ops = list(ops)
    frequency = Counter(bit for op in ops for bit in each(op.pos & ~ignore))
    by_guard: dict[tuple[int, int], list[Family]] = {}
    for op in ops:
        pos = op.pos & ~ignore
        neg = op.neg & ~ignore
        own = min(each(pos), key=lambda bit: (frequency[bit], bit), default=0)
        alike = by_guard.setdefault((pos ^ own, neg), [])
        family = next((family for family in alike if not own or own not in family.ops), None)
        if family is None:
            family = Family(pos ^ own, neg)
            alike.append(family)
        if own:
            family.mask |= own
            family.ops[own] = op
        else:
            family.always.append(op)
    return tuple(family for alike in by_guard.values() for family in alike)


def applicable(members: Iterable[Family], state: int) -> list[Op]:
    """The operators that apply in ``state``."""
    ops: list[Op] = []
    for family in members:
        pos = family.pos
        if state & pos == pos and not state & family.neg:
            if family.always:
                ops += family.always
            bits = state & family.mask
            if bits:
                by_bit = family.ops
                while bits:
                    bit = bits & -bits
                    ops.append(by_bit[bit])
                    bits ^= bit
    return ops


def number(members: Iterable[Family], state: int) -> int:
    """The number of operators that apply in ``state``."""
    total = 0
    for family in members:
        pos = family.pos
        if state & pos == pos and not state & family.neg:
            total += len(family.always) + (state & family.mask).bit_count()
    return total
