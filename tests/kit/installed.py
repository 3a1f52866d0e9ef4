"""Install an example plug-in into its own folder, as a user would; read the commands of its documents."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def install(example: str, folder: Path) -> dict[str, str]:
    """Install ``examples/EXAMPLE`` below ``folder``; returns environment variables under which it is there."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("installing the example without a network needs pip here")
    require_wheels()
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


def require_wheels() -> None:
    """Skip the test where setuptools cannot build a wheel."""
    if not _builds_wheels():
        pytest.skip("building a wheel without a network needs setuptools>=70.1 here")


def commands(document: Path) -> list[list[str]]:
    """Arguments of each ``handoff`` command in the plain code blocks of a document."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("handoff ")]


def _builds_wheels() -> bool:
    """Whether setuptools can build a wheel here: since 70.1 by itself, before that with the package ``wheel``."""
    try:
        version = metadata.version("setuptools")
    except metadata.PackageNotFoundError:
        return False
    return tuple(map(int, version.split(".")[:2])) >= (70, 1) or importlib.util.find_spec("wheel") is not None
