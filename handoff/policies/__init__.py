"""Policies: the interface (:mod:`handoff.policies.policy`) and what a spec means (:mod:`handoff.policies.specs`)."""

from __future__ import annotations

from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy, Request, Served, Turn, scripted
from handoff.policies.specs import bind, is_spec, make, make_policies, own_options, resolve

__all__ = [
    "ModelOptions",
    "Policy",
    "Request",
    "Served",
    "Turn",
    "bind",
    "is_spec",
    "make",
    "make_policies",
    "own_options",
    "resolve",
    "scripted",
]
