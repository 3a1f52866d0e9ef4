"""Every `handoff` command and every Python block of the README is run, in order, in one empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    found = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert found
    return found


def test_the_set_up_is_two_commands_and_the_second_runs_the_tests() -> None:
    first, second = (body.strip() for _, body in blocks()[:2])
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -c constraints.txt '.[test]' && ")
    assert ".venv/bin/handoff run alfworld " in first
    assert second == ".venv/bin/python -m pytest -n 2"


@pytest.mark.slow
def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    ran = 0
    for language, body in blocks()[2:]:
        if language == "sh":  # needs a checkpoint: what these commands do is tested where models are
            continue
        if language == "python":
            commands = [[sys.executable, "-c", body]]
        else:
            lines = [line for line in body.strip().splitlines() if line.startswith("handoff ")]
            commands = [[sys.executable, "-m", *shlex.split(line)] for line in lines]
        for command in commands:
            result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
            assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
            assert result.stdout.strip() or result.stderr.strip()
            ran += 1
    assert ran > 15


def test_every_script_and_page_that_the_readme_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:benchmarks|docs|examples)/[\w./-]+|[A-Z]+\.md)`", text))
    assert named
    assert [name for name in sorted(named) if not (README.parent / name).exists()] == []
