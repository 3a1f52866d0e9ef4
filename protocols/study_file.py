"""A study as one TOML file.

    environment = "alfworld"
    cross = ["sft", "rl"]              # or: reachers = [...], solvers = [...]

    [study]                            # the protocol's settings, named as its options are
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
A file holds no key, no password and no trust: API keys come from the environment, and games are trusted by the person
at the command line.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.errors import DataError, UsageError
from handoff.policies.bindings import own_options, relative_to, require_name
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import BUILTIN
from handoff.protocols.protocol import Protocol
from handoff.protocols.registry import OWN, load_protocol, plugins
from handoff.settings import Setting, settings

_TABLES = ("study", "environment_options", "models", "policies")


@attrs.frozen
class StudyFile:
    """The content of a study file."""

    name: str
    text: str
    environment: str | None = None
    #: Names of policies, by role of the protocol.
    roles: Mapping[str, tuple[str, ...]] = attrs.Factory(dict)
    #: The protocol's settings by field name.
    study: Mapping[str, Any] = attrs.Factory(dict)
    environment_options: Mapping[str, Any] = attrs.Factory(dict)
    #: Specs by name of the policy.
    bindings: Mapping[str, str] = attrs.Factory(dict)
    #: Options of every language model.
    models: Mapping[str, Any] = attrs.Factory(dict)
    #: Options of single policies, by name.
    own: Mapping[str, Mapping[str, Any]] = attrs.Factory(dict)

    def remark(self) -> dict[str, Any]:
        """The manifest's copy of it."""
        return {"name": self.name, "sha256": hashlib.sha256(self.text.encode()).hexdigest(), "text": self.text}


EMPTY = StudyFile("", "")


def load(path: Path, protocol: Protocol[Any, Any] | None = None) -> StudyFile:
    """Read a study file of ``protocol``; without one, only the part that all protocols share.

    Raises :class:`~handoff.errors.UsageError` if it cannot be read and :class:`~handoff.errors.DataError`, naming the
    key, if it is not one.
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
    reader = _Reader(path)
    # Without a protocol the file may be of any.
    designs = _installed() if protocol is None else [protocol]
    in_file = [(design, one) for design in designs for one in design.settings() if one.in_file]
    listed = [] if protocol is None else [one for _, one in in_file]
    roles = {one.name: one for design, one in in_file if one.field in design.roles}
    shorthand = ["cross"] if len(roles) > 1 else []
    reader.require_known(form, ["environment", *shorthand, *roles, *_TABLES], "")
    environment = form.get("environment")
    if environment is not None and not isinstance(environment, str):
        raise DataError(f"{path}: environment must be a name, not {environment!r:.60}")
    tables = {key: form.get(key, {}) for key in _TABLES}
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise DataError(f"{path}: {key} must be a table, not {table!r:.60}")
    settings_of_study = [one for one in listed if one.name not in roles]
    study = {} if protocol is None else reader.values(tables["study"], settings_of_study, "study.")
    of_study = dict.fromkeys(one.name for _, one in in_file if one.name not in roles)
    reader.require_known(tables["study"], of_study, "study.")
    bindings, own = reader.policies(tables["policies"])
    return StudyFile(
        path.name,
        text,
        environment,
        {} if protocol is None else reader.roles(form, roles),
        study,
        reader.environment_options(tables["environment_options"]),
        bindings,
        reader.model(tables["models"], "models."),
        own,
    )


def _installed() -> list[Protocol[Any, Any]]:
    """All protocols, but those whose package is broken."""
    designs = []
    for name in OWN | plugins():
        with contextlib.suppress(UsageError):
            designs.append(load_protocol(name))
    return designs


@attrs.frozen
class _Reader:
    file: Path

    def require_known(self, form: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
        for key in form:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
                raise DataError(f"{self.file}: {prefix}{key} is not known ({hint})")

    def values(self, form: Mapping[str, Any], known: Sequence[Setting], prefix: str) -> dict[str, Any]:
        """Values by field name, checked against their settings."""
        by_name = {one.name: one for one in known}
        self.require_known(form, by_name, prefix)
        return {by_name[key].field: self.value(value, by_name[key], prefix) for key, value in form.items()}

    def value(self, value: Any, stated: Setting, prefix: str) -> Any:
        key = f"{prefix}{stated.name}"
        if stated.word is not None and value == stated.word:
            return None
        if stated.repeats:
            return self.names(value, key)
        kinds = (int, float) if stated.kind is float else (stated.kind,)
        if type(value) not in kinds:
            words = f' or "{stated.word}"' if stated.word is not None else ""
            raise DataError(f"{self.file}: {key} must be {_KINDS[stated.kind]}{words}, not {value!r:.60}")
        problem = stated.problem(value)
        if problem is not None:
            raise DataError(f"{self.file}: {key} {problem}")
        return value

    def names(self, value: Any, key: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise DataError(f"{self.file}: {key} must be a list of strings")
        return tuple(value)

    def roles(self, form: Mapping[str, Any], known: Mapping[str, Setting]) -> dict[str, tuple[str, ...]]:
        if "cross" in form:
            if any(name in form for name in known):
                raise DataError(f"{self.file}: give either cross, or {' and '.join(known)}")
            names = self.names(form["cross"], "cross")
            return {one.field: names for one in known.values()}
        return {one.field: self.names(form[name], name) for name, one in known.items() if name in form}

    def policies(self, form: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Spec by name, and each policy's own options."""
        bindings, own = {}, {}
        for name, entry in form.items():
            where = f"policies.{name}"
            try:
                require_name(name)
            except UsageError as error:
                raise DataError(f"{self.file}: policies: {error}") from None
            if isinstance(entry, str):
                entry = {"spec": entry}
            if not isinstance(entry, dict) or not isinstance(entry.get("spec"), str):
                raise DataError(f'{self.file}: {where} needs a spec, such as spec = "hf:OWNER/NAME"')
            bindings[name] = relative_to(entry["spec"], self.file.parent)
            own[name] = self.model({key: value for key, value in entry.items() if key != "spec"}, f"{where}.")
        return bindings, own

    def environment_options(self, form: Mapping[str, Any]) -> dict[str, Any]:
        options = dict(form)
        if "trust_games" in options:
            raise DataError(f"{self.file}: trust_games is for the command line (--trust-games), not for a file")
        if isinstance(options.get("data"), str):
            options["data"] = self.path(options["data"])
        return options

    def model(self, form: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Options of a language model."""
        options = self.values(form, [one for one in settings(ModelOptions) if one.in_file], prefix)
        if "template" in options and options["template"] not in BUILTIN:
            options["template"] = self.path(options["template"])
        return options

    def path(self, text: str) -> str:
        """A path as the file means it: relative to the folder of the file."""
        path = Path(text).expanduser()
        return str(path if path.is_absolute() else self.file.parent / path)


_KINDS = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", dict: "a table"}


def model_options(
    specs: Mapping[str, str], file: StudyFile, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, ModelOptions]:
    """The options of each policy in ``specs`` (spec by name).

    The later counts more: the defaults (``defaults`` are the environment's), the spec's own, the file's for all models,
    the file's for this one, and those ``given`` on the command line.
    """
    return {
        name: ModelOptions(
            **{**(defaults or {}), **own_options(spec), **file.models, **file.own.get(name, {}), **given}
        )
        for name, spec in specs.items()
    }
