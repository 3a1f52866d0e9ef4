"""The console of the commands."""

from __future__ import annotations

from handoff.console import Console
from handoff.console import plain_console as console

__all__ = ["Console", "console"]
