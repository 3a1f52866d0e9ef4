"""A study of many pairs as one TOML file.

budget = 128                       # rollouts per task; default: the fewest that a task has

[[pair]]
name = "gemma-4-31B"               # default: the names of both policies
family = "Gemma-4"                 # optional
benchmark = "WebShop"              # optional
base = "webshop/base.csv"          # counts, or RUN#POLICY; relative to this file
post = "webshop/post.csv"          # or a list: several post-trained policies of one base

[[pair]]
base = "sokoban/base.csv"
post = {ppo = ["ppo-1.csv", "ppo-2.csv"], ptgs = "ptgs.csv"}    # runs by recipe
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.errors import DataError, UsageError

_KEYS = ("name", "family", "benchmark", "base", "post")


@attrs.frozen
class PairEntry:
    """One base and one post-trained policy by the paths of their counts."""

    base: str
    post: str
    #: "" where it is not stated.
    name: str = ""
    family: str = ""
    benchmark: str = ""
    recipe: str = ""
    #: The entry has several post-trained policies: its name is not that of one pair.
    several: bool = False


@attrs.frozen
class PairsFile:
    """The content of a study of pairs."""

    entries: tuple[PairEntry, ...]
    budget: int | None = None


def read_pairs_file(path: Path) -> PairsFile:
    """Read a study of pairs.

    Raises :class:`~handoff.errors.UsageError` if the file cannot be read and :class:`~handoff.errors.DataError`, naming
    the key, if it is not one.
    """
    try:
        text = files.read_text(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {files.cause(error)}") from error
    try:
        # TOML knows two of the three line endings.
        form = tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid TOML: {error}") from error
    _require_known(path, form, ("budget", "pair"), "")
    budget, tables = form.get("budget"), form.get("pair")
    if budget is not None and (type(budget) is not int or budget < 2):
        raise DataError(f"{path}: budget must be a whole number of at least 2, not {budget!r:.60}")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise DataError(f"{path} has no pairs; write a table [[pair]] with base and post for each")
    entries = [entry for number, table in enumerate(tables, 1) for entry in _entries(path, f"pair {number}", table)]
    return PairsFile(tuple(entries), budget)


def _entries(path: Path, where: str, table: Mapping[str, Any]) -> Iterator[PairEntry]:
    _require_known(path, table, _KEYS, f"{where}: ")
    words = {key: _word(path, f"{where}: {key}", table[key]) for key in ("name", "family", "benchmark") if key in table}
    for key in ("base", "post"):
        if key not in table:
            raise DataError(f"{path}: {where} needs {key}, the path of its counts or RUN#POLICY")
    base = _path(path, f"{where}: base", table["base"])
    post, runs = table["post"], [("", table["post"])]
    if isinstance(post, dict):
        runs = [(_word(path, f"{where}: a recipe", recipe), each) for recipe, each in post.items()]
    listed = [
        (recipe, _path(path, f"{where}: post", one))
        for recipe, each in runs
        for one in (each if isinstance(each, list) else [each])
    ]
    if not listed:
        raise DataError(f"{path}: {where}: post is empty; name at least one post-trained policy")
    for recipe, one in listed:
        yield PairEntry(base, one, **words, recipe=recipe, several=len(listed) > 1)


def _require_known(path: Path, form: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    for key in form:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise DataError(f"{path}: {prefix}{key!r:.60} is not known ({hint})")


def _word(path: Path, where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise DataError(f"{path}: {where} is {value!r:.60}, not a name")
    return value


def _path(path: Path, where: str, value: Any) -> str:
    """A path of the file, relative to its folder."""
    return str(path.parent / _word(path, where, value))
