"""The cores of this machine."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """The number of cores that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)
