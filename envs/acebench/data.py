"""The tasks with one decision, from the official layout: ``data_LANG/data_CATEGORY.json`` and ``possible_answer``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError

LANGUAGES = ("en", "zh")
CATEGORIES = (
    "normal_atom_bool", "normal_atom_enum", "normal_atom_list", "normal_atom_number", "normal_atom_object_deep",
    "normal_atom_object_short", "normal_single_turn_single_function", "normal_single_turn_parallel_function",
    "normal_similar_api", "normal_preference", "special_incomplete", "special_error_param", "special_irrelevant",
)  # fmt: skip
MOST_BYTES = 100_000_000


@attrs.frozen(eq=False)
class AceTask:
    """One task and its gold answer."""

    id: str
    category: str
    question: str
    functions: Sequence[Mapping[str, Any]]
    gold: Any
    #: What is known of the user, or of the time; empty: nothing.
    profile: str = ""
    time: str = ""


@attrs.frozen(eq=False)
class AceData:
    """The tasks of each language by id, in the order of categories and lines."""

    tasks: Mapping[str, Mapping[str, AceTask]]
    #: sha256 by file.
    digests: Mapping[str, str]


@lru_cache(maxsize=4)
def load(folder: str) -> AceData:
    """All languages that lie in ``folder``.  Raises :class:`~handoff.errors.DataError`, naming the file."""
    root, digests = Path(folder).expanduser(), dict[str, str]()
    tasks: dict[str, dict[str, AceTask]] = {}
    for language in LANGUAGES:
        base = root / f"data_{language}"
        if not base.is_dir():
            continue
        tasks[language] = {}
        for category in CATEGORIES:
            name = f"data_{category}.json"
            entries = _lines(base / name, f"data_{language}/{name}", digests)
            golds = _lines(base / "possible_answer" / name, f"data_{language}/possible_answer/{name}", digests)
            known = {entry.get("id"): entry for entry in golds}
            for entry in entries:
                task = _task(entry, known, category, f"ACEBench's data: {base / name}")
                tasks[language][task.id] = task
    if not tasks:
        raise DataError(f"{folder}: no tasks of ACEBench (data_en or data_zh)")
    return AceData(tasks, dict(sorted(digests.items())))


def _lines(path: Path, name: str, digests: dict[str, str]) -> list[dict[str, Any]]:
    try:
        raw = files.read(path, MOST_BYTES)
    except OSError as error:
        raise DataError(f"ACEBench's data: {path}: cannot read the file: {files.cause(error)}") from error
    digests[name] = hashlib.sha256(raw).hexdigest()
    entries = []
    for number, line in enumerate(files.text_of(raw, f"ACEBench's data: {path}").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = parse(line)
        except ValueError as error:
            raise DataError(f"ACEBench's data: {path}, line {number}: not valid JSON: {error}") from error
        if not isinstance(entry, dict):
            raise DataError(f"ACEBench's data: {path}, line {number}: not a JSON object")
        entries.append(entry)
    return entries


def _task(entry: Mapping[str, Any], golds: Mapping[Any, Mapping[str, Any]], category: str, where: str) -> AceTask:
    id, functions = entry.get("id"), entry.get("function")
    if not isinstance(id, str) or not isinstance(entry.get("question"), str) or not isinstance(functions, list):
        raise DataError(f"{where}: a task lacks id, question or function")
    if not all(_is_function(one) for one in functions):
        raise DataError(f"{where}: a function of {id} is no object with a name and a schema of its arguments")
    if "ground_truth" not in golds.get(id, {}):
        raise DataError(f"{where}: {id} has no gold answer")
    return AceTask(
        id, category, entry["question"], tuple(functions), golds[id]["ground_truth"],
        str(entry.get("profile", "") or ""), str(entry.get("time", "") or ""),
    )  # fmt: skip


def _is_function(one: Any) -> bool:
    """Whether the check can read ``one``: a name, and a schema of objects where it has one."""
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        return False
    schema = one.get("parameters") or one.get("arguments") or {}
    if not isinstance(schema, dict) or not isinstance(schema.get("required") or [], list):
        return False
    properties = schema.get("properties") or {}
    return isinstance(properties, dict) and all(isinstance(value, dict) for value in properties.values())
