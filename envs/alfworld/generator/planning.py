"""Shortest plans for the six task types, by enumeration.

In a task the agent fetches one or two objects, perhaps treats them (cleans, heats, cools) and puts them down, or holds
one beside a lamp.  A plan follows from the choice of objects, receptacles and appliances.  The planner tries all
choices and keeps the shortest plan, the first one in the order of the ids.  It works on the facts of any game of the
release's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import attrs

from handoff.envs.alfworld.compiled.demangling import demangle
from handoff.errors import DataError

_FACT = re.compile(r"\(([A-Za-z]+) ([^()?]+)\)")
_ENTITY = re.compile(r"^\s*(\S+) - \w+\s*$", re.MULTILINE)
_APPLIANCE = {
    "pick_clean_then_place_in_recep": ("clean", "SinkBasinType", "cleanable", "isClean"),
    "pick_heat_then_place_in_recep": ("heat", "MicrowaveType", "heatable", "isHot"),
    "pick_cool_then_place_in_recep": ("cool", "FridgeType", "coolable", "isCool"),
}


@attrs.frozen
class Facts:
    """Initial facts of a problem, by predicate; ``names`` maps the ids to the names in the actions."""

    table: Mapping[str, Sequence[tuple[str, ...]]]
    names: Mapping[str, str]

    @classmethod
    def of(cls, problem: str) -> Facts:
        """Read the text of a PDDL problem.  Raises :class:`~handoff.errors.DataError` for another form."""
        objects, init_mark, rest = problem.partition("(:init")
        init, goal_mark, _ = rest.partition("(:goal")
        if not (init_mark and goal_mark):
            raise DataError("the PDDL problem has no (:init ...) followed by a (:goal ...)")
        table: dict[str, list[tuple[str, ...]]] = {}
        for predicate, arguments in _FACT.findall(init):
            table.setdefault(predicate, []).append(tuple(arguments.split()))
        entities = _ENTITY.findall(objects)
        names = demangle(entity.lower() for entity in entities)  # textworld writes all ids in lower case
        return cls(table, {entity: names[entity.lower()] for entity in entities})

    def of_one(self, predicate: str) -> frozenset[str]:
        return frozenset(arguments[0] for arguments in self.table.get(predicate, ()))

    def mapping(self, predicate: str) -> dict[str, str]:
        return {arguments[0]: arguments[1] for arguments in self.table.get(predicate, ())}


@attrs.define
class _Hand:
    """Writes a plan action by action; tracks the agent's location and the open receptacles."""

    facts: Facts
    at: str
    locations: Mapping[str, str]
    openable: frozenset[str]
    open: set[str] = attrs.field(factory=set)
    actions: list[str] = attrs.field(factory=list)

    def say(self, text: str, *identities: str) -> None:
        self.actions.append(text.format(*(self.facts.names[i] for i in identities)))

    def go(self, receptacle: str) -> None:
        if self.at != self.locations[receptacle]:
            self.at = self.locations[receptacle]
            self.say("go to {}", receptacle)

    def reach_into(self, receptacle: str) -> None:
        self.go(receptacle)
        if receptacle in self.openable and receptacle not in self.open:
            self.open.add(receptacle)
            self.say("open {}", receptacle)

    def take(self, thing: str, receptacle: str) -> None:
        self.reach_into(receptacle)
        self.say("take {} from {}", thing, receptacle)

    def put(self, thing: str, receptacle: str) -> None:
        self.reach_into(receptacle)
        self.say("move {} to {}", thing, receptacle)


def plan(problem: str, kind: str, thing: str, target: str) -> tuple[str, ...]:
    """A shortest sequence of actions that does the task, empty if there is none.

    ``kind`` is the task type; ``thing`` and ``target`` are types of object and receptacle (or of lamp), without the
    ending ``Type``.  It is the shortest among the plans that take each object once and repeat nothing already done;
    this module does not prove that no shorter plan exists.
    """
    return _Planner(Facts.of(problem), kind, thing + "Type", target + "Type").best()


