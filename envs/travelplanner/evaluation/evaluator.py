"""One evaluator over one database: a plan in, the checks by name out.

A plan is a list of days.  It is untrusted JSON: a value of a wrong type is read as text, a day of a wrong type as an
empty one, and nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import attrs

from handoff.envs.travelplanner.database import Database, TravelPlace
from handoff.envs.travelplanner.evaluation.names import (
    LegType,
    Rules,
    attractions,
    field,
    flight_number,
    from_to,
    name_and_city,
)
from handoff.envs.travelplanner.queries import Query

Checks = Mapping[str, bool | None]

MEALS = ("breakfast", "lunch", "dinner")
#: Fields that each day has.
FIELDS = ("transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation")
#: The word of each room type that a query asks for.
ROOM_TYPES = {"entire room": "Entire home/apt", "private room": "Private room", "shared room": "Shared room"}
SHARED = "Shared room"


@attrs.frozen
class PlanVerdict:
    """What an evaluator says of one plan."""

    #: ``None``: there is no plan, and no check was run.
    commonsense: Checks | None
    #: ``None``: not run, since the plan is not complete or not in the sandbox.
    hard: Checks | None
    passed: bool

    def to_json(self) -> dict[str, Any]:
        commonsense = None if self.commonsense is None else dict(self.commonsense)
        return {
            "commonsense": commonsense, "hard": None if self.hard is None else dict(self.hard), "passed": self.passed,
        }  # fmt: skip


#: Names of the checks, in order.
COMMONSENSE = (
    "is_not_absent",
    "is_valid_information_in_sandbox",
    "is_valid_restaurants",
    "is_valid_attractions",
    "is_valid_accommodation",
    "is_reasonable_visiting_city",
    "is_valid_transportation",
    "is_valid_information_in_current_city",
)
HARD = ("valid_cost", "valid_room_rule", "valid_cuisine", "valid_room_type", "valid_transportation")


class Evaluator:
    """The rules of one evaluator over one database."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self.database, self.rules = database, rules
        self._places: dict[tuple[int, str], tuple[TravelPlace, ...]] = {}

    def evaluate(self, query: Query, plan: Any) -> PlanVerdict:
        """Check ``plan`` (untrusted JSON) for ``query``."""
        if not isinstance(plan, list) or not plan:
            return PlanVerdict(None, None, False)
        trip = Trip(self, query, [day if isinstance(day, dict) else {} for day in plan[: query.days]])
        checks = (
            trip.complete, trip.in_sandbox, trip.restaurants_once, trip.attractions_once, trip.minimum_nights,
            trip.route, trip.transport_agrees, trip.in_current_city,
        )  # fmt: skip
        commonsense = {name: check() for name, check in zip(COMMONSENSE, checks, strict=True)}
        hard: dict[str, bool | None] | None = None
        if commonsense["is_not_absent"] and commonsense["is_valid_information_in_sandbox"]:
            asked = (trip.within_budget, trip.house_rule, trip.cuisines, trip.room_type, trip.transport_asked)
            hard = {name: check() for name, check in zip(HARD, asked, strict=True)}
        passed = hard is not None and False not in (*commonsense.values(), *hard.values())
        return PlanVerdict(commonsense, hard, passed)

    def places(self, table: Mapping[str, Sequence[TravelPlace]], text: str) -> tuple[TravelPlace, ...]:
        """The rows of ``table`` that the text "NAME, City" means: their names contain NAME, their city is equal."""
        key = (id(table), text)
        known = self._places.get(key)
        if known is None:
            both = name_and_city(text, self.rules)
            rows = () if both is None else table.get(both[1], ())
            known = tuple(place for place in rows if both is not None and both[0] in place.name)
            if len(self._places) < 100_000:  # plans are untrusted: the memory is bounded
                self._places[key] = known
        return known

    def road(self, text: str, driving: bool) -> int | None:
        """The cost of the leg that ``text`` describes, in dollars per vehicle; ``None``: there is none."""
        ends = from_to(text)
        if ends is None:
            return None
        leg = self.database.distances.get((self.rules.city(ends[0]), self.rules.city(ends[1])))
        return None if leg is None else leg.cost(driving)


