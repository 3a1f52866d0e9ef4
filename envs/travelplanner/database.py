"""The database in the official layout: CSV files in one folder, and the flight table wherever it lies.

Rows with any missing value are dropped first.  Files are read once, as text, with the digest of their bytes.
"""

from __future__ import annotations

import contextlib
import csv
import gc
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from handoff import files
from handoff.errors import DataError

ACCOMMODATIONS, RESTAURANTS, ATTRACTIONS = (
    "clean_accommodations_2022.csv",
    "clean_restaurant_2022.csv",
    "attractions.csv",
)
DISTANCES, CITIES, LEGS = "distance.csv", "citySet_with_states.txt", "legs.csv"

#: Columns that each table needs.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    ACCOMMODATIONS: (
        "NAME", "room type", "price", "minimum nights", "review rate number", "house_rules", "maximum occupancy",
        "city",
    ),
    RESTAURANTS: ("Name", "City", "Cuisines", "Average Cost", "Aggregate Rating"),
    ATTRACTIONS: ("Name", "Address", "Phone", "Website", "City"),
    DISTANCES: ("origin", "destination", "duration", "distance"),
    LEGS: ("origin", "destination", "date", "flights"),
    "flights": (
        "Flight Number", "Price", "DepTime", "ArrTime", "ActualElapsedTime", "FlightDate", "OriginCityName",
        "DestCityName", "Distance",
    ),
}  # fmt: skip

Row = Mapping[str, str]

#: The most bytes of one file; the official flight table has some 305 million.
MOST_BYTES = 2_000_000_000


class Flight(NamedTuple):
    """One flight, as the tables have it."""

    number: str
    price: str
    departs: str
    arrives: str
    elapsed: str
    distance: str


@attrs.frozen
class Leg:
    """A leg between two cities, by road."""

    duration: str
    distance: str

    def cost(self, driving: bool) -> int | None:
        """Dollars: 5 cents per km by one's own car, 1 dollar per km by taxi; ``None`` for a leg of days."""
        if "day" in self.duration:
            return None
        kilometres = _number(self.distance.replace("km", "").replace(",", ""))
        return None if kilometres is None else int(kilometres * (0.05 if driving else 1))


@attrs.frozen
class TravelPlace:
    """A restaurant, a bed or an attraction, with its row."""

    name: str
    row: Row
    #: Dollars: per person and meal, or per room and night; 0 for an attraction.
    price: float = 0.0
    minimum_nights: float = 0.0
    occupancy: int = 1


@attrs.frozen(eq=False)
class Database:
    """All tables.  Cities and names are compared exactly as they are written."""

    accommodations: Mapping[str, Sequence[TravelPlace]]
    restaurants: Mapping[str, Sequence[TravelPlace]]
    attractions: Mapping[str, Sequence[TravelPlace]]
    distances: Mapping[tuple[str, str], Leg]
    states: Mapping[str, str]
    #: Rows by (origin, destination, date).
    flights: Mapping[tuple[str, str, str], Sequence[Flight]]
    #: The price of the first row of a number, and the city pairs of every number.
    prices: Mapping[str, float]
    pairs: Mapping[str, frozenset[tuple[str, str]]]
    #: Legs (origin, destination, date) that the flight table covers; ``None``: it is complete.
    legs: frozenset[tuple[str, str, str]] | None
    #: sha256 by file.
    digests: Mapping[str, str]

    @classmethod
    def load(cls, folder: Path, flights: Sequence[Path] = ()) -> Database:
        """Read ``folder``; the flight table is the files ``flights``, else every ``flights*.csv`` of the folder.

        A table given by ``flights`` is complete; the folder's own is, unless ``legs.csv`` says which legs it covers.
        Raises :class:`~handoff.errors.DataError`, naming the file.
        """
        reader = Reader()
        own = sorted(folder.glob("flights*.csv")) if not flights else []
        paths = list(flights) or own
        if not paths:
            raise DataError(
                f"{folder} holds no flight table (flights*.csv); give one by --env-option flights=FILE (--flights FILE)"
            )
        legs = None
        if not flights and (folder / LEGS).exists():
            legs = frozenset(
                (row["origin"], row["destination"], row["date"]) for row in reader.table(folder / LEGS, LEGS)
            )
        by_leg: dict[tuple[str, str, str], list[Flight]] = {}
        prices: dict[str, float] = {}
        pairs: dict[str, set[tuple[str, str]]] = {}
        for path in paths:
            for number, price, departs, arrives, elapsed, date, origin, destination, distance in reader.flights(path):
                flight = Flight(number, price, departs, arrives, elapsed, distance)
                by_leg.setdefault((origin, destination, date), []).append(flight)
                if number not in prices:
                    prices[number] = _price(price, "flights", {"Flight Number": number})
                    pairs[number] = {(origin, destination)}
                else:
                    pairs[number].add((origin, destination))
        distances: dict[tuple[str, str], Leg] = {}
        for row in reader.table(folder / DISTANCES, DISTANCES):
            distances.setdefault((row["origin"], row["destination"]), Leg(row["duration"], row["distance"]))
        return cls(
            accommodations=_by_city(reader.table(folder / ACCOMMODATIONS, ACCOMMODATIONS), "city", _bed),
            restaurants=_by_city(reader.table(folder / RESTAURANTS, RESTAURANTS), "City", _restaurant),
            attractions=_by_city(
                reader.table(folder / ATTRACTIONS, ATTRACTIONS), "City", lambda row: TravelPlace(row["Name"], row)
            ),
            distances=distances,
            states=reader.cities(folder / CITIES),
            flights=by_leg,
            prices=prices,
            pairs={number: frozenset(cities) for number, cities in pairs.items()},
            legs=legs,
            digests=dict(sorted(reader.digests.items())),
        )


