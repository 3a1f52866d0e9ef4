"""Kinds of policies: the first word of a spec.

Built-in kinds are a table, and their modules are imported when such a policy is made.  A package adds a kind by the
entry point group ``handoff.policies``: the entry's name is the kind's name, its value a :class:`Kind`, or a subclass of
:class:`~handoff.policies.policy.Policy` that is called with the spec's argument (a string, or ``None`` without a
colon).  Nothing of a package is loaded before a spec of its kind is used.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from typing import Any

import attrs

from handoff import signals
from handoff.errors import DataError, HandoffError, UsageError
from handoff.guard.host_state import kept_if_alone
from handoff.policies.conversing import Calls, NoisyGold, Repeat
from handoff.policies.language.actions import FLAGS
from handoff.policies.language.model import CLAMPED, SCORED
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy
from handoff.policies.scripted import NO_PLAN, NOISE, Actions, Noisy, Random, Tempered
from handoff.policies.specs import Spec
from handoff.text import printable, reason

GROUP = "handoff.policies"


Build = Callable[[str | None, ModelOptions], Policy]
#: What is wrong with a policy's description in a manifest, given its spec; ``None``: nothing.
Fault = Callable[["Kind", Spec, Mapping[str, Any]], str | None]


def described_by_spec(kind: Kind, spec: Spec, facts: Mapping[str, Any]) -> str | None:
    """A fault unless the description is that of a policy made from the spec.

    Raises :class:`~handoff.errors.HandoffError` if the policy cannot be made here.
    """
    policy = kind.make(spec)
    if type(policy).introduce is not Policy.introduce:
        raise DataError("a part of its description comes from elsewhere")
    expected = {"spec": spec.text, **_guarded(spec, policy.describe)}
    return None if facts == expected else f"its spec {spec.text!r:.80} means {expected}, but it is described as {facts}"


def described_as_model(kind: Kind, spec: Spec, facts: Mapping[str, Any]) -> str | None:
    """A fault unless the description has every part that the audit of a language model reads."""
    if facts.get("kind") != kind.name:
        return f"its spec is {spec.text!r:.80}, but it is described as {facts.get('kind')!r:.40}"
    missing = [key for key in ("prompt", "actions", "sampling", "tokens") if key not in facts]
    return f"a language model is described without {', '.join(missing)}" if missing else None


def _described_by_digest(kind: Kind, spec: Spec, facts: Mapping[str, Any]) -> str | None:
    digest = facts.get("sha256")
    if not (isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)):
        return "the digest of its file is not one"
    expected = {"spec": spec.text, "kind": kind.name, "sha256": digest}
    return None if facts == expected else f"its spec {spec.text!r:.80} means {expected}, but it is described as {facts}"


@attrs.frozen
class Kind:
    """One kind of policy."""

    name: str
    #: How a spec is written, with an example: "noisy:EPS, such as noisy:0.3".  Without a colon there is no argument.
    form: str
    #: Makes a policy from the spec's argument and the options of language models.
    build: Build
    #: Whether it is a language model: it needs an argument, and policies of equal spec and options are one.
    is_language_model: bool = False
    #: Whether the argument is a path, which a study file takes from its own folder.
    takes_path: bool = False
    #: Fields of :class:`ModelOptions` that the kind sets where nobody else does.
    options: Callable[[], Mapping[str, Any]] = dict
    #: Remarks that its decisions can have; ``None``: any.
    flags: frozenset[str] | None = None
    #: How a description in a manifest follows from the spec.
    fault: Fault = attrs.field()

    @fault.default
    def _usual_fault(self) -> Fault:
        return described_as_model if self.is_language_model else described_by_spec

    def make(self, spec: Spec, options: ModelOptions | None = None) -> Policy:
        """The policy that ``spec`` means.  Raises :class:`~handoff.errors.HandoffError`, also for an error in a
        plug-in."""
        argument = spec.argument
        if argument is not None and ":" not in self.form:
            raise UsageError(f"policy {self.name!r} takes no argument, but got {argument!r}")
        if self.is_language_model:
            argument = (argument or "").strip()
            if not argument:
                raise UsageError(f"policy {self.name!r} needs an argument: {self.form}")
        policy = _guarded(spec, lambda: self.build(argument, options or ModelOptions()))
        if not isinstance(policy, Policy):
            raise UsageError(f"policy {spec.text!r:.80}: its plug-in makes a {type(policy).__name__}, not a Policy")
        return policy


def _guarded(spec: Spec, call: Callable[[], Any]) -> Any:
    """``call()``; any error of a plug-in's kind is one sentence."""
    try:
        with contextlib.nullcontext() if spec.kind in BUILTIN else kept_if_alone():
            return call()
    except HandoffError:
        raise
    except BaseException as error:
        if spec.kind in BUILTIN or signals.from_user(error):
            raise
        raise UsageError(f"policy {spec.text!r:.80} fails: {reason(error)}") from error


def _noisy(argument: str | None, options: ModelOptions) -> Policy:
    try:
        epsilon = float(argument or "")
    except ValueError:
        raise UsageError(f"write noisy:EPS with a probability, such as noisy:0.3 (got {argument!r})") from None
    return Noisy(epsilon)


def _tempered(argument: str | None, options: ModelOptions) -> Policy:
    try:
        temperature, habit = map(float, [*(argument or "").split(":"), "0"][:2])
        if (argument or "").count(":") > 1:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"write tempered:T or tempered:T:HABIT with numbers, such as tempered:0.5 (got {argument!r})"
        ) from None
    return Tempered(temperature, habit)