@attrs.frozen(slots=False)
class Trip:
    """The first days of a plan, as one evaluator reads them."""

    evaluator: Evaluator
    query: Query
    days: Sequence[Mapping[str, Any]]

    @property
    def rules(self) -> Rules:
        return self.evaluator.rules

    @property
    def database(self) -> Database:
        return self.evaluator.database

    @cached_property
    def ends(self) -> list[tuple[str, ...]]:
        """Per day: A and B of a move, else the city of a stay."""
        cities: list[tuple[str, ...]] = []
        for day in self.days:
            text = _words(day, "current_city")
            if "from " not in text:
                cities.append((self.rules.city(text),))
                continue
            both = from_to(text)
            cities.append(("", "") if both is None else (self.rules.city(both[0]), self.rules.city(both[1])))
        return cities

    def _texts(self, *names: str) -> list[str]:
        """The fields ``names`` of all days, without the empty ones."""
        return [text for day in self.days for name in names if (text := field(day, name))]

    def complete(self) -> bool:
        query = self.query
        if sum(bool(day) for day in self.days) != query.days:
            return False
        visited = {city for ends in self.ends for city in ends} - {query.org}
        if len(visited) != query.cities or not self._starts_at_origin():
            return False
        filled = 0
        for number, (day, ends) in enumerate(zip(self.days, self.ends, strict=True), start=1):
            moves = len(ends) == 2
            if any(name not in day for name in FIELDS):
                return False
            if moves and not field(day, "transportation"):
                return False
            if not moves and not all(field(day, name) for name in ("attraction", *MEALS)):
                return False
            if number < query.days and not field(day, "accommodation"):
                return False
            filled += sum(bool(value) and value != "-" for value in day.values())
        return filled >= 0.5 * len(FIELDS) * query.days

    def _starts_at_origin(self) -> bool:
        """Whether day 1, if it is a move, starts at the origin."""
        return not self.ends or len(self.ends[0]) == 1 or self.ends[0][0] == self.query.org

    def in_sandbox(self) -> bool:
        evaluator, database = self.evaluator, self.database
        return (
            all(self._leg_exists(text) for text in self._texts("transportation"))
            and all(evaluator.places(database.restaurants, text) for text in self._texts(*MEALS))
            and all(
                evaluator.places(database.attractions, one)
                for text in self._texts("attraction")
                for one in attractions(text)
            )
            and all(evaluator.places(database.accommodations, text) for text in self._texts("accommodation"))
        )

    def _leg_exists(self, text: str) -> bool:
        if LegType.FLIGHT in text.lower():
            ends = from_to(text)
            cities = None if ends is None else (self.rules.city(ends[0]), self.rules.city(ends[1]))
            return cities in self.database.pairs.get(flight_number(text), ())
        kind = self.rules.leg(text)
        if kind is LegType.TAXI:
            return self.evaluator.road(text, driving=False) is not None
        if kind is LegType.DRIVING and from_to(text) is not None:
            return self.evaluator.road(text, driving=True) is not None
        return True

    def restaurants_once(self) -> bool:
        return _once(self._texts(*MEALS))

    def attractions_once(self) -> bool:
        return _once([one for text in self._texts("attraction") for one in attractions(text)])

    def minimum_nights(self) -> bool:
        if any("accommodation" not in day for day in self.days):
            return False
        beds = [field(day, "accommodation") for day in self.days]
        for text, nights in groupby(beds):
            rows = self.evaluator.places(self.database.accommodations, text) if text else ()
            if len(rows) == 1 and len(list(nights)) < rows[0].minimum_nights:
                return False
        return True

    def route(self) -> bool:
        cities = [city for ends in self.ends for city in ends]
        if not self._starts_at_origin() or len(cities) < 3 or cities[0] != cities[-1]:
            return False
        place, visited = 0, set[str]()
        for city, run in groupby(cities):
            count, start = len(list(run)), place
            place += count
            if city in visited and start not in (0, len(cities) - 1):
                return False
            if count == 1 and 0 < start < len(cities) - 1:
                return False
            visited.add(city)
        if any(city not in self.database.states for city in cities):
            return False
        inner = cities[1:-1] if self.query.days > 3 else []
        return all(self.database.states[city] == self.query.dest for city in inner)

    def transport_agrees(self) -> bool:
        if not field(self.days[0], "transportation"):
            return False
        kinds = {self.rules.leg(text) for text in self._texts("transportation")}
        return LegType.DRIVING not in kinds or not kinds & {LegType.FLIGHT, LegType.TAXI}

    def in_current_city(self) -> bool:
        for day, ends in zip(self.days, self.ends, strict=True):
            # The official evaluator takes the letters of a stay's city for cities.
            cities: Sequence[str] = ends[0] if len(ends) == 1 and self.rules is Rules.OFFICIAL else ends
            transport, bed = field(day, "transportation"), field(day, "accommodation")
            if transport and not all(city in transport for city in cities):
                return False
            visits = [text for name in MEALS if (text := field(day, name))]
            visits += attractions(field(day, "attraction"))
            if any(not any(city in text for city in cities) for text in visits):
                return False
            if bed and (not cities or cities[-1] not in bed):
                return False
        return True

    def within_budget(self) -> bool:
        return self.cost() <= self.query.budget

    def cost(self) -> float:
        """Dollars for all people."""
        people, total = self.query.people, 0.0
        for text in self._texts("transportation"):
            kind = self.rules.leg(text)
            if kind is LegType.FLIGHT:
                total += self.database.prices.get(flight_number(text), 0.0) * people
            elif kind is not None:
                driving = kind is LegType.DRIVING
                total += (self.evaluator.road(text, driving) or 0) * math.ceil(people / (5 if driving else 4))
        for text in self._texts(*MEALS):
            total += sum(place.price * people for place in self.evaluator.places(self.database.restaurants, text)[:1])
        for bed in self._beds():
            total += bed.price * math.ceil(people / bed.occupancy)
        return total

    def _beds(self) -> list[TravelPlace]:
        """The first row of every night's bed."""
        texts = self._texts("accommodation")
        return [place for text in texts for place in self.evaluator.places(self.database.accommodations, text)[:1]]

    def house_rule(self) -> bool | None:
        if self.query.house_rule is None:
            return None
        return all(f"No {self.query.house_rule}" not in bed.row["house_rules"] for bed in self._beds())

    def cuisines(self) -> bool | None:
        if self.query.cuisines is None:
            return None
        served = []
        for text in self._texts(*MEALS):
            both = name_and_city(text, self.rules)
            if both is not None and both[1] != self.query.org:
                served += [
                    place.row["Cuisines"] for place in self.evaluator.places(self.database.restaurants, text)[:1]
                ]
        return all(any(cuisine in one for one in served) for cuisine in self.query.cuisines)

    def room_type(self) -> bool | None:
        asked = self.query.room_type
        if asked is None:
            return None
        kinds = [bed.row["room type"] for bed in self._beds()]
        if asked == "not shared room":
            return SHARED not in kinds
        return all(kind == ROOM_TYPES.get(asked) for kind in kinds)

    def transport_asked(self) -> bool | None:
        asked = self.query.transport
        if asked is None:
            return None
        kinds = {self.rules.leg(text) for text in self._texts("transportation")}
        refused = next((kind for kind in LegType if asked == f"no {kind}"), None)
        return refused not in kinds if refused is not None else True


def _words(day: Mapping[str, Any], name: str) -> str:
    value = day.get(name)
    return value if isinstance(value, str) else str(value) if value else ""


def _once(texts: Sequence[str]) -> bool:
    return len(set(texts)) == len(texts)
