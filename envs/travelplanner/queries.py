"""The queries: what a trip must be, as structured fields beside the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from handoff.canonical import parse
from handoff.envs.travelplanner.database import Reader
from handoff.errors import DataError

#: Constraints of a query, each ``None`` where it is not asked.
CONSTRAINTS = ("house rule", "cuisine", "room type", "transportation")


@attrs.frozen
class Query:
    """One query.  ``dest`` is a city for three days and a state for more; ``cuisines`` are all asked for."""

    idx: int
    text: str
    org: str
    dest: str
    days: int
    cities: int
    people: int
    budget: float
    level: str
    house_rule: str | None = None
    cuisines: tuple[str, ...] | None = None
    room_type: str | None = None
    transport: str | None = None
    date: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: Mapping[str, Any], where: str) -> Query:
        """A query from its JSON form.  Raises :class:`~handoff.errors.DataError` that starts with ``where``."""
        try:
            asked = form["local_constraint"]
            if not isinstance(asked, dict):
                raise TypeError("local_constraint is no object")
            cuisines = asked["cuisine"]
            query = cls(
                idx=_int(form["idx"], "idx"),
                text=_text(form["query"], "query"),
                org=_text(form["org"], "org"),
                dest=_text(form["dest"], "dest"),
                days=_int(form["days"], "days"),
                cities=_int(form["visiting_city_number"], "visiting_city_number"),
                people=_int(form["people_number"], "people_number"),
                budget=_amount(form["budget"]),
                level=_text(form.get("level", ""), "level"),
                house_rule=_optional(asked["house rule"], "house rule"),
                cuisines=None if cuisines is None else tuple(_text(one, "cuisine") for one in _list(cuisines)),
                room_type=_optional(asked["room type"], "room type"),
                transport=_optional(asked["transportation"], "transportation"),
                date=tuple(_text(one, "date") for one in _list(form.get("date", []))),
            )
        except KeyError as error:
            raise DataError(f"{where}: the query has no field {error.args[0]!r}") from error
        except TypeError as error:
            raise DataError(f"{where}: {error}") from error
        if not 1 <= query.days <= 100 or not 1 <= query.people <= 1000:
            raise DataError(f"{where}: a query has 1 to 100 days and 1 to 1000 people")
        return query


def read(path: Path, reader: Reader) -> dict[int, dict[str, Any]]:
    """The queries of a JSONL file by ``idx``, as their JSON forms."""
    queries: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(reader.text(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"TravelPlanner's data: {path}, line {number}"
        try:
            form = parse(line)
        except ValueError as error:
            raise DataError(f"{where}: not valid JSON: {error}") from error
        if not isinstance(form, dict):
            raise DataError(f"{where}: not a JSON object")
        query = Query.of(form, where)
        if query.idx in queries:
            raise DataError(f"{where}: a second query with idx {query.idx}")
        queries[query.idx] = form
    return queries


def _int(value: Any, name: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{name} is {json.dumps(value)[:40]}, not a whole number")
    return value


def _amount(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e12:
        raise TypeError(f"budget is {json.dumps(value)[:40]}, not a number")
    return float(value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {json.dumps(value)[:40]}, not a text")
    return value


def _optional(value: Any, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{json.dumps(value)[:40]} is not a list")
    return value
