"""Policy specs: ``name=spec`` bindings, and the policy that a spec means.

A spec is a kind with an optional argument after a colon: ``random``, ``expert``, ``noisy:0.3``, ``tempered:0.5``,
``actions:FILE``, for the small checkpoints that ship ``builtin:NAME``, and for other language models
``openai:URL#MODEL``, ``hf:CHECKPOINT``, ``vllm:CHECKPOINT`` (a folder, or a hub repository as
``OWNER/NAME[/SUBFOLDER][@REVISION]``).
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handoff.errors import UsageError
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy
from handoff.policies.scripted import Actions, Noisy, Random, Tempered


def _plain(kind: str, make: Callable[[], Policy]) -> Callable[[str | None], Policy]:
    def build(argument: str | None) -> Policy:
        if argument is not None:
            raise UsageError(f"policy {kind!r} takes no argument, but got {argument!r}")
        return make()

    return build


def _noisy(argument: str | None) -> Policy:
    try:
        epsilon = float(argument or "")
    except ValueError:
        raise UsageError(f"write noisy:EPS with a probability, such as noisy:0.3 (got {argument!r})") from None
    return Noisy(epsilon)


def _tempered(argument: str | None) -> Policy:
    try:
        temperature, habit = ([float(part) for part in (argument or "").split(":")] + [0.0])[:2]
        if (argument or "").count(":") > 1:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"write tempered:T or tempered:T:HABIT with numbers, such as tempered:0.5 (got {argument!r})"
        ) from None
    return Tempered(temperature, habit)


def _actions(argument: str | None) -> Policy:
    if not argument:
        raise UsageError("write actions:FILE with the file that holds the actions")
    return Actions(argument)


KINDS: Mapping[str, Callable[[str | None], Policy]] = {
    "random": _plain("random", Random),
    "expert": _plain("expert", lambda: Noisy(0.0)),
    "noisy": _noisy,
    "tempered": _tempered,
    "actions": _actions,
}


def _openai(argument: str, options: ModelOptions) -> Policy:
    from handoff.policies.openai.policy import OpenAIServer

    return OpenAIServer(argument, options)


def _hf(argument: str, options: ModelOptions) -> Policy:
    from handoff.policies.hf.policy import Transformers

    return Transformers(argument, options)


def _vllm(argument: str, options: ModelOptions) -> Policy:
    from handoff.policies.vllm import VLLM

    return VLLM(argument, options)


def _builtin(argument: str, options: ModelOptions) -> Policy:
    from handoff.policies.builtin import Builtin

    return Builtin(argument, options)


#: Kinds of language models; their libraries are imported when one is made.
MODELS: Mapping[str, Callable[[str, ModelOptions], Policy]] = {
    "openai": _openai,
    "hf": _hf,
    "vllm": _vllm,
    "builtin": _builtin,
}


def is_spec(text: str) -> bool:
    """Whether ``text`` is a policy spec (rather than a name that must be bound)."""
    kind, colon, _ = text.partition(":")
    return kind in KINDS or (kind in MODELS and bool(colon))


def make(spec: str, options: ModelOptions | None = None) -> Policy:
    """The policy that ``spec`` means; ``options`` are for language models.

    Raises :class:`~handoff.errors.UsageError` for an unknown kind, a bad argument, or a library that is not installed.
    """
    kind, colon, argument = spec.partition(":")
    if kind in MODELS:
        if not argument.strip():
            raise UsageError(f"policy {kind!r} needs an argument: {_FORMS[kind]}")
        return MODELS[kind](argument.strip(), options or ModelOptions())
    if kind not in KINDS:
        known = [*KINDS, *MODELS]
        near = difflib.get_close_matches(kind, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise UsageError(f"no policy kind is named {kind!r} ({hint})")
    return KINDS[kind](argument if colon else None)


def make_policies(specs: Mapping[str, str], models: Mapping[str, ModelOptions] | None = None) -> dict[str, Policy]:
    """The policies of a run by name; names of one model with equal options share one, so that it is loaded once."""
    models = models or {}
    made: dict[str, Policy] = {}
    for name, spec in specs.items():
        twin = next((other for other in made if specs[other] == spec and models.get(other) == models.get(name)), None)
        shared = twin is not None and spec.partition(":")[0] in MODELS
        made[name] = made[twin] if shared and twin is not None else make(spec, models.get(name))
    return made


async def introduce(policies: Mapping[str, Policy]) -> None:
    """Let every policy ask the outside who it is, all at once."""
    await asyncio.gather(*(policy.introduce() for policy in set(policies.values())))


def own_options(spec: str) -> dict[str, Any]:
    """Fields of :class:`ModelOptions` that a spec brings along: what is built in beside a checkpoint that ships."""
    if spec.partition(":")[0] != "builtin":
        return {}
    from handoff.policies import builtin

    return builtin.options()


_FORMS = {
    "builtin": "builtin:NAME, such as builtin:sft",
    "openai": "openai:URL#MODEL, such as openai:http://127.0.0.1:8000/v1#my-model",
    "hf": "hf:FOLDER or hf:OWNER/NAME[/SUBFOLDER][@REVISION]",
    "vllm": "vllm:FOLDER or vllm:OWNER/NAME[/SUBFOLDER][@REVISION]",
}


def bind(bindings: Sequence[str]) -> dict[str, str]:
    """``name=spec`` strings as a mapping.  Raises :class:`~handoff.errors.UsageError` for a malformed binding or a
    name that is bound twice."""
    bound: dict[str, str] = {}
    for binding in bindings:
        name, equals, spec = binding.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise UsageError(f"write -p NAME=SPEC, such as -p sft=noisy:0.3 (got {binding!r})")
        name, spec = name.strip(), spec.strip()
        if "/" in name or "," in name or not name.isprintable():
            raise UsageError(f"a policy's name holds no slash, comma or control character (got {name!r})")
        if bound.get(name, spec) != spec:
            raise UsageError(f"policy {name!r} is bound twice: to {bound[name]!r} and to {spec!r}")
        bound[name] = spec
    return bound


def resolve(
    names: Sequence[str], bound: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The spec of every name in ``names``: what it is bound to, or itself where the name is a spec, or what the
    environment means by it (``defaults``)."""
    defaults = defaults or {}
    specs = {}
    for name in names:
        if name in bound:
            specs[name] = bound[name]
        elif is_spec(name):
            specs[name] = name
        elif name in defaults:
            specs[name] = defaults[name]
        else:
            known = ", ".join(sorted({*bound, *defaults})) or "none"
            raise UsageError(f"policy {name!r} is not bound (bound: {known}); bind it by -p {name}=SPEC")
    return specs
