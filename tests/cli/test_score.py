"""``handoff score``: one row out per row in, whatever the rows are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.command import invoke

from handoff.envs.travelplanner.world import load


def test_every_row_comes_out_in_order_with_its_fields_and_a_verdict_or_an_error(tmp_path: Path) -> None:
    gold = load(None, None).gold["validation", 3]
    rows: list[object] = [
        {"note": "x", "split": "validation", "idx": 3, "plan": gold, "official": "old"},
        [1],
        {"split": "validation", "idx": 3, "plan": None},
        {"split": "test", "idx": 3, "plan": []},
        {"split": "validation", "idx": True, "plan": []},
        {"split": "validation", "idx": 3},
        {"split": "validation", "idx": 3, "plan": [], "query_changes": {"no": 1}},
        {"split": "validation", "idx": 3, "plan": [], "query_changes": {"budget": "much"}},
    ]
    file, out = tmp_path / "rows.jsonl", tmp_path / "scored.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), '{"half', "", '{"a": NaN}']) + "\n")
    result = invoke("score", "travelplanner", file, "--out", out)
    assert result.exit_code == 1
    assert "10 rows" in result.output
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(scored) == 10
    assert list(scored[0]) == ["note", "split", "idx", "plan", "official", "agent_star"]
    assert scored[0]["official"]["passed"] is scored[0]["agent_star"]["passed"] is True
    assert scored[2]["official"] == {"commonsense": None, "hard": None, "passed": False}
    errors = [row.get("error", "") for row in scored]
    words = ["", "not a JSON object", "", "does not have", "does not have", "no plan", "query_changes", "not a number"]
    for error, word in zip(errors, [*words, "not valid JSON", "not valid JSON"], strict=True):
        assert word in error
        assert bool(word) == bool(error)


@pytest.mark.parametrize(
    ("text", "arguments", "word"),
    [
        ("", (), "has no rows"),
        ("{}\n", ("--out", "/no/such/folder/x"), "there is no folder"),
        ("{}\n", ("--data", "/no/such"), "no such folder"),
        ("{}\n", ("--env-option", "evaluator=mine"), "no evaluator"),
    ],
)
def test_a_wrong_request_is_one_sentence(tmp_path: Path, text: str, arguments: tuple[str, ...], word: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    assert word in str(invoke("score", "travelplanner", file, *arguments).exception)


def test_an_environment_that_scores_no_rows_says_so(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("{}\n")
    assert "row-scorer" in str(invoke("score", "sokoban", file).exception)
