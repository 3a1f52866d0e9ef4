"""Observations of a compiled game: the grammar worked out for one game, one action at a time.

What a text depends on is a query over facts.  Most facts never change, so a query over a given action comes down to a
list of cases, each a mask of bits that must be set, in the order in which textworld would find its matches; a case's
text is a string or, where it depends on more, parts again.  An action is worked out when it is first taken.

textworld's facts are not the planner's.  It keeps ``not_p(..)`` only once some effect has made ``p(..)`` false, and it
takes every effect of an action as having happened, conditional or not, in the planner's order.  ``Memory`` gives such
facts bits of their own above those of the dynamics; with them, a state is still one integer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from handoff.envs.alfworld.compiled.bit_task import BitTask, Op
from handoff.envs.alfworld.compiled.builder import value
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

#: What a symbol came to: literal text, or a choice that depends on the state.
Part = "str | Branch | Items"

_DEEPEST = 40
#: The rules that textworld joins enumerations with: for none, between two, before the last.
JOINTS = ("list_empty", "list_separator", "list_last_separator")


class Branch:
    """The first alternative one of whose masks is set in the state; each is worked out when first chosen."""

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: Sequence[Alternative]) -> None:
        self.alternatives = tuple(alternatives)


class Alternative:
    """``masks``: the cases in which it applies (a zero mask: always)."""

    __slots__ = ("body", "masks", "work")

    def __init__(self, masks: Sequence[int], work: Callable[[], list[str | Branch | Items]]) -> None:
        self.masks = tuple(masks)
        self.work = work
        self.body: list[str | Branch | Items] | None = None


class Items:
    """The cases whose mask is set in the state, one after the other; joined as an enumeration if ``joints`` are
    given: what stands for none, between two, and before the last."""

    __slots__ = ("cases", "joints")

    def __init__(
        self,
        cases: Sequence[tuple[int, list[str | Branch | Items]]],
        joints: tuple[list[str | Branch | Items], ...] | None,
    ) -> None:
        self.cases = tuple((mask, body[0] if len(body) == 1 else body) for mask, body in cases)
        self.joints = joints


def render(parts: Sequence[str | Branch | Items], state: int) -> str:
    """The text in a state."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    out: list[str] = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, Branch):
            out.append(_chosen(part, state))
        else:
            out.append(_items(part, state))
    return "".join(out)


def _chosen(choice: Branch, state: int) -> str:
    for alternative in choice.alternatives:
        for mask in alternative.masks:
            if state & mask == mask:
                if alternative.body is None:
                    alternative.body = alternative.work()
                return render(alternative.body, state)
    raise EnvironmentFault("no rule of the game's grammar applies (textworld would stop here too)")


def _items(items: Items, state: int) -> str:
    found = [
        body if isinstance(body, str) else render(body if isinstance(body, list) else [body], state)
        for mask, body in items.cases
        if state & mask == mask
    ]
    if items.joints is None:
        return "".join(found)
    empty, between, last = items.joints
    if not found:
        return render(empty, state)
    if len(found) == 1:
        return found[0]
    return render(between, state).join(found[:-1]) + render(last, state) + found[-1]


class Memory:
    """Bits for the facts that textworld has beside the planner's, and what every operator does to them."""

    def __init__(self, task: BitTask, grammar: Grammar) -> None:
        self._task = task
        asked = set(_asked(grammar))
        effects = task.effects
        doubtful = {v for listed in effects.values() for v, _, sure in listed if not sure}
        falsified = {v for listed in effects.values() for v, value, _ in listed if not value}
        position = len(task.facts)
        self.holds: dict[int, int] = {}  # variable -> bit of its fact, as textworld has it
        self.denied: dict[int, int] = {}  # variable -> bit of its not_ fact
        for v, (predicate, *_) in enumerate(task.facts):
            self.holds[v] = 1 << v
            if predicate in asked and v in doubtful:
                self.holds[v] = 1 << position
                position += 1
            if f"not_{predicate}" in asked and v in falsified:
                self.denied[v] = 1 << position
                position += 1
        self.initial = task.initial
        for v, bit in self.holds.items():
            if task.initial >> v & 1:
                self.initial |= bit

    def changes(self, op: Op) -> tuple[int, int]:
        """(bits set, bits cleared) by an operator beyond the dynamics."""
        add = dele = 0
        for v, holds, _ in self._task.effects[op.index]:
            for bit, wanted in ((self.holds[v], holds), (self.denied.get(v, 0), not holds)):
                if bit != 1 << v:
                    add, dele = (add | bit, dele & ~bit) if wanted else (add & ~bit, dele | bit)
        return add, dele


