"""The package ``bfcl-eval``: its tasks, answers, tool schemas, API classes and checker.

A plain install of it pulls several gigabytes, so it is no extra of the toolkit: it is installed without its
dependencies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module, metadata, resources
from typing import Any

import attrs

from handoff.canonical import parse
from handoff.errors import DataError, UsageError

INSTALL = "pip install --no-deps bfcl-eval==2026.3.23 mpmath==1.3.0"
_DISTRIBUTION, _CATEGORY = "bfcl-eval", "BFCL_v4_multi_turn_base.json"
_UTILS = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
_CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_BACKENDS = "bfcl_eval.constants.executable_backend_config"


@attrs.frozen(eq=False)
class Benchmark:
    """The data of the category multi_turn_base."""

    version: str
    #: Entries by id, in the package's order.
    entries: Mapping[str, Mapping[str, Any]]
    #: Gold calls per turn, by id.
    answers: Mapping[str, list[list[str]]]
    #: Documents of the functions, by class.
    documents: Mapping[str, list[Mapping[str, Any]]]
    #: sha256 by file.
    digests: Mapping[str, str]


@lru_cache(maxsize=1)
def benchmark() -> Benchmark:
    """The installed data.

    Raises :class:`~handoff.errors.UsageError` with the command that installs it, and
    :class:`~handoff.errors.DataError` for a file that cannot be read.
    """
    try:
        version = metadata.version(_DISTRIBUTION)
        data = resources.files("bfcl_eval") / "data"
        backends: Any = import_module(_BACKENDS)
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise UsageError(f"bfcl needs the package {_DISTRIBUTION} ({error}); install it: {INSTALL}") from error
    digests: dict[str, str] = {}

    def lines(*names: str) -> list[dict[str, Any]]:
        place = data.joinpath(*names)
        try:
            raw = place.read_bytes()
            digests["/".join(names)] = hashlib.sha256(raw).hexdigest()
            return [parse(line) for line in raw.decode().splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise DataError(f"{_DISTRIBUTION} {version}: {'/'.join(names)} cannot be read: {error}") from error

    entries = {entry["id"]: entry for entry in lines(_CATEGORY)}
    answers = {entry["id"]: entry["ground_truth"] for entry in lines("possible_answer", _CATEGORY)}
    classes = sorted({name for entry in entries.values() for name in entry["involved_classes"]})
    mapping = backends.MULTI_TURN_FUNC_DOC_FILE_MAPPING
    documents: dict[str, list[Mapping[str, Any]]] = {}
    documents |= {name: list(lines("multi_turn_func_doc", mapping[name])) for name in classes}
    missing = sorted(set(entries) - set(answers))
    if missing:
        raise DataError(f"{_DISTRIBUTION} {version}: no gold answer for {missing[0]}")
    return Benchmark(version, entries, answers, documents, dict(sorted(digests.items())))


def api_class(name: str) -> Any:
    """The class ``name`` of the benchmark, whose methods are tools."""
    benchmark()
    return getattr(import_module(import_module(_BACKENDS).CLASS_FILE_PATH_MAPPING[name]), name)


def is_stateless(name: str) -> bool:
    """Whether the class ``name`` has no scenario to load."""
    return name in import_module(_BACKENDS).STATELESS_CLASSES


def utilities() -> Any:
    """The module that executes calls; it keeps instances in its globals."""
    benchmark()
    return import_module(_UTILS)


def checker() -> Any:
    """The module of the checker."""
    benchmark()
    return import_module(_CHECKER)
