"""Observations of a compiled game: the grammar expanded for one game, one action at a time.

A text depends on queries over facts.  Most facts never change, so a query for a given action becomes a list of cases,
each a mask of bits that must be set, in textworld's order of matches; the text of a case is a string or, where it
depends on more facts, parts again.  An action's text is expanded when the action is first taken.

textworld's facts are not the planner's.  It keeps ``not_p(..)`` only once some effect has made ``p(..)`` false, and it
applies every effect of an action, conditional or not, in the planner's order.  ``Memory`` gives such facts extra bits
above those of the dynamics, so a state is still one integer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from handoff.envs.alfworld.compiled.bit_task import BitTask, Op
from handoff.envs.alfworld.compiled.grammar import (
    Each,
    Grammar,
    Nonterminal,
    Predicate,
    Production,
    Symbol,
    Text,
    Value,
)
from handoff.envs.alfworld.compiled.queries import Arguments, FactTable, Typed, matches
from handoff.errors import DataError, EnvironmentFault

_DEEPEST = 40
#: The rules for enumerations in textworld: for no item, between two items, before the last item.
JOINTS = ("list_empty", "list_separator", "list_last_separator")


class Branch:
    """The first alternative with a mask that is set in the state; each is expanded when first taken."""

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: Sequence[Alternative]) -> None:
        self.alternatives = tuple(alternatives)


class Alternative:
    """``masks`` are the cases in which it applies (a zero mask: always); ``expand`` makes its body."""

    __slots__ = ("body", "expand", "masks")

    def __init__(self, masks: Sequence[int], expand: Callable[[], Parts]) -> None:
        self.masks = tuple(masks)
        self.expand = expand
        self.body: Parts | None = None


class Items:
    """The cases whose mask is set in the state, one after the other; an enumeration if ``joints`` (the texts for no
    item, between two items, and before the last item) are given."""

    __slots__ = ("cases", "joints")

    def __init__(
        self,
        cases: Sequence[tuple[int, Parts]],
        joints: tuple[Parts, ...] | None,
    ) -> None:
        self.cases = tuple((mask, body[0] if len(body) == 1 else body) for mask, body in cases)
        self.joints = joints


#: A text that depends on the state: literal text, branches and items, in order.
Parts = list[str | Branch | Items]


def render(parts: Parts, state: int) -> str:
    """The text in a state."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Branch):
            texts.append(_branch(part, state))
        else:
            texts.append(_items(part, state))
    return "".join(texts)


def _branch(branch: Branch, state: int) -> str:
    for alternative in branch.alternatives:
        for mask in alternative.masks:
            if state & mask == mask:
                if alternative.body is None:
                    alternative.body = alternative.expand()
                return render(alternative.body, state)
    raise EnvironmentFault("no rule of the game's grammar applies (textworld would stop here too)")


def _items(items: Items, state: int) -> str:
    texts = [
        body if isinstance(body, str) else render(body if isinstance(body, list) else [body], state)
        for mask, body in items.cases
        if state & mask == mask
    ]
    if items.joints is None:
        return "".join(texts)
    empty, between, last = items.joints
    if not texts:
        return render(empty, state)
    if len(texts) == 1:
        return texts[0]
    return render(between, state).join(texts[:-1]) + render(last, state) + texts[-1]


class Memory:
    """The bits of the facts that textworld keeps beside the planner's, and every operator's effect on them."""

    def __init__(self, task: BitTask, grammar: Grammar) -> None:
        self._task = task
        queried = set(_queried(grammar))
        effects = task.effects
        conditional = {v for changes in effects.values() for v, _, sure in changes if not sure}
        falsified = {v for changes in effects.values() for v, holds, _ in changes if not holds}
        position = len(task.facts)
        self.holds: dict[int, int] = {}  # variable -> bit of its fact, as textworld has it
        self.denied: dict[int, int] = {}  # variable -> bit of its not_ fact
        for v, (predicate, *_) in enumerate(task.facts):
            self.holds[v] = 1 << v
            if predicate in queried and v in conditional:
                self.holds[v] = 1 << position
                position += 1
            if f"not_{predicate}" in queried and v in falsified:
                self.denied[v] = 1 << position
                position += 1
        self.initial = task.initial
        for v, bit in self.holds.items():
            if task.initial >> v & 1:
                self.initial |= bit

    def changes(self, op: Op) -> tuple[int, int]:
        """(bits set, bits cleared) by an operator on top of the dynamics."""
        add = dele = 0
        for v, holds, _ in self._task.effects[op.index]:
            for bit, wanted in ((self.holds[v], holds), (self.denied.get(v, 0), not holds)):
                if bit != 1 << v:
                    add, dele = (add | bit, dele & ~bit) if wanted else (add & ~bit, dele | bit)
        return add, dele


