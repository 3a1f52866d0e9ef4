"""The tool environment of the examples: installed from its own folder, and run as its documents say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kit import command
from kit.installed import ROOT, commands, install

EXAMPLE = ROOT / "examples" / "tools"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables under which the plug-in is installed, in a folder of its own."""
    return install("tools", tmp_path_factory.mktemp("plugin"))


def handoff(arguments: list[str], plugin: dict[str, str], cwd: Path) -> str:
    done = command.handoff(*arguments, env=plugin, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_the_commands_of_the_documents_work_in_the_order_given(plugin: dict[str, str], tmp_path: Path) -> None:
    listed = commands(ROOT / "docs" / "tools.md")
    assert len(listed) == 4
    for arguments in listed:
        assert handoff(arguments, plugin, tmp_path)
    assert [arguments for arguments in commands(EXAMPLE / "README.md") if arguments not in listed] == [["envs"]]
    form = json.loads(handoff(["report", "desk-run", "--json"], plugin, tmp_path))
    cells = {(cell["reacher"], cell["solver"]): cell for cell in form["counts"]["cells"]}
    # The careful one knows every answer; from its own history the careless one repeats its own last reply, an answer.
    assert cells["careful", "careful"]["passed"] == cells["careless", "careful"]["passed"] == 12
    assert cells["careless", "careless"]["passed"] == 12
    assert cells["careful", "careless"]["passed"] < 12


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    source = (EXAMPLE / "handoff_desk" / "__init__.py").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "tools.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    assert [block for block in blocks if block not in source] == []


def test_the_plugins_own_tests_pass_from_its_own_folder(plugin: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        capture_output=True, text=True, env=plugin, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_commands_about_recorded_histories_work_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "plans.jsonl").write_text('{"split": "validation", "idx": 0, "plan": []}\n')
    listed = commands(ROOT / "docs" / "recorded.md")
    assert len(listed) == 4
    for arguments in listed:
        done = command.handoff(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
