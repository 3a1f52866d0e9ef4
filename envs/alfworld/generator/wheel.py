"""The data in the installed ``alfworld`` wheel: domain, grammar, constants, goals and scene layouts.

The package is located but never imported: an import creates a cache folder in the user's home and sets the variable
``ALFWORLD_DATA``.  Its two data modules (``gen/constants.py``, ``gen/goal_library.py``) import nothing of it and are
read by path.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import runpy
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from handoff.errors import DataError


@lru_cache(maxsize=1)
def root() -> Path:
    """The folder of the installed package.  Raises :class:`~handoff.errors.DataError` if it is not installed."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("the alfworld package is not installed; the built-in games need it (pip install alfworld)")
    return Path(next(iter(spec.submodule_search_locations)))


def _path(relative: str) -> Path:
    path = root() / relative
    if not path.is_file():
        raise DataError(f"the installed alfworld package has no file {relative}; reinstall it (pip install alfworld)")
    return path


@lru_cache(maxsize=1)
def domain() -> str:
    """The PDDL domain."""
    return _path("data/alfred.pddl").read_bytes().decode("utf-8")


@lru_cache(maxsize=1)
def grammar() -> str:
    """The text grammar, with the placeholder ``UNKNOWN GOAL`` for the task sentence."""
    return _path("data/alfred.twl2").read_bytes().decode("utf-8")


def text_digest(text: str) -> str:
    """sha256 of the UTF-8 text in hexadecimal, the same as ``sha256sum`` of the file."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@lru_cache(maxsize=1)
def constants() -> Mapping[str, Any]:
    """Names of ``gen/constants.py``: contents of receptacles, properties of objects, scene types."""
    return runpy.run_path(str(_path("gen/constants.py")))


@lru_cache(maxsize=1)
def goals() -> Mapping[str, Mapping[str, Any]]:
    """Task type -> ``pddl`` (goal, ``#`` for ``-``) and ``templates`` (two task sentences)."""
    library: Mapping[str, Mapping[str, Any]] = runpy.run_path(str(_path("gen/goal_library.py")))["gdict"]
    return library


def layout(scene: int, part: str) -> Any:
    """One file of a scene.

    ``points``: reachable floor points as pairs (x, z) in quarter metres, integers, in the file's order;
    ``objects``: names of the object types in the scene; ``openable``: receptacle id -> [x, z, rotation, horizon], the
    point (metres, degrees) at which the agent can use it.
    """
    if part == "points":
        import numpy as np

        array = np.load(_path(f"gen/layouts/FloorPlan{scene}-layout.npy"), allow_pickle=False)
        return [(round(float(x) * 4), round(float(z) * 4)) for x, z in array]
    return json.loads(_path(f"gen/layouts/FloorPlan{scene}-{part}.json").read_bytes())


def scenes_digest() -> str:
    """sha256 over the scene files, constants and goals behind the generated games."""
    total = hashlib.sha256()
    names = [path.relative_to(root()).as_posix() for path in root().glob("gen/layouts/FloorPlan*-*.*")]
    for name in sorted([*names, "gen/constants.py", "gen/goal_library.py"]):
        data = _path(name).read_bytes()
        total.update(f"{name} {len(data)}\n".encode())
        total.update(data)
    return total.hexdigest()


def digests() -> dict[str, str]:
    """sha256 of the parts behind the generated games."""
    return {"domain": text_digest(domain()), "grammar": text_digest(grammar()), "scenes": scenes_digest()}
