"""What the scripts say of their arguments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn


def refuse(reason: str) -> NoReturn:
    """End the script with one sentence and exit code 2."""
    print(reason, file=sys.stderr)
    raise SystemExit(2)


def stated(given: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a script, as JSON."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()}


def differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The names of arguments that differ; where the result goes does not count."""
    return ", ".join(sorted(f"--{name}" for name in {*one, *other} - {"out"} if one.get(name) != other.get(name)))
