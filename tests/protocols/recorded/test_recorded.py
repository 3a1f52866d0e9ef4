"""Recorded-history handoff in an environment whose endpoints are known by arithmetic."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit import talking
from kit.audits import by_name
from kit.command import handoff, invoke, output_of, start
from kit.runs import play, record_bytes, records, reseal
from kit.talking import NUMBERS, SUMS

import handoff as toolkit
from handoff.messages.history import conversation
from handoff.messages.replies import as_text
from handoff.policies.policy import Policy, Request, scripted
from handoff.protocols.recorded.cut import Cut
from handoff.protocols.recorded.study import load
from handoff.records import Decision
from handoff.seeds import SeedSchedule

TOTALS = {name: str(sum(NUMBERS[one] for one in names)) for name, names in SUMS.items()}
CALL = as_text("", [("Number", {"name": "ash"})])


@pytest.fixture(autouse=True)
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = talking.install(tmp_path / "site")
    monkeypatch.syspath_prepend(folder)
    tests = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(tests), os.environ.get("PYTHONPATH", "")]))


def replies(folder: Path, name: str, by_task: dict[str, Sequence[str]]) -> str:
    """The spec of a policy that says this, from position 0 on."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({task: list(texts) for task, texts in by_task.items()}))
    return f"{name}=calls:{path}"


def after_gold(*texts: str) -> dict[str, list[str]]:
    """Replies that go on with ``texts`` where the gold trajectory gives its answer."""
    return {
        task: ["no"] * len(names) + [text.replace("SUM", TOTALS[task]) for text in texts]
        for task, names in SUMS.items()
    }


def test_each_solver_budget_is_read_off_one_run(tmp_path: Path) -> None:
    specs = [
        "gold=gold",
        replies(tmp_path, "late", after_gold(CALL, CALL, "<answer>SUM</answer>")),
        replies(tmp_path, "wrong", after_gold("<answer>1</answer>")),
        replies(tmp_path, "talker", after_gold("I think it is SUM.", "<answer>SUM</answer>")),
        replies(tmp_path, "stray", after_gold(as_text("", [("Sum", {})]), "<answer>SUM</answer>")),
    ]
    names = [spec.partition("=")[0] for spec in specs]
    arguments = [word for spec in specs for word in ("-p", spec)]
    solvers = [word for name in names for word in ("--solver", name)]
    folder = tmp_path / "run"
    form = json.loads(
        output_of(
            "run", "plain-sums", "--protocol", "recorded", *arguments, "--reacher", "gold", *solvers, "--workers", 0,
            "--out", folder, "--json", "-q",
        )
    )  # fmt: skip
    passed = {cell["solver"]: list(cell["passed_at"].values()) for cell in form["cells"]}
    # Four tasks.  Two calls come before the late answer; talk and an unknown tool are absorbing.
    assert passed == {
        "gold": [4, 4, 4, 4], "late": [0, 0, 4, 4], "wrong": [0, 0, 0, 0], "talker": [0, 0, 0, 0], "stray": [0] * 4,
    }  # fmt: skip
    outcomes = {cell["solver"]: cell["outcomes"] for cell in form["cells"]}
    assert outcomes["talker"] == outcomes["stray"] == {"invalid": 4}
    assert output_of("audit", folder, "-q", "--workers", 0)


def test_a_solver_has_the_seed_of_the_cut_off_decision_and_its_successors(tmp_path: Path) -> None:
    late = replies(tmp_path, "late", after_gold(CALL, "<answer>SUM</answer>"))
    folder = play(
        tmp_path / "run", "run", "plain-sums", "--protocol", "recorded", "-p", "gold=gold", "-p", late,
        "--reacher", "gold", "--solver", "late", "--solver", "gold",
    )  # fmt: skip
    run = load(folder)
    for row, end in run.continuations.items():
        last = run.histories[row.cell].steps[-1].decision.seed
        assert [step.decision.seed for step in end.steps] == [last + place for place in range(len(end.steps))]
    assert {len(end.steps) for end in run.continuations.values()} == {1, 2}


def test_what_is_handed_over_is_the_message_list_before_the_cut(tmp_path: Path) -> None:
    folder = play(tmp_path / "run", "run", "plain-sums", "--protocol", "recorded", "--cross", "gold")
    run = load(folder)
    for end in run.continuations.values():
        history = run.histories[end.row.cell]
        turns = [(step.decision.text, step.record) for step in history.steps[: end.cut]]
        messages = conversation(history.reset, turns)
        names = SUMS[run.task(end.task).name]
        # A question, then a call and its answer per name.
        roles = ["user", *(["assistant", "tool"] * len(names))]
        assert [message.role for message in messages] == roles
        assert [message.content for message in messages if message.role == "tool"] == [str(NUMBERS[n]) for n in names]
        assert end.rebuilt is not None
        assert end.rebuilt.messages == len(messages)


