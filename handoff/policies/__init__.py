"""Policies: the interface (:mod:`handoff.policies.policy`), specs, kinds and bindings."""

from __future__ import annotations

from handoff.policies.bindings import bind, introduce, is_spec, make, make_policies, own_options, resolve
from handoff.policies.kinds import Kind
from handoff.policies.language.options import ModelOptions
from handoff.policies.policy import Policy, Request, Served, Turn, scripted
from handoff.policies.specs import Spec

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