def _actions(argument: str | None, options: ModelOptions) -> Policy:
    if not argument:
        raise UsageError("write actions:FILE with the file that holds the actions")
    return Actions(argument)


def _noisy_gold(argument: str | None, options: ModelOptions) -> Policy:
    try:
        epsilon = float(argument or "")
    except ValueError:
        raise UsageError(
            f"write noisy-gold:EPS with a probability, such as noisy-gold:0.3 (got {argument!r})"
        ) from None
    return NoisyGold(epsilon)


def _calls(argument: str | None, options: ModelOptions) -> Policy:
    if not argument:
        raise UsageError("write calls:FILE with the file that holds the replies")
    return Calls(argument)


def _model(name: str, form: str, module: str, policy: str, **stated: Any) -> Kind:
    """A language model whose class is called ``policy`` in ``module``, which is imported when one is made."""

    def build(argument: str | None, options: ModelOptions) -> Policy:
        model: Policy = getattr(import_module(module), policy)(argument, options)
        return model

    return Kind(name, form, build, is_language_model=True, flags=MODEL_FLAGS, **stated)


def _checkpoint(name: str, module: str, policy: str) -> Kind:
    form = f"{name}:FOLDER or {name}:OWNER/NAME[/SUBFOLDER][@REVISION]"
    return _model(name, form, module, policy, takes_path=True)


def _builtin_options() -> Mapping[str, Any]:
    from handoff.policies import builtin

    return builtin.options()


#: Remarks that a language model's decisions can have.
MODEL_FLAGS = frozenset({*FLAGS, CLAMPED, SCORED})

BUILTIN: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("random", "random", lambda argument, options: Random(), flags=frozenset()),
        Kind("expert", "expert", lambda argument, options: Noisy(0.0), flags=frozenset({NO_PLAN})),
        Kind("noisy", "noisy:EPS, such as noisy:0.3", _noisy, flags=frozenset({NOISE, NO_PLAN})),
        Kind("tempered", "tempered:T[:HABIT], such as tempered:0.5", _tempered, flags=frozenset({NO_PLAN})),
        Kind("actions", "actions:FILE", _actions, takes_path=True, fault=_described_by_digest, flags=frozenset()),
        Kind("gold", "gold", lambda argument, options: NoisyGold(0.0), flags=frozenset({NO_PLAN})),
        Kind("noisy-gold", "noisy-gold:EPS, such as noisy-gold:0.3", _noisy_gold, flags=frozenset({NOISE, NO_PLAN})),
        Kind("calls", "calls:FILE", _calls, takes_path=True, fault=_described_by_digest, flags=frozenset()),
        Kind("plan", "plan", lambda argument, options: Repeat(), flags=frozenset()),
        _model(
            "openai",
            "openai:URL#MODEL, such as openai:http://127.0.0.1:8000/v1#my-model",
            "handoff.policies.openai.policy",
            "OpenAIServer",
        ),
        _checkpoint("hf", "handoff.policies.hf.policy", "Transformers"),
        _checkpoint("vllm", "handoff.policies.vllm", "VLLM"),
        _model(
            "builtin",
            "builtin:NAME, such as builtin:sft",
            "handoff.policies.builtin",
            "Builtin",
            options=_builtin_options,
        ),
    )
}
#: Built-in kinds without a model: their policies say their action and nothing else.
SCRIPTED = frozenset(name for name, kind in BUILTIN.items() if not kind.is_language_model)


def plugins() -> dict[str, metadata.EntryPoint]:
    """Entry points of installed kinds by name, nothing of them loaded yet.  Of two with one name the first by value
    counts, with a warning."""
    points: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if points.setdefault(point.name, point).value != point.value:
            warnings.warn(f"two policy kinds are named {point.name!r}; {point.value} is ignored", stacklevel=2)
    return points


def find(name: str) -> Kind:
    """The kind called ``name``; a built-in one counts more than a package's, with a warning.

    Raises :class:`~handoff.errors.UsageError` if there is none (with the nearest name) or its entry point is broken
    (with the reason).
    """
    points = plugins()
    if name in BUILTIN:
        if name in points:
            warnings.warn(f"policy kind {name!r} is built in; {points[name].value} is ignored", stacklevel=2)
        return BUILTIN[name]
    if name not in points:
        known = [*BUILTIN, *points]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise UsageError(f"no policy kind is named {name!r:.40} ({hint})")
    return _loaded(points[name])


def _loaded(point: metadata.EntryPoint) -> Kind:
    where = f"policy kind {point.name!r} (entry point {point.value})"
    try:
        value = point.load()
    except BaseException as error:
        if signals.from_user(error):
            raise
        raise UsageError(f"{where} cannot be loaded: {reason(error)}") from error
    if isinstance(value, Kind):
        return _contained(attrs.evolve(value, name=point.name))
    if isinstance(value, type) and issubclass(value, Policy):
        make: Callable[[str | None], Policy] = value
        return Kind(point.name, f"{point.name}[:ARGUMENT]", lambda argument, options: make(argument))
    raise UsageError(f"{where} is neither a handoff.policies.Kind nor a subclass of handoff.policies.Policy")


def _contained(kind: Kind) -> Kind:
    """A kind of a plug-in whose options and faults fail in one sentence."""

    def options() -> Mapping[str, Any]:
        options: Mapping[str, Any] = _guarded(Spec.parse(kind.name), lambda: dict(kind.options()))
        return options

    def fault(same: Kind, spec: Spec, facts: Mapping[str, Any]) -> str | None:
        fault = _guarded(spec, lambda: kind.fault(same, spec, facts))
        return None if fault is None else printable(str(fault))

    return attrs.evolve(kind, options=options, fault=fault)