def _queried(grammar: Grammar) -> Iterator[str]:
    """The predicates in the queries of a grammar."""

    def of(symbols: Sequence[Symbol]) -> Iterator[str]:
        for symbol in symbols:
            if isinstance(symbol, Each):
                yield from (predicate.name for predicate in symbol.query)

    for action in grammar.actions.values():
        yield from of(action.template)
        yield from of(action.feedback)
    for productions in grammar.rules.values():
        for production in productions:
            yield from (predicate.name for predicate in production.condition)
            yield from of(production.body)


class _Mentions:
    """The placeholders, variables and predicates in a rule and in the rules under it."""

    def __init__(self) -> None:
        self.placeholders: set[Typed] = set()
        self.variables: set[str] = set()
        self.predicates: set[str] = set()

    def read(self, production: Production) -> Iterator[str]:
        """Add one production; yields the rules that it uses."""
        self._query(production.condition)
        for symbol in production.body:
            if isinstance(symbol, Each):
                self._query(symbol.query)
                if symbol.listed:
                    yield from JOINTS
                yield from self._body(symbol.body)
            else:
                yield from self._body(symbol)

    def _query(self, query: tuple[Predicate, ...]) -> None:
        for predicate in query:
            self.predicates.add(predicate.name)
            self.placeholders.update(predicate.parameters)

    def _body(self, symbol: Symbol) -> Iterator[str]:
        if isinstance(symbol, Nonterminal):
            yield symbol.name
        elif isinstance(symbol, Value):
            self.variables.update(a[0] for term in symbol.terms for a in term if not isinstance(a, str))


