"""The operators of shortest winning plans and their positions: a proof from the task alone.

In a plan of minimal length every action is needed: leave it out, and the rest fails.  So the last action makes a goal
fact true, the one before makes a fact true that the goal or the last action needs, and so on: an operator has a
*level*, the least number of actions before the end at which it can be useful.

Two more kinds of action never occur in a minimal plan.

* Of two moves in a row the first is useless, if every place can be reached from every other (checked).
* *Excursions.*  Take a group of facts of which exactly one always holds (hand empty, holding this, holding that ...;
  a drawer open or closed).  Let a value be entered from one hub value only and left to it only, and let no action that
  enters it or needs it change any fact outside the group that is ever needed.  Cut every excursion hub -> value -> hub
  out of a plan, and the remaining plan still works and is shorter.  So the actions that enter such a value are useless.
  Without them other facts become unneeded; the greatest set of values that supports itself is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from handoff.envs.alfworld.compiled.bit_task import BitTask, Op, each, union


class Relevance:
    """The useful operators of a task.

    ``levels`` gives every useful operator that is no move its level (1: it can win at once).  ``moves[place]`` are the
    moves from a place.  ``free`` says that moves need no search: all of ``targets`` can be reached from everywhere;
    otherwise moves have levels like any other operator.
    """

    def __init__(self, task: BitTask, useless: Collection[int] | None = None) -> None:
        self._task = task
        self._goal_pos = self._goal_neg = 0
        for pos, neg in task.goal:
            self._goal_pos |= pos
            self._goal_neg |= neg
        self.moves: dict[int, list[Op]] = {place: [] for place in task.place_bits()}
        local: list[Op] = []
        self._needed_mask = self._needed()
        for op in task.ops:
            place = op.pos & task.place_mask
            if self._pure_move(op):
                self.moves[place].append(op)
            else:
                local.append(op)
        self.targets = 0
        for ops in self.moves.values():
            for op in ops:
                self.targets |= op.add & task.place_mask
        self.free = bool(self.targets) and all(
            not (self.targets & ~place & ~union(op.add for op in ops)) for place, ops in self.moves.items()
        )
        if not self.free:
            local = list(task.ops)
            self.moves = {place: [] for place in task.place_bits()}
            self.targets = 0
        self._ignored = task.place_mask if self.free else 0
        if useless is None:
            entering = self._useless(local)
            useless = {number for number, op in enumerate(task.ops) if op in entering}
        #: Positions in ``task.ops`` of the operators that only enter excursions.  This is the costly part of the proof;
        #: the constructor accepts it for the same task.
        self.useless = frozenset(useless)
        without = {task.ops[number] for number in self.useless}
        self.levels = self._levels([op for op in local if op not in without])
        self.deepest = max(self.levels.values(), default=0)
        self._bits: dict[int, int] = {}
        self.goal_mask = self._goal_pos | self._goal_neg

    def bits(self, within: int) -> int:
        """The bits on which a win within that many actions can depend, the place included."""
        within = min(within, self.deepest)
        if within not in self._bits:
            bits = self.goal_mask | self._task.place_mask
            for op, level in self.levels.items():
                if level <= within:
                    bits |= op.pos | op.neg | op.asks()
            self._bits[within] = bits
        return self._bits[within]

    def _needed(self) -> int:
        """Bits in some condition or in the goal."""
        bits = self._goal_pos | self._goal_neg
        for op in self._task.ops:
            bits |= op.pos | op.neg | op.asks()
        return bits

    def _pure_move(self, op: Op) -> bool:
        mask = self._task.place_mask
        return bool(
            op.pos
            and op.pos & mask == op.pos
            and not op.neg
            and not op.steps
            and op.add & mask
            and not (op.add | op.dele) & self._needed_mask & ~mask
        )

    def _closure(self, ops: list[Op], without: set[Op]) -> tuple[int, int]:
        """The literals that are ever needed when the operators of ``without`` are left out."""
        pos, neg = self._goal_pos & ~self._ignored, self._goal_neg & ~self._ignored
        remaining = [op for op in ops if op not in without]
        grown = True
        while grown:
            grown = False
            unused = []
            for op in remaining:
                if op.adds() & pos or op.deletes() & neg:
                    asks = op.asks()
                    pos |= (op.pos | asks) & ~self._ignored
                    neg |= (op.neg | asks) & ~self._ignored
                    grown = True
                else:
                    unused.append(op)
            remaining = unused
        return pos, neg

    def _levels(self, ops: list[Op]) -> dict[Op, int]:
        pos, neg = self._goal_pos & ~self._ignored, self._goal_neg & ~self._ignored
        levels: dict[Op, int] = {}
        remaining = ops
        level = 0
        while True:
            level += 1
            layer = [op for op in remaining if op.adds() & pos or op.deletes() & neg]
            if not layer:
                return levels
            for op in layer:
                levels[op] = level
                asks = op.asks()
                pos |= (op.pos | asks) & ~self._ignored
                neg |= (op.neg | asks) & ~self._ignored
            remaining = [op for op in remaining if op not in levels]

    def _useless(self, ops: list[Op]) -> set[Op]:
        """Operators that enter a value only for an excursion."""
        candidates = self._hub_values(ops) + self._binary_values(ops)
        while True:
            entering = {op for _, enter, _ in candidates for op in enter}
            pos, neg = self._closure(ops, entering)
            needed = (pos | neg) & ~self._ignored
            supported = [(group, enter, outside) for group, enter, outside in candidates if not outside & needed]
            if len(supported) == len(candidates):
                return entering
            candidates = supported

    def _hub_values(self, ops: list[Op]) -> list[tuple[int, set[Op], int]]:
        """The values of groups {not ``x``} + members, where ``x`` says that some member holds.

        Each is (group's bits, operators that enter the value, bits outside the group that operators change which enter
        the value or need it).
        """
        asks = union(op.asks() for op in ops)
        leaving: dict[int, int] = defaultdict(int)
        entries: dict[int, list[Op]] = defaultdict(list)
        for op in ops:
            for x in each(op.dele):
                leaving[x] |= op.pos & op.dele & ~x
            for x in each(op.add & op.neg):
                entries[x].append(op)
        values = []
        for x, entering in entries.items():
            members = leaving[x]
            for op in entering:  # a value that is never left: an object that can be taken and not put down
                if not op.add & members:
                    members |= op.add & self._needed_mask & ~x
            group = x | members
            if group & asks or group & self._task.place_mask or not self._is_group(x, members, ops):
                continue
            if x & self._goal_pos or any(op.pos & x for op in ops):
                continue
            users: dict[int, list[Op]] = defaultdict(list)
            for op in ops:
                for member in each((op.pos | op.add) & members):
                    users[member].append(op)
            for member in each(members & ~self._goal_pos):
                enter = {op for op in users[member] if op.add & member}
                outside = union(op.touches() for op in users[member]) & ~group
                values.append((group, enter, outside))
        return values

    def _is_group(self, x: int, members: int, ops: list[Op]) -> bool:
        """Whether exactly one of {not ``x``} + ``members`` holds at first and after every operator."""
        held = (self._task.initial & members).bit_count()
        if held + (not self._task.initial & x) != 1:
            return False
        for op in ops:
            change = op.touches() & (members | x)
            if not change:
                continue
            added, removed = op.add & members, op.dele & members
            enters = op.neg & x and op.add & x and added.bit_count() == 1 and not removed
            leaves = op.dele & x and not added and removed.bit_count() == 1 and op.pos & removed
            if op.steps or not (enters or leaves):
                return False
        return True

    def _binary_values(self, ops: list[Op]) -> list[tuple[int, set[Op], int]]:
        """The same for the two values of a single fact."""
        asks = union(op.asks() for op in ops) | self._task.place_mask
        setting: dict[int, list[Op]] = defaultdict(list)
        clearing: dict[int, list[Op]] = defaultdict(list)
        wanting: dict[int, int] = defaultdict(int)
        refusing: dict[int, int] = defaultdict(int)
        for op in ops:
            touches = op.touches()
            for bit in each(op.adds()):
                setting[bit].append(op)
            for bit in each(op.deletes()):
                clearing[bit].append(op)
            for bit in each(op.pos):
                wanting[bit] |= touches
            for bit in each(op.neg):
                refusing[bit] |= touches
        values = []
        for bit in each(self._needed_mask & ~asks):
            for enter, changed, goal in (
                (clearing[bit], refusing[bit], self._goal_neg),
                (setting[bit], wanting[bit], self._goal_pos),
            ):
                if enter and not bit & goal:
                    outside = (changed | union(op.touches() for op in enter)) & ~bit
                    values.append((bit, set(enter), outside))
        return values
