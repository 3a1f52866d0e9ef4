"""The rooms of generated games: receptacles, the locations to use them from, and fixed objects.

Receptacles with a position come from the ``alfworld`` wheel, which lists the usable ones of the 3D simulator.  For the
others it lists only the type (stove burners, towel holders, most garbage cans); this module places them, and windows,
taps and chairs, by a rule that depends on the scene number alone.  So a scene is the same room in every game, as in the
release, but not the release's room.

All lengths are integers: centimetres for positions, quarter metres for floor points.  No float decides anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import attrs

from handoff.envs.alfworld.generator import wheel
from handoff.envs.dice import Dice
from handoff.errors import DataError

#: The release's held-out scenes: the four of its ``valid_unseen`` (10, 219, 308, 424) and the eight of its hidden test
#: split, three per room type.  Its training games and its *seen* games are in the others.
UNSEEN_SCENES = (9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425)
ROOMS = ("Kitchen", "LivingRoom", "Bedroom", "Bathroom")
SCENES = tuple(first + k for first in (1, 201, 301, 401) for k in range(30))
SEEN_SCENES = tuple(scene for scene in SCENES if scene not in UNSEEN_SCENES)

_CAMERA = 165  # height of the camera over the floor, cm: agent height + 75
_ID = re.compile(r"([A-Za-z]+)\|([+-]?\d\d\.\d\d)\|([+-]?\d\d\.\d\d)\|([+-]?\d\d\.\d\d)(?:\|([A-Za-z]+))?")

FloorPoint = tuple[int, int]  # x, z in quarter metres
Position = tuple[int, int, int]  # x, y (up), z in cm
Location = tuple[int, int, int, int]  # x, z in quarter metres, rotation in quarter turns, camera angle in degrees


@attrs.frozen
class Receptacle:
    """``id`` is written as in the simulator (``Drawer|-00.51|+00.72|-00.85``)."""

    id: str
    type: str
    position: Position
    location: Location
    openable: bool


@attrs.frozen
class Fixture:
    """An object that cannot be picked up.  ``within`` is the receptacle under it, if any."""

    id: str
    type: str
    location: Location
    within: str | None = None


@attrs.frozen
class Scene:
    """One room.  ``types`` are all types of its objects and receptacles; ``receptacles`` are sorted by id."""

    number: int
    room: str
    types: tuple[str, ...]
    receptacles: tuple[Receptacle, ...]
    fixtures: tuple[Fixture, ...]
    points: tuple[FloorPoint, ...]

    def location(self, position: Position, kind: str) -> Location:
        """The location to see an object at ``position`` from."""
        return stand(position, kind, self.points, None, self.number)


def room_of(scene: int) -> str:
    return ROOMS[(0, 0, 1, 2, 3)[scene // 100]]


def object_id(kind: str, position: Position) -> str:
    """The simulator's id of an object: type and position in metres, zero without a sign."""
    numbers = (f"{'+' if c > 0 else '-' if c < 0 else ''}{abs(c) // 100:02d}.{abs(c) % 100:02d}" for c in position)
    name, *rest = (kind.removesuffix("Basin"), kind) if kind in ("SinkBasin", "BathtubBasin") else (kind,)
    return "|".join([name, *numbers, *rest])


def parse_id(identity: str) -> tuple[str, Position]:
    """Type and position of an id.  Raises :class:`~handoff.errors.DataError` for any other text."""
    match = _ID.fullmatch(identity)
    if match is None:
        raise DataError(f"{identity!r:.80} is not the id of an object in a scene")
    kind, x, y, z, part = match.groups()
    x_cm, y_cm, z_cm = (int(number.replace(".", "")) for number in (x, y, z))
    return part or kind, (x_cm, y_cm, z_cm)


def stand(
    position: Position, kind: str, points: Sequence[FloorPoint], known: FloorPoint | None, scene: int
) -> Location:
    """The agent's location at an object, as in the release's generator (``get_obj_coords`` of
    ``gen/game_states/task_game_state_full_knowledge.py``).

    It is the nearest floor point by L1 distance, or the ``known`` good one; turned to the object along the longer axis;
    one step back if nearer than half a metre; with the camera angle rounded to 15 degrees.
    """
    x, y, z = position
    best = known if known is not None else min(points, key=lambda p: abs(x - 25 * p[0]) + abs(z - 25 * p[1]))
    dx, dz = x - 25 * best[0], z - 25 * best[1]
    if abs(dx) > abs(dz):
        rotation = 1 if dx > 0 else 3
    else:
        rotation = 0 if dz > 0 else 2
    if dx * dx + dz * dz + (_CAMERA - y) ** 2 < 50 * 50:
        step = ((0, -1), (-1, 0), (0, 1), (1, 0))[rotation]
        back = (best[0] + step[0], best[1] + step[1])
        if back in points:
            best = back
            dx, dz = x - 25 * best[0], z - 25 * best[1]
    angle = round(math.degrees(math.atan2(_CAMERA - y, max(abs(dx), abs(dz)))) / 15) * 15
    forced = wheel.constants()["FORCED_HORIZON_OBJS"]
    angle = forced.get((kind, scene), forced.get((kind, None), max(-30, min(60, angle))))
    return (*best, rotation, angle)


