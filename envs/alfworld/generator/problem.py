"""Writes a game's PDDL problem and grammar in the release's form, from a scene, a placement and a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.placement import Placement, may_hold
from handoff.envs.alfworld.generator.scenes import Location, Scene, parse_id, pickupable_types, receptacle_types

_INDENT = "        "
_MANGLE = str.maketrans({"-": "_minus_", "#": "-", "|": "_bar_", "+": "_plus_", ".": "_dot_", ",": "_comma_"})


@attrs.frozen
class Goal:
    """One task, by types."""

    #: The task type.
    type: str
    #: The type of the object.
    thing: str
    #: The type of the receptacle, or of the lamp.
    target: str

    def pddl(self) -> str:
        text: str = wheel.goals()[self.type]["pddl"]
        return text.format(obj=self.thing, recep=self.target, toggle=self.target).translate(_MANGLE)

    def sentences(self) -> tuple[str, ...]:
        """The release's two sentences for the task."""
        words = {"obj": self.thing.lower(), "recep": self.target.lower(), "toggle": self.target.lower()}
        return tuple(template.format(**words) for template in wheel.goals()[self.type]["templates"])


def grammar_for(sentence: str) -> str:
    """The wheel's grammar with the task sentence."""
    return wheel.grammar().replace("UNKNOWN GOAL", sentence)


def mangle(identity: str) -> str:
    """An id in PDDL: ``Apple|+00.12|...`` -> ``Apple_bar__plus_00_dot_12_bar_...``."""
    return identity.translate(_MANGLE)


def location_id(location: Location) -> str:
    return mangle("|".join(["loc", *map(str, location)]))


def write(name: str, scene: Scene, placement: Placement, goal: Goal, start: Location) -> str:
    """The PDDL problem ``plan_<name>``, all entries sorted."""
    return _Problem(scene, placement, goal, start).text(name)


class _Problem:
    def __init__(self, scene: Scene, placement: Placement, goal: Goal, start: Location) -> None:
        self.scene, self.placement, self.goal, self.start = scene, placement, goal, start
        self.within: dict[str, list[str]] = {}  # object -> receptacles that hold it
        for receptacle, things in placement.held.items():
            for thing in things:
                self.within.setdefault(thing, []).append(receptacle)
        for fixture in scene.fixtures:
            if fixture.within is not None:
                self.within.setdefault(fixture.id, []).append(fixture.within)
        at = {r.id: r.location for r in scene.receptacles}
        self.kinds = {thing: parse_id(thing)[0] for thing in (*self.within, *placement.floor)}
        self.kinds.update({fixture.id: fixture.type for fixture in scene.fixtures})
        self.at = {fixture.id: fixture.location for fixture in scene.fixtures}
        self.at.update({thing: at[holders[-1]] for thing, holders in self.within.items()})
        for thing in placement.floor:
            self.at[thing] = scene.location(parse_id(thing)[1], self.kinds[thing])
        #: The objects with a type in the domain, sorted; a few kinds of fixture have none.
        self.things = sorted(thing for thing, kind in self.kinds.items() if kind in wheel.constants()["OBJECTS_SET"])

    def text(self, name: str) -> str:
        return (
            f"\n(define (problem plan_{name})\n(:domain alfred)\n(:objects\nagent1 - agent\n"
            + _lines(self._entities(), first="")
            + f"\n{_INDENT})\n\n\n(:init\n\n\n"
            + _lines(self._facts())
            + f"\n{_INDENT})\n\n"
            + self.goal.pddl()
        )

    def _entities(self) -> Iterator[str]:
        """Every type is also an object of the same name, as in the release."""
        kinds = wheel.constants()["OBJECTS_SET"] - receptacle_types()
        yield from (f"{kind} - object" for kind in sorted(kinds))
        yield from (f"{kind}Type - otype" for kind in sorted(kinds))
        yield from (f"{kind}Type - rtype" for kind in sorted(receptacle_types()))
        yield from (f"{mangle(thing)} - object" for thing in sorted(self.kinds))
        yield from (f"{mangle(r.id)} - receptacle" for r in self.scene.receptacles)
        locations = {self.start, *self.at.values(), *(r.location for r in self.scene.receptacles)}
        yield from (f"{location_id(location)} - location" for location in sorted(locations))

    def _facts(self) -> Iterator[str]:
        receptacles, things = self.scene.receptacles, self.things
        yield from (f"(receptacleType {mangle(r.id)} {r.type}Type)" for r in receptacles)
        yield from (f"(objectType {mangle(thing)} {self.kinds[thing]}Type)" for thing in things)
        present = {self.kinds[thing] for thing in things}
        for kind in sorted({r.type for r in receptacles}):
            yield from (f"(canContain {kind}Type {thing}Type)" for thing in sorted(may_hold(kind) & present))
        yield from self._all("pickupable", pickupable_types())
        yield from self._all("isReceptacleObject", wheel.constants()["MOVABLE_RECEPTACLES_SET"])
        yield from (f"(openable {mangle(r.id)})" for r in receptacles if r.openable)
        yield f"(atLocation agent1 {location_id(self.start)})"
        for predicate in ("cleanable", "heatable", "coolable", "toggleable", "sliceable"):
            yield from self._all(predicate, wheel.constants()["VAL_ACTION_OBJECTS"][predicate.capitalize()])
        in_fridge = {t for r in receptacles if r.type == "Fridge" for t in self.placement.held.get(r.id, ())}
        yield from (f"(isCool {mangle(t)})" for t in things if t in in_fridge and self.kinds[t] == self.goal.thing)
        for thing in things:
            yield from (f"(inReceptacle {mangle(thing)} {mangle(r)})" for r in sorted(self.within.get(thing, ())))
        for outer, inner in sorted(self.placement.inside.items()):
            yield from (f"(inReceptacleObject {mangle(thing)} {mangle(outer)})" for thing in sorted(inner))
        yield from (f"(receptacleAtLocation {mangle(r.id)} {location_id(r.location)})" for r in receptacles)
        yield from (f"(objectAtLocation {mangle(thing)} {location_id(self.at[thing])})" for thing in things)

    def _all(self, predicate: str, kinds: Iterable[str]) -> Iterator[str]:
        kinds = frozenset(kinds)
        return (f"({predicate} {mangle(thing)})" for thing in self.things if self.kinds[thing] in kinds)


def _lines(items: Iterable[str], first: str = _INDENT) -> str:
    return first + f"\n{_INDENT}".join(items)
