"""Places the objects of a new game.

Every type of object that the wheel lists for the scene occurs one to three times, on receptacles that may hold it
(``VAL_RECEPTACLE_OBJECTS``), on large surfaces more often than in cabinets; a few lie on the floor, out of reach, as in
the release.  The weights give contents per receptacle type near those of the release's games
(``benchmarks/generated_games.py`` prints both).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from handoff.envs.alfworld.generator import wheel
from handoff.envs.alfworld.generator.scenes import Receptacle, Scene, object_id, on, pickupable_types
from handoff.envs.dice import Dice

#: Receptacle type -> (relative number of objects in it, most objects in it).
_SPACE = {
    "ArmChair": (28, 4), "BathtubBasin": (90, 4), "Bed": (180, 8), "Cabinet": (17, 4), "Cart": (60, 6),
    "CoffeeMachine": (300, 1), "CoffeeTable": (80, 12), "CounterTop": (100, 25), "Desk": (140, 15),
    "DiningTable": (180, 25), "Drawer": (22, 6), "Dresser": (140, 13), "Fridge": (130, 11), "GarbageCan": (35, 5),
    "HandTowelHolder": (900, 1), "LaundryHamper": (0, 0), "Microwave": (30, 4), "Ottoman": (20, 3), "Safe": (80, 4),
    "Shelf": (22, 8), "SideTable": (50, 9), "SinkBasin": (45, 8), "Sofa": (65, 6), "StoveBurner": (130, 1),
    "TVStand": (160, 8), "Toaster": (0, 0), "Toilet": (55, 6), "ToiletPaperHanger": (60, 1), "TowelHolder": (900, 1),
}  # fmt: skip
#: Chance in per cent that an object lies on the floor; 2 if not named.
_FLOOR = {
    "BaseballBat": 100, "BasketBall": 100, "Boots": 100, "Box": 43, "CD": 12, "Cloth": 16, "Footstool": 100,
    "KeyChain": 8, "Plunger": 100, "ScrubBrush": 100, "TeddyBear": 25, "TennisRacket": 100, "ToiletPaper": 14,
    "WateringCan": 75,
}  # fmt: skip
#: Types with one object per scene; towels: one per holder.
_SINGLE = frozenset({*(kind for kind, chance in _FLOOR.items() if chance == 100), "PaperTowelRoll", "TeddyBear"})
_HOLDER = {"Towel": "TowelHolder", "HandTowel": "HandTowelHolder"}
#: Receptacles of objects that the wheel lists for none; the agent can take them but not put them back.
_LIES = {
    "CreditCard": {"TVStand"},
    "KeyChain": {"TVStand"},
    "PaperTowelRoll": {"CounterTop", "DiningTable", "GarbageCan", "Shelf"},
    "RemoteControl": {"TVStand"},
    "Statue": {"TVStand"},
    "TeddyBear": {"Bed"},
    "Vase": {"TVStand"},
    "Watch": {"TVStand"},
}
#: Weights of 1, 2 and 3 objects of a type.
_REPEATS = {"Kitchen": (36, 35, 29), "LivingRoom": (34, 33, 33), "Bedroom": (40, 32, 28), "Bathroom": (32, 36, 32)}
_WANTED_REPEATS = (40, 28, 20, 12)  # of the task's object: 1 to 4
_TWO_REPEATS = (50, 35, 15)  # of an object of which two are wanted: 2 to 4


@attrs.frozen
class Wish:
    """A task's demands on the placement."""

    #: The type of the task's object.
    thing: str
    #: The least number of its objects within reach.
    least: int
    #: Receptacle types where none of them may lie at the start.
    avoid: frozenset[str]


@attrs.frozen
class Placement:
    """The places of a game's objects."""

    #: The objects in each receptacle, ids by id.
    held: Mapping[str, tuple[str, ...]]
    #: The objects out of reach.
    floor: tuple[str, ...]
    #: The objects in each movable receptacle (a pan, a cup); they are also in ``held``.
    inside: Mapping[str, tuple[str, ...]]


def may_hold(receptacle: str) -> frozenset[str]:
    """The types of objects that may lie in a type of receptacle."""
    return frozenset(wheel.constants()["VAL_RECEPTACLE_OBJECTS"].get(receptacle, ())) & pickupable_types()


def starts(thing: str, receptacle: str) -> bool:
    """Whether objects of a type may lie in a type of receptacle at the start of a game."""
    fits = thing in may_hold(receptacle) or receptacle in _LIES.get(thing, ())
    return fits and _SPACE.get(receptacle, (0, 0))[0] > 0


def out_of_reach(thing: str) -> bool:
    """Whether objects of a type always lie on the floor."""
    return _FLOOR.get(thing, 0) == 100


