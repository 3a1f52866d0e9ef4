"""Builds the bit task of a translated game.

Facts that never change are folded into the conditions, and derived facts are expanded to the facts behind them.  The
agent's location is the group of facts of one predicate of which exactly one always holds, proved operator by operator.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from handoff.envs.alfworld.compiled.bit_task import BitTask, Condition, Op
from handoff.envs.alfworld.compiled.demangling import demangle
from handoff.envs.alfworld.compiled.disjoint import disjoint
from handoff.envs.alfworld.compiled.grammar import Each, Grammar, Text, Value
from handoff.envs.alfworld.compiled.queries import Arguments, FactLookup, FactTable, Hierarchy, Typed, matches
from handoff.envs.alfworld.compiled.sas import Effect, Literal, Problem
from handoff.errors import DataError

_MOST_CASES = 100_000


def build(problem: Problem, grammar: Grammar) -> BitTask:
    """The bit task of a translated game, with the action texts of its grammar.

    Raises :class:`~handoff.errors.DataError`, naming the construct, for a game that the compiled engine does not know.
    """
    builder = _TaskBuilder(problem)
    facts = tuple(problem.facts[v] for v in builder.variables)
    ops = disjoint(builder.operators(grammar), facts, builder.initial, builder.place_mask)
    return BitTask(
        facts=facts,
        places=len(builder.places),
        initial=builder.initial,
        goal=builder.goal(),
        ops=tuple(ops),
        texts=tuple(builder.texts),
        effects=builder.effects(),
        given=problem.given,
        types=builder.types,
        hierarchy=builder.hierarchy,
        names=builder.names,
        parameters=dict(problem.parameters),
    )


class _TaskBuilder:
    """``bit[v]`` is the mask of variable ``v`` (0: ``v`` never changes, or is derived)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.hierarchy = Hierarchy(problem.types)
        self.types = dict(problem.objects)
        self.names = demangle(argument for fact in problem.given for argument in fact[1:])
        changing = {effect.variable for operator in problem.operators for effect in operator.effects}
        self._derived = {v for v, layer in enumerate(problem.layers) if layer >= 0}
        if changing & self._derived:
            raise DataError("an operator of the game changes a derived fact, which is not supported")
        self._rules: dict[int, list[tuple[Literal, ...]]] = defaultdict(list)
        for axiom in problem.axioms:
            if axiom.value == problem.initial[axiom.variable]:
                continue  # a rule for the default value, which the translator adds, says nothing new
            self._rules[axiom.variable].append(axiom.conditions)
        self._cases_memo: dict[Literal, list[frozenset[Literal]]] = {}
        place = _location_group(problem, changing)
        self.places = tuple(1 << i for i in range(len(place)))
        self.place_mask = (1 << len(place)) - 1
        conditions = {v for operator in problem.operators for v, _ in operator.pre}
        for operator in problem.operators:
            for effect in operator.effects:
                conditions.update(v for v, _ in effect.conditions)
        # The location first, then the variables of conditions, then the others.
        order = sorted(changing, key=lambda v: (v not in place, v not in conditions, v))
        self.bit = [0] * len(problem.facts)
        for position, variable in enumerate(order):
            self.bit[variable] = 1 << position
        self.variables = order
        self.initial = sum(self.bit[v] for v in order if problem.initial[v])

    def goal(self) -> tuple[Condition, ...]:
        """The goal as a disjunction of conditions."""
        return tuple(self._minimal(self.conditions(self.problem.goal)))

    def effects(self) -> dict[int, tuple[tuple[int, bool, bool], ...]]:
        """As in :class:`BitTask`, facts by bit position."""
        position = {v: i for i, v in enumerate(self.variables)}
        return {
            index: tuple([(position[e.variable], e.value, not e.conditions) for e in operator.effects])
            for index, operator in enumerate(self.problem.operators)
        }

    def conditions(self, literals: Iterable[Literal]) -> list[Condition]:
        """The conjunction of ``literals`` as a disjunction of conditions over bits (empty: never true)."""
        conditions = []
        for case in self._conjunction(literals):
            pos = neg = 0
            for variable, value in case:
                if value:
                    pos |= self.bit[variable]
                else:
                    neg |= self.bit[variable]
            if pos & neg or (pos & self.place_mask).bit_count() > 1:
                continue
            elsewhere = neg & self.place_mask
            neg &= ~elsewhere
            if not elsewhere or pos & self.place_mask:
                conditions.append((pos, neg))
            else:
                conditions += [(pos | place, neg) for place in self.places if not place & elsewhere]
        return list(dict.fromkeys(conditions))

    def _conjunction(self, literals: Iterable[Literal]) -> list[frozenset[Literal]]:
        cases: list[frozenset[Literal]] = [frozenset()]
        for literal in literals:
            cases = [case | more for case, more in product(cases, self._cases(literal))]
            if len(cases) > _MOST_CASES:
                raise DataError(f"a condition of the game has more than {_MOST_CASES} cases, which is not supported")
        return cases

    def _cases(self, literal: Literal) -> list[frozenset[Literal]]:
        """A literal as a disjunction of conjunctions over facts that operators change."""
        if literal not in self._cases_memo:
            variable, value = literal
            if variable not in self._derived:
                if self.bit[variable]:
                    result = [frozenset((literal,))]
                else:
                    result = [frozenset()] if self.problem.initial[variable] == value else []
            else:
                by_rules = [case for body in self._rules[variable] for case in self._conjunction(body)]
                if value != self.problem.initial[variable]:
                    result = by_rules
                else:  # the default value: every rule fails
                    result = [frozenset()]
                    for case in by_rules:
                        negations = [frozenset(((v, not x),)) for v, x in case]
                        result = [one | two for one, two in product(result, negations)]
                        if len(result) > _MOST_CASES:
                            raise DataError("a derived condition of the game has too many cases")
            self._cases_memo[literal] = list(dict.fromkeys(result))
        return self._cases_memo[literal]

    @staticmethod
    def _minimal(conditions: list[Condition]) -> list[Condition]:
        if len(conditions) > 2000:  # the reduction is quadratic and only saves time later
            return conditions
        return [
            (pos, neg)
            for pos, neg in conditions
            if not any(p | pos == pos and n | neg == neg and (p, n) != (pos, neg) for p, n in conditions)
        ]

    def operators(self, grammar: Grammar) -> list[Op]:
        """The ground actions in the native engine's order."""
        parameters = dict(self.problem.parameters)
        self.texts = [""] * len(self.problem.operators)
        facts = self._static_facts()
        # The planner's tree of preconditions yields applicable operators in this order.
        order = sorted(
            range(len(self.problem.operators)),
            key=lambda i: (sorted((v, 0 if x else 1) for v, x in self.problem.operators[i].pre), i),
        )
        ops: list[Op] = []
        seen: set[tuple[str, int, int]] = set()
        for rank, index in enumerate(order):
            operator = self.problem.operators[index]
            text = self.texts[index] = self._action_text(operator.name, grammar, parameters, facts)
            steps, plain = self._change(operator.effects)
            for pos, neg in self.conditions(operator.pre):
                if (operator.name, pos, neg) in seen:  # textworld shows one operator of a name
                    continue
                seen.add((operator.name, pos, neg))
                op = Op(rank, index, operator.name, text, pos, neg)
                op.add, op.dele = plain
                op.steps = steps
                ops.append(op)
        return ops

    def _change(self, effects: Sequence[Effect]) -> tuple[tuple[tuple[int, int, int, int], ...], tuple[int, int]]:
        if all(not effect.conditions for effect in effects):
            add = dele = 0
            for effect in effects:
                bit = self.bit[effect.variable]
                add, dele = (add | bit, dele & ~bit) if effect.value else (add & ~bit, dele | bit)
            return (), (add, dele)
        steps = []
        for effect in effects:
            bit = self.bit[effect.variable]
            change = (bit, 0) if effect.value else (0, bit)
            steps += [(pos, neg, *change) for pos, neg in self.conditions(effect.conditions)]
        return tuple(steps), (0, 0)

    def _static_facts(self) -> FactLookup:
        changing = {self.problem.facts[v][0] for v in self.variables}
        table = FactTable()
        for predicate, *arguments in self.problem.given:
            table.add(predicate, tuple((argument, self.types[argument]) for argument in arguments))

        def facts(predicate: str, types: tuple[str, ...], anchor: tuple[int, Typed] | None) -> Sequence[Arguments]:
            if predicate.startswith("not_") or predicate in changing:
                raise DataError(
                    f"the game's grammar makes the text of an action depend on {predicate!r}, which changes during "
                    "play; the compiled engine does not support this"
                )
            return table.facts(predicate, types, anchor)

        return facts

    def _action_text(
        self,
        name: str,
        grammar: Grammar,
        parameters: dict[str, tuple[tuple[str, str], ...]],
        facts: FactLookup,
    ) -> str:
        action, *arguments = name.split()
        if action not in grammar.actions or action not in parameters:
            raise DataError(f"the game's grammar has no text for the action {action!r}")
        bound = {
            (parameter.strip("?"), kind): (argument, kind)
            for (parameter, kind), argument in zip(parameters[action], arguments, strict=False)
        }
        parts: list[str] = []
        for symbol in grammar.actions[action].template:
            if isinstance(symbol, Text):
                parts.append(symbol.text)
            elif isinstance(symbol, Value):
                parts.append(symbol.evaluate({ph: entity for (ph, _), entity in bound.items()}, self.names))
            elif isinstance(symbol, Each) and isinstance(symbol.body, Value):
                texts = [
                    symbol.body.evaluate({ph: entity for (ph, _), entity in match.items()}, self.names)
                    for match in matches(symbol.query, bound, facts, self.hierarchy)
                ]
                if symbol.listed and len(texts) != 1:
                    raise DataError("the game's grammar makes an action's text from a list, which is not supported")
                parts += texts
            else:
                raise DataError("the game's grammar makes an action's text from other rules, which is not supported")
        return "".join(parts)