def _asked(grammar: Grammar) -> Iterator[str]:
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
    """What a rule and the rules under it speak of."""

    def __init__(self) -> None:
        self.placeholders: set[Typed] = set()
        self.variables: set[str] = set()
        self.predicates: set[str] = set()

    def read(self, production: Production) -> Iterator[str]:
        """Take in one production; yields the rules that it uses."""
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
    """Observations of one game: :meth:`intro` and :meth:`feedback`, as parts for :func:`render`."""

    def __init__(self, task: BitTask, grammar: Grammar, memory: Memory) -> None:
        self._task, self._grammar, self._memory = task, grammar, memory
        self._table, self._tabled = FactTable(), set[str]()
        self._bits: dict[tuple[str, tuple[str, ...]], int] = {}
        self._feedback: dict[str, list[str | Branch | Items]] = {}
        self._mentions: dict[str, _Mentions] = {}
        self._arguments: dict[str, frozenset[str]] = {}
        self._shared: dict[object, list[str | Branch | Items]] = {}
        self._variables: dict[str, list[int]] = defaultdict(list)
        for v, (predicate, *_) in enumerate(task.facts):
            self._variables[predicate].append(v)
        self._check()

    def intro(self) -> list[str | Branch | Items]:
        """The text of a reset."""
        return self._parts((Nonterminal("intro"),), {}, {}, 0)

    def feedback(self, op: Op) -> list[str | Branch | Items]:
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
        """Refuse what would fail in the middle of a game."""

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
        waiting = ["intro", *(n for a in used for n in rules(self._grammar.actions[a].feedback))]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if not self._grammar.rules.get(name):
                raise DataError(f"the game's grammar has no rule {name!r}, which its texts use")
            for production in self._grammar.rules[name]:
                waiting += rules(production.body)

    def _parts(
        self,
        symbols: Sequence[Symbol],
        bound: Mapping[Typed, Typed],
        entities: Mapping[str, Typed],
        depth: int,
    ) -> list[str | Branch | Items]:
        if depth > _DEEPEST:
            raise DataError("the game's grammar has rules that expand without end")
        parts: list[str | Branch | Items] = []
        for symbol in symbols:
            if isinstance(symbol, Text):
                parts.append(symbol.text)
            elif isinstance(symbol, Value):
                parts.append(value(symbol, entities, self._task.names))
            elif isinstance(symbol, Nonterminal):
                parts += self._rule(symbol.name, bound, entities, depth)
            else:
                parts.append(self._each(symbol, bound, entities, depth))
        merged: list[str | Branch | Items] = []
        for part in parts:
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            else:
                merged.append(part)
        return merged or [""]

    def _rule(
        self, name: str, bound: Mapping[Typed, Typed], entities: Mapping[str, Typed], depth: int
    ) -> list[str | Branch | Items]:
        """A rule's text, shared by all contexts that it cannot tell apart: those that agree on the placeholders and
        variables that it (or a rule under it) mentions.  An entity bound to anything else matters only where it could
        turn up in an answer, since no two placeholders stand for one entity."""
        mentions = self._mentioned(name)
        seen = {ph: entity for ph, entity in bound.items() if ph in mentions.placeholders}
        others = {
            ph: entity
            for ph, entity in bound.items()
            if ph not in seen and any(entity[0] in self._occurring(p) for p in mentions.predicates)
        }
        spoken = {variable: entity for variable, entity in entities.items() if variable in mentions.variables}
        key = (name, frozenset(seen.items()), frozenset(others.items()), frozenset(spoken.items()))
        parts = self._shared.get(key)
        if parts is None:
            parts = self._shared[key] = self._expand(name, {**seen, **others}, spoken, depth)
        return parts

    def _mentioned(self, name: str) -> _Mentions:
        if name not in self._mentions:
            found = self._mentions[name] = _Mentions()
            waiting, seen = [name], {name}
            while waiting:
                for production in self._grammar.rules[waiting.pop()]:
                    for below in found.read(production):
                        if below not in seen:
                            seen.add(below)
                            waiting.append(below)
        return self._mentions[name]

    def _occurring(self, predicate: str) -> frozenset[str]:
        """Entities in facts of a predicate that can hold."""
        if predicate not in self._arguments:
            self._arguments[predicate] = frozenset(a for arguments in self._possible(predicate) for a in arguments)
        return self._arguments[predicate]

    def _expand(
        self, name: str, bound: Mapping[Typed, Typed], entities: Mapping[str, Typed], depth: int
    ) -> list[str | Branch | Items]:
        alternatives: list[Alternative] = []
        for production in self._grammar.rules[name]:
            masks = [0]
            if production.condition:
                masks = list(dict.fromkeys(mask for mask, _ in self._cases(production.condition, bound)))
                if not masks:
                    continue
            if 0 in masks:
                masks = [0]

            def work(body: tuple[Symbol, ...] = production.body) -> list[str | Branch | Items]:
                return self._parts(body, bound, entities, depth + 1)

            if masks == [0] and not alternatives:
                return work()
            alternatives.append(Alternative(masks, work))
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
        for predicate in query:
            for _, kind in predicate.parameters:
                if kind not in self._task.hierarchy:
                    raise DataError(f"the game's grammar speaks of an unknown type {kind!r}")
        for mapping in matches(query, bound, self._facts, self._task.hierarchy):
            mask = 0
            for predicate in query:
                mask |= self._bits[predicate.name, tuple(mapping[ph][0] for ph in predicate.parameters)]
            yield mask, mapping

    def _facts(self, predicate: str, types: tuple[str, ...], known: tuple[int, Typed] | None) -> Sequence[Arguments]:
        if predicate not in self._tabled:
            self._tabled.add(predicate)
            for arguments, bit in self._possible(predicate).items():
                self._table.add(predicate, tuple((argument, self._task.types[argument]) for argument in arguments))
                self._bits[predicate, arguments] = bit
        return self._table.facts(predicate, types, known)

    def _possible(self, predicate: str) -> dict[tuple[str, ...], int]:
        """FactLookup of a predicate that can hold, each with its bit (0: it always holds)."""
        task, memory = self._task, self._memory
        if predicate.startswith("not_"):
            return {task.facts[v][1:]: memory.denied[v] for v in self._variables[predicate[4:]] if v in memory.denied}
        possible = {fact[1:]: 0 for fact in task.given if fact[0] == predicate}
        possible.update({task.facts[v][1:]: memory.holds[v] for v in self._variables[predicate]})
        return possible
