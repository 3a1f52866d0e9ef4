"""Policies: the interface (:mod:`handoff.policies.policy`) and what a spec means (:mod:`handoff.policies.specs`)."""

from __future__ import annotations

from handoff.policies.kinds import Kind, Spec
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy, Request, Served, Turn, scripted
from handoff.policies.specs import bind, introduce, is_spec, make, make_policies, own_options, resolve

__all__ = [
    "Kind",
    "ModelOptions",
    "Policy",
    "Request",
    "Served",
    "Spec",
    "Turn",
    "bind",
    "introduce",
    "is_spec",
    "make",
    "make_policies",
    "own_options",
    "resolve",
    "scripted",
]
