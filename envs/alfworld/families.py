"""Operators that share all of their condition but one fact, looked up together.

Whether any of thousands of operators applies is decided by a few tests: per family one for the shared guard, and one
intersection whose set bits are the applicable operators (and whose population count is their number).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from handoff.envs.alfworld.bits import Op, each


class Family:
    """Where all of ``pos`` and none of ``neg`` is set, the bits of ``state & mask`` are those of the applicable
    ``ops``; a family without ``mask`` is one operator, ``only``."""

    __slots__ = ("mask", "neg", "only", "ops", "pos")

    def __init__(self, pos: int, neg: int) -> None:
        self.pos, self.neg, self.mask = pos, neg, 0
        self.ops: dict[int, Op] = {}
        self.only: Op | None = None


def families(ops: Iterable[Op], ignore: int = 0) -> tuple[Family, ...]:
    """``ops`` in families, with the bits of ``ignore`` left out of their conditions."""
    ops = list(ops)
    often = Counter(bit for op in ops for bit in each(op.pos & ~ignore))
    found: dict[tuple[int, int, int], Family] = {}
    for op in ops:
        pos = op.pos & ~ignore
        neg = op.neg & ~ignore
        own = min(each(pos), key=lambda bit: (often[bit], bit), default=0)
        for turn in range(len(ops)):
            family = found.setdefault((pos ^ own, neg, turn), Family(pos ^ own, neg))
            if own and family.only is None and own not in family.ops:
                family.mask |= own
                family.ops[own] = op
                break
            if not own and family.only is None and not family.ops:
                family.only = op
                break
    return tuple(found.values())


def applicable(members: Iterable[Family], state: int) -> list[Op]:
    """The operators that apply in ``state``."""
    found = []
    for family in members:
        pos = family.pos
        if state & pos == pos and not state & family.neg:
            if family.only is not None:
                found.append(family.only)
            else:
                ops = family.ops
                bits = state & family.mask
                while bits:
                    bit = bits & -bits
                    found.append(ops[bit])
                    bits ^= bit
    return found
