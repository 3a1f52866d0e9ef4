"""Model text to action: every case that broke a parser somewhere, under the declared rules."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoff.errors import UsageError
from handoff.policies.language.actions import FLAGS, FORMATS, ActionRule, Parsed, Reply
from handoff.records import STATUSES

COMMANDS = ("go to desk 1", "go to desk 10", "look")


def parse(text: str, format: str = "tagged", strict: bool = False, **reply: str) -> Parsed:
    return ActionRule(format, strict).parse(Reply(text, **reply), COMMANDS)


@pytest.mark.parametrize(
    ("text", "action", "status", "flags"),
    [
        ("<think>a</think><action>Go To Desk 1</action>", "go to desk 1", "parsed", ("case_folded",)),
        ("I would open it", None, "no_action", ()),
        ("</action> <action>look</action>", "look", "parsed", ("surplus",)),
        (
            "<think>try <action>look</action>?</think><action>go to desk 1</action>",
            "go to desk 1",
            "parsed",
            ("tags_in_think",),
        ),
        (
            "<think>x</think><action>look</action><action>go to desk 1</action>",
            "look",
            "parsed",
            ("multi", "surplus"),
        ),
        ("<action>fly</action>", "fly", "inadmissible", ()),
        ("<think>我看看</think><action>look</action>", "look", "parsed", ("cjk",)),
        ("note <think>x</think><action>look</action> bye", "look", "parsed", ("surplus",)),
        (
            "<action>look</action> Observation: you see a key <action>take key 1</action>",
            "look",
            "parsed",
            ("multi", "surplus"),
        ),
        ("it helps to look. </think> <action>look</action>", "look", "parsed", ()),
        ("<action> look </action>", "look", "parsed", ()),
        ("<action>go  to\ndesk 1</action>", "go to desk 1", "parsed", ("spaced",)),
        ("<ACTION>look</ACTION>", "look", "parsed", ()),
        ("<action></action>", None, "no_action", ()),
        ("<action>go <action>look</action>", "look", "parsed", ("surplus",)),
        ("<think>I think <action>look</action>", "look", "parsed", ("surplus", "think_unclosed")),
        ("", None, "empty", ()),
        (" \n\t", None, "empty", ()),
    ],
)
def test_tagged_replies_are_read_by_the_declared_rule(
    text: str, action: str | None, status: str, flags: tuple[str, ...]
) -> None:
    assert parse(text) == Parsed(action, status, flags)


def test_strict_takes_one_action_after_the_thinking_and_nothing_beside_it() -> None:
    assert parse("<think>x</think>\n<action>look</action>\n", strict=True) == Parsed("look", "parsed")
    for text in (
        "note <think>x</think><action>look</action> bye",
        "<action>look</action><action>look</action>",
        "<think>open <action>look</action>",
        "so <action>look</action>",
    ):
        assert parse(text, strict=True).status == "no_action", text


def test_a_missing_closing_tag_counts_only_where_the_stop_string_took_it() -> None:
    assert parse("<action>look", stop="</action>") == Parsed("look", "parsed", ("closed_by_stop",))
    assert parse("<action>look", finish="length") == Parsed(None, "truncated")
    assert parse("<action>look") == Parsed(None, "no_action")
    assert parse("<action>look", stop="\n") == Parsed(None, "no_action")


def test_a_reply_cut_by_its_limit_is_truncated_unless_its_action_was_complete() -> None:
    assert parse("<think>let me see", finish="length").status == "truncated"
    assert parse("", finish="length").status == "truncated"
    assert parse("<action>look</action> and then", finish="length") == Parsed(
        "look", "parsed", ("cut_after_action", "surplus")
    )
    for format in ("last_line", "choice"):
        # "go to desk 1" may be the beginning of "go to desk 10".
        assert parse("go to desk 1", format, finish="length") == Parsed(None, "truncated")


@pytest.mark.parametrize(
    ("text", "strict", "expected"),
    [
        ("look", True, Parsed("look", "parsed")),
        ("I must see.\n\nlook\n", False, Parsed("look", "parsed", ("surplus",))),
        ("I must see.\nlook", True, Parsed(None, "no_action", ("surplus",))),
        ("Action: look", False, Parsed("look", "parsed", ("decorated",))),
        ("> `go to desk 1`", False, Parsed("go to desk 1", "parsed", ("decorated",))),
        ("Action: look", True, Parsed("Action: look", "inadmissible")),
        ("<think>go to desk 1</think>\nlook", True, Parsed("look", "parsed")),
    ],
)
def test_last_line_replies(text: str, strict: bool, expected: Parsed) -> None:
    assert parse(text, "last_line", strict) == expected


@pytest.mark.parametrize(
    ("text", "strict", "expected"),
    [
        ('{"action": "look"}', True, Parsed("look", "parsed")),
        ('Sure: {"action": "look"}', True, Parsed(None, "no_action", ("surplus",))),
        ('Sure: {"action": "look"}', False, Parsed("look", "parsed", ("surplus",))),
        ('```json\n{"action": "look"}\n```', False, Parsed("look", "parsed", ("fenced",))),
        ('{"action": "look"} {"action": "fly"}', False, Parsed("look", "parsed", ("multi", "surplus"))),
        (
            '<tool_call>{"name": "act", "arguments": {"action": "look"}}</tool_call>',
            True,
            Parsed("look", "parsed", ("tool_call",)),
        ),
        (
            '{"name": "act", "arguments": "{\\"action\\": \\"look\\"}"}',
            True,
            Parsed("look", "parsed", ("tool_call",)),
        ),
        ('{"name": "act", "arguments": ""}', False, Parsed(None, "no_action", ("malformed", "tool_call"))),
        ('{"name": "act", "arguments": "{"}', False, Parsed(None, "no_action", ("malformed", "tool_call"))),
        ('{"action": 3}', False, Parsed(None, "no_action", ("malformed",))),
        ('{"action": "look"', False, Parsed(None, "no_action", ("malformed",))),
        ("[" * 100_000, False, Parsed(None, "no_action")),
        ('{"a":' * 5_000, False, Parsed(None, "no_action", ("malformed",))),
    ],
)
def test_json_replies_and_tool_calls(text: str, strict: bool, expected: Parsed) -> None:
    assert parse(text, "json", strict) == expected


@pytest.mark.parametrize(
    ("text", "strict", "expected"),
    [
        ("look", True, Parsed("look", "parsed")),
        ("LOOK\n", True, Parsed("look", "parsed", ("case_folded",))),
        ("I will go to desk 10 now", True, Parsed("I will go to desk 10 now", "inadmissible")),
        ("I will go to desk 10 now", False, Parsed("go to desk 10", "parsed", ("surplus",))),
        ("not look but go to desk 1.", False, Parsed("go to desk 1", "parsed", ("multi", "surplus"))),
        ("overlooked", False, Parsed("overlooked", "inadmissible")),
        ("one\ntwo", False, Parsed(None, "no_action")),
        ("  look\n", True, Parsed("look", "parsed")),
        ("go to  desk 1", False, Parsed("go to desk 1", "parsed", ("spaced",))),
        ("go\u00a0to desk 1", False, Parsed("go to desk 1", "parsed", ("spaced",))),
        ("go to\ndesk 1", False, Parsed("go to desk 1", "parsed", ("spaced",))),
        ("GO to\tdesk 1", False, Parsed("go to desk 1", "parsed", ("case_folded", "spaced"))),
        ("fly  away", False, Parsed("fly away", "inadmissible", ("spaced",))),
        ("go to  desk 1", True, Parsed(None, "no_action")),
        ("go\u00a0to desk 1", True, Parsed(None, "no_action")),
        ("go to\ndesk 1", True, Parsed(None, "no_action")),
    ],
)
def test_choice_replies(text: str, strict: bool, expected: Parsed) -> None:
    assert parse(text, "choice", strict) == expected


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="known: tagged, last_line, json, choice"):
        ActionRule("xml")


PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<action>",
        "</action>",
        "look",
        "go to desk 1",
        '{"action": "look"}',
        "```",
        "\n",
        " ",
        "é",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


@given(
    TEXTS,
    st.sampled_from(FORMATS),
    st.booleans(),
    st.sampled_from(["stop", "length"]),
    st.sampled_from([None, "</action>"]),
)
def test_every_text_has_one_status_and_what_the_status_says_is_so(
    text: str, format: str, strict: bool, finish: str, stop: str | None
) -> None:
    parsed = ActionRule(format, strict).parse(Reply(text, finish, stop), COMMANDS)
    assert parsed.status in STATUSES
    assert set(parsed.flags) <= set(FLAGS)
    assert parsed.flags == tuple(sorted(parsed.flags))
    assert (parsed.action is not None) == (parsed.status in ("parsed", "inadmissible"))
    if parsed.status == "parsed":
        assert parsed.action in COMMANDS
    if parsed.status == "inadmissible":
        assert parsed.action
        assert parsed.action.strip() == parsed.action
        assert parsed.action not in COMMANDS
    if strict and parsed.status == "parsed":
        lenient = ActionRule(format, False).parse(Reply(text, finish, stop), COMMANDS)
        assert lenient.action == parsed.action, "lenient takes whatever strict takes"
    json.dumps([parsed.action, parsed.flags])


@pytest.mark.parametrize("format", ["tagged", "last_line", "json", "choice"])
@pytest.mark.parametrize("inner", ["go to  desk 1", "go\u00a0to desk 1", "go\u2003to desk 1"])
def test_no_format_repairs_white_space_without_a_flag(format: str, inner: str) -> None:
    text = {"tagged": f"<action>{inner}</action>", "json": f'{{"action": "{inner}"}}'}.get(format, inner)
    assert parse(text, format, False) == Parsed("go to desk 1", "parsed", ("spaced",))


@pytest.mark.parametrize("format", ["tagged", "last_line", "json", "choice"])
@pytest.mark.parametrize("inner", ["LOOK", "Look"])
def test_no_format_repairs_letter_case_without_a_flag(format: str, inner: str) -> None:
    text = {"tagged": f"<action>{inner}</action>", "json": f'{{"action": "{inner}"}}'}.get(format, inner)
    assert parse(text, format, False) == Parsed("look", "parsed", ("case_folded",))


@pytest.mark.parametrize("format", ["tagged", "last_line", "json", "choice"])
@pytest.mark.parametrize("inner", ["go to desk 1\u200b", "go to desk\u0301 1", "ｇo to desk 1"])
def test_no_format_takes_another_spelling_for_an_admissible_action(format: str, inner: str) -> None:
    text = {"tagged": f"<action>{inner}</action>", "json": f'{{"action": "{inner}"}}'}.get(format, inner)
    parsed = parse(text, format, True)
    assert (parsed.action, parsed.status) == (inner, "inadmissible")