@attrs.define
class Reader:
    """Reads files and keeps their digests."""

    digests: dict[str, str] = attrs.Factory(dict)

    def text(self, path: Path) -> str:
        """The text of ``path``.  Raises :class:`~handoff.errors.DataError`, naming it."""
        try:
            raw = files.read(path, MOST_BYTES)
        except OSError as error:
            raise DataError(f"TravelPlanner's data: {path}: cannot read the file: {files.cause(error)}") from error
        self.digests[path.name] = hashlib.sha256(raw).hexdigest()
        return files.text_of(raw, f"TravelPlanner's data: {path}")

    def table(self, path: Path, kind: str) -> list[Row]:
        """The complete rows of a CSV file; ``kind`` says which columns it needs."""
        text, columns = self.text(path), COLUMNS[kind]
        rows = csv.DictReader(io.StringIO(text, newline=""))
        self._places(path, rows.fieldnames or (), columns)
        try:
            return [row for row in rows if all(row.get(name) for name in columns)]
        except csv.Error as error:
            raise DataError(f"TravelPlanner's data: {path}, line {rows.line_num}: {error}") from error

    def flights(self, path: Path) -> Iterator[Sequence[str]]:
        """The complete rows of a flight table, with the columns in the order of :data:`COLUMNS`.

        The official table has millions of rows, which repeat few cities, dates and times: each text is kept once.
        """
        columns, kept = COLUMNS["flights"], dict[str, str]()
        rows = csv.reader(io.StringIO(self.text(path), newline=""))
        places = self._places(path, next(rows, []), columns)
        with _unwatched():
            for row in rows:
                if len(row) > max(places) and all(row[place] for place in places):
                    yield [kept.setdefault(row[place], row[place]) for place in places]

    def _places(self, path: Path, header: Sequence[str], columns: Sequence[str]) -> list[int]:
        """The place of each of ``columns`` in the header."""
        missing = [name for name in columns if name not in header]
        if missing:
            digest = self.digests[path.name][:12]
            raise DataError(
                f"TravelPlanner's data: {path} (sha256 {digest}...) has no column {missing[0]!r}; it needs "
                f"{', '.join(columns)}"
            )
        return [header.index(name) for name in columns]

    def cities(self, path: Path) -> dict[str, str]:
        """State by city."""
        states = {}
        for number, line in enumerate(self.text(path).splitlines(), start=1):
            city, tab, state = line.partition("\t")
            if not tab:
                raise DataError(f"TravelPlanner's data: {path}, line {number}: write CITY, a tab, STATE")
            states[city] = state
        return states


@contextlib.contextmanager
def _unwatched() -> Iterator[None]:
    """Without the collector of cycles, which would look at millions of rows again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _by_city(rows: Iterable[Row], column: str, place: Callable[[Row], TravelPlace]) -> dict[str, list[TravelPlace]]:
    places: dict[str, list[TravelPlace]] = {}
    for row in rows:
        places.setdefault(row[column], []).append(place(row))
    return places


def _bed(row: Row) -> TravelPlace:
    return TravelPlace(
        row["NAME"],
        row,
        _price(row["price"], ACCOMMODATIONS, row),
        _price(row["minimum nights"], ACCOMMODATIONS, row),
        max(int(_price(row["maximum occupancy"], ACCOMMODATIONS, row)), 1),
    )


def _restaurant(row: Row) -> TravelPlace:
    return TravelPlace(row["Name"], row, _price(row["Average Cost"], RESTAURANTS, row))


def _price(text: str, table: str, row: Row) -> float:
    number = _number(text)
    if number is None:
        raise DataError(f"TravelPlanner's data: {table}: {text!r:.40} is no number, in the row {dict(row)!r:.120}")
    return number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None


def describe(database: Database) -> dict[str, Any]:
    """JSON-safe: the digest of every file."""
    return {"files": dict(database.digests), "flights_complete": database.legs is None}
