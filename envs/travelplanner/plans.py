"""Reads a plan from text without a model: a JSON list of days, or days with tags.

The text is untrusted.  Only JSON and tagged lines are read, within limits.
"""

from __future__ import annotations

import re
from typing import Any

from handoff.canonical import parse

#: The most characters of a text that is read, and the most days of a plan.
MOST_CHARACTERS, MOST_DAYS = 200_000, 100

_TAGS = {
    "current city": "current_city",
    "transportation": "transportation",
    "breakfast": "breakfast",
    "attraction": "attraction",
    "attractions": "attraction",
    "lunch": "lunch",
    "dinner": "dinner",
    "accommodation": "accommodation",
}
_DAY = re.compile(r"\A[\s*#_]*day\s+([0-9]{1,3})\b[\s*_]*:?[\s*_]*\Z", re.IGNORECASE)
_TAG = re.compile(r"\A[\s*_-]*([A-Za-z][A-Za-z _]{0,30}?)[\s*_]*:[\s*_]*(.*)\Z")
_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


def read_plan(text: str) -> list[Any] | None:
    """The plan in ``text``, a list of days; ``None`` if none can be read.  Never raises."""
    if len(text) > MOST_CHARACTERS:
        return None
    answer = _ANSWER.search(text)
    text = text if answer is None else answer.group(1)
    fence = _FENCE.search(text)
    for candidate in ([] if fence is None else [fence.group(1)]) + [text, _bracketed(text)]:
        plan = _json_list(candidate)
        if plan is not None:
            return plan
    return _tagged(text)


def _bracketed(text: str) -> str:
    """From the first "[" to the last "]"."""
    first, last = text.find("["), text.rfind("]")
    return text[first : last + 1] if 0 <= first < last else ""


def _json_list(text: str) -> list[Any] | None:
    try:
        value = parse(text.strip())
    except ValueError:
        return None
    if isinstance(value, dict):
        value = next((value[key] for key in ("plan", "days") if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) and len(value) <= MOST_DAYS else None


def _tagged(text: str) -> list[Any] | None:
    """Days of the form "Day 1:", then one line per field, such as "Breakfast: NAME, City"."""
    days: list[dict[str, Any]] = []
    for line in text.splitlines():
        day = _DAY.match(line[:200])  # its pattern takes the square of the length
        if day is not None:
            days.append({"days": int(day.group(1))})
            continue
        tag = _TAG.match(line)
        name = None if tag is None else _TAGS.get(tag.group(1).strip().lower().replace("_", " "))
        if tag is not None and name is not None and days:
            days[-1].setdefault(name, tag.group(2).rstrip() or "-")
    complete = [day for day in days if len(day) > 1]
    return complete if complete and len(complete) <= MOST_DAYS else None
