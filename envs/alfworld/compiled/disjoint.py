"""Operators of one text under disjoint conditions.

Where two operators of one text apply together, textworld takes the first.  So a later operator gets the failure of the
first as a further condition.  Most pairs need none: they contradict each other, or they ask for two facts of a group of
which at most one ever holds (an object is in one place).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from handoff.envs.alfworld.compiled.bit_task import Condition, Op, each
from handoff.envs.alfworld.compiled.sas import Fact


def disjoint(ops: Sequence[Op], facts: Sequence[Fact], initial: int, place_mask: int) -> list[Op]:
    """``ops`` with conditions under which no two of one text ever apply together, by rank.

    ``facts[i]`` is the fact of bit ``1 << i``, ``initial`` the first state, ``place_mask`` the bits of the location.
    """
    return _Splitter(facts, initial, place_mask).split(ops)


class _Splitter:
    """``facts[i]`` is the fact of bit ``1 << i``."""

    def __init__(self, facts: Sequence[Fact], initial: int, place_mask: int) -> None:
        self._place_mask = place_mask
        self._initial = initial
        self._fact = {1 << i: fact for i, fact in enumerate(facts)}
        self._about: dict[tuple[str, str], int] = defaultdict(int)
        for bit, (predicate, *arguments) in self._fact.items():
            for argument in arguments:
                self._about[predicate, argument] |= bit
        self._adders: dict[int, list[Op]] = defaultdict(list)
        self._memo: dict[int, bool] = {}

    def split(self, ops: Sequence[Op]) -> list[Op]:
        """``ops``, each split into the cases in which no earlier one of the same text applies."""
        for op in ops:
            for bit in each(op.adds()):
                self._adders[bit].append(op)
        by_text: dict[str, list[Op]] = defaultdict(list)
        for op in ops:
            by_text[op.text].append(op)
        disjoint = []
        for alternatives in by_text.values():
            by_place: dict[int, list[Op]] = defaultdict(list)
            for op in alternatives:
                place = op.pos & self._place_mask
                rivals = [
                    rival
                    for other, earlier in by_place.items()
                    if not (place and other) or other == place
                    for rival in earlier
                ]
                cases = [op]
                for rival in rivals:
                    if not self._exclude(rival, op):
                        cases = [part for case in cases for part in _unless(case, rival)]
                by_place[place] += cases
                disjoint += cases
        return sorted(disjoint, key=lambda op: op.rank)

    def _exclude(self, one: Op, two: Op) -> bool:
        """Whether a proof shows that the two never apply together."""
        if one.pos & two.neg or one.neg & two.pos:
            return True
        here, there = one.pos & self._place_mask, two.pos & self._place_mask
        if here and there and here != there:
            return True
        return any(self._never_both(a, b) for a in each(one.pos & ~two.pos) for b in each(two.pos & ~one.pos))

    def _never_both(self, a: int, b: int) -> bool:
        (p, *arguments), (q, *others) = self._fact[a], self._fact[b]
        for shared in sorted(set(arguments) & set(others)):
            group = self._about[p, shared] | self._about[q, shared]
            if group not in self._memo:
                self._memo[group] = self._at_most_one(group)
            if self._memo[group]:
                return True
        return False

    def _at_most_one(self, group: int) -> bool:
        """Whether at most one fact of the group holds at first and after every operator."""
        if (self._initial & group).bit_count() > 1:
            return False
        for bit in each(group):
            for op in self._adders[bit]:
                if op.steps or op.add & group != bit or not op.pos & group & (op.dele | op.add):
                    return False
        return True


def _unless(op: Op, rival: Op) -> list[Op]:
    """``op`` split into disjoint cases in which ``rival`` does not apply."""
    conditions: list[Condition] = []
    pos, neg = op.pos, op.neg
    for bit in each(rival.pos & ~op.pos):
        conditions.append((pos, neg | bit))
        pos |= bit
    for bit in each(rival.neg & ~op.neg):
        conditions.append((pos | bit, neg))
        neg |= bit
    return [op.under(pos, neg) for pos, neg in conditions if not pos & neg]
