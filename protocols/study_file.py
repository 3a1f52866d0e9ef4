"""A study as one TOML file.

    environment = "alfworld"
    cross = ["sft", "rl"]              # or: reachers = [...], solvers = [...]

    [study]                            # the options of `handoff run` of the same names
    split = "valid_unseen"
    tasks = 30

    [environment_options]              # as --env-option
    engine = "compiled"

    [models]                           # options of every language model
    temperature = 0.4

    [policies]
    expert = "noisy:0.1"

    [policies.rl]                      # a spec, and options that this policy alone has
    spec = "openai:http://127.0.0.1:8001/v1#rl"
    template = "mine.jinja"            # paths are relative to the file

What is given on the command line counts more than the file.  Keys are checked: a name that is not known is an error.
No key, password or trust stands in the file: API keys come from the environment, and games are trusted by the person at
the command line.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.errors import DataError, UsageError
from handoff.policies import ModelOptions
from handoff.policies.language.prompts import BUILTIN
from handoff.policies.specs import own_options, relative_to
from handoff.settings import settings

_TOP: Mapping[str, type | tuple[type, ...]] = {
    "environment": str,
    "cross": list,
    "reachers": list,
    "solvers": list,
    "study": dict,
    "environment_options": dict,
    "models": dict,
    "policies": dict,
}
_STUDY: Mapping[str, type | tuple[type, ...]] = {
    "split": str,
    "types": list,
    "tasks": (int, str),
    "slots": int,
    "budget": int,
    "depth": int,
    "solver_budget": int,
    "seed": int,
    "selection_seed": int,
    "distances": int,
}
#: Where a range is not 1 to 1,000,000; as on the command line.
_RANGES = {"seed": (0, 2**63 - 1), "selection_seed": (0, 2**63 - 1), "depth": (1, 100), "distances": (1, 100)}


@attrs.frozen
class StudyFile:
    """What a file says.  ``study`` holds options of ``handoff run`` by their names, ``models`` the options of every
    language model and ``own`` those of single ones."""

    name: str
    text: str
    environment: str | None = None
    reachers: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    study: Mapping[str, Any] = attrs.Factory(dict)
    environment_options: Mapping[str, Any] = attrs.Factory(dict)
    bindings: Mapping[str, str] = attrs.Factory(dict)
    models: Mapping[str, Any] = attrs.Factory(dict)
    own: Mapping[str, Mapping[str, Any]] = attrs.Factory(dict)

    def remark(self) -> dict[str, Any]:
        """What the manifest keeps of it: all."""
        return {"name": self.name, "sha256": hashlib.sha256(self.text.encode()).hexdigest(), "text": self.text}


EMPTY = StudyFile("", "")


def load(path: Path) -> StudyFile:
    """Read a study file.

    Raises :class:`~handoff.errors.UsageError` if it cannot be read and :class:`~handoff.errors.DataError`, naming the
    key, if it is not one.
    """
    try:
        raw = files.read_input(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        text = raw.decode("utf-8")
        form = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOML and UTF-8 errors are ValueErrors
        raise DataError(f"{path} is not valid TOML: {error}") from error
    reader = _Reader(path)
    reader.check(form, _TOP, "")
    study = form.get("study", {})
    reader.check(study, _STUDY, "study.")
    for key, value in study.items():
        least, most = _RANGES.get(key, (1, 1_000_000))
        if type(value) is int and not least <= value <= most:
            raise DataError(f"{path}: study.{key} is from {least} to {most}, not {value!s:.30}")
    if isinstance(study.get("tasks"), str) and study["tasks"] != "all":
        raise DataError(f'{path}: study.tasks is a number or "all", not {study["tasks"]!r:.30}')
    if "types" in study:
        study = {**study, "types": reader.names(study["types"], "study.types")}
    reachers, solvers = reader.roles(form)
    models = reader.model(form.get("models", {}), "models.")
    bindings, own = {}, {}
    for name, entry in form.get("policies", {}).items():
        where = f"policies.{name}"
        if isinstance(entry, str):
            entry = {"spec": entry}
        if not isinstance(entry, dict) or not isinstance(entry.get("spec"), str):
            raise DataError(f'{path}: {where} needs a spec, such as spec = "hf:OWNER/NAME"')
        bindings[name] = relative_to(entry["spec"], path.parent)
        own[name] = reader.model({key: value for key, value in entry.items() if key != "spec"}, f"{where}.")
    options = dict(form.get("environment_options", {}))
    if "trust_games" in options:
        raise DataError(f"{path}: trust_games is for the command line (--trust-games), not for a file")
    if isinstance(options.get("data"), str):
        options["data"] = reader.path(options["data"])
    return StudyFile(path.name, text, form.get("environment"), reachers, solvers, study, options, bindings, models, own)


def _as_tuple(kinds: type | tuple[type, ...]) -> tuple[type, ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)


@attrs.frozen
class _Reader:
    file: Path

    def check(self, form: Mapping[str, Any], known: Mapping[str, type | tuple[type, ...]], prefix: str) -> None:
        for key, value in form.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
                raise DataError(f"{self.file}: {prefix}{key} is not known ({hint})")
            kinds = _as_tuple(known[key])
            if type(value) not in kinds:
                names = " or ".join(kind.__name__ for kind in kinds)
                raise DataError(f"{self.file}: {prefix}{key} must be {names}, not {value!r:.60}")

    def names(self, value: Sequence[Any], where: str) -> tuple[str, ...]:
        if not all(isinstance(name, str) for name in value):
            raise DataError(f"{self.file}: {where} must be a list of strings")
        return tuple(value)

    def roles(self, form: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if "cross" in form:
            if "reachers" in form or "solvers" in form:
                raise DataError(f"{self.file}: give either cross, or reachers and solvers")
            names = self.names(form["cross"], "cross")
            return names, names
        return self.names(form.get("reachers", []), "reachers"), self.names(form.get("solvers", []), "solvers")

    def model(self, form: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Options of a model, checked as far as names and types go."""
        known = {one.field: one for one in settings(ModelOptions) if one.in_file}
        self.check(form, {name: one.file_types for name, one in known.items()}, prefix)
        options = dict(form)
        for name, value in form.items():
            word = known[name].word
            if known[name].repeats:
                options[name] = self.names(value, f"{prefix}{name}")
            elif word is not None and value == word:
                options[name] = None
            elif word is not None and type(value) is str:
                raise DataError(f'{self.file}: {prefix}{name} must be a number or "{word}"')
        if "template" in options and options["template"] not in BUILTIN:
            options["template"] = self.path(options["template"])
        return options

    def path(self, text: str) -> str:
        """A path as the file means it: relative to where the file lies."""
        path = Path(text).expanduser()
        return str(path if path.is_absolute() else self.file.parent / path)


def model_options(specs: Mapping[str, str], file: StudyFile, given: Mapping[str, Any]) -> dict[str, ModelOptions]:
    """The options of each policy in ``specs`` (spec by name): the defaults, what the spec brings along, the file's for
    all, the file's for this one, and what was ``given`` on the command line, the later counting more."""
    return {
        name: ModelOptions(**{**own_options(spec), **file.models, **file.own.get(name, {}), **given})
        for name, spec in specs.items()
    }