class _Planner:
    def __init__(self, facts: Facts, kind: str, thing: str, target: str) -> None:
        self.facts = facts
        self.kind = kind
        self.locations = facts.mapping("receptacleAtLocation")
        self.receptacle_types = facts.mapping("receptacleType")
        object_types = facts.mapping("objectType")
        contents = sorted((o, r) for o, r in facts.table.get("inReceptacle", ()) if r in self.locations)
        pickupable = facts.of_one("pickupable")
        self.sources = [(o, r) for o, r in contents if object_types.get(o) == thing and o in pickupable]
        toggleable = facts.of_one("toggleable")
        self.lamps = [(o, r) for o, r in contents if object_types.get(o) == target and o in toggleable]
        may_hold = (target, thing) in {(r, o) for r, o in facts.table.get("canContain", ())}
        self.targets = self._receptacles(target) if may_hold else []

    def _receptacles(self, kind: str) -> list[str]:
        return sorted(r for r, its in self.receptacle_types.items() if its == kind and r in self.locations)

    def _hand(self) -> _Hand:
        start = self.facts.table["atLocation"][0][1]
        return _Hand(self.facts, start, self.locations, self.facts.of_one("openable"), set(self.facts.of_one("opened")))

    def best(self) -> tuple[str, ...]:
        ways = {
            "look_at_obj_in_light": self._look,
            "pick_and_place_simple": self._place,
            "pick_two_obj_and_place": self._place_two,
        }.get(self.kind, self._treat)
        return min(ways(), key=len, default=())

    def _place(self) -> Iterator[tuple[str, ...]]:
        for thing, source in self.sources:
            for target in self.targets:
                hand = self._hand()
                hand.take(thing, source)
                hand.put(thing, target)
                yield tuple(hand.actions)

    def _place_two(self) -> Iterator[tuple[str, ...]]:
        for target in self.targets:
            there = {thing for thing, source in self.sources if source == target}
            away = [(thing, source) for thing, source in self.sources if thing not in there]
            for pair in permutations(away, 2 - min(len(there), 1)):
                if len({thing for thing, _ in pair}) < len(pair):
                    continue
                hand = self._hand()
                for thing, source in pair:
                    hand.take(thing, source)
                    hand.put(thing, target)
                yield tuple(hand.actions)

    def _treat(self) -> Iterator[tuple[str, ...]]:
        verb, appliance_type, property_, done = _APPLIANCE[self.kind]
        treatable, treated = self.facts.of_one(property_), self.facts.of_one(done)
        elsewhere: dict[str, list[str]] = {}
        for thing, receptacle in self.sources:
            elsewhere.setdefault(thing, []).append(receptacle)
        for thing, source in self.sources:
            if thing not in treatable:
                continue
            # An object in two receptacles stays in the other one when it is taken, so there it need not be put.
            stays = any(r != source and r in self.targets for r in elsewhere[thing])
            for appliance in [""] if thing in treated else self._receptacles(appliance_type):
                for target in [""] if stays else self.targets:
                    hand = self._hand()
                    hand.take(thing, source)
                    if appliance:
                        hand.go(appliance)
                        hand.say(verb + " {} with {}", thing, appliance)
                    if target:
                        hand.put(thing, target)
                    yield tuple(hand.actions)

    def _look(self) -> Iterator[tuple[str, ...]]:
        for lamp, stand in self.lamps:
            for thing, source in self.sources:
                hand = self._hand()
                if self.locations[source] == self.locations[stand]:  # the last action takes the object
                    hand.go(stand)
                    hand.say("use {}", lamp)
                    hand.take(thing, source)
                else:
                    hand.take(thing, source)
                    hand.go(stand)
                    hand.say("use {}", lamp)
                yield tuple(hand.actions)