def receptacle_types() -> frozenset[str]:
    """Types of receptacles that cannot be moved."""
    names = wheel.constants()
    return frozenset(names["RECEPTACLES"]) - frozenset(names["MOVABLE_RECEPTACLES_SET"])


#: The number of receptacles of a type where the wheel lists none, (least, most); one if not named.
_COUNT = {"StoveBurner": (4, 4), "HandTowelHolder": (1, 2), "TowelHolder": (1, 2), "Cabinet": (2, 4), "Drawer": (2, 4)}
#: Chance in per cent that a listed receptacle has a neighbour that the simulator could not use.
_NEIGHBOUR = {"Cabinet": 26, "Drawer": 22, "Shelf": 12}
#: Height in cm of the receptacles that this module places; 0 if not named.
_HEIGHT = {
    "Cabinet": 45, "CoffeeMachine": 90, "CounterTop": 95, "Drawer": 60, "HandTowelHolder": 150, "Microwave": 95,
    "Shelf": 120, "SinkBasin": 78, "StoveBurner": 92, "Toaster": 90, "ToiletPaperHanger": 90, "TowelHolder": 130,
}  # fmt: skip
#: Weights of 1, 2 and 3 fixed objects of a type; one object if not named.
_FIXTURES = {
    "Blinds": (65, 30, 5), "Chair": (58, 36, 6), "Faucet": (72, 18, 10), "Lamp": (60, 40, 0), "Painting": (55, 30, 15),
    "Window": (52, 40, 8),
}  # fmt: skip
#: The receptacles under fixed objects, by weight.
_STANDS_ON = {
    "DeskLamp": {"Desk": 7, "SideTable": 6, "Dresser": 4, "Shelf": 3, "CoffeeTable": 1, "DiningTable": 1},
    "HousePlant": {
        "CounterTop": 20, "SideTable": 4, "DiningTable": 4, "Shelf": 2, "Desk": 2, "CoffeeTable": 2, "Dresser": 1,
    },
    "Television": {"TVStand": 10, "Dresser": 8, "CoffeeTable": 1, "SideTable": 1},
}  # fmt: skip


@lru_cache(maxsize=256)
def scene(number: int) -> Scene:
    """The room of a scene number.  Raises :class:`~handoff.errors.DataError` for any other number."""
    if number not in SCENES:
        raise DataError(f"there is no scene {number!r} (scenes: 1-30, 201-230, 301-330, 401-430)")
    return _SceneBuilder(number).build()


