"""Exact distances and bridges, by depth-first search with tables.

The search tries only operators of a level that can still matter (:mod:`~handoff.envs.alfworld.compiled.relevance`).
One table per number of actions left is keyed by the bits that can still matter, and after a move comes an action at its
target.  The tables belong to the game, so each step of a trajectory reuses the work of the steps before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from handoff.envs.alfworld.compiled.bit_task import BitTask, Op
from handoff.envs.alfworld.compiled.families import Family, applicable, families
from handoff.envs.alfworld.compiled.relevance import Relevance

_MOST_ENTRIES = 300_000
#: From this many actions on it pays to check first whether any plan exists.
_DEEP = 6


class Search:
    """Distances to success in one game."""

    def __init__(self, task: BitTask, useless: Collection[int] | None = None) -> None:
        self._task = task
        self.relevance = Relevance(task, useless)
        self._place_mask = task.place_mask
        self._goal_mask = self.relevance.goal_mask
        self._goal_moves = self.relevance.free and bool(self._goal_mask & task.place_mask)
        self._targets = [place for place in task.place_bits() if place & self.relevance.targets]
        self._won: dict[int, bool] = {}
        self._hopeless: dict[int, bool] = {}
        self._local: dict[int, dict[int, bool]] = defaultdict(dict)
        self._moved: dict[int, dict[int, bool]] = defaultdict(dict)
        self._at: dict[int, dict[int, tuple[Family, ...]]] = {}
        self._worth: dict[int, list[int]] = {}

    def won(self, state: int) -> bool:
        """Whether the goal holds."""
        key = state & self._goal_mask
        answer = self._won.get(key)
        if answer is None:
            answer = any(key & pos == pos and not key & neg for pos, neg in self._task.goal)
            if len(self._won) > _MOST_ENTRIES:
                self._won.clear()
            self._won[key] = answer
        return answer

    def distance(self, state: int, limit: int) -> int | None:
        """The least number of actions that wins, if it is at most ``limit``."""
        if self.won(state):
            return 0
        for actions in range(1, limit + 1):
            if actions == _DEEP and self.hopeless(state):
                return None
            if self.within(state, actions):
                return actions
        return None

    def hopeless(self, state: int) -> bool:
        """Whether no plan exists even if no action ever undid anything.

        Without this check, a state that cannot be won (with an object in hand that fits nowhere) costs a search to the
        limit.
        """
        key = state & self.relevance.bits(self.relevance.deepest)
        answer = self._hopeless.get(key)
        if answer is None:
            relevance = self.relevance
            can = key | (relevance.targets if relevance.free else 0)
            cannot = ~key
            remaining = list(relevance.levels)
            grown = True
            while grown:
                grown = False
                blocked = []
                for op in remaining:
                    if op.pos & ~can or op.neg & ~cannot:
                        blocked.append(op)
                    else:
                        can |= op.adds()
                        cannot |= op.deletes()
                        grown = True
                remaining = blocked
            answer = all(pos & ~can or neg & ~cannot for pos, neg in self._task.goal)
            if len(self._hopeless) > _MOST_ENTRIES:
                self._hopeless.clear()
            self._hopeless[key] = answer
        return answer

    def within(self, state: int, actions: int) -> bool:
        """Whether a state that is not won can be won by 1 to ``actions`` actions."""
        return self._by_local(state, actions) or self._by_move(state, actions)

    def bridges(self, state: int, distance: int) -> list[Op]:
        """The first operators of all shortest plans, by action text.  ``distance`` must be the state's distance."""
        here = self._families(distance).get(state & self._place_mask, ())
        moves = self.relevance.moves.get(state & self._place_mask, [])
        first = [op for op in [*applicable(here, state), *moves] if self._leads(op.apply(state), distance - 1)]
        return sorted(first, key=lambda op: op.text)

    def _leads(self, state: int, distance: int) -> bool:
        return self.won(state) if distance == 0 else self.within(state, distance)

    def _by_local(self, state: int, actions: int) -> bool:
        """Whether at most ``actions`` actions win, where the first is no move."""
        memo = self._local[actions]
        key = state & self.relevance.bits(actions)
        answer = memo.get(key)
        if answer is None:
            answer = False
            for op in applicable(self._families(actions).get(state & self._place_mask, ()), state):
                after = op.apply(state)
                if self.won(after) or (actions > 1 and self.within(after, actions - 1)):
                    answer = True
                    break
            if len(memo) > _MOST_ENTRIES:
                memo.clear()
            memo[key] = answer
        return answer

    def _by_move(self, state: int, actions: int) -> bool:
        """Whether at most ``actions`` actions win, where the first is a move."""
        rest = state & ~self._place_mask
        memo = self._moved[actions]
        key = rest & self.relevance.bits(actions)
        answer = memo.get(key)
        if answer is None:
            answer = self._goal_moves and any(self.won(rest | place) for place in self._targets)
            if not answer and actions > 1:
                answer = any(self._by_local(rest | place, actions - 1) for place in self._worthwhile(actions - 1))
            if len(memo) > _MOST_ENTRIES:
                memo.clear()
            memo[key] = answer
        return answer

    def _families(self, actions: int) -> dict[int, tuple[Family, ...]]:
        """By place, the useful operators with ``actions`` actions left."""
        actions = min(actions, self.relevance.deepest)
        if actions not in self._at:
            by_place: dict[int, list[Op]] = defaultdict(list)
            for op, level in self.relevance.levels.items():
                if level <= actions:
                    by_place[op.pos & self._place_mask].append(op)
            everywhere = by_place.pop(0, [])
            self._at[actions] = {
                place: families([*by_place.get(place, []), *everywhere], place) for place in self._task.place_bits()
            }
        return self._at[actions]

    def _worthwhile(self, actions: int) -> list[int]:
        """The targets of moves with a useful operator there, with ``actions`` actions left."""
        actions = min(actions, self.relevance.deepest)
        if actions not in self._worth:
            here = self._families(actions)
            self._worth[actions] = [place for place in self._targets if here[place]]
        return self._worth[actions]
