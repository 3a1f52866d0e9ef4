"""What an agent is told, by category, and the conversation before its reply; own words for the benchmark's contract."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from handoff.envs.acebench.checker import PHRASES, base_name
from handoff.envs.acebench.data import AceTask
from handoff.records import Message

_TURN = re.compile(r"^(user|system):[ \t]*", re.MULTILINE)

CALLS = (
    "You get a conversation and a list of functions. Reply with the calls that do what the user asks, as one list and "
    "nothing else: [function_one(argument='text', other=3), function_two(argument=True)]. Use keyword arguments and "
    "Python literals only."
)
SPECIAL = (
    "Three cases have a reply of their own. If a required argument is missing, reply with "
    '["Missing necessary parameters (ARGUMENTS) for the api (FUNCTION)"]. If a value in the conversation cannot be '
    'right, reply with ["There is incorrect value (VALUE) for the parameters (ARGUMENT) in the conversation '
    'history."]. If no function can do what is asked, reply with ["Due to the limitations of the function, I cannot '
    'solve this problem."].'
)


def messages(task: AceTask) -> tuple[Message, ...]:
    """The instructions with the functions, then the conversation."""
    parts = [CALLS, SPECIAL]
    if task.time:
        parts.append(f"The time is {task.time}.")
    if task.profile:
        parts.append(f"This is known of the user: {task.profile}")
    parts.append("Functions, one JSON object per line:")
    parts += [json.dumps(function, ensure_ascii=False) for function in task.functions]
    return (Message("system", "\n".join(parts)), *_turns(task.question))


def _turns(question: str) -> list[Message]:
    """The turns of the user, and of the system that asked back."""
    marks = list(_TURN.finditer(question))
    if not marks or marks[0].start() != 0:
        return [Message("user", question.strip())]
    ends = [mark.start() for mark in marks[1:]] + [len(question)]
    turns = [
        Message("user" if mark.group(1) == "user" else "assistant", question[mark.end() : end].strip())
        for mark, end in zip(marks, ends, strict=True)
    ]
    return turns if turns[-1].role == "user" else [Message("user", question.strip())]


def gold_reply(task: AceTask) -> str:
    """A reply that says the gold answer."""
    gold = task.gold[0] if isinstance(task.gold, list) and task.gold else task.gold
    if task.category == "special_irrelevant" or not isinstance(gold, dict):
        return f'["Due to {PHRASES["special_irrelevant"]}, I cannot solve this problem."]'
    if task.category == "special_incomplete":
        said = [
            f"Missing necessary parameters ({', '.join(map(str, values))}) for the api ({name})"
            for name, values in gold.items()
        ]
        return json.dumps(said, ensure_ascii=False)
    if task.category == "special_error_param":
        said = [
            f"There is incorrect value ({', '.join(map(str, values))}) for the parameters ({name}) "
            "in the conversation history."
            for name, values in gold.items()
        ]
        return json.dumps(said, ensure_ascii=False)
    return f"[{', '.join(_call(base_name(name), arguments) for name, arguments in gold.items())}]"


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
