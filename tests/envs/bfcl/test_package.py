"""The package bfcl-eval: the command that installs it where it is absent, and its tools as JSON Schema."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handoff.envs.bfcl import package
from handoff.errors import UsageError


def test_an_absent_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    package.benchmark.cache_clear()
    monkeypatch.setitem(sys.modules, "bfcl_eval", None)
    with pytest.raises(UsageError, match=r"pip install --no-deps bfcl-eval==2026\.3\.23 mpmath==1\.3\.0"):
        package.benchmark()


def test_the_gate_installs_the_version_that_the_message_names() -> None:
    gate = Path(__file__).resolve().parents[3] / ".ci" / "run"
    assert package.INSTALL.removeprefix("pip install --no-deps ") in gate.read_text()
