"""The planner library that the benchmarks compare with, for tests: ``benchmarks/planner_library.py``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from planner_library import PlannerLibrary

__all__ = ["PlannerLibrary"]