def single(thing: str) -> bool:
    """Whether a scene has at most one object of the type."""
    return thing in _SINGLE


def place(scene: Scene, wish: Wish, dice: Dice) -> Placement:
    """Distribute the scene's objects.  Raises ``ValueError`` if the wished ones do not fit."""
    return _Placer(scene, wish, dice).run()


class _Placer:
    def __init__(self, scene: Scene, wish: Wish, dice: Dice) -> None:
        self.scene, self.wish, self.dice = scene, wish, dice
        self.held: dict[str, list[str]] = {r.id: [] for r in scene.receptacles}
        self.load = dict.fromkeys(self.held, 0)
        self.floor: list[str] = []
        self.ids = {f.id for f in scene.fixtures}

    def run(self) -> Placement:
        kinds = [kind for kind in self.scene.types if kind in pickupable_types() and kind != self.wish.thing]
        for kind in [self.wish.thing, *self.dice.shuffled(kinds)]:  # the wished ones first: they must fit
            for _ in range(self._number(kind)):
                self._put(kind)
        held = {r: tuple(sorted(objects)) for r, objects in self.held.items() if objects}
        return Placement(held, tuple(sorted(self.floor)), self._inside(held))

    def _number(self, kind: str) -> int:
        if kind == self.wish.thing:
            if self.wish.least == 2:
                return self.dice.weighted((2, 3, 4), _TWO_REPEATS)
            return self.dice.weighted((1, 2, 3, 4), _WANTED_REPEATS)
        if kind in _HOLDER:
            return max(1, sum(r.type == _HOLDER[kind] and self.dice.chance(80) for r in self.scene.receptacles))
        return 1 if kind in _SINGLE else self.dice.weighted((1, 2, 3), _REPEATS[self.scene.room])

    def _put(self, kind: str) -> None:
        wished = kind == self.wish.thing
        receptacles = [
            r
            for r in self.scene.receptacles
            if starts(kind, r.type)
            and self.load[r.id] < _SPACE[r.type][1]
            and not (wished and r.type in self.wish.avoid)
        ]
        if not wished and (not receptacles or self.dice.chance(_FLOOR.get(kind, 2))):
            x, z = self.dice.pick(self.scene.points)
            position = (
                25 * x + self.dice.between(-30, 30),
                self.dice.between(1, 12),
                25 * z + self.dice.between(-30, 30),
            )
            self.floor.append(self._free(kind, position))
            return
        if not receptacles:
            raise ValueError(f"no room for {kind} in scene {self.scene.number}")
        receptacle = self.dice.weighted(receptacles, [_SPACE[r.type][0] for r in receptacles])
        identity = self._free(kind, on(receptacle, self.dice))
        self.held[receptacle.id].append(identity)
        self.load[receptacle.id] += 1
        second = None if wished else self._second(kind, receptacle)
        if second is not None:
            self.held[second.id].append(identity)
            self.load[second.id] += 1

    def _second(self, kind: str, first: Receptacle) -> Receptacle | None:
        """The second receptacle of an object.  In the simulator and in the release's games, a pan across two burners
        and a mug in the coffee machine on a counter are in both."""
        if first.type == "StoveBurner" and kind in ("Pan", "Pot") and self.dice.chance(90):
            others = [r for r in self.scene.receptacles if r.type == "StoveBurner" and self.load[r.id] == 0]
        elif first.type == "CoffeeMachine" and self.dice.chance(80):
            others = [r for r in self.scene.receptacles if r.type in ("CounterTop", "DiningTable")]
        else:
            return None
        x, _, z = first.position
        near = sorted(others, key=lambda r: (abs(r.position[0] - x) + abs(r.position[2] - z), r.id))
        return near[0] if near else None

    def _inside(self, held: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Rarely, an object lies in a bowl or a pan of the same receptacle."""
        movable = wheel.constants()["MOVABLE_RECEPTACLES_SET"]
        inside: dict[str, list[str]] = {}
        for objects in held.values():
            bowls = [o for o in objects if _kind(o) in movable and _kind(o) != self.wish.thing]
            for thing in objects:
                if _kind(thing) == self.wish.thing or _kind(thing) in movable:
                    continue
                outer = [b for b in bowls if _kind(thing) in may_hold(_kind(b)) and b not in inside]
                if outer and self.dice.chance(3):
                    inside[self.dice.pick(outer)] = [thing]
        return {outer: tuple(things) for outer, things in sorted(inside.items())}

    def _free(self, kind: str, position: tuple[int, int, int]) -> str:
        x, y, z = position
        while (identity := object_id(kind, (x, y, z))) in self.ids:
            x += 1
        self.ids.add(identity)
        return identity


def _kind(identity: str) -> str:
    return identity.partition("|")[0]
