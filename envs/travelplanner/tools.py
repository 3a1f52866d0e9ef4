"""The six look-ups: stateless, exact in names of cities, each with one text as its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from handoff.envs.travelplanner.database import Database, Flight, TravelPlace
from handoff.errors import DataError
from handoff.messages.replies import ToolCall, problem_of, tool_of
from handoff.records import Tool


def _tool(name: str, description: str, **parameters: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return tool_of(name, description, {"type": "object", "properties": properties, "required": list(parameters)})


_CITY = "The city's name, such as Boston."
TOOLS: tuple[Tool, ...] = (
    _tool(
        "SearchFlight",
        "List the flights between two cities on one day.",
        departure="The city where the flight starts.",
        destination="The city where it lands.",
        date="The day, as YYYY-MM-DD.",
    ),
    _tool(
        "GoogleDistanceMatrix",
        "Tell distance, travel time and cost by road between two cities.",
        departure="The city where the drive starts.",
        destination="The city where it ends.",
        mode="self-driving or taxi.",
    ),
    _tool("SearchAccommodation", "List places to stay in a city.", city=_CITY),
    _tool("SearchRestaurant", "List restaurants in a city.", city=_CITY),
    _tool("SearchAttraction", "List attractions in a city.", city=_CITY),
    _tool("SearchCity", "List the cities of a state.", state="The state's name, such as Texas."),
)


@attrs.frozen
class LookUp:
    """The answer of a tool."""

    text: str
    #: Why the call was no valid one; empty: it was.
    problem: str = ""
    #: Whether a flight table that does not know the leg was taken for one without a flight.
    assumed: bool = False


def look_up(call: ToolCall, database: Database, closed_world: bool = False) -> LookUp:
    """The answer to ``call``; a bad call is answered by what is wrong with it.

    Raises :class:`~handoff.errors.DataError` for a leg that the flight table does not cover, unless ``closed_world``.
    """
    problem = problem_of(call, TOOLS)
    if problem:
        return LookUp(f"Error: {problem}.", problem)
    if call.name == "SearchFlight":
        return _flights(database, closed_world, **call.arguments)
    return LookUp(_ANSWERS[call.name](database, **call.arguments))


def _flights(database: Database, closed_world: bool, departure: str, destination: str, date: str) -> LookUp:
    leg = (departure, destination, date)
    rows = database.flights.get(leg, ())
    unknown = database.legs is not None and leg not in database.legs and not rows
    if unknown and not closed_world:
        raise DataError(
            f"the flight table does not say whether there are flights from {departure:.40} to {destination:.40} on "
            f"{date:.20}; give the official table by --flights FILE, or take unknown legs for legs without flights by "
            "--closed-world"
        )
    if not rows:
        return LookUp(f"There is no flight from {departure} to {destination} on {date}.", assumed=unknown)
    head = f"{len(rows)} flights go from {departure} to {destination} on {date}:"
    return LookUp(_listed(head, map(_flight, rows)))


def _flight(flight: Flight) -> str:
    return (
        f"[{flight.number}] ${flight.price}, departure {flight.departs}, arrival {flight.arrives}, elapsed time "
        f"{flight.elapsed}, distance {flight.distance} miles"
    )


def _road(database: Database, departure: str, destination: str, mode: str) -> str:
    leg = database.distances.get((departure, destination))
    if leg is None:
        return f"No road from {departure} to {destination} is known."
    cost = leg.cost("driving" in mode)
    price = "no cost is known" if cost is None else f"cost ${cost}"
    return f"{mode} from {departure} to {destination}: duration {leg.duration}, distance {leg.distance}, {price}."


def _accommodations(database: Database, city: str) -> str:
    places = database.accommodations.get(city, ())
    return _places("places to stay", city, places, _bed)


def _bed(place: TravelPlace) -> str:
    row = place.row
    return (
        f"[{place.name}] ${row['price']} per night, {row['room type']}, house rules: {row['house_rules']}, minimum "
        f"nights {row['minimum nights']}, maximum occupancy {row['maximum occupancy']}, "
        f"rating {row['review rate number']}"
    )


def _restaurants(database: Database, city: str) -> str:
    return _places("restaurants", city, database.restaurants.get(city, ()), _restaurant)


def _restaurant(place: TravelPlace) -> str:
    row = place.row
    return f"[{place.name}] average cost ${row['Average Cost']}, {row['Cuisines']}, rating {row['Aggregate Rating']}"


def _attractions(database: Database, city: str) -> str:
    return _places("attractions", city, database.attractions.get(city, ()), _attraction)


def _attraction(place: TravelPlace) -> str:
    row = place.row
    return f"[{place.name}]({row['Website']}), {row['Address']}, {row['Phone']}"


def _cities(database: Database, state: str) -> str:
    cities = [city for city, its_state in database.states.items() if its_state == state]
    return f"{len(cities)} cities lie in {state}: {', '.join(cities)}." if cities else f"No city of {state} is known."


def _places(noun: str, city: str, places: Iterable[TravelPlace], line: Callable[[TravelPlace], str]) -> str:
    lines = [line(place) for place in places]
    return _listed(f"{len(lines)} {noun} in {city}:", lines) if lines else f"No {noun} in {city} are known."


def _listed(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(f"{number}. {line}" for number, line in enumerate(lines, start=1))])


_ANSWERS: Mapping[str, Callable[..., str]] = {
    "GoogleDistanceMatrix": _road,
    "SearchAccommodation": _accommodations,
    "SearchRestaurant": _restaurants,
    "SearchAttraction": _attractions,
    "SearchCity": _cities,
}
