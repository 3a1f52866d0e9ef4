"""How a plan's texts are read: empty fields, "NAME, City", "from A to B", and the type of a leg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

# Two patterns, searched in turn: one pattern for both would take the cube of the length of a hostile text.
_FROM = re.compile(r"from\s+(?=\S)")
_TO = re.compile(r"\sto\s+([^,\s][^,]*)")
_FLIGHT = re.compile(r"flight number:\s*([^,]*)", re.IGNORECASE)


class LegType(StrEnum):
    """Types of a leg."""

    FLIGHT = "flight"
    TAXI = "taxi"
    DRIVING = "self-driving"


class Rules(StrEnum):
    """Whose evaluator."""

    OFFICIAL = "official"
    AGENT_STAR = "agent-star"

    @property
    def cuts(self) -> bool:
        """Whether a parenthesis is cut off a city's name."""
        return self is Rules.OFFICIAL

    def city(self, text: str) -> str:
        """A city as it is compared.  A blank before the parenthesis stays, and no city ends with one."""
        before, opened, after = text.partition("(")
        return before if self.cuts and opened and ")" in after else text

    def leg(self, text: str) -> LegType | None:
        """The type of a leg; ``None``: of no type."""
        lower = text.lower()
        if self is Rules.OFFICIAL:
            return next((kind for kind in (LegType.TAXI, LegType.DRIVING, LegType.FLIGHT) if kind in lower), None)
        return next((kind for kind in (LegType.FLIGHT, LegType.TAXI) if kind in lower), LegType.DRIVING)


def field(day: Mapping[str, Any], name: str) -> str:
    """A field of a day as text; "" where it is empty."""
    value = day.get(name)
    if isinstance(value, str):
        return "" if value == "-" else value
    return str(value) if value else ""


def from_to(text: str) -> tuple[str, str] | None:
    """A and B of "from A to B": A as short as it can be, B up to a comma or the end."""
    start = _FROM.search(text)
    end = None if start is None else _TO.search(text, start.end())
    return None if start is None or end is None else (text[start.end() : end.start()].rstrip(), end.group(1))


def name_and_city(text: str, rules: Rules) -> tuple[str, str] | None:
    """NAME and City of "NAME, City", split at the last comma."""
    name, comma, city = text.rpartition(",")
    return (name.strip(), rules.city(city.strip()).strip()) if comma else None


def flight_number(text: str) -> str:
    """The flight number that a text names; "" for none."""
    match = _FLIGHT.search(text)
    return "" if match is None else match.group(1).strip()


def attractions(text: str) -> list[str]:
    """The attractions of a text; the piece after the last ";" is dropped."""
    return text.split(";")[:-1]
