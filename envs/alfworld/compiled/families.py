"""Operators that share all of their condition but one fact, looked up together.

Whether any of thousands of operators applies is decided by a few tests: per family one for the shared guard, and one
intersection whose set bits are the applicable operators (and whose population count is their number).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from handoff.envs.alfworld.compiled.bit_task import Op, each


class Family:
    """Where all of ``pos`` and none of ``neg`` is set, the bits of ``state & mask`` are those of the applicable
    ``ops``; all of ``always`` apply there besides."""

    __slots__ = ("always", "mask", "neg", "ops", "pos")

    def __init__(self, pos: int, neg: int) -> None:
        self.pos, self.neg, self.mask = pos, neg, 0
        self.ops: dict[int, Op] = {}
        self.always: list[Op] = []


def families(ops: Iterable[Op], ignore: int = 0) -> tuple[Family, ...]:
    """``ops`` in families, with the bits of ``ignore`` left out of their conditions."""
    ops = list(ops)
    often = Counter(bit for op in ops for bit in each(op.pos & ~ignore))
    found: dict[tuple[int, int], list[Family]] = {}
    for op in ops:
        pos = op.pos & ~ignore
        neg = op.neg & ~ignore
        own = min(each(pos), key=lambda bit: (often[bit], bit), default=0)
        alike = found.setdefault((pos ^ own, neg), [])
        family = next((family for family in alike if not own or own not in family.ops), None)
        if family is None:
            family = Family(pos ^ own, neg)
            alike.append(family)
        if own:
            family.mask |= own
            family.ops[own] = op
        else:
            family.always.append(op)
    return tuple(family for alike in found.values() for family in alike)


def applicable(members: Iterable[Family], state: int) -> list[Op]:
    """The operators that apply in ``state``."""
    found: list[Op] = []
    for family in members:
        pos = family.pos
        if state & pos == pos and not state & family.neg:
            if family.always:
                found += family.always
            bits = state & family.mask
            if bits:
                ops = family.ops
                while bits:
                    bit = bits & -bits
                    found.append(ops[bit])
                    bits ^= bit
    return found


def number(members: Iterable[Family], state: int) -> int:
    """How many operators apply in ``state``."""
    total = 0
    for family in members:
        pos = family.pos
        if state & pos == pos and not state & family.neg:
            total += len(family.always) + (state & family.mask).bit_count()
    return total
