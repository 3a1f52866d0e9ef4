"""The parts for a plug-in's commands: the example of ``docs/adapters.md`` runs, and the toolkit uses the same parts."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import handoff
from handoff import plugin
from handoff.cli import numbers, options

ROOT = Path(handoff.__file__).parent
PAGE = Path(__file__).resolve().parents[1] / "docs" / "adapters.md"


def test_the_command_of_the_page_runs() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## A command of your own")[2]
    code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code, names)
    result = CliRunner().invoke(names["jugs"], ["--tasks", "2", "--json"])
    assert json.loads(result.output) == {"tasks": ["jugs-0", "jugs-1"]}
    assert CliRunner().invoke(names["jugs"], ["--tasks", "1"]).output == "jugs-0\n"
    assert "at least 1" in CliRunner().invoke(names["jugs"], ["--tasks", "0"]).output


def test_the_page_names_every_part() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}" in page for name in plugin.__all__ if name not in ("Number", "FilePath"))


def test_the_toolkits_commands_use_the_same_parts() -> None:
    assert numbers.SEED is plugin.SEED
    assert numbers.Whole is plugin.Whole
    assert options.PATH is plugin.PATH
    assert options.as_json is plugin.as_json


def test_no_other_module_of_the_root_imports_click() -> None:
    importers = set()
    for path in ROOT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(module.partition(".")[0] == "click" or module == "handoff.plugin" for module in modules):
                importers.add(path.name)
    assert importers == {"plugin.py"}
