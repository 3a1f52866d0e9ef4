"""The planner library with its state ids: a second implementation of the dynamics, for checks and measurements.

``libdownward`` steps a game under textworld.  It can return to an earlier state.  textworld cannot use that (its texts
would be out of step), but a plain exhaustive search can.
"""

from __future__ import annotations

from typing import Any

from handoff.envs.alfworld.compiled.dynamics import Dynamics
from handoff.envs.alfworld.compiled.sas import Fact, sas_text
from handoff.records import Certificate

_MOST_EFFECTS = 4096


class PlannerLibrary:
    """One game in a copy of ``libdownward``; the dynamics give its operators their texts.

    A copy stays mapped for the life of the process (unloading it crashes), some MB each: make few.
    """

    def __init__(self, domain: str, problem: str, dynamics: Dynamics) -> None:
        import fast_downward

        self._atom, self._operator = fast_downward.Atom, fast_downward.Operator
        self._library: Any = fast_downward.load_lib()
        self._library.load_sas(sas_text(domain, problem).encode())
        self._text = dynamics.task.texts
        self._effects = (self._atom * _MOST_EFFECTS)()
        self._operators = (self._operator * (len(self._text) + 1))()
        self._atoms = (self._atom * self._library.get_state_size())()

    def state_id(self) -> int:
        return int(self._library.get_state_id())

    def go_back(self, state_id: int) -> None:
        self._library.set_state_id(state_id)

    def applicable(self) -> list[int]:
        """The applicable operators in the library's order, the first of every action text."""
        count = self._library.get_applicable_operators_count()
        self._library.get_applicable_operators(self._operators)
        text = self._text
        first: dict[str, int] = {}
        for i in range(count):
            index = self._operators[i].id
            first.setdefault(text[index], index)
        return list(first.values())

    def admissible(self) -> tuple[str, ...]:
        """The actions of the applicable operators, sorted."""
        return tuple(sorted(self._text[index] for index in self.applicable()))

    def apply(self, operator: int) -> None:
        self._library.apply_operator(operator, self._effects)

    def apply_action(self, action: str) -> None:
        self.apply(next(index for index in self.applicable() if self._text[index] == action))

    def won(self) -> bool:
        return bool(self._library.check_goal())

    def facts(self) -> frozenset[Fact]:
        """The facts that hold, derived ones included."""
        self._library.get_state(self._atoms)
        facts = set()
        for atom in self._atoms:
            kind, _, rest = atom.name.partition(" ")
            if kind == "Atom":
                name, _, arguments = rest.partition("(")
                facts.add((name, *(part for part in arguments[:-1].split(", ") if part)))
        return frozenset(facts)

    def certify(self, depth: int) -> Certificate:
        """The certificate by plain enumeration: every sequence applied, the goal checked after each."""
        start = self.state_id()
        if self.won():
            return Certificate(depth, False, 0, ())
        text = self._text
        level: list[tuple[int, tuple[str, ...]]] = [(start, ())]
        tried: list[int] = []
        wins: list[tuple[str, ...]] = []
        while len(tried) < depth and not wins:
            count, after = 0, []
            for state, path in level:
                self.go_back(state)
                operators = self.applicable()
                count += len(operators)
                for operator in operators:
                    self.go_back(state)
                    self.apply(operator)
                    if self.won():
                        wins.append((*path, text[operator]))
                    elif len(tried) + 1 < depth:
                        after.append((self.state_id(), (*path, text[operator])))
            tried.append(count)
            level = after
        self.go_back(start)
        if not wins:
            return Certificate(depth, False, None, tuple(tried))
        bridges = tuple(sorted({win[0] for win in wins}))
        return Certificate(depth, len(tried) == depth, len(tried), tuple(tried), bridges, min(wins))