@pytest.mark.parametrize(
    ("cut", "passes", "unreached"),
    # Gold needs a call per name and the answer: 3, 4, 3 and 2 decisions.
    [("final", 4, 0), ("call:1", 2 + 1, 0), ("call:3", 3, 1), ("call:4", 1, 3), ("turn:1", 4, 0), ("turn:2", 0, 4)],
)
def test_the_cut_is_a_function_of_the_recorded_run(tmp_path: Path, cut: str, passes: int, unreached: int) -> None:
    folder = tmp_path / "run"
    form = json.loads(
        output_of(
            "run", "plain-sums", "--protocol", "recorded", "--cross", "gold", "--cut", cut, "--solver-budget", 3,
            "--workers", 0, "--out", folder, "--json", "-q",
        )
    )  # fmt: skip
    # With three decisions gold passes where at most three are left.
    (cell,) = form["cells"]
    expected = passes if cut != "turn:1" else 3
    assert (cell["passed"], cell["outcomes"].get("unreached", 0)) == (expected, unreached)
    audit = by_name(output_of("audit", folder, "--json", "-q", "--workers", 0)) if unreached < 4 else {}
    assert all(check["state"] != "failed" for check in audit.values())


@pytest.mark.parametrize("cut", ["last", "turn", "call:0", "call:-1", "turn:x", "final:1", "call:01", "turn: 1"])
def test_another_cut_is_refused_in_one_sentence(cut: str) -> None:
    result = invoke("run", "plain-sums", "--protocol", "recorded", "--cross", "gold", "--cut", cut)
    assert "no cut is written" in str(result.exception)
    assert Cut.parse("turn:last").number is None


def test_workers_change_no_byte(tmp_path: Path) -> None:
    command = [
        "run", "sums", "--protocol", "recorded", "-p", "a=gold", "-p", "b=noisy-gold:0.5", "--cross", "a,b",
        "--slots", 3,
    ]  # fmt: skip
    alone = play(tmp_path / "alone", *command)
    output_of(*command, "--workers", 2, "-q", "--out", tmp_path / "two")
    assert record_bytes(alone) == record_bytes(tmp_path / "two")


