"""Checks of an audit, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kit.command import invoke

from handoff.auditing.checks import Check
from handoff.episodes.start import Where
from handoff.protocols.audit import audit_run


def checks(folder: Path, *, replay: bool = False) -> dict[str, Check]:
    return {check.name: check for check in audit_run(folder, {}, Where(0), replay=replay).checks}


def failures(folder: Path, *, replay: bool = False) -> dict[str, list[str]]:
    """The failures of each check because of which the audit does not pass."""
    return {name: check.failures for name, check in checks(folder, replay=replay).items() if check.blocks}


def by_name(printed: str) -> dict[str, Any]:
    """The checks that ``handoff audit --json`` printed."""
    return {check["name"]: check for check in json.loads(printed)["checks"]}


def command_checks(folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and checks of ``handoff audit``."""
    result = invoke("audit", folder, "--json", "-q", "--workers", "0", *more)
    return result.exit_code, by_name(result.stdout)


def failed(folder: Path, *more: str) -> list[str]:
    """The checks because of which ``handoff audit`` does not pass, which its exit code must agree with."""
    code, checks = command_checks(folder, *more)
    names = [name for name, check in checks.items() if check["failures"] or check["due"]]
    assert code == (1 if names else 0)
    return names