class _SceneBuilder:
    def __init__(self, number: int) -> None:
        self.number = number
        self.dice = Dice("alfworld scene", number)
        self.points: list[FloorPoint] = wheel.layout(number, "points")
        self.types: list[str] = sorted(wheel.layout(number, "objects"))
        self.ids: set[str] = set()

    def build(self) -> Scene:
        receptacles = sorted(self._receptacles(), key=lambda r: r.id)
        fixtures = sorted(self._fixtures(receptacles), key=lambda f: f.id)
        return Scene(
            self.number, room_of(self.number), tuple(self.types), tuple(receptacles), tuple(fixtures),
            tuple(self.points),
        )  # fmt: skip

    def _receptacles(self) -> Iterator[Receptacle]:
        openable_types = wheel.constants()["OPENABLE_CLASS_SET"]
        listed_positions: dict[str, list[Position]] = {}
        for identity, (x, z, *_) in sorted(wheel.layout(self.number, "openable").items()):
            kind, position = parse_id(identity)
            listed_positions.setdefault(kind, []).append(position)
            self.ids.add(identity)
            known = (round(x * 4), round(z * 4))
            location = stand(position, kind, self.points, known, self.number)
            yield Receptacle(identity, kind, position, location, kind in openable_types)
        for kind in sorted(receptacle_types().intersection(self.types)):
            if kind in listed_positions:
                positions = [
                    self._beside(p, kind) for p in listed_positions[kind] if self.dice.chance(_NEIGHBOUR.get(kind, 0))
                ]
            elif kind == "StoveBurner":
                x, y, z = self._anchor(kind, listed_positions)
                positions = [(x + dx, y, z + dz) for dx in (0, 22) for dz in (0, 26)]
            else:
                positions = [
                    self._anchor(kind, listed_positions) for _ in range(self.dice.between(*_COUNT.get(kind, (1, 1))))
                ]
            for position in positions:
                identity, position = self._free(kind, position)
                # A fridge or a microwave can always be opened; a drawer only from a known good point.
                openable = kind in openable_types and kind in ("Fridge", "Microwave", "Safe")
                location = stand(position, kind, self.points, None, self.number)
                yield Receptacle(identity, kind, position, location, openable)

    def _fixtures(self, receptacles: Sequence[Receptacle]) -> Iterator[Fixture]:
        for receptacle in receptacles:  # a basin is part of a sink, which is an object
            if receptacle.type in ("SinkBasin", "BathtubBasin"):
                kind = receptacle.type.removesuffix("Basin")
                yield Fixture(object_id(kind, receptacle.position), kind, receptacle.location)
        skip = receptacle_types() | pickupable_types() | {"Sink", "Bathtub"}
        for kind in self.types:
            if kind in skip:
                continue
            weights = _FIXTURES.get(kind)
            for _ in range(4 if kind == "StoveKnob" else self.dice.weighted((1, 2, 3), weights) if weights else 1):
                preferred = _STANDS_ON.get(kind, {})
                hosts = [r for r in receptacles if r.type in preferred]
                if hosts:
                    host = self.dice.weighted(hosts, [preferred[r.type] for r in hosts])
                    identity, _position = self._free(kind, on(host, self.dice))
                    yield Fixture(identity, kind, host.location, host.id)
                else:
                    identity, position = self._free(kind, self._wall(self.dice.between(30, 220)))
                    location = stand(position, kind, self.points, None, self.number)
                    yield Fixture(identity, kind, location)

    def _wall(self, height: int) -> Position:
        """A position behind the last floor point of a random row or column."""
        row = self.dice.pick(self.points)
        away = self.dice.between(45, 85)
        side = self.dice.below(4)
        if side < 2:
            line = [x for x, z in self.points if z == row[1]]
            x = 25 * max(line) + away if side == 0 else 25 * min(line) - away
            return (x, height, 25 * row[1] + self.dice.between(-10, 10))
        line = [z for x, z in self.points if x == row[0]]
        z = 25 * max(line) + away if side == 2 else 25 * min(line) - away
        return (25 * row[0] + self.dice.between(-10, 10), height, z)

    def _anchor(self, kind: str, listed_positions: dict[str, list[Position]]) -> Position:
        height = _HEIGHT.get(kind, 0)
        counters = listed_positions.get("CounterTop")
        if counters and kind in ("CoffeeMachine", "Microwave", "StoveBurner", "Toaster"):
            x, _, z = self.dice.pick(counters)
            return (x + self.dice.between(-60, 60), height, z + self.dice.between(-60, 60))
        return self._wall(height)

    def _beside(self, position: Position, kind: str) -> Position:
        x, y, z = position
        if kind == "Cabinet":
            shift = self.dice.pick((-45, 45))
            return (x + shift, y, z) if self.dice.chance(50) else (x, y, z + shift)
        return (x, max(10, y + self.dice.pick((-24, 24, 48))), z)

    def _free(self, kind: str, position: Position) -> tuple[str, Position]:
        x, y, z = position
        while (identity := object_id(kind, (x, y, z))) in self.ids:
            x += 1
        self.ids.add(identity)
        return identity, (x, y, z)


#: Height in cm of the surface of receptacles whose position is that of their foot.
_SURFACE = {
    "ArmChair": 45, "Bed": 55, "Cart": 60, "CoffeeTable": 45, "Desk": 75, "DiningTable": 75, "Dresser": 85,
    "Fridge": 70, "Ottoman": 40, "SideTable": 60, "Sofa": 45, "TVStand": 60, "Toilet": 100,
}  # fmt: skip
#: The greatest distance of objects from the middle of a receptacle, cm; 12 if not named.
_REACH = {"Bed": 60, "CounterTop": 60, "CoffeeTable": 35, "Desk": 45, "DiningTable": 60, "Dresser": 45, "Sofa": 50}


def on(receptacle: Receptacle, dice: Dice) -> Position:
    """A position on or in a receptacle."""
    x, y, z = receptacle.position
    reach = _REACH.get(receptacle.type, 12)
    return (
        x + dice.between(-reach, reach),
        max(y, _SURFACE.get(receptacle.type, 0)) + dice.between(1, 8),
        z + dice.between(-reach, reach),
    )


#: Types that can be picked up although the wheel lists no receptacle for them.
_HELD_BY_NONE = ("Boots", "Footstool", "PaperTowelRoll", "ScrubBrush", "TeddyBear")


@lru_cache(maxsize=1)
def pickupable_types() -> frozenset[str]:
    """Types of objects that can be picked up, without slices, which exist only in the simulator."""
    holds = wheel.constants()["VAL_RECEPTACLE_OBJECTS"]
    names = {name for held in holds.values() for name in held if not name.endswith("Sliced")}
    return frozenset(names.union(_HELD_BY_NONE))
