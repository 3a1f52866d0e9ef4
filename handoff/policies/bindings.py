"""The policies of a run: ``name=spec`` bindings, and the policies that they mean (:mod:`handoff.policies.kinds`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from handoff.errors import MissingExtra, UsageError
from handoff.policies import kinds
from handoff.policies.guard import guarded
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy
from handoff.policies.specs import Spec
from handoff.text import command


def is_spec(text: str) -> bool:
    """Whether ``text`` is a policy spec (rather than a name that must be bound)."""
    spec = Spec.parse(text)
    if spec.kind not in kinds.BUILTIN:
        return spec.kind in kinds.plugins()
    return spec.kind in kinds.SCRIPTED or spec.argument is not None


def make(text: str, options: ModelOptions | None = None) -> Policy:
    """The policy that the spec ``text`` means; ``options`` are for language models.

    It is to be introduced (:func:`introduce`) before it is described.  Raises :class:`~handoff.errors.UsageError` for
    an unknown kind, a bad argument, or a library that is not installed.
    """
    return _make(text, text, options)


def _make(name: str, text: str, options: ModelOptions | None) -> Policy:
    """The policy of one name, which a sentence about a missing library names."""
    spec = Spec.parse(text)
    try:
        return kinds.find(spec.kind).make(spec, options)
    except MissingExtra as error:
        raise error.of(f"policy {name}" if name == text else f"policy {name} ({text})") from None


def make_policies(specs: Mapping[str, str], models: Mapping[str, ModelOptions] | None = None) -> dict[str, Policy]:
    """The policies of a run by name; names of one model with equal options share one, so that it is loaded once."""
    models = models or {}
    policies: dict[str, Policy] = {}
    shared: list[tuple[str, ModelOptions | None, Policy]] = []
    for name, text in specs.items():
        options = models.get(name)
        twin = next((policy for other, same, policy in shared if (other, same) == (text, options)), None)
        policies[name] = twin or _make(name, text, options)
        if kinds.find(Spec.parse(text).kind).is_language_model:
            shared.append((text, options, policies[name]))
    return policies


async def introduce(policies: Iterable[Policy] | Mapping[str, Policy]) -> None:
    """Introduce all ``policies``, together.  Raises what the first one that fails raises."""
    names = {id(policy): name for name, policy in policies.items()} if isinstance(policies, Mapping) else {}
    distinct = {id(policy): policy for policy in (policies.values() if isinstance(policies, Mapping) else policies)}

    async def one(policy: Policy) -> None:
        with guarded(policy, "introduce", names.get(id(policy))):
            await policy.introduce()

    try:
        async with asyncio.TaskGroup() as group:
            for policy in distinct.values():
                group.create_task(one(policy))
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__


def own_options(text: str) -> dict[str, Any]:
    """Fields of :class:`ModelOptions` that the spec's kind sets, such as those that a checkpoint was trained with."""
    kind = kinds.find(Spec.parse(text).kind)
    options = dict(kind.options())
    unknown = sorted(options.keys() - {field.name for field in attrs.fields(ModelOptions)})
    if unknown:
        raise UsageError(f"policy kind {kind.name!r} sets unknown options: {', '.join(unknown)}")
    return options


def relative_to(text: str, folder: Path) -> str:
    """The spec ``text`` with a path that begins with ``./`` or ``../`` taken from ``folder``."""
    spec = Spec.parse(text)
    if spec.argument is None or not spec.argument.startswith(("./", "../")) or not kinds.find(spec.kind).takes_path:
        return text
    return f"{spec.kind}:{folder / spec.argument}"


def require_name(name: str) -> None:
    """Raise :class:`~handoff.errors.UsageError` for what cannot be a policy's name on a command line."""
    if not name or name != name.strip():
        raise UsageError(f"a policy's name is not empty and has no blank at its ends (got {name!r})")
    if "/" in name or "," in name or not name.isprintable():
        raise UsageError(f"a policy's name holds no slash, comma or unprintable character (got {name!r:.60})")


def bind(bindings: Sequence[str]) -> dict[str, str]:
    """``name=spec`` strings as a mapping.  Raises :class:`~handoff.errors.UsageError` for a malformed binding or a
    name that is bound twice."""
    bound: dict[str, str] = {}
    for binding in bindings:
        name, equals, spec = binding.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise UsageError(f"write -p NAME=SPEC, such as -p sft=noisy:0.3 (got {binding!r})")
        name, spec = name.strip(), spec.strip()
        require_name(name)
        if bound.get(name, spec) != spec:
            raise UsageError(f"policy {name!r} is bound twice: to {bound[name]!r} and to {spec!r}")
        bound[name] = spec
    return bound


def resolve(
    names: Sequence[str], bound: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The spec of every name in ``names``: what it is bound to, or itself where it is a spec, or what the environment
    means by it (``defaults``, which count more than the kind of a package)."""
    defaults = defaults or {}
    specs = {}
    for name in names:
        if name in bound:
            specs[name] = bound[name]
        elif is_spec(name) and not (name in defaults and name not in kinds.BUILTIN):
            specs[name] = name
        elif name in defaults:
            specs[name] = defaults[name]
        else:
            if ":" in name:
                kinds.find(Spec.parse(name).kind)  # raises: a misspelt kind is likelier than a name with a colon
            known = ", ".join(sorted({*bound, *defaults})) or "none"
            raise UsageError(
                f"policy {name!r} is not bound (bound: {known}); bind it by {command('-p', f'{name}=SPEC')}"
            )
    return specs
