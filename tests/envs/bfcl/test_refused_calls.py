"""Calls that the environment refuses: a message to the model, a spent call, and a call to the checker too."""

from __future__ import annotations

import pytest

from handoff.envs.bfcl.adapter import BfclEnvironment
from handoff.envs.bfcl.calls import bound, parse_call
from handoff.envs.bfcl.package import INSTALL, benchmark
from handoff.envs.bfcl.schemas import parameters
from handoff.messages.replies import as_text
from handoff.records import Task

pytest.importorskip("bfcl_eval", reason=f"needs bfcl-eval: {INSTALL}")


def tasks() -> dict[str, Task]:
    return {task.name: task for task in BfclEnvironment().tasks("multi_turn_base")}


def reply(id: str, texts: list[str]) -> str:
    calls = [parse_call(text) for text in texts]
    return as_text("", [(call.name, bound(call, parameters(id)[call.name])) for call in calls])


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "cd", "arguments": {"folder": ',
        '{"name": "nope", "arguments": {}}',
        '{"name": "__init__", "arguments": {}}',
        '{"name": "cd.__class__", "arguments": {}}',
        '{"name": "cd(folder=\\"document\\") or cd", "arguments": {"folder": "document"}}',
        '{"name": "cd", "arguments": {"class": 1}}',
        '{"name": "cd", "arguments": {}}',
        '{"name": "cd", "arguments": ["document"]}',
        '{"name": "cp", "arguments": {"source": "document", "destination": "b"}}',  # the task excludes it
        "[]",
        "cd(folder='document')",
    ],
)
def test_a_refused_call_has_a_message_and_changes_nothing(call: str) -> None:
    environment = BfclEnvironment()
    environment.reset(tasks()["multi_turn_base_0"], 0)
    record = environment.step(f"<tool_call>{call}</tool_call>")
    assert record.problem
    assert not record.done
    assert [message.role for message in record.messages] == ["tool"]
    directory = environment.step(as_text("", [("pwd", {})]))
    assert directory.observation == '{"current_working_directory": "/workspace"}'


def test_calls_of_wrong_types_have_the_benchmarks_own_words() -> None:
    environment = BfclEnvironment()
    environment.reset(tasks()["multi_turn_base_0"], 0)
    record = environment.step(as_text("", [("cd", {"folder": 5})]))
    assert record.observation == "Error during execution: 'int' object has no attribute 'rstrip'"


def test_a_turn_with_refused_calls_alone_is_not_a_turn_without_calls() -> None:
    # The last gold turn of this task only reads, so that its calls may as well be made one turn earlier.
    id = "multi_turn_base_1"
    gold = benchmark().answers[id]
    passed = []
    for last in (["Done."], [as_text("", [("nope", {})]), "Done."]):
        environment = BfclEnvironment()
        record = environment.reset(tasks()[id], 0)
        for calls in gold[:-2]:
            for action in (reply(id, calls), "Done."):
                record = environment.step(action)
        for action in (reply(id, [*gold[-2], *gold[-1]]), "Done.", *last):
            record = environment.step(action)
        assert record.done
        passed.append(record.won)
    assert passed == [False, True]