class Flaky(Policy):
    """A formatter whose first reply to the answer 9 is empty."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        answer = request.messages()[-1].content
        first = SeedSchedule(2027).decision(request.task.id, 0, "format", 0)
        empty = answer == "9" and request.seed == first
        return scripted(request, None if empty else json.dumps({"sum": answer}))


def test_an_empty_reply_of_the_formatter_is_asked_for_once_more(tmp_path: Path) -> None:
    # The sum 9 is the answer of the task "two" alone, 10 that of "three" and "pair", 5 that of "one".
    config = {"reachers": ["gold"], "solvers": ["gold", "again"], "formatter": "flaky", "slots": 2}
    policies: dict[str, Any] = {"gold": "gold", "again": "gold", "flaky": Flaky()}
    run = toolkit.run("sums", policies=policies, protocol="recorded", out=tmp_path / "run", workers=0, **config)
    counts = run_summary(run)["formatting"]
    # 4 tasks x 2 slots x 2 solvers.  Equal answers share a call whatever the task: three sums.
    assert (counts["rows"], counts["calls"], counts["unique_empties"]) == (16, 3, 1)
    assert (counts["rows_affected"], counts["rows_unaffected"], counts["repaired"]) == (4, 12, 4)
    assert all(scoring.passed for scoring in run.scorings.values())
    repaired = [one for one in run.repairs.values() if one.call is not None]
    assert {one.answer for one in repaired} == {"9"}


def run_summary(run: Any) -> dict[str, Any]:
    from handoff.protocols.recorded import RECORDED

    return RECORDED.summary(run)


def test_a_history_that_cannot_be_rebuilt_is_no_clone(tmp_path: Path) -> None:
    result = invoke(
        "run", "forgetful", "--protocol", "recorded", "--cross", "gold", "--workers", 0, "--out", tmp_path / "run", "-q"
    )
    assert "of the rebuilt list is not the recorded one" in str(result.exception)


def _flip(body: Any) -> None:
    body["verdict"]["passed"] = not body["verdict"]["passed"]


def _answer(body: Any) -> None:
    body["answer"] = "8"


def _reply(body: Any) -> None:
    body["decision"]["text"] = body["decision"]["action"] = '{"sum": "9"}'


def _read(body: Any) -> None:
    body["answer"] = "11"


def _call(body: Any) -> None:
    body["call"] = "0" * 64


def _message(body: Any) -> None:
    body["steps"][0]["record"]["observation"] = "4"


def _seed(body: Any) -> None:
    body["steps"][0]["decision"]["seed"] += 1


def _cut(body: Any) -> None:
    body["cut"] += 1


def _rebuilt(body: Any) -> None:
    body["rebuilt"]["messages_digest"] = "0" * 64


def _outcome(body: Any) -> None:
    body["outcome"] = "decisions"


@pytest.mark.parametrize(
    ("kind", "change", "check"),
    [
        ("verdict", _flip, "scores"),
        ("continuation", _answer, "rebuilt"),
        ("continuation", _seed, "seeds"),
        ("continuation", _cut, "protocol"),
        ("continuation", _rebuilt, "protocol"),
        ("formatting", _reply, "decisions"),
        ("formatting", _read, "formatted"),
        ("formatting", _call, "formatted"),
        ("recorded", _message, "replay"),
        ("recorded", _outcome, "protocol"),
    ],
)
def test_a_forged_record_fails_the_audit(tmp_path: Path, kind: str, change: Any, check: str) -> None:
    folder = play(tmp_path / "run", "run", "sums", "--protocol", "recorded", "--cross", "gold", "--tasks", 2)
    forged = records(folder)
    body = next(body for key, body in forged if key[0] == kind)
    change(body)
    reseal(folder, forged)
    result = invoke("audit", folder, "--json", "-q", "--workers", 0)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    checks = by_name(result.output)
    assert checks[check]["state"] == "failed"
    assert any("task " in failure for failure in checks[check]["failures"])


def test_the_report_has_endpoints_and_effects_and_no_reach_or_solve(tmp_path: Path) -> None:
    folder = play(
        tmp_path / "run", "run", "sums", "--protocol", "recorded", "-p", "a=gold", "-p", "b=noisy-gold:0.5",
        "--cross", "a,b", "--slots", 2,
    )  # fmt: skip
    text = output_of("report", folder)
    assert "interaction, a → b" in text
    assert "Endpoints with B = 1" in text
    assert "Reach: who arrives" not in text
    assert "Solve: from identical states" not in text
    output_of("report", folder, "--html")
    form = json.loads((folder / "report.json").read_text())
    assert [one["budget"] for one in form["budgets"]] == [1, 2, 3, 4]
    output_of("export", folder)
    assert (folder / "export" / "endpoints.csv").exists()


def test_twenty_kills_change_no_byte(tmp_path: Path) -> None:
    command = [
        "run", "travelplanner", "--protocol", "recorded", "-p", "sft=noisy-gold:0.5", "-p", "rl=gold", "--cross",
        "sft,rl", "--slots", "2", "--workers", "0", "-q",
    ]  # fmt: skip
    whole = handoff(*command, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    folder, kills = tmp_path / "killed", 0
    for count in range(1, 40):
        child = start(*command, "--out", folder)
        journal, deadline = folder / "journal.jsonl", time.monotonic() + 120
        before = _lines(journal)
        while child.poll() is None and _lines(journal) < before + 25 and time.monotonic() < deadline:
            time.sleep(0.002)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.communicate(timeout=120)
        if kills == 20 or child.returncode == 0:
            break
        assert count < 39
    assert kills >= 20
    finished = handoff(*command, "--out", folder)
    assert finished.returncode == 0, finished.stderr
    assert record_bytes(folder) == record_bytes(tmp_path / "whole")


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_world_without_messages_has_no_recorded_histories_and_the_other_way_round() -> None:
    result = invoke("run", "sokoban", "--protocol", "recorded", "--cross", "expert", "--dry-run")
    assert "whose state is a message list" in str(result.exception)
    result = invoke("run", "plain-sums", "--cross", "gold", "--dry-run")
    assert "--protocol recorded" in str(result.exception)
    result = invoke(
        "run", "plain-sums", "--protocol", "recorded", "--cross", "gold", "--formatter", "f=gold", "--dry-run"
    )
    assert "leave out --formatter" in str(result.exception)
