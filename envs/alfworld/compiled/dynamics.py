"""The dynamics of a game without its texts: admissible actions, successor states, distances, certificates.

A state is one Python integer.  It holds every fact that some action can change and nothing else, so two states are
equal exactly if the native engine can tell them apart by nothing but its memory of past texts.
"""

from __future__ import annotations

from collections.abc import Collection

from handoff.envs.alfworld.compiled import grammar as grammars
from handoff.envs.alfworld.compiled import sas
from handoff.envs.alfworld.compiled.bit_task import BitTask, Op, union
from handoff.envs.alfworld.compiled.builder import build
from handoff.envs.alfworld.compiled.counting import Walks
from handoff.envs.alfworld.compiled.families import applicable, families
from handoff.envs.alfworld.compiled.search import Search
from handoff.records import Certificate

_MOST_ENTRIES = 20_000
_LONGEST_PLAN = 40


class Dynamics:
    """The dynamics of one game, with the tables that its searches share.  Not thread safe (the tables grow)."""

    def __init__(self, task: BitTask, useless: Collection[int] | None = None) -> None:
        self.task = task
        self.initial: int = task.initial
        self._search = Search(task, useless)
        self._walks: Walks | None = None
        self._place_mask = task.place_mask
        by_place: dict[int, list[Op]] = {place: [] for place in task.place_bits()}
        everywhere = []
        for op in task.ops:
            place = op.pos & task.place_mask
            if place in by_place:
                by_place[place].append(op)
            else:
                everywhere.append(op)
        self._families = {place: families(ops + everywhere, place) for place, ops in by_place.items()}
        self._masks = {place: union(op.pos | op.neg for op in ops + everywhere) for place, ops in by_place.items()}
        self._menus: dict[int, tuple[tuple[str, ...], dict[str, Op]]] = {}

    @classmethod
    def compile(cls, domain: str, grammar: str, problem: str) -> Dynamics:
        """The dynamics of a game from its three texts.

        Raises :class:`~handoff.errors.DataError` if the planner does not accept them, or for a construct that the
        compiled engine does not know.
        """
        return cls(build(sas.translate(domain, problem), grammars.parse(grammar)))

    def admissible(self, state: int) -> tuple[str, ...]:
        """The admissible actions, sorted and without repeats, as the native engine shows them."""
        return self._menu(state)[0]

    def operator(self, state: int, action: str) -> Op | None:
        """The operator that the native engine takes for an action (outer spaces do not matter), if any."""
        return self._menu(state)[1].get(action.strip())

    def apply(self, state: int, action: str) -> int:
        """The state after an action; the same state if the action is not admissible."""
        op = self.operator(state, action)
        return state if op is None else op.apply(state)

    def won(self, state: int) -> bool:
        """Whether the goal holds now."""
        return self._search.won(state)

    def distance(self, state: int, limit: int) -> int | None:
        """The least number of actions that wins, if it is at most ``limit`` (0: won already)."""
        return self._search.distance(state, limit)

    @property
    def useless(self) -> frozenset[int]:
        """Positions in ``task.ops`` of operators that are in no shortest plan.  Given to the constructor, they save the
        proof."""
        return self._search.relevance.useless

    def prepare(self) -> Walks:
        """The tables for counting, which the first certificate needs.  A plain rollout never counts."""
        if self._walks is None:
            self._walks = Walks(self.task)
        return self._walks

    def certify(self, state: int, depth: int) -> Certificate:
        """The certificate of an exhaustive search from ``state`` to ``depth`` actions; raises ``ValueError`` for a
        depth below 1."""
        if depth < 1:
            raise ValueError(f"a search depth must be at least 1, not {depth}")
        if self._search.won(state):
            return Certificate(depth, False, 0, ())
        distance = self._search.distance(state, depth)
        levels = depth if distance is None else distance
        walks = self.prepare()
        tried = tuple([walks.count(state, length) for length in range(1, levels + 1)])
        if distance is None:
            return Certificate(depth, False, None, tried)
        bridges = self._search.bridges(state, distance)
        path = self._path(bridges[0].apply(state), distance - 1)
        texts = tuple([op.text for op in bridges])
        return Certificate(depth, distance == depth, distance, tried, texts, (texts[0], *path))

    def plan(self, state: int) -> tuple[str, ...]:
        """The first shortest winning sequence of actions in admissible order; empty for a won state and for one that
        cannot be won."""
        distance = self._search.distance(state, _LONGEST_PLAN)
        return () if distance is None else self._path(state, distance)

    def _path(self, state: int, distance: int) -> tuple[str, ...]:
        """The first shortest path in admissible order."""
        path = []
        for left in range(distance, 0, -1):
            op = self._search.bridges(state, left)[0]
            path.append(op.text)
            state = op.apply(state)
        return tuple(path)

    def _menu(self, state: int) -> tuple[tuple[str, ...], dict[str, Op]]:
        place = state & self._place_mask
        key = state & self._masks[place] | place
        menu = self._menus.get(key)
        if menu is None:
            ops = {op.text: op for op in applicable(self._families[place], state)}
            menu = (tuple(sorted(ops)), ops)
            if len(self._menus) > _MOST_ENTRIES:
                self._menus.clear()
            self._menus[key] = menu
        return menu
