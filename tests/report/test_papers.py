"""Where an equation or a table is named by its number, the paper is named in full."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kit.command import output_of

PAPERS = (
    "Reach or Solve? Deep Diving into Agentic RL Gains with Checkpoint Handoffs",
    "Sharpening Tax in Post-Training",
)
NUMBER = re.compile(r"\b(?:Eq\.|Table|Figure|Appendix)\s+[0-9A-D]")
ROOT = Path(__file__).resolve().parents[2]


def named(text: str) -> bool:
    """Whether no number of a paper stands in a text without a paper's title."""
    words = " ".join(re.sub(r"[│┃*_]", " ", text).split())
    return not NUMBER.search(words) or any(paper in words for paper in PAPERS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    two = ("-p", "a=noisy:0.5", "-p", "b=noisy:0.1", "-q", "--workers", "0")
    study = ("run", "sokoban", *two, "--cross", "a,b", "--tasks", "6", "--slots", "2")
    output_of(*study, "--out", folder / "here")
    output_of(*study, "--seed", "7", "--selection-seed", "5", "--out", folder / "other")
    output_of("rollout", "sokoban", *two, "--tasks", "6", "-n", "4", "--out", folder / "rollouts")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("report", "here"),
        ("report", "here", "--json"),
        ("report", "rollouts"),
        ("report", "rollouts", "--json"),
        ("estimate", "here"),
        ("estimate", "here", "--json"),
        ("compare", "here", "other"),
        ("tax", "rollouts#a", "rollouts#b"),
        ("tax", "rollouts#a", "rollouts#b", "--json"),
        ("plan", "--pilot", "here", "--half-width", "0.9", "--repeats", "10", "--max-tasks", "2"),
    ],
    ids=" ".join,
)
def test_a_command_names_the_paper_of_its_numbers(
    command: tuple[str, ...], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    few = () if command[0] == "plan" or command[1] == "rollouts" else ("--draws", "100")
    text = output_of(*command, *few)
    assert named(json.dumps(json.loads(text), ensure_ascii=False) if "--json" in command else text)


def test_both_pages_name_the_paper_of_their_numbers(runs: Path, tmp_path: Path) -> None:
    output_of("report", runs / "here", "--draws", "100", "--html", tmp_path / "study.html")
    output_of("tax", f"{runs}/rollouts#a", f"{runs}/rollouts#b", "--draws", "10", "--html", tmp_path / "tax.html")
    for page, paper in (("study", PAPERS[0]), ("tax", PAPERS[1])):
        text = (tmp_path / f"{page}.html").read_text()
        assert NUMBER.search(text)
        assert paper in text


@pytest.mark.parametrize("command", ["report", "estimate", "transport", "compare", "plan", "tax"])
def test_no_help_has_a_number_of_an_unnamed_paper(command: str) -> None:
    assert named(output_of(command, "--help"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_no_page_of_the_docs_has_a_number_of_an_unnamed_paper(page: Path) -> None:
    assert named(page.read_text())


def test_a_number_without_a_title_is_found() -> None:
    assert not named("as in Eq. 10")
    assert named(f'as in Eq. 10 of "{PAPERS[0]}"')
