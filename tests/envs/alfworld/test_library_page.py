"""The examples of ``docs/alfworld.md`` run as printed there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "alfworld.md"


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    one_game, many_games = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    exec(one_game, {})
    # The plan wins, and its length is the distance from the reset, which is more than 2.
    assert capsys.readouterr().out.splitlines() == ["True 0", "True False"]
    exec(many_games, {})
    # No random episode wins: each of 4 places ends floor(50 / 20) = 2 episodes by their length.
    assert capsys.readouterr().out == "8\n"
