"""A game as a machine over bits: plain data that can be written as JSON and read back.

Every fact that some operator can change is one bit of a Python integer.  The bits of the agent's location come first,
so operators can be looked up by location.  :mod:`~handoff.envs.alfworld.compiled.builder` builds the machine from a
game's texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any

import attrs

from handoff.envs.alfworld.compiled.queries import Hierarchy
from handoff.envs.alfworld.compiled.sas import Fact

#: A condition: the bits that must be set and those that must not be.
Condition = tuple[int, int]

_BITS = [int]
#: The shape of :meth:`BitTask.to_json` (:func:`~handoff.envs.alfworld.compiled.cache.has_shape`).
SHAPE = {
    "facts": [[int]],
    "places": int,
    "initial": _BITS,
    "goal": [(_BITS, _BITS)],
    "ops": [(int, int, [int], int, _BITS, _BITS, _BITS, _BITS, [(_BITS, _BITS, _BITS, _BITS)])],
    "texts": [int],
    "effects": [(int, [(int, int, int)])],
    "given": [[int]],
    "types": {str: str},
    "hierarchy": [(str, [str])],
    "names": {str: str},
    "parameters": {str: [(str, str)]},
    "words": [str],
}


class Op:
    """A ground action (or one case of it, where its condition is a disjunction).

    ``rank`` is its position in the native engine's order of applicable operators, ``index`` its position in the
    translation, ``text`` the action that the agent types.  It applies where all bits of ``pos`` and none of ``neg`` are
    set, and then sets ``add`` and clears ``dele``; ``steps`` replaces the latter two where effects are conditional.
    """

    __slots__ = ("add", "dele", "index", "name", "neg", "pos", "rank", "steps", "text")

    def __init__(self, rank: int, index: int, name: str, text: str, pos: int, neg: int) -> None:
        self.rank, self.index, self.name, self.text, self.pos, self.neg = rank, index, name, text, pos, neg
        self.add = self.dele = 0
        self.steps: tuple[tuple[int, int, int, int], ...] = ()

    def apply(self, state: int) -> int:
        """The state after the action, whose condition must hold."""
        if self.steps:
            after = state
            for pos, neg, add, dele in self.steps:
                if state & pos == pos and not state & neg:
                    after = after & ~dele | add
            return after
        return state & ~self.dele | self.add

    def under(self, pos: int, neg: int) -> Op:
        """The same action under another condition."""
        op = Op(self.rank, self.index, self.name, self.text, pos, neg)
        op.add, op.dele, op.steps = self.add, self.dele, self.steps
        return op

    def adds(self) -> int:
        """Bits that the action may set."""
        bits = self.add
        for _, _, add, _ in self.steps:
            bits |= add
        return bits

    def deletes(self) -> int:
        """Bits that the action may clear."""
        bits = self.dele
        for _, _, _, dele in self.steps:
            bits |= dele
        return bits

    def touches(self) -> int:
        """Bits that the action may change."""
        return self.adds() | self.deletes()

    def asks(self) -> int:
        """Bits in the conditions of its conditional effects."""
        bits = 0
        for pos, neg, _, _ in self.steps:
            bits |= pos | neg
        return bits


@attrs.frozen(eq=False)
class BitTask:
    """The machine.  Bit ``1 << i`` of a state says whether ``facts[i]`` holds."""

    facts: tuple[Fact, ...]
    #: The first ``places`` bits are the agent's location; exactly one of them is always set (0: no such group).
    places: int
    initial: int
    #: A disjunction of conditions.
    goal: tuple[Condition, ...]
    #: In the native engine's order; no two of one text apply together.
    ops: tuple[Op, ...]
    #: The action text of each operator, by its index in the translation.
    texts: tuple[str, ...]
    #: All effects of each operator, by its index, in the planner's order: (fact, whether it holds afterwards, whether
    #: the effect is unconditional).
    effects: Mapping[int, tuple[tuple[int, bool, bool], ...]]
    #: The facts of the problem file.
    given: tuple[Fact, ...]
    #: The type of each entity.
    types: Mapping[str, str]
    hierarchy: Hierarchy
    #: The name of each entity.
    names: Mapping[str, str]
    #: The parameters of each action: (name, type).
    parameters: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def place_mask(self) -> int:
        """The bits of the location."""
        return (1 << self.places) - 1

    def place_bits(self) -> tuple[int, ...]:
        """One mask per location; a single zero if there are none."""
        return tuple(1 << i for i in range(self.places)) or (0,)

    def to_json(self) -> dict[str, Any]:
        """JSON-safe form; masks are lists of bit positions, texts and names are numbered."""
        words = _Words()
        return {
            "facts": [[words.of(word) for word in fact] for fact in self.facts],
            "places": self.places,
            "initial": positions(self.initial),
            "goal": [[positions(pos), positions(neg)] for pos, neg in self.goal],
            "ops": [
                [
                    op.rank,
                    op.index,
                    [words.of(word) for word in op.name.split()],
                    words.of(op.text),
                    *(positions(mask) for mask in (op.pos, op.neg, op.add, op.dele)),
                    [[positions(mask) for mask in step] for step in op.steps],
                ]
                for op in self.ops
            ],
            "texts": [words.of(text) for text in self.texts],
            "effects": [
                [index, [[v, int(holds), int(sure)] for v, holds, sure in effects]]
                for index, effects in self.effects.items()
            ],
            "given": [[words.of(word) for word in fact] for fact in self.given],
            "types": dict(self.types),
            "hierarchy": [[name, list(supertypes)] for name, supertypes in self.hierarchy.declared],
            "names": dict(self.names),
            "parameters": {name: [list(pair) for pair in pairs] for name, pairs in self.parameters.items()},
            "words": words.all(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BitTask:
        """The machine that :meth:`to_json` wrote, from data of :data:`SHAPE`.

        Raises ``ValueError`` if the data name a fact, an operator or a word that is not there.
        """
        words = data["words"]
        _require_consistent(data)
        ops = []
        for rank, index, name, text, pos, neg, add, dele, steps in data["ops"]:
            op = Op(rank, index, " ".join([words[i] for i in name]), words[text], mask_of(pos), mask_of(neg))
            op.add, op.dele = mask_of(add), mask_of(dele)
            if steps:
                op.steps = tuple([(mask_of(p), mask_of(n), mask_of(a), mask_of(d)) for p, n, a, d in steps])
            ops.append(op)
        return cls(
            facts=tuple([tuple([words[i] for i in fact]) for fact in data["facts"]]),
            places=data["places"],
            initial=mask_of(data["initial"]),
            goal=tuple([(mask_of(pos), mask_of(neg)) for pos, neg in data["goal"]]),
            ops=tuple(ops),
            texts=tuple([words[i] for i in data["texts"]]),
            effects={
                index: tuple([(v, bool(holds), bool(sure)) for v, holds, sure in effects])
                for index, effects in data["effects"]
            },
            given=tuple([tuple([words[i] for i in fact]) for fact in data["given"]]),
            types=data["types"],
            hierarchy=Hierarchy([(name, tuple(supertypes)) for name, supertypes in data["hierarchy"]]),
            names=data["names"],
            parameters={
                name: tuple([(parameter, kind) for parameter, kind in pairs])
                for name, pairs in data["parameters"].items()
            },
        )


def _require_consistent(data: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` if data of :data:`SHAPE` name a fact, an operator or a word that is not there."""
    ops, effects = data["ops"], data["effects"]
    masks = [data["initial"], *(mask for condition in data["goal"] for mask in condition)]
    words = [data["texts"], *data["facts"], *data["given"]]
    for _, _, name, text, pos, neg, add, dele, steps in ops:
        words += [name, [text]]
        masks += [pos, neg, add, dele, *(mask for step in steps for mask in step)]
    masks += [[fact for fact, _, _ in one] for _, one in effects]
    indices = [[index for index, *_ in effects], [index for _, index, *_ in ops]]
    facts = len(data["facts"])
    for numbers, end in ((words, len(data["words"])), (masks, facts), (indices, len(data["texts"]))):
        if not all(0 <= number < end for some in numbers for number in some):
            raise ValueError("a number in it names nothing")
    if not 0 <= data["places"] <= facts:
        raise ValueError("it has more places than facts")


class _Words:
    """Strings by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def positions(mask: int) -> list[int]:
    """The positions of the set bits, ascending."""
    return [bit.bit_length() - 1 for bit in each(mask)]


def mask_of(bits: list[int]) -> int:
    """The mask with these positions set."""
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


def union(masks: Iterable[int]) -> int:
    """All bits of all masks."""
    return reduce(or_, masks, 0)


def each(bits: int) -> Iterator[int]:
    """The bits of a mask, lowest first."""
    while bits:
        bit = bits & -bits
        yield bit
        bits ^= bit
