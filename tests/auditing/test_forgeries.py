"""Forged runs, each consistent in itself: an audit names the place, or ``docs/audit.md`` says why none can."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.forger import Forger
from kit.forgeries import FORGERIES, Forgery, verdict
from kit.forgery_runs import NEED_TORCH, RUNS

from handoff.episodes.start import Where
from handoff.protocols.audit import audit_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


@cache
def unknown_by_the_page() -> list[str]:
    """The first column of the page's table of what no audit can know."""
    text = PAGE.read_text("utf-8").partition("## What it cannot know")[2].partition("\n## ")[0]
    return [cell.strip() for cell in re.findall(r"^\|([^|]+)\|", text, re.MULTILINE)]


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Plays an honest run once; its folder."""
    played: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name in NEED_TORCH and not (find_spec("torch") and find_spec("transformers")):
            pytest.skip("the shipped checkpoints need torch and transformers")
        if name not in played:
            played[name] = tmp_path_factory.mktemp(name.replace(" ", "-")) / "run"
            RUNS[name](played[name])
        return played[name]

    return folder


@pytest.mark.parametrize("name", RUNS)
def test_an_honest_run_passes_and_stays_the_same_through_the_forger(
    name: str, honest: Callable[[str], Path], tmp_path: Path
) -> None:
    run = honest(name)
    assert audit_run(run, {}, Where(0)).passed
    forger = Forger.read(run)
    forger.settle()
    copy = forger.write(tmp_path / "copy")
    for file in ("manifest.json", "records.jsonl", "seal.json"):
        assert (copy / file).read_bytes() == (run / file).read_bytes(), "what follows was made as the toolkit makes it"


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: f"{one.run}: {one.name}")
def test_a_forged_run_is_found_or_the_page_says_why_not(
    forgery: Forgery, honest: Callable[[str], Path], tmp_path: Path
) -> None:
    found = verdict(forgery, honest(forgery.run), tmp_path / "forged")
    if forgery.unknowable is None:
        assert not found.passed, f"the audit passes; it should name {found.place}"
        assert found.sentence is not None, f"no sentence names {found.place}: {found.failures[:3]}"
    else:
        assert found.passed, f"the page says that nobody can know, but: {found.failures[:3]}"
        assert any(forgery.unknowable in item for item in unknown_by_the_page()), unknown_by_the_page()
        assert any(forgery.note in note for note in ["", *found.notes]), f"no note says {forgery.note!r}"


def test_the_suite_has_the_breadth_that_it_promises() -> None:
    assert len({(one.run, one.name) for one in FORGERIES}) == len(FORGERIES) >= 60
    assert {one.protocol for one in FORGERIES} == {"frontier", "rollouts"}
