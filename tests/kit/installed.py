"""Installs an example plug-in into a folder of its own, as a user would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def install(example: str, folder: Path) -> dict[str, str]:
    """Install ``examples/EXAMPLE`` below ``folder``; returns environment variables under which it is there."""
    if importlib.util.find_spec("pip") is None or not _builds_wheels():
        pytest.skip("installing the example without a network needs pip and setuptools>=70.1 here")
    source, target = folder / "source", folder / "site"
    shutil.copytree(ROOT / "examples" / example, source, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["install", "--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target", str(target)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command, str(source)],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{ROOT}", "COLUMNS": "120"}


def _builds_wheels() -> bool:
    """Whether setuptools can build a wheel here: since 70.1 by itself, before that with the package ``wheel``."""
    try:
        version = metadata.version("setuptools")
    except metadata.PackageNotFoundError:
        return False
    return tuple(map(int, version.split(".")[:2])) >= (70, 1) or importlib.util.find_spec("wheel") is not None
