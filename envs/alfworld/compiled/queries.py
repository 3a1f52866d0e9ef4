"""Conjunctive queries over facts, with textworld's order of answers.

The order decides the text, so it is exactly textworld's: predicates from left to right; for each, the type
signatures that fit, breadth first through the type hierarchy; within a signature, facts in sort order.  Two
placeholders never name the same entity, those bound beforehand included.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from handoff.envs.alfworld.compiled.grammar import Predicate
from handoff.errors import DataError

#: A placeholder or an entity: its name and its type.
Typed = tuple[str, str]
Arguments = tuple[Typed, ...]
#: All facts of one signature (predicate, types of the arguments): argument tuples in sort order.  Given a position and
#: an entity, it may leave out facts with another entity at that position.
FactLookup = Callable[[str, tuple[str, ...], "tuple[int, Typed] | None"], Sequence[Arguments]]


class FactTable:
    """Facts by predicate and signature, and by any argument."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...]], list[Arguments]] = defaultdict(list)
        self._sorted: dict[tuple[str, tuple[str, ...]], list[Arguments]] = {}
        self._by_argument: dict[tuple[str, tuple[str, ...], int], dict[Typed, list[Arguments]]] = {}

    def add(self, predicate: str, row: Arguments) -> None:
        """Add a fact.  No look-up of its signature may precede."""
        self._rows[predicate, tuple(kind for _, kind in row)].append(row)

    def facts(self, predicate: str, types: tuple[str, ...], anchor: tuple[int, Typed] | None) -> Sequence[Arguments]:
        """As :data:`FactLookup`."""
        signature = (predicate, types)
        if signature not in self._sorted:
            self._sorted[signature] = sorted(set(self._rows.get(signature, ())))
        rows = self._sorted[signature]
        if anchor is None or not rows:
            return rows
        position, entity = anchor
        index = self._by_argument.get((predicate, types, position))
        if index is None:
            index = self._by_argument[predicate, types, position] = defaultdict(list)
            for row in rows:
                index[row[position]].append(row)
        return index.get(entity, ())


class Hierarchy:
    """The types that a placeholder of some type also accepts."""

    def __init__(self, types: Sequence[tuple[str, Sequence[str]]]) -> None:
        self.declared = tuple(types)
        self._children: dict[str, list[str]] = defaultdict(list)
        self._known: set[str] = set()
        for name, supertypes in types:
            if name in self._known:  # textworld keeps the first declaration of a name
                continue
            self._known.add(name)
            for parent in supertypes:
                self._children[parent].append(name)
        for children in self._children.values():
            children.sort()
        self._memo: dict[tuple[str, ...], list[tuple[str, ...]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def signatures(self, types: tuple[str, ...]) -> list[tuple[str, ...]]:
        """``types`` and all subtypes of them, in textworld's order."""
        if types not in self._memo:
            seen: set[tuple[str, ...]] = set()
            queue = deque(self._expand(types))
            signatures = [types]
            while queue:
                item = queue.popleft()
                signatures.append(item)
                for expansion in self._expand(item):
                    if expansion not in seen:
                        seen.add(expansion)
                        queue.append(expansion)
            self._memo[types] = signatures
        return self._memo[types]

    def _expand(self, types: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for i in range(len(types)):
            for child in self._children.get(types[i], ()):
                yield (*types[:i], child, *types[i + 1 :])


def matches(
    query: Sequence[Predicate], bound: Mapping[Typed, Typed], facts: FactLookup, hierarchy: Hierarchy
) -> Iterator[dict[Typed, Typed]]:
    """Every assignment of placeholders to entities that makes ``query`` true, ``bound`` included, in order.

    Raises :class:`~handoff.errors.DataError` for a placeholder of an unknown type.
    """
    for predicate in query:
        for _, kind in predicate.parameters:
            if kind not in hierarchy:
                raise DataError(f"the game's grammar names an unknown type {kind!r}")
    mapping = dict(bound)
    used = set(mapping.values())
    seen = set(mapping)
    fresh: list[list[Typed]] = []  # per predicate, the placeholders that it mentions first
    for predicate in query:
        fresh.append([placeholder for placeholder in dict.fromkeys(predicate.parameters) if placeholder not in seen])
        seen.update(predicate.parameters)

    def walk(depth: int) -> Iterator[dict[Typed, Typed]]:
        if depth == len(query):
            yield dict(mapping)
            return
        predicate = query[depth]
        anchor = next(((i, mapping[ph]) for i, ph in enumerate(predicate.parameters) if ph in mapping), None)
        for types in hierarchy.signatures(tuple(kind for _, kind in predicate.parameters)):
            for arguments in facts(predicate.name, types, anchor):
                for placeholder, entity in zip(predicate.parameters, arguments, strict=True):
                    existing = mapping.get(placeholder)
                    if existing is None:
                        if entity in used:
                            break
                        mapping[placeholder] = entity
                        used.add(entity)
                    elif existing != entity:
                        break
                else:
                    yield from walk(depth + 1)
                for placeholder in fresh[depth]:
                    removed = mapping.pop(placeholder, None)
                    if removed is not None:
                        used.discard(removed)

    return walk(0)
