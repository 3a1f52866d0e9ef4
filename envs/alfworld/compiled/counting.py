"""Counts action sequences of a length without listing them.

Only facts in some operator's condition matter to the number.  Actions that change none of them (looking, examining,
heating) multiply; moves between locations are summed once for all locations; the rest is walked with one table per
length.  The numbers equal those of the plain tree.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from handoff.envs.alfworld.compiled.bit_task import BitTask, Op, each
from handoff.envs.alfworld.compiled.families import Family, applicable, families, number

_MOST_ENTRIES = 200_000


class Place:
    """The operators at one location, by their effect on the facts that matter."""

    __slots__ = ("idle", "lacking", "local", "moves")

    def __init__(self, idle: tuple[Family, ...], local: tuple[Family, ...], moves: int) -> None:
        self.idle, self.local, self.moves = idle, local, moves
        self.lacking: tuple[tuple[int, int], ...] = ()


class Walks:
    """Numbers of action sequences in one game."""

    def __init__(self, task: BitTask) -> None:
        self._mask = task.place_mask
        for op in task.ops:
            self._mask |= op.pos | op.neg
        grown = True
        while grown:
            before = self._mask
            for op in task.ops:
                for pos, neg, add, dele in op.steps:
                    if (add | dele) & self._mask:
                        self._mask |= pos | neg
            grown = before != self._mask
        self._place_mask = task.place_mask
        self._change = {op: _projected(op, self._mask) for op in task.ops}
        by_place: dict[int, list[Op]] = defaultdict(list)
        for op in task.ops:
            by_place[op.pos & task.place_mask].append(op)
        everywhere = by_place.pop(0, [])
        self._places: dict[int, Place] = {}
        targets: dict[int, Counter[int]] = {}
        for place in task.place_bits():
            idle, local, moves = [], [], Counter[int]()
            for op in by_place.get(place, []) + everywhere:
                if not self._matters(op):
                    idle.append(op)
                elif self._is_move(op, place):
                    moves[self._change[op].add & self._place_mask] += 1
                else:
                    local.append(op)
            targets[place] = moves
            self._places[place] = Place(families(idle, place), families(local, place), moves.total())
        self._targets = Counter[int]()
        for moves in targets.values():
            self._targets |= moves
        for place, moves in targets.items():
            self._places[place].lacking = tuple((self._targets - moves).items())
        self._terms = self._merged()
        self._memo: dict[int, dict[int, int]] = defaultdict(dict)
        self._sums: dict[int, dict[int, int]] = defaultdict(dict)

    def count(self, state: int, length: int) -> int:
        """The number of sequences of ``length`` admissible actions from ``state``."""
        return self._count(state & self._mask, length)

    def _matters(self, op: Op) -> bool:
        change = self._change[op]
        return bool(change.add or change.dele or change.steps)

    def _is_move(self, op: Op, place: int) -> bool:
        change = self._change[op]
        return (
            place != 0
            and op.pos == place
            and not op.neg
            and not change.steps
            and change.dele == place
            and change.add.bit_count() == 1
            and change.add & self._place_mask == change.add
        )

    def _merged(self) -> tuple[tuple[int, int, int, tuple[tuple[int, int], ...]], ...]:
        """The number of admissible actions, summed over all targets of moves, as guarded weighted population counts."""
        weights: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        for place, weight in self._targets.items():
            here = self._places[place]
            weights[0, 0][0] += weight * here.moves
            for family in here.idle + here.local:
                weights[family.pos, family.neg][0] += weight * len(family.always)
                for bit in each(family.mask):
                    weights[family.pos, family.neg][bit] += weight
        terms = []
        for (pos, neg), by_bit in weights.items():
            constant = by_bit.pop(0, 0)
            masks = []
            digit = 1
            while any(weight >= digit for weight in by_bit.values()):
                mask = sum(bit for bit, weight in by_bit.items() if weight & digit)
                if mask:
                    masks.append((digit, mask))
                digit *= 2
            terms.append((pos, neg, constant, tuple(masks)))
        return tuple(terms)

    def _count(self, state: int, length: int) -> int:
        if length == 0:
            return 1
        place = self._places[state & self._place_mask]
        idle = number(place.idle, state)
        if length == 1:
            return idle + number(place.local, state) + place.moves
        memo = self._memo[length]
        cached = memo.get(state)
        if cached is not None:
            return cached
        total = idle * self._count(state, length - 1) if idle else 0
        rest = state & ~self._place_mask
        if place.moves:
            total += self._moved(rest, length - 1)
            for target, missing in place.lacking:
                total -= missing * self._count(rest | target, length - 1)
        change = self._change
        for op in applicable(place.local, state):
            step = change[op]
            after = state & ~step.dele | step.add if not step.steps else step.apply(state)
            total += self._count(after, length - 1)
        if len(memo) > _MOST_ENTRIES:
            memo.clear()
        memo[state] = total
        return total

    def _moved(self, rest: int, length: int) -> int:
        """The sum of ``_count`` over all targets of moves."""
        memo = self._sums[length]
        cached = memo.get(rest)
        if cached is not None:
            return cached
        total = 0
        if length == 1:
            for pos, neg, constant, masks in self._terms:
                if rest & pos == pos and not rest & neg:
                    total += constant
                    for weight, mask in masks:
                        total += weight * (rest & mask).bit_count()
        else:
            for target, weight in self._targets.items():
                total += weight * self._count(rest | target, length)
        if len(memo) > _MOST_ENTRIES:
            memo.clear()
        memo[rest] = total
        return total


def _projected(op: Op, mask: int) -> Op:
    """``op`` with its effects on the bits of ``mask`` only."""
    result = op.under(op.pos, op.neg)
    result.add, result.dele = op.add & mask, op.dele & mask
    result.steps = tuple((p, n, a & mask, d & mask) for p, n, a, d in op.steps if (a | d) & mask)
    return result
