"""Conversations with tools, shown in the text and by a server's own interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kit import talking
from kit.audits import by_name
from kit.command import invoke, output_of
from kit.talking import SUMS, TOOL, PlainSums
from kit.tool_server import adder, tool_server

from handoff.errors import DataError, UsageError
from handoff.messages.replies import as_text, call_text, read_call, read_reply
from handoff.policies import ModelOptions
from handoff.policies.bindings import make
from handoff.policies.language.actions import ActionRule, Reply
from handoff.policies.language.dialects import as_native
from handoff.policies.language.dialects import as_text as shown
from handoff.policies.language.prompts import Template
from handoff.policies.openai.answers import Answer
from handoff.policies.openai.schema import native
from handoff.policies.policy import Request, Turn
from handoff.protocols.recorded.study import load
from handoff.records import Message, Offer, Record, Task

FREE = Offer.of((), free=True)


@pytest.fixture(autouse=True)
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(talking.install(tmp_path / "site"))


def request(*replies: str) -> Request:
    """A request of the task ``two`` after these replies."""
    environment = PlainSums()
    task = environment.tasks("default")[0]
    reset = environment.reset(task, 0)
    history = tuple(Turn(reply, environment.step(reply), reply) for reply in replies)
    return Request(task, 7, reset, history, 5)


CALL = as_text("I ask.", [("Number", {"name": "ash"})])


def test_the_system_prompt_lists_the_tools_and_says_how_to_call_them() -> None:
    prompt = Template.named("tools").render(request())
    (role, system), (second, question) = prompt.messages
    assert (role, second) == ("system", "user")
    assert "- Number: Tell the number behind a name. Arguments: " + TOOL.parameters in system
    assert '<tool_call>\n{"name": "NAME OF THE TOOL"' in system
    assert question == "What is the sum of ash and elm?"


def test_in_the_text_replies_are_as_they_were_and_a_tools_answer_is_the_users() -> None:
    prompt = Template.named("tools").render(request(CALL, "Hm."))
    assert prompt.messages[2:] == (
        ("assistant", CALL),
        ("user", "<tool_response>\n2\n</tool_response>"),
        ("assistant", "Hm."),
    )


def test_messages_of_the_user_that_follow_one_another_are_one() -> None:
    messages = [Message("user", "a"), Message("assistant", "b"), Message("tool", "1"), Message("tool", "2")]
    assert shown([*messages, Message("user", "c")]) == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>\nc"),
    ]


def test_a_users_own_template_is_the_system_prompt(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text("Use {% for tool in tools %}{{ tool.name }}{% endfor %} for {{ task.type }}.")
    prompt = Template.named(str(path)).render(request())
    assert prompt.messages[0] == ("system", "Use Number for of-0.")
    with pytest.raises(DataError, match="--template tools"):
        Template.named("default").render(request())


def test_by_a_servers_interface_calls_and_answers_are_paired_by_ids() -> None:
    two = as_text("Both.", [("Number", {"name": "ash"}), ("Number", {"name": "elm"})])
    messages = [
        Message("system", "Add."), Message("user", "q"), Message("assistant", two), Message("tool", "2"),
        Message("tool", "7"), Message("assistant", CALL), Message("tool", "2"),
        Message("assistant", "<answer>9</answer>"),
    ]  # fmt: skip
    form = as_native("Add.", messages, (TOOL,))
    calls = [call for message in form["messages"] for call in message.get("tool_calls", ())]
    answers = [message for message in form["messages"] if message["role"] == "tool"]
    assert (
        [call["id"] for call in calls]
        == [answer["tool_call_id"] for answer in answers]
        == ["call_1", "call_2", "call_3"]
    )
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [
        {"name": "ash"},
        {"name": "elm"},
        {"name": "ash"},
    ]
    assert [message["content"] for message in form["messages"] if message["role"] == "assistant"] == [
        "Both.", "I ask.", "<answer>9</answer>",
    ]  # fmt: skip
    assert form["tools"][0]["function"]["parameters"]["required"] == ["name"]


@pytest.mark.parametrize(
    "reply", ["<tool_call>{</tool_call>", "<tool_call>[1]</tool_call>", '<tool_call>{"x": 1}</tool_call>']
)
def test_a_call_that_is_none_stays_text_and_its_answer_is_the_users(reply: str) -> None:
    form = as_native("", [Message("user", "q"), Message("assistant", reply), Message("tool", "Error.")], ())
    assert form["messages"][1:] == [{"role": "assistant", "content": reply}, {"role": "user", "content": "Error."}]


def test_a_run_by_a_servers_interface_succeeds_and_passes_its_audit(tmp_path: Path) -> None:
    with tool_server() as server:
        folder = tmp_path / "run"
        output_of(
            "run", "plain-sums", "--protocol", "recorded", "-p", f"m=openai:{server.url}#m", "-p", "gold=gold",
            "--cross", "m,gold", "--tools", "native", "--workers", 0, "-q", "--out", folder,
        )  # fmt: skip
    run = load(folder)
    assert all(scoring.passed for scoring in run.scorings.values())
    told = [body for body in server.bodies if "tools" in body]
    assert {body["tool_choice"] for body in told} == {"auto"}
    assert {body["tools"][0]["function"]["name"] for body in told} == {"Number"}
    # Each call is kept as the server wrote it, and read.
    texts = [
        step.decision.text for history in run.histories.values() if history.reacher == "m" for step in history.steps
    ]
    calls = [call for text in texts for call in read_reply(text).calls]
    assert len(calls) == sum(map(len, SUMS.values()))
    assert all(call.valid for call in calls)
    assert run.described["m"]["actions"]["tools"] == "native"
    checks = by_name(output_of("audit", folder, "--json", "-q", "--workers", 0))
    assert checks["prompts"]["state"] == "passed"
    assert checks["prompts"]["count"] >= len(texts)
    assert [name for name, check in checks.items() if check["state"] == "failed"] == []


def markup(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    message, finish = adder(body)
    if "tool_calls" in message:
        function = message["tool_calls"][0]["function"]
        text = f'<tool_call>{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}</tool_call>'
        return {"content": text}, "stop"
    return message, finish


def test_calls_that_the_server_left_in_the_text_are_not_carried_out(tmp_path: Path) -> None:
    with tool_server(markup) as server:
        folder = tmp_path / "run"
        form = json.loads(
            output_of(
                "run", "plain-sums", "--protocol", "recorded", "-p", f"m=openai:{server.url}#m", "--cross", "m",
                "--tools", "native", "--workers", 0, "-q", "--json", "--out", folder,
            )
        )  # fmt: skip
    assert form["reach"][0]["outcomes"] == {"markup": 4}
    assert form["cells"][0]["outcomes"] == {"markup": 4}
    decisions = [step.decision for history in load(folder).histories.values() for step in history.steps]
    assert {(decision.action, decision.status, decision.flags) for decision in decisions} == {
        (None, "no_action", ("unparsed_markup",))
    }
    checks = by_name(output_of("audit", folder, "--json", "-q", "--workers", 0))
    assert [name for name, check in checks.items() if check["state"] == "failed"] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{", "not valid JSON"), ("", "needs name"), ('{"name": 1}', "must be of the type string"),
        ("[1]", "not a JSON"),
        ('{"name": "ash", "x": 2}', "no argument 'x'"), ('{"name": NaN}', "not valid JSON"),
    ],
)  # fmt: skip
def test_bad_arguments_of_a_server_are_kept_and_answered(tmp_path: Path, arguments: str, problem: str) -> None:
    def model(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if any(message["role"] in ("tool", "assistant") for message in body["messages"]):
            return {"content": "<answer>0</answer>"}, "stop"
        call = {"id": "a", "type": "function", "function": {"name": "Number", "arguments": arguments}}
        return {"content": None, "tool_calls": [call]}, "stop"

    with tool_server(model) as server:
        folder = tmp_path / "run"
        output_of(
            "run", "plain-sums", "--protocol", "recorded", "-p", f"m=openai:{server.url}#m", "--cross", "m",
            "--tools", "native", "--workers", 0, "-q", "--out", folder,
        )  # fmt: skip
    first = [history.steps[0] for history in load(folder).histories.values()]
    assert all(problem in step.record.problem for step in first)
    assert all(read_reply(step.decision.text).calls for step in first)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("content", ["", "I call."])
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
def test_all_calls_of_a_reply_are_the_servers_and_none_is_left_in_the_text(
    count: int, content: str, finish: str
) -> None:
    calls = [("Number", json.dumps({"name": name})) for name in ("ash", "elm </tool_call>", "birch")[:count]]
    functions = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    message = {"role": "assistant", "content": content, "tool_calls": functions}
    form = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    output = native(Answer(form, {})).output
    rule = ActionRule("tagged", native=True)
    parsed = rule.parse(Reply(output.text, output.finish), FREE)
    assert (parsed.action, parsed.status) == (output.text, "parsed")
    read = read_reply(output.text)
    assert [(call.name, dict(call.arguments)) for call in read.calls] == [(n, json.loads(a)) for n, a in calls]
    parsed = rule.parse(Reply(f"[TOOL_CALLS] {output.text}", output.finish), FREE)
    assert (parsed.action, "unparsed_markup" in parsed.flags) == (None, True)


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", '{"a": 1', "x"])
def test_arguments_that_no_server_could_parse_again_are_not_sent_to_it(arguments: str) -> None:
    reply = call_text("Number", arguments)
    form = as_native("", [Message("user", "q"), Message("assistant", reply), Message("tool", "Error.")], ())
    assert form["messages"][1:] == [{"role": "assistant", "content": reply}, {"role": "user", "content": "Error."}]
    form = as_native(
        "", [Message("user", "q"), Message("assistant", call_text("Number", " ")), Message("tool", "E")], ()
    )
    assert form["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_options_and_policies_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(UsageError, match="leave out --tools native"):
        ModelOptions(tools="native", constrain=True)
    result = invoke("run", "sokoban", "-p", "a=plan", "--cross", "a", "--tasks", 3, "--slots", 1, "--workers", 0)
    assert "this environment has none" in str(result.exception)


@pytest.mark.parametrize("spec", ["hf:./x", "builtin:sft"])
def test_a_model_in_this_process_has_no_interface_for_tools(spec: str) -> None:
    with pytest.raises(UsageError, match="leave out --tools native"):
        make(spec, ModelOptions(tools="native"))


@pytest.mark.parametrize("format", ["tagged", "last_line", "json", "choice"])
def test_in_a_conversation_the_action_is_the_whole_reply(format: str) -> None:
    rule = ActionRule(format)
    for text in ("go", " two\nlines ", "<action>a</action>", CALL):
        parsed = rule.parse(Reply(text), FREE)
        assert (parsed.action, parsed.status) == (text, "parsed")
    assert rule.parse(Reply(CALL, "length"), FREE).flags == ("cut",)
    assert rule.parse(Reply("", "length"), FREE).status == "truncated"
    assert rule.parse(Reply(" \n"), FREE).status == "empty"


def test_an_open_action_is_parsed_in_every_format() -> None:
    offer = Record("", ("buy now",), 0.0, False, False, open_actions=("search[<...>]",)).offer()
    texts = {
        "tagged": "<action>search[red shoes]</action>", "last_line": "I look.\nsearch[red shoes]",
        "json": '{"action": "search[red shoes]"}', "choice": "search[red shoes]",
    }  # fmt: skip
    for format, text in texts.items():
        parsed = ActionRule(format).parse(Reply(text), offer)
        assert (parsed.action, parsed.status) == ("search[red shoes]", "parsed"), format
    assert ActionRule("tagged").parse(Reply("<action>search[]</action>"), offer).status == "inadmissible"
    parsed = ActionRule("tagged").parse(Reply("<action>Search[ Red shoes ]</action>"), offer)
    assert (parsed.action, parsed.flags) == ("search[Red shoes]", ("case_folded", "spaced"))


def test_open_actions_are_shown_in_prompts() -> None:
    record = Record("A shop.", ("back",), 0.0, False, False, open_actions=("search[<...>]",))
    asked = Request(Task("0", "t", "t", "t"), 0, record, (), 3)
    assert "- search[<...>]" in Template.named("default").render(asked).text
    assert "back; search[<...>]" in Template.named("turns").render(asked).text


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "not valid JSON"), ("null", "names no tool"), ('{"name": ""}', "names no tool"),
        ('{"name": 3}', "names no tool"),
        ('{"name": "a", "name": "b"}', "not valid JSON"), ('{"name": "a", "arguments": 3}', "not a JSON object"),
        ('{"name": "a", "arguments": "3"}', "not a JSON object"), ("[" * 100_001, "at most 100,000"),
        ('{"name": "a", "arguments": {"x": ' + "[" * 60 + "]" * 60 + "}}", "nested more than 32"),
        ('{"name": "a", "arguments": {"x": 1e999}}', "not valid JSON"),
    ],
)  # fmt: skip
def test_what_is_no_call_says_why(raw: str, problem: str) -> None:
    assert problem in read_call(raw).problem


def test_replies_from_a_file_are_read_by_name_or_id_and_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"task": "two", "replies": ["a", "b"]}\n\n{"task": "sum-one", "replies": []}\n')
    policy = make(f"calls:{path}", ModelOptions())
    (decision,) = policy.decide([request()])
    assert (decision.text, decision.status) == ("a", "parsed")
    (decision,) = policy.decide([request("x", "y")])
    assert (decision.text, decision.status) == ("", "empty")
    path.write_text('{"task": "two", "replies": ["a\u2028b"]}\n   \n{"task": "one", "replies": []}\n')
    assert make(f"calls:{path}", ModelOptions()).decide([request()])[0].text == "a\u2028b"
    twice = '{"task": "two", "replies": []}\n' * 2
    for text in (twice, "{", "[1]", '{"two": "a"}', '{"task": "two", "replies": [1]}\n', '{"a": []}\n{"b"'):
        path.write_text(text)
        with pytest.raises(DataError, match=r"calls\.jsonl"):
            make(f"calls:{path}", ModelOptions())
    result = invoke(
        "run", "plain-sums", "--protocol", "recorded", "-p", "a=calls:/no/such", "--cross", "a", "--dry-run"
    )
    assert "cannot read the file" in str(result.exception)
