"""The invented world that ships: cities, tables, queries and gold plans, all from one seed.

    python -m handoff.envs.travelplanner.generator --out artifacts/travelplanner

Thirty cities in eight states; no name, price or distance is of the real world.  Twelve queries of each length (3, 5 and
7 days), four of each level.  A gold plan visits one city per two nights, in the cheapest bed that the constraints
allow, and takes one way of transport throughout.  The budget lies 10 to 30 percent above its cost.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from handoff import files
from handoff.canonical import canonical
from handoff.envs.dice import Dice

SEED = 7
LEVELS = ("easy", "medium", "hard")
_DAYS, _PER_KIND = (3, 5, 7), 4
_STATES = {
    "Arvenia": 4, "Brook Isles": 4, "Caldmark": 4, "Dunmere": 4, "Eastholm": 4, "Fennick": 4, "Garrow": 3, "Hollin": 3,
}  # fmt: skip
_STARTS = (
    "Alv", "Brax", "Corv", "Dell", "Erm", "Fesk", "Glom", "Hesk", "Ister", "Jund", "Kezz", "Lorv", "Mirv", "Nuv", "Osk",
)  # fmt: skip
_ENDS = ("wick", "ford", "haven", "mouth", "stead", "bury", "dale", "gate", "port", "ridge", "field", "minster")
_KINDS = ("Entire home/apt", "Private room", "Shared room")
_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")
_CUISINES = ("Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French")
_TREES = ("Oak", "Ash", "Willow", "Birch", "Cedar", "Elm", "Maple", "Rowan", "Hazel", "Poplar", "Linden", "Juniper")
_BEDS = ("Loft", "Room", "Cottage", "Studio", "Attic", "House")
_TABLES = ("Kitchen", "Table", "Grill", "Bistro", "Canteen", "Tavern", "Pantry", "Oven", "Garden", "Corner", "Spoon")
_SIGHTS = ("Museum", "Park", "Tower", "Bridge", "Gallery", "Market")
_MONTH = "2022-03-{:02d}"


@attrs.define
class Tables:
    """All tables, as rows of texts."""

    states: dict[str, str] = attrs.Factory(dict)
    beds: list[dict[str, str]] = attrs.Factory(list)
    restaurants: list[dict[str, str]] = attrs.Factory(list)
    attractions: list[dict[str, str]] = attrs.Factory(list)
    roads: dict[tuple[str, str], tuple[int, str, str]] = attrs.Factory(dict)
    flights: list[dict[str, str]] = attrs.Factory(list)
    queries: list[dict[str, Any]] = attrs.Factory(list)
    plans: list[dict[str, Any]] = attrs.Factory(list)

    def of(self, rows: list[dict[str, str]], column: str, city: str) -> list[dict[str, str]]:
        return [row for row in rows if row[column] == city]


def generate(seed: int = SEED) -> dict[str, bytes]:
    """The files by name."""
    dice, tables = Dice("travelplanner", seed), Tables()
    _make_cities(dice, tables)
    for city in tables.states:
        _furnish(dice, tables, city)
    _make_roads(dice, tables)
    number = 0
    for days in _DAYS:
        for level in LEVELS:
            for _ in range(_PER_KIND):
                _make_query(dice, tables, number, days, level)
                number += 1
    return _files(tables)


def _make_cities(dice: Dice, tables: Tables) -> None:
    names: list[str] = []
    while len(names) < sum(_STATES.values()):
        name = dice.pick(_STARTS) + dice.pick(_ENDS)
        if name not in names:
            names.append(name)
    for state, count in _STATES.items():
        for _ in range(count):
            tables.states[names.pop(0)] = state


def _furnish(dice: Dice, tables: Tables, city: str) -> None:
    """Beds, restaurants and attractions of one city.  A name occurs once, and is no part of another."""
    for place in range(6):
        # Each city has a bed of each kind that suits two nights and forbids nothing; the cheaper beds forbid more.
        plain = place < 3
        rules = dice.shuffled(_RULES)[: dice.between(2, 4)]
        tables.beds.append(
            {
                "NAME": f"{_TREES[place * 2 + dice.below(2)]} {_BEDS[place]} of {city}",
                "room type": _KINDS[place % 3],
                "price": f"{dice.between(90, 210) if plain else dice.between(35, 85)}.0",
                "minimum nights": f"{1 + dice.below(2) if plain else dice.pick((1, 2, 3, 4))}.0",
                "review rate number": f"{dice.between(2, 5)}.0",
                "house_rules": " & ".join(f"No {rule}" for rule in rules) if not plain else "Be kind",
                "maximum occupancy": str(dice.between(1, 5)),
                "city": city,
            }
        )
    for place, noun in enumerate(_TABLES):
        own = _CUISINES[place % len(_CUISINES)]
        cuisines = dice.shuffled(_CUISINES)[: dice.below(2)]
        tables.restaurants.append(
            {
                "Name": f"{dice.pick(_TREES)} {noun} in {city}",
                "City": city,
                "Cuisines": ", ".join(dict.fromkeys([own, *cuisines])),
                "Average Cost": str(dice.between(9, 58)),
                "Aggregate Rating": f"{dice.between(20, 49) / 10}",
            }
        )
    for place, noun in enumerate(_SIGHTS):
        street = f"{dice.between(1, 99)} {dice.pick(_TREES)} Street, {city}"
        tables.attractions.append(
            {
                "Name": f"{dice.pick(_TREES)} {noun} at {city}",
                "Latitude": f"{dice.between(30, 45)}.{dice.between(0, 9999):04d}",
                "Longitude": f"-{dice.between(80, 110)}.{dice.between(0, 9999):04d}",
                "Address": street,
                "Phone": f"(555) 01{place}-{dice.between(1000, 9999)}",
                "Website": f"https://{noun.lower()}.{city.lower()}.example",
                "City": city,
            }
        )


def _make_roads(dice: Dice, tables: Tables) -> None:
    cities = list(tables.states)
    for i, a in enumerate(cities):
        for b in cities[i + 1 :]:
            near = tables.states[a] == tables.states[b]
            kilometres = dice.between(60, 320) if near else dice.between(350, 2400)
            minutes = kilometres * 60 // 95
            hours, rest = divmod(minutes, 60)
            duration = f"{hours} hours {rest} mins" if hours < 24 else f"{hours // 24} day {hours % 24} hours"
            for pair in ((a, b), (b, a)):
                tables.roads[pair] = (kilometres, duration, f"{kilometres:,} km")


def _make_query(dice: Dice, tables: Tables, idx: int, days: int, level: str) -> None:
    count = (days - 1) // 2
    state = dice.pick([name for name, size in _STATES.items() if size >= count])
    inside = [city for city, its_state in tables.states.items() if its_state == state]
    outside = [city for city, its_state in tables.states.items() if its_state != state]
    route = dice.shuffled(inside)[:count]
    reachable = [
        city for city in outside if all("day" not in tables.roads[city, one][1] for one in (route[0], route[-1]))
    ]
    origin = dice.pick(reachable)
    start = dice.between(1, 31 - days)
    dates = [_MONTH.format(start + number) for number in range(days)]
    people = {"easy": 1, "medium": dice.between(2, 5), "hard": dice.between(2, 8)}[level]
    asked = _constraints(dice, level)
    legs = list(zip([origin, *route], [*route, origin], strict=True))
    flies = asked["transportation"] == "no self-driving" or (asked["transportation"] is None and dice.below(2) == 0)
    for number, (a, b) in enumerate(legs):
        # Who must not fly could.
        if flies or asked["transportation"] == "no flight" or dice.below(3) == 0:
            _make_flights(dice, tables, a, b, dates[2 * number])
    plan, cost = _gold(dice, tables, origin, route, dates, people, asked, flies)
    budget = -(-cost * (110 + dice.between(0, 20)) // 1000) * 10
    tables.queries.append(
        {
            "idx": idx,
            "query": _words(origin, route, state, dates, people, budget, asked),
            "org": origin,
            "dest": route[0] if days == 3 else state,
            "days": days,
            "visiting_city_number": count,
            "date": dates,
            "people_number": people,
            "budget": int(budget),
            "local_constraint": asked,
            "level": level,
        }
    )
    tables.plans.append({"split": "validation", "idx": idx, "plan": plan})


def _constraints(dice: Dice, level: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "house rule": dice.pick(_RULES),
        "cuisine": dice.shuffled(_CUISINES)[:2],
        "room type": dice.pick(("entire room", "private room", "not shared room")),
        "transportation": dice.pick(("no flight", "no self-driving")),
    }
    count = {"easy": 0, "medium": 1, "hard": 3}[level]
    names = list(values) if level == "hard" else ["house rule", "cuisine", "room type"]
    kept = dice.shuffled(names)[:count]
    return {name: value if name in kept else None for name, value in values.items()}


def _make_flights(dice: Dice, tables: Tables, a: str, b: str, date: str) -> None:
    for _ in range(dice.between(1, 3)):
        leave, minutes = dice.between(6 * 60, 20 * 60), 45 + tables.roads[a, b][0] // 12
        arrive = (leave + minutes) % (24 * 60)
        tables.flights.append(
            {
                "Flight Number": f"F{9_000_000 + len(tables.flights) * 7 + dice.below(7)}",
                "Price": str(dice.between(40, 320)),
                "DepTime": f"{leave // 60:02d}:{leave % 60:02d}",
                "ArrTime": f"{arrive // 60:02d}:{arrive % 60:02d}",
                "ActualElapsedTime": f"{minutes // 60} hours {minutes % 60} minutes",
                "FlightDate": date,
                "OriginCityName": a,
                "DestCityName": b,
                "Distance": f"{tables.roads[a, b][0] * 5 // 8}.0",
            }
        )


def _gold(
    dice: Dice,
    tables: Tables,
    origin: str,
    route: Sequence[str],
    dates: Sequence[str],
    people: int,
    asked: dict[str, Any],
    flies: bool,
) -> tuple[list[dict[str, Any]], int]:
    """The plan and its cost in dollars."""
    days: list[dict[str, Any]] = []
    cost, here = 0, origin
    wanted = list(asked["cuisine"] or [])
    for number, city in enumerate(route):
        bed = _bed(tables, city, people, asked)
        cost += 2 * int(float(bed["price"])) * -(-people // int(bed["maximum occupancy"]))
        tables_of_city = tables.of(tables.restaurants, "City", city)
        meals = [next(row for row in tables_of_city if cuisine in row["Cuisines"]) for cuisine in wanted]
        meals = list({row["Name"]: row for row in meals}.values())
        wanted = []
        meals += dice.shuffled([row for row in tables_of_city if row not in meals])[: 4 - len(meals)]
        cost += sum(int(row["Average Cost"]) for row in meals) * people
        lunch_dinner = [f"{row['Name']}, {city}" for row in meals]
        sights = dice.shuffled(tables.of(tables.attractions, "City", city))[:2]
        transport, price = _leg(tables, here, city, dates[2 * number], people, flies)
        cost += price
        place = f"{bed['NAME']}, {city}"
        days.append(
            _day(len(days) + 1, f"from {here} to {city}", transport, dinner=lunch_dinner[0], accommodation=place)
        )
        days.append(
            _day(
                len(days) + 1,
                city,
                "-",
                breakfast=lunch_dinner[1],
                lunch=lunch_dinner[2],
                dinner=lunch_dinner[3],
                attraction="".join(f"{row['Name']}, {city};" for row in sights),
                accommodation=place,
            )
        )
        here = city
    transport, price = _leg(tables, here, origin, dates[-1], people, flies)
    days.append(_day(len(days) + 1, f"from {here} to {origin}", transport))
    return days, cost + price


def _bed(tables: Tables, city: str, people: int, asked: dict[str, Any]) -> dict[str, str]:
    """The cheapest bed for two nights that the constraints allow."""
    kinds = {"entire room": _KINDS[:1], "private room": _KINDS[1:2], "not shared room": _KINDS[:2], None: _KINDS}
    fitting = [
        bed
        for bed in tables.of(tables.beds, "city", city)
        if float(bed["minimum nights"]) <= 2
        and bed["room type"] in kinds[asked["room type"]]
        and (asked["house rule"] is None or f"No {asked['house rule']}" not in bed["house_rules"])
    ]
    return min(
        fitting, key=lambda bed: (float(bed["price"]) * -(-people // int(bed["maximum occupancy"])), bed["NAME"])
    )


def _leg(tables: Tables, a: str, b: str, date: str, people: int, flies: bool) -> tuple[str, int]:
    if flies:
        ways = [row for row in tables.flights if (row["OriginCityName"], row["DestCityName"]) == (a, b)]
        row = min((one for one in ways if one["FlightDate"] == date), key=lambda one: int(one["Price"]))
        text = f"Flight Number: {row['Flight Number']}, from {a} to {b}, Departure Time: {row['DepTime']}"
        return f"{text}, Arrival Time: {row['ArrTime']}", int(row["Price"]) * people
    kilometres, duration, distance = tables.roads[a, b]
    price = int(kilometres * 0.05)
    text = f"Self-driving, from {a} to {b}, duration: {duration}, distance: {distance}, cost: {price}"
    return text, price * -(-people // 5)


def _day(number: int, city: str, transport: str, **fields: str) -> dict[str, Any]:
    empty = dict.fromkeys(("breakfast", "attraction", "lunch", "dinner", "accommodation"), "-")
    return {"days": number, "current_city": city, "transportation": transport, **empty, **fields}


def _words(
    origin: str,
    route: Sequence[str],
    state: str,
    dates: Sequence[str],
    people: int,
    budget: int,
    asked: dict[str, Any],
) -> str:
    where = route[0] if len(route) == 1 else f"{len(route)} cities of {state}"
    who = "one person" if people == 1 else f"a party of {people}"
    parts = [
        f"I need a plan for a trip of {len(dates)} days, from {dates[0]} to {dates[-1]}, for {who}.",
        f"It starts and ends in {origin} and visits {where}.",
        f"All of it may cost ${budget:,} at most.",
    ]
    if asked["house rule"] is not None:
        parts.append(f"Each place to stay must allow {asked['house rule']}.")
    if asked["cuisine"] is not None:
        parts.append(f"The meals must include {' and '.join(asked['cuisine'])} food.")
    if asked["room type"] is not None:
        parts.append(f"The rooms must be of this type: {asked['room type']}.")
    if asked["transportation"] is not None:
        parts.append(f"For the way there and back: {asked['transportation']}.")
    return " ".join(parts)


def _files(tables: Tables) -> dict[str, bytes]:
    roads = [
        {"origin": a, "destination": b, "cost": "", "duration": duration, "distance": distance}
        for (a, b), (_, duration, distance) in tables.roads.items()
    ]
    beds = [{"": str(number), **row} for number, row in enumerate(tables.beds)]
    restaurants = [{"": str(number), **row} for number, row in enumerate(tables.restaurants)]
    return {
        "clean_accommodations_2022.csv": _csv(beds),
        "clean_restaurant_2022.csv": _csv(restaurants),
        "attractions.csv": _csv(tables.attractions),
        "distance.csv": _csv(roads),
        "flights.csv": _csv(tables.flights),
        "citySet_with_states.txt": "".join(f"{city}\t{state}\n" for city, state in tables.states.items()).encode(),
        "queries_validation.jsonl": b"".join(canonical(query) + b"\n" for query in tables.queries),
        "gold_plans.jsonl": b"".join(canonical(plan) + b"\n" for plan in tables.plans),
    }


def _csv(rows: Sequence[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the files.")
@click.option("--seed", type=int, default=SEED, show_default=True, help="Seed of everything.")
def main(out: Path, seed: int) -> None:
    """Write the invented world of TravelPlanner into a folder, in the official layout."""
    out.mkdir(parents=True, exist_ok=True)
    for name, data in generate(seed).items():
        files.write_atomically(out / name, data)
        click.echo(f"{out / name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
