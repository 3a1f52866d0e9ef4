"""Recorded histories with language models: a formatter behind a server, a small model on its own history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kit import talking
from kit.audits import by_name
from kit.command import output_of
from kit.tool_server import tool_server

from handoff.protocols.recorded.study import load


@pytest.fixture(autouse=True)
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(talking.install(tmp_path / "site"))


def judge(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    return {"content": json.dumps({"sum": body["messages"][-1]["content"]})}, "stop"


def test_a_formatter_behind_a_server_is_asked_once_per_query_and_answer(tmp_path: Path) -> None:
    with tool_server(judge) as server:
        folder = tmp_path / "run"
        output_of(
            "run", "sums", "--protocol", "recorded", "-p", "a=gold", "-p", "b=gold", "--cross", "a,b", "--slots", 2,
            "--formatter", f"judge=openai:{server.url}#m", "--workers", 0, "-q", "--out", folder,
        )  # fmt: skip
    run = load(folder)
    assert run.config.formatter == "judge"
    assert all(scoring.passed for scoring in run.scorings.values())
    asked = [body["messages"] for body in server.bodies if body["messages"][0]["role"] == "system"]
    # The formatter's own instructions, and the answer alone; nothing of tools.
    assert {messages[0]["content"] for messages in asked} == {"Write the number as JSON."}
    assert sorted(messages[1]["content"] for messages in asked) == ["10", "5", "9"]
    checks = by_name(output_of("audit", folder, "--json", "-q", "--workers", 0))
    assert checks["formatted"]["state"] == "passed"
    assert [name for name, check in checks.items() if check["state"] == "failed"] == []


def test_a_greedy_model_that_meets_its_own_history_begins_with_its_own_reply(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from kit.checkpoints import make

    model = make(tmp_path / "model", seed=3)
    folder = tmp_path / "run"
    output_of(
        "run", "plain-sums", "--protocol", "recorded", "-p", f"small=hf:{model}", "--cross", "small",
        "--temperature", 0, "--max-new-tokens", 8, "--decisions", 3, "--rows", 2, "--dtype", "float32",
        "--prompt-form", "text", "--workers", 0, "-q", "--out", folder,
    )  # fmt: skip
    run = load(folder)
    assert {history.outcome for history in run.histories.values()} <= {"decisions", "ended"}
    checks = by_name(output_of("audit", folder, "--json", "-q", "--workers", 0))
    assert (checks["diagonal"]["state"], checks["diagonal"]["count"]) == ("passed", 4)
    assert checks["prompts"]["state"] == "passed"
    for end in run.continuations.values():
        assert end.cut is not None
        own = run.histories[end.row.cell].steps[end.cut].decision
        first = end.steps[0].decision
        assert (first.text, first.prompt_digest, first.seed) == (own.text, own.prompt_digest, own.seed)