def _location_group(problem: Problem, changing: set[int]) -> set[int]:
    """The facts of one predicate of which exactly one always holds; among such predicates the one in the preconditions
    of most operators.  Empty if there is none."""
    counts: Counter[str] = Counter()
    for operator in problem.operators:
        counts.update({problem.facts[v][0] for v, value in operator.pre if value and v in changing})
    for predicate in sorted(counts, key=lambda p: (-counts[p], p)):
        group = {v for v in changing if problem.facts[v][0] == predicate}
        if counts[predicate] * 2 > len(problem.operators) and _exactly_one(problem, group):
            return group
    return set()


def _exactly_one(problem: Problem, group: set[int]) -> bool:
    """Whether exactly one fact of ``group`` holds at first and every operator keeps it so."""
    if sum(problem.initial[v] for v in group) != 1:
        return False
    for operator in problem.operators:
        effects = [effect for effect in operator.effects if effect.variable in group]
        if not effects:
            continue
        after = {effect.variable: effect.value for effect in effects}
        if any(effect.conditions for effect in effects) or len(after) != len(effects):
            return False
        removed = [v for v, value in after.items() if not value]
        added = [v for v, value in after.items() if value]
        if len(removed) != 1 or len(added) != 1 or (removed[0], True) not in operator.pre:
            return False
    return True
