"""Where the optional shared data lies: beside the repository, or where ``HANDOFF_SHARED`` says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("HANDOFF_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def shared_path(relative: str) -> Path:
    """The shared file or folder; skips the calling test, with the reason, where it is absent."""
    path = ROOT / relative
    if not path.exists():
        pytest.skip(f"needs shared data that is not here: {relative}")
    return path