class Texts:
    """Observations of one game, as parts for :func:`render`."""

    def __init__(self, task: BitTask, grammar: Grammar, memory: Memory) -> None:
        self._task, self._grammar, self._memory = task, grammar, memory
        self._table, self._tabled = FactTable(), set[str]()
        self._bits: dict[tuple[str, tuple[str, ...]], int] = {}
        self._feedback: dict[str, Parts] = {}
        self._mentions: dict[str, _Mentions] = {}
        self._arguments: dict[str, frozenset[str]] = {}
        self._shared: dict[object, Parts] = {}
        self._variables: dict[str, list[int]] = defaultdict(list)
        for v, (predicate, *_) in enumerate(task.facts):
            self._variables[predicate].append(v)
        self._check()

    def intro(self) -> Parts:
        """The text of a reset."""
        return self._parts((Nonterminal("intro"),), {}, {}, 0)

    def feedback(self, op: Op) -> Parts:
        """The text after an operator."""
        parts = self._feedback.get(op.name)
        if parts is None:
            action, *arguments = op.name.split()
            pairs = list(zip(self._task.parameters[action], arguments, strict=False))
            bound = {(name.strip("?"), kind): (argument, kind) for (name, kind), argument in pairs}
            entities = {name.strip("?"): (argument, kind) for (name, kind), argument in pairs}
            parts = self._parts(self._grammar.actions[action].feedback, bound, entities, 0)
            self._feedback[op.name] = parts
        return parts

    def _check(self) -> None:
        """Refuse a grammar that would fail in the middle of a game."""

        def rules(symbols: Sequence[Symbol]) -> Iterator[str]:
            for symbol in symbols:
                if isinstance(symbol, Nonterminal):
                    yield symbol.name
                elif isinstance(symbol, Each):
                    if isinstance(symbol.body, Nonterminal):
                        yield symbol.body.name
                    if symbol.listed:
                        yield from JOINTS

        used = {name for name, *_ in (op.name.split() for op in self._task.ops)}
        queue = ["intro", *(n for a in used for n in rules(self._grammar.actions[a].feedback))]
        seen: set[str] = set()
        while queue:
            name = queue.pop()
            if name in seen:
                continue
            seen.add(name)
            if not self._grammar.rules.get(name):
                raise DataError(f"the game's grammar has no rule {name!r}, which its texts use")
            for production in self._grammar.rules[name]:
                queue += rules(production.body)

    def _parts(
        self,
        symbols: Sequence[Symbol],
        bound: Mapping[Typed, Typed],
        entities: Mapping[str, Typed],
        depth: int,
    ) -> Parts:
        if depth > _DEEPEST:
            raise DataError("the game's grammar has rules that expand without end")
        parts: Parts = []
        for symbol in symbols:
            if isinstance(symbol, Text):
                parts.append(symbol.text)
            elif isinstance(symbol, Value):
                parts.append(symbol.evaluate(entities, self._task.names))
            elif isinstance(symbol, Nonterminal):
                parts += self._rule(symbol.name, bound, entities, depth)
            else:
                parts.append(self._each(symbol, bound, entities, depth))
        merged: Parts = []
        for part in parts:
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            else:
                merged.append(part)
        return merged or [""]

    def _rule(self, name: str, bound: Mapping[Typed, Typed], entities: Mapping[str, Typed], depth: int) -> Parts:
        """A rule's text, shared by all contexts that agree on the placeholders and variables that the rule (or a rule
        under it) mentions.  An entity bound to anything else matters only where it could occur in a match, since no two
        placeholders name one entity."""
        mentions = self._mentioned(name)
        mentioned = {ph: entity for ph, entity in bound.items() if ph in mentions.placeholders}
        others = {
            ph: entity
            for ph, entity in bound.items()
            if ph not in mentioned and any(entity[0] in self._occurring(p) for p in mentions.predicates)
        }
        variables = {variable: entity for variable, entity in entities.items() if variable in mentions.variables}
        key = (name, frozenset(mentioned.items()), frozenset(others.items()), frozenset(variables.items()))
        parts = self._shared.get(key)
        if parts is None:
            parts = self._shared[key] = self._expand(name, {**mentioned, **others}, variables, depth)
        return parts

    def _mentioned(self, name: str) -> _Mentions:
        if name not in self._mentions:
            mentions = self._mentions[name] = _Mentions()
            queue, seen = [name], {name}
            while queue:
                for production in self._grammar.rules[queue.pop()]:
                    for below in mentions.read(production):
                        if below not in seen:
                            seen.add(below)
                            queue.append(below)
        return self._mentions[name]

    def _occurring(self, predicate: str) -> frozenset[str]:
        """The entities in the possible facts of a predicate."""
        if predicate not in self._arguments:
            self._arguments[predicate] = frozenset(a for arguments in self._possible(predicate) for a in arguments)
        return self._arguments[predicate]

    def _expand(self, name: str, bound: Mapping[Typed, Typed], entities: Mapping[str, Typed], depth: int) -> Parts:
        alternatives: list[Alternative] = []
        for production in self._grammar.rules[name]:
            masks = [0]
            if production.condition:
                masks = list(dict.fromkeys(mask for mask, _ in self._cases(production.condition, bound)))
                if not masks:
                    continue
            if 0 in masks:
                masks = [0]

            def expand(body: tuple[Symbol, ...] = production.body) -> Parts:
                return self._parts(body, bound, entities, depth + 1)

            if masks == [0] and not alternatives:
                return expand()
            alternatives.append(Alternative(masks, expand))
            if masks == [0]:
                break
        return [Branch(alternatives)]

    def _each(self, symbol: Each, bound: Mapping[Typed, Typed], entities: Mapping[str, Typed], depth: int) -> Items:
        cases = []
        for mask, mapping in self._cases(symbol.query, bound):
            inner = {**entities, **{name: entity for (name, _), entity in mapping.items()}}
            cases.append((mask, self._parts((symbol.body,), mapping, inner, depth + 1)))
        joints = None
        if symbol.listed:
            joints = tuple(self._parts((Nonterminal(name),), bound, entities, depth + 1) for name in JOINTS)
        return Items(cases, joints)

    def _cases(
        self, query: tuple[Predicate, ...], bound: Mapping[Typed, Typed]
    ) -> Iterator[tuple[int, dict[Typed, Typed]]]:
        """The matches of a query over all facts that can ever hold: the bits that must be set, and the match."""
        for mapping in matches(query, bound, self._facts, self._task.hierarchy):
            mask = 0
            for predicate in query:
                mask |= self._bits[predicate.name, tuple(mapping[ph][0] for ph in predicate.parameters)]
            yield mask, mapping

    def _facts(self, predicate: str, types: tuple[str, ...], anchor: tuple[int, Typed] | None) -> Sequence[Arguments]:
        if predicate not in self._tabled:
            self._tabled.add(predicate)
            for arguments, bit in self._possible(predicate).items():
                self._table.add(predicate, tuple((argument, self._task.types[argument]) for argument in arguments))
                self._bits[predicate, arguments] = bit
        return self._table.facts(predicate, types, anchor)

    def _possible(self, predicate: str) -> dict[tuple[str, ...], int]:
        """The possible facts of a predicate, each with its bit (0: it always holds)."""
        task, memory = self._task, self._memory
        if predicate.startswith("not_"):
            return {task.facts[v][1:]: memory.denied[v] for v in self._variables[predicate[4:]] if v in memory.denied}
        possible = {fact[1:]: 0 for fact in task.given if fact[0] == predicate}
        possible.update({task.facts[v][1:]: memory.holds[v] for v in self._variables[predicate]})
        return possible
