"""Sokoban: 6x6 rooms with one box, seeded boards, exact distances."""

from __future__ import annotations

from handoff.envs.sokoban.adapter import SokobanEnvironment

__all__ = ["SokobanEnvironment"]
