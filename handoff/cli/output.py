"""The console of the commands."""

from __future__ import annotations

from handoff.plugin import Console, console

__all__ = ["Console", "console"]
