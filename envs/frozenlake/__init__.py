"""FrozenLake: slippery 4x4 lakes, common random numbers, exact distances and values."""

from __future__ import annotations

from handoff.envs.frozenlake.adapter import FrozenLakeEnvironment

__all__ = ["FrozenLakeEnvironment"]
