"""The console of the commands."""

from __future__ import annotations

from handoff.progress import Console
from handoff.progress import plain_console as console

__all__ = ["Console", "console"]
