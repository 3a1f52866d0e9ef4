"""How a conversation is shown to a model: tools and calls in the text, or by a server's own interface.

The conversation itself, which a solver is handed over, is the same for all (:mod:`handoff.messages`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from handoff.messages.replies import functions
from handoff.records import Message, Tool

#: Calls in the text of a reply, or apart from it.
DIALECTS = ("text", "native")

_BLOCK = re.compile(r"\s*<tool_call>(.*?)</tool_call>", re.DOTALL)


def instructions(messages: Sequence[Message]) -> str:
    """What the environment's own system messages say."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def as_text(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Roles and contents without system messages, for any chat model.

    Replies are shown as they were; what a tool says is a message of the user, between tags.  Messages of the user that
    follow one another are one.
    """
    shown: list[tuple[str, str]] = []
    for message in messages:
        if message.role == "system":
            continue
        role, content = message.role, message.content
        if role == "tool":
            role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
        if role == "user" and shown and shown[-1][0] == "user":
            content = f"{shown.pop()[1]}\n{content}"
        shown.append((role, content))
    return shown


def as_native(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
    """``messages`` and ``tools`` of a chat request.

    Calls have the ids call_1, call_2, ... through the conversation.  A call that no tool's message follows is left in
    the text, and a tool's message without a call is a message of the user.
    """
    shown: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    number, open_calls = 0, list[str]()
    for place, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "assistant":
            answers = _answers(messages, place)
            content, calls = _split(message.content, answers)
            entry: dict[str, Any] = {"role": "assistant", "content": content}
            open_calls = []
            if calls:
                open_calls = [f"call_{number + one + 1}" for one in range(len(calls))]
                number += len(calls)
                entry["tool_calls"] = [
                    {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for id, (name, arguments) in zip(open_calls, calls, strict=True)
                ]
            shown.append(entry)
        elif message.role == "tool" and open_calls:
            shown.append({"role": "tool", "tool_call_id": open_calls.pop(0), "content": message.content})
        else:
            shown.append({"role": "user", "content": message.content})
    return {"messages": shown, "tools": functions(tools)}


def _answers(messages: Sequence[Message], place: int) -> int:
    """How many messages of tools follow the reply at ``place``."""
    count = 0
    for message in messages[place + 1 :]:
        if message.role != "tool":
            break
        count += 1
    return count


def _split(text: str, answers: int) -> tuple[str, list[tuple[str, str]]]:
    """The text of a reply, and as many of its calls as were answered, with their arguments as text."""
    blocks = list(_BLOCK.finditer(text))[:answers]
    calls = []
    for block in blocks:
        try:
            form = json.loads(block.group(1))
            name, arguments = form["name"], form.get("arguments", {})
            if isinstance(arguments, str) and arguments.strip() and not isinstance(json.loads(arguments), dict):
                return text, []  # a server parses them, and would refuse the whole request
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return text, []
        if not isinstance(name, str) or not isinstance(arguments, str | dict):
            return text, []
        arguments = "{}" if isinstance(arguments, str) and not arguments.strip() else arguments
        calls.append((name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)))
    if not calls:
        return text, []
    between = [text[a.end() : b.start()] for a, b in pairwise(blocks)]
    kept = "".join([text[: blocks[0].start()], *between])
    return (kept + text[blocks[-1].end() :]).strip(), calls
