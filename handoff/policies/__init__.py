"""Policies: the interface, and ``name=spec`` parsing.

A spec is a kind with an optional argument after a colon: ``random``, ``expert``, ``noisy:0.3``, ``actions:FILE``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from handoff.errors import UsageError
from handoff.policies.base import Policy, Request, Turn, scripted
from handoff.policies.scripted import Actions, Noisy, Random


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


def _actions(argument: str | None) -> Policy:
    if not argument:
        raise UsageError("write actions:FILE with the file that holds the actions")
    return Actions(argument)


KINDS: Mapping[str, Callable[[str | None], Policy]] = {
    "random": _plain("random", Random),
    "expert": _plain("expert", lambda: Noisy(0.0)),
    "noisy": _noisy,
    "actions": _actions,
}


def is_spec(text: str) -> bool:
    """Whether ``text`` is a policy spec (rather than a name that must be bound)."""
    return text.partition(":")[0] in KINDS


def make(spec: str) -> Policy:
    """The policy that ``spec`` means.  Raises :class:`~handoff.errors.UsageError` for an unknown kind or a bad
    argument."""
    kind, colon, argument = spec.partition(":")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KINDS)}"
        raise UsageError(f"no policy kind is named {kind!r} ({hint})")
    return KINDS[kind](argument if colon else None)


def bind(bindings: Sequence[str]) -> dict[str, str]:
    """``name=spec`` strings as a mapping.  Raises :class:`~handoff.errors.UsageError` for a malformed binding or a
    name that is bound twice."""
    bound: dict[str, str] = {}
    for binding in bindings:
        name, equals, spec = binding.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise UsageError(f"write -p NAME=SPEC, such as -p sft=noisy:0.3 (got {binding!r})")
        name, spec = name.strip(), spec.strip()
        if "/" in name or "," in name or any(ord(c) < 32 for c in name):
            raise UsageError(f"a policy's name holds no slash, comma or control character (got {name!r})")
        if bound.get(name, spec) != spec:
            raise UsageError(f"policy {name!r} is bound twice: to {bound[name]!r} and to {spec!r}")
        bound[name] = spec
    return bound


def resolve(names: Sequence[str], bound: Mapping[str, str]) -> dict[str, str]:
    """The spec of every name in ``names``: what it is bound to, or itself where the name is a spec."""
    specs = {}
    for name in names:
        if name in bound:
            specs[name] = bound[name]
        elif is_spec(name):
            specs[name] = name
        else:
            known = ", ".join(sorted(bound)) or "none"
            raise UsageError(f"policy {name!r} is not bound (bound: {known}); bind it by -p {name}=SPEC")
    return specs


__all__ = ["KINDS", "Policy", "Request", "Turn", "bind", "is_spec", "make", "resolve", "scripted"]
