"""Commands of installed packages that are broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit import command


def installed(folder: Path, module: str) -> dict[str, str]:
    """Environment variables under which a package with the command ``odd``, ``broken:odd``, is installed."""
    (folder / "broken-1.0.dist-info").mkdir()
    (folder / "broken-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "broken-1.0.dist-info" / "entry_points.txt").write_text("[handoff.commands]\nodd = broken:odd\n")
    (folder / "broken.py").write_text(module)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([known] if known else [])])}


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("raise RuntimeError('half installed')\n", "RuntimeError: half installed"),
        ("raise SystemExit('bye')\n", "SystemExit: bye"),
        ("other = 1\n", "AttributeError: module 'broken' has no attribute 'odd'"),
        ("odd = 3\n", "it is no click command"),
    ],
)
def test_a_broken_command_is_a_sentence_and_keeps_the_help(module: str, reason: str, tmp_path: Path) -> None:
    environment = installed(tmp_path, module)
    refused = command.handoff("odd", env=environment)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"handoff: the command 'odd' cannot be loaded: {reason}\n"
    shown = command.handoff("--help", env=environment)
    assert shown.returncode == 0
    assert "rollout" in shown.stdout
    assert "cannot be loaded" in " ".join(shown.stdout.split())
