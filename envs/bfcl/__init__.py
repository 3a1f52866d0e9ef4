"""BFCL multi_turn_base: turns of a user, tools with state, and the benchmark's own checker after every turn."""

from handoff.envs.bfcl.adapter import BfclEnvironment

__all__ = ["BfclEnvironment"]
