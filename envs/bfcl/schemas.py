"""The tools of a task, from the benchmark's documents, as JSON Schema."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from handoff.canonical import canonical, parse
from handoff.envs.bfcl.package import api_class, benchmark
from handoff.messages.replies import tool_of
from handoff.records import Tool

#: The benchmark's words for types -> JSON Schema's.
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


@lru_cache(maxsize=256)
def tools(entry_id: str) -> tuple[Tool, ...]:
    """The tools that a task offers: those of its classes without the excluded ones."""
    entry = benchmark().entries[entry_id]
    excluded = set(entry.get("excluded_function", ()))
    documents = [one for name in entry["involved_classes"] for one in benchmark().documents[name]]
    return tuple(
        tool_of(one["name"], one["description"], schema(one["parameters"]))
        for one in documents
        if one["name"] not in excluded
    )


@lru_cache(maxsize=256)
def parameters(entry_id: str) -> Mapping[str, tuple[str, ...]]:
    """Names of the parameters by function, in the order of the code, of all functions of the task's classes.

    The documents list those of one function in another order.
    """
    entry = benchmark().entries[entry_id]
    return {
        one["name"]: tuple(inspect.signature(getattr(api_class(name), one["name"])).parameters)[1:]
        for name in entry["involved_classes"]
        for one in benchmark().documents[name]
    }


def schema(document: Any) -> Any:
    """JSON Schema of a part of a document."""
    plain = parse(canonical(document))
    return _mapped(plain)


def _mapped(part: Any) -> Any:
    if isinstance(part, list):
        return [_mapped(one) for one in part]
    if not isinstance(part, dict):
        return part
    mapped = {}
    for key, value in part.items():
        if key == "type" and isinstance(value, str):
            known = _TYPES.get(value, value)
            if known is not None:
                mapped[key] = known
        else:
            mapped[key] = _mapped(value)
    return mapped
