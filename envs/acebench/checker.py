"""The check of a single reply: calls against gold calls, or a fixed phrase with what it must name.

The rules are the benchmark's, its oddities included: numbers and truth values are typed and not compared, a text
passes if it contains the gold text, an argument that is not required may be left out, and two gold calls of one
function may be matched by one call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from handoff.envs.acebench.calls import AceCall, read_calls

#: The phrase of each special category.
PHRASES = {
    "special_incomplete": "Missing necessary parameters",
    "special_error_param": "There is incorrect value",
    "special_irrelevant": "the limitations of the function",
}
_NUMBER = re.compile(r"_\d+\Z")
_DROPPED = re.compile(r"[ ,./\-_*^]")
_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "number": int, "float": float, "boolean": bool, "bool": bool, "array": list,
    "list": list, "object": dict, "dict": dict, "tuple": list,
}  # fmt: skip


def passes(category: str, functions: Sequence[Mapping[str, Any]], gold: Any, reply: str) -> bool:
    """Whether ``reply`` passes for a task of ``category`` with these function descriptions.  Never raises."""
    if category in PHRASES:
        return _says(category, gold, reply)
    calls = read_calls(reply)
    golds = gold if isinstance(gold, list) else [gold]
    return calls is not None and any(isinstance(one, dict) and _matches(calls, one, functions) for one in golds)


def base_name(name: str) -> str:
    """A gold name without the number that tells repeated calls apart."""
    return _NUMBER.sub("", name)


def _says(category: str, gold: Any, reply: str) -> bool:
    if PHRASES[category] not in reply:
        return False
    named = gold.items() if isinstance(gold, dict) else ()
    return all(
        name in reply and all(str(value) in reply for value in (values if isinstance(values, list) else [values]))
        for name, values in named
    )


def _matches(calls: Sequence[AceCall], gold: Mapping[str, Any], functions: Sequence[Mapping[str, Any]]) -> bool:
    wanted = [(base_name(name), arguments) for name, arguments in gold.items()]
    if len(calls) != len(wanted) or Counter(call.name for call in calls) != Counter(name for name, _ in wanted):
        return False
    by_name = {str(function.get("name")): function for function in functions}
    return all(
        any(_is_call(call, arguments, by_name.get(name)) for call in calls if call.name == name)
        for name, arguments in wanted
    )


def _is_call(call: AceCall, gold: Any, function: Mapping[str, Any] | None) -> bool:
    if function is None or not isinstance(gold, dict):
        return False
    schema = function.get("parameters") or function.get("arguments") or {}
    properties = schema.get("properties") or {}
    if not call.arguments or any(name not in call.arguments for name in schema.get("required") or ()):
        return False
    return all(
        name in properties and name in gold and _fits(value, gold[name], properties[name])
        for name, value in call.arguments.items()
    )


def _fits(value: Any, gold: Any, stated: Mapping[str, Any]) -> bool:
    """Whether an argument has the type and, as far as it is compared, the value."""
    declared = _TYPES.get(str(stated.get("type")))
    if declared is list and "items" not in stated:
        return False
    if isinstance(value, str) and value.lower() in ("true", "false") and bool in (declared, type(gold)):
        value = value.lower() == "true"
    if gold is None:
        return value is None or declared is None or _is_of(value, declared)
    if not (_is_of(value, declared) or _is_of(value, type(gold))):
        return False
    if isinstance(gold, list | dict) and not value:
        return False
    if isinstance(gold, str):
        return _contains(value, gold)
    if isinstance(gold, list):
        return isinstance(value, list) and bool(gold) and _equal_lists(value, gold)
    if isinstance(gold, dict):
        return isinstance(value, dict) and bool(gold) and _within(value, gold)
    return True


def _is_of(value: Any, kind: type | None) -> bool:
    if kind is None:
        return False
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _normal(text: str) -> str:
    return _DROPPED.sub("", text).lower().replace("'", '"')


def _contains(value: Any, gold: str) -> bool:
    return _normal(gold) in _normal(str(value))


def _equal_lists(value: list[Any], gold: list[Any]) -> bool:
    return len(value) == len(gold) and all(_equal(one, other) for one, other in zip(value, gold, strict=True))


def _equal(value: Any, gold: Any) -> bool:
    if isinstance(gold, str):
        return isinstance(value, str) and _normal(value) == _normal(gold)
    if isinstance(gold, dict):
        return isinstance(value, dict) and _within(value, gold)
    if isinstance(gold, list):
        return isinstance(value, list) and _equal_lists(value, gold)
    return bool(value == gold)


def _within(value: Mapping[str, Any], gold: Mapping[str, Any]) -> bool:
    """Objects key by key."""
    if set(value) != set(gold):
        return False
    for name, one in value.items():
        other = gold[name]
        if isinstance(other, str):
            if not _contains(one, other):
                return False
        elif not _equal(one, other):
            return False
    return True
