"""The API classes of one episode: calls executed one by one, each with the text that the benchmark would show.

Instances belong to the episode; the benchmark's own executor keeps them in the globals of its module.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import inspect
import json
import random
from collections.abc import Mapping
from typing import Any

from handoff.canonical import digest
from handoff.envs.bfcl.calls import BenchmarkCall
from handoff.envs.bfcl.package import api_class, is_stateless
from handoff.envs.bfcl.surroundings import OutOfTime, limited, surroundings

#: Seconds that one call may take.
LIMIT = 10.0

#: Attributes that differ between equal states: a clock, and references upwards.
_LEFT_OUT = frozenset({"_last_modified", "parent"})


class Instances:
    """Instances of the classes of one task, in their first state."""

    def __init__(self, entry: Mapping[str, Any], limit: float = LIMIT) -> None:
        self._limit = limit
        self._instances: dict[str, Any] = {}
        self._methods: dict[str, Any] = {}
        with surroundings():
            for name in entry["involved_classes"]:
                instance = api_class(name)()
                if not is_stateless(name):
                    instance._load_scenario(copy.deepcopy(entry["initial_config"].get(name, {})), long_context=False)
                self._instances[name] = instance
                for method, function in inspect.getmembers(instance, predicate=inspect.ismethod):
                    if not method.startswith("_"):
                        self._methods[method] = function

    @property
    def names(self) -> frozenset[str]:
        """Names that can be called."""
        return frozenset(self._methods)

    def execute(self, call: BenchmarkCall) -> str:
        """The text of the result, or of the error.  The call names one of :attr:`names`."""
        method = self._methods[call.name]
        with surroundings():
            try:
                with limited(self._limit):
                    return _rendered(method(*copy.deepcopy(call.positional), **copy.deepcopy(dict(call.named))))
            except OutOfTime:
                return f"Error during execution: it took longer than {self._limit:g} s"
            except Exception as error:
                return f"Error during execution: {error}"

    def state(self) -> dict[str, Any]:
        """All attributes of all instances, as JSON."""
        return state_of(self._instances)

    def digest(self) -> str:
        return digest(self.state())


def _rendered(value: Any) -> str:
    """The text of a result, as the benchmark writes it."""
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except Exception:
            return str(value)
    return str(value)


def state_of(instances: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes of ``instances``, by class, as JSON.

    Every list, dictionary and object is an entry of ``objects``, and elsewhere its number: a directory may lie in
    itself, or very deep.
    """
    values: list[Any] = []
    numbers: dict[int, int] = {}

    def short(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float | set | frozenset | complex):
            return {"value": repr(value) if isinstance(value, float | complex) else str(sorted(map(repr, value)))}
        if isinstance(value, datetime.datetime | datetime.date | datetime.time):
            return {"value": value.isoformat()}
        if isinstance(value, random.Random):
            return {"value": hashlib.sha256(repr(value.getstate()).encode()).hexdigest()}
        if isinstance(value, tuple):
            return {"tuple": [short(one) for one in value]}
        if id(value) not in numbers:
            numbers[id(value)] = len(values)
            values.append(value)
        return {"object": numbers[id(value)]}

    classes = {name: short(instance) for name, instance in instances.items()}
    objects: list[Any] = []
    for value in values:  # grows meanwhile
        if isinstance(value, list):
            objects.append([short(one) for one in value])
        elif isinstance(value, dict):
            objects.append([[short(key), short(one)] for key, one in value.items()])
        else:
            attributes = {key: short(one) for key, one in vars(value).items() if key not in _LEFT_OUT}
            objects.append({"class": type(value).__name__, **attributes})
    return {"classes": classes, "objects": objects}
