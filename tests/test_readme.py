"""The README and the pages that it sends its reader to: their commands run, their files exist, their size holds."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(body: str) -> list[str]:
    """The `handoff` commands of a block, with or without a prompt before them."""
    return re.findall(r"^(?:\$ )?(handoff .*)", body, re.MULTILINE)


def run(arguments: list[str], folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    environment["COLUMNS"] = "100"
    result = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
        timeout=800,
    )
    assert result.returncode == 0, f"{arguments}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    assert result.stdout.strip() or result.stderr.strip()
    return result.stdout


def test_the_set_up_is_two_commands_and_the_second_runs_the_tests() -> None:
    first, second = (body.strip() for _, body in blocks(README)[:2])
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -c constraints.txt '.[test]' && ")
    assert first.endswith(".venv/bin/handoff run alfworld --cross sft,rl")
    assert second == ".venv/bin/python -m pytest -n 2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "least"), [("README.md", 9), ("docs/commands.md", 17), ("docs/games.md", 4)], ids=lambda value: str(value)
)
def test_every_command_of_the_page_runs_and_prints_what_the_page_shows(page: str, least: int, tmp_path: Path) -> None:
    """Blocks of `sh` need a checkpoint, a server or a download: tests of models run those commands."""
    ran = 0
    for language, body in blocks(ROOT / page)[2 if page == "README.md" else 0 :]:
        if language in ("sh", "bibtex"):
            continue
        if language == "python":
            run(["-c", body], tmp_path)
            ran += 1
            continue
        printed = ""
        for command in commands(body):
            printed += run(["-m", *shlex.split(command)], tmp_path)
            ran += 1
        if language == "console":
            assert missing(body, printed) == []
    assert ran >= least


def missing(body: str, printed: str) -> list[str]:
    """The lines of a console block that its commands did not print.  Times and places differ and are not shown."""
    shown = [line for line in body.splitlines() if line and line != "..." and not line.startswith("$ ")]
    lines = {line.rstrip() for line in printed.splitlines()}
    return [line for line in shown if line not in lines]


def test_a_line_that_no_command_printed_is_missing() -> None:
    assert missing("$ handoff run x\na\n...\nb\n", "a\nc\n") == ["b"]


def test_every_script_page_and_picture_that_the_readme_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:benchmarks|docs|examples)/[\w./-]+|[A-Z]+\.md)`", text))
    linked = set(re.findall(r"\]\(([^)#:]+)\)", text))
    assert named
    assert len(linked) > 10
    assert [name for name in sorted(named | linked) if not (ROOT / name).exists()] == []


def test_the_readme_is_under_1200_words_and_its_picture_under_300_kB() -> None:
    assert len(README.read_text(encoding="utf-8").split()) < 1200
    picture = (ROOT / "docs" / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20], "big") == 1200  # the width, in the header of a PNG
    assert len(picture) < 300_000


def test_the_citation_file_has_what_its_format_asks_for() -> None:
    """Version 1.2.0 of the Citation File Format needs these four keys, and a type, authors and title per reference."""
    yaml = pytest.importorskip("yaml", reason="needs pyyaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["title"] == "handoff"
    assert all(author.get("name") or author.get("family-names") for author in citation["authors"])
    assert citation["type"] == "software"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    for reference in citation["references"]:
        assert reference["type"]
        assert reference["title"] in " ".join(README.read_text(encoding="utf-8").split())
        assert reference["authors"]
