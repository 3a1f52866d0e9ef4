"""The time that templates are told: one per run, so that a prompt does not depend on the day it is rendered.

A time is text in ISO form to the second (``2026-07-30T12:00:00``), which the manifest states where a template reads the
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from handoff.errors import UsageError

#: Name of the function by which a template reads the clock, as chat templates call it.
READER = "strftime_now"


def iso(text: str) -> str:
    """``text`` in the form that manifests state.  Raises :class:`~handoff.errors.UsageError` if it is no time."""
    try:
        return datetime.fromisoformat(text).isoformat(timespec="seconds")
    except (TypeError, ValueError):
        raise UsageError(f"write --now as a date and time, such as 2026-07-30T12:00:00, not {text!r:.60}") from None


def present() -> str:
    """The time at this moment, on the machine's own clock."""
    return datetime.now().isoformat(timespec="seconds")


def reader(now: str) -> Callable[[str], str]:
    """``strftime_now`` of a clock that shows ``now``."""
    return datetime.fromisoformat(now).strftime
