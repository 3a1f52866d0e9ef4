"""The API classes of one episode: calls executed one by one, each with the text that the benchmark would show.

Instances belong to the episode; the benchmark's own executor keeps them in the globals of its module.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import hashlib
import inspect
import json
import os
import random
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from handoff.canonical import digest
from handoff.envs.bfcl.calls import BenchmarkCall
from handoff.envs.bfcl.package import benchmark

#: Attributes that differ between equal states: a clock, and references upwards.
_LEFT_OUT = frozenset({"_last_modified", "parent"})


@contextlib.contextmanager
def utc() -> Iterator[None]:
    """Local time is UTC inside."""
    before = os.environ.get("TZ")
    if before == "UTC":
        yield
        return
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


class Instances:
    """Instances of the classes of one task, in their first state."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        benchmark()  # says what to install
        backends: Any = import_module("bfcl_eval.constants.executable_backend_config")
        self._instances: dict[str, Any] = {}
        self._methods: dict[str, Any] = {}
        with utc():
            for name in entry["involved_classes"]:
                cls = getattr(import_module(backends.CLASS_FILE_PATH_MAPPING[name]), name)
                instance = cls()
                if name not in backends.STATELESS_CLASSES:
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
        with utc():
            try:
                value = self._methods[call.name](*copy.deepcopy(call.positional), **copy.deepcopy(dict(call.named)))
            except Exception as error:
                return f"Error during execution: {error}"
        if isinstance(value, str):
            return value
        if type(value) is dict:
            try:
                return json.dumps(value)
            except (TypeError, ValueError):
                return str(value)
        return str(value)

    def state(self) -> dict[str, Any]:
        """All attributes of all instances, as JSON."""
        return {name: _plain(instance, 0) for name, instance in self._instances.items()}

    def digest(self) -> str:
        return digest(self.state())


def _plain(value: Any, depth: int) -> Any:
    if depth > 60:
        return "..."
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value) if isinstance(value, float) else value
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, dict):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, random.Random):
        return hashlib.sha256(repr(value.getstate()).encode()).hexdigest()
    attributes = {key: one for key, one in vars(value).items() if key not in _LEFT_OUT}
    return {"class": type(value).__name__, **{key: _plain(one, depth + 1) for key, one in attributes.items()}}
