"""The strict schema of generated answers.

A server's answer is read whole or not at all: a part whose type or value is not known makes it a bad answer, which is
asked for again and then owed.  It is never taken for a reply of the model.  Parts that no decision depends on are not
looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from handoff.messages.replies import call_text
from handoff.policies.language.model import FAILED, FINISH_TERMS, Output
from handoff.policies.language.options import MOST
from handoff.policies.language.tokens import TokenIds
from handoff.policies.openai import refusals
from handoff.policies.openai.answers import Answer, BadAnswer
from handoff.policies.openai.refusals import Complaint

T = TypeVar("T")


class Stated(Exception):
    """An answer of status 200 that states an error in place of a reply."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(str(complaint))
        self.complaint = complaint


C = TypeVar("C", bound="Completion | None")


@attrs.frozen
class Completion:
    """One generated answer."""

    output: Output
    #: Token ids of the prompt, where the server gives those of prompt and reply.
    prompt: TokenIds | None = None
    #: The server's count of prompt tokens, if it states one.
    prompt_tokens: int | None = None
    #: The name of the model that answered, and the server's mark of its configuration, if it states them.
    model: str | None = None
    system_fingerprint: str | None = None


def chat(answer: Answer) -> Completion:
    """A chat completion without token ids.  Raises :class:`BadAnswer` or :class:`Stated`, as all readers here."""
    form, choice = _parts(answer)
    message = _dict(choice, "message")
    if message is None:
        raise BadAnswer("the answer has no message")
    text, thinking, refusal = _content(message)
    calls = _calls(message)
    reasoning = _string(message, "reasoning_content") or _string(message, "reasoning")
    refusal = _string(message, "refusal") or refusal
    known = calls or reasoning or thinking or refusal
    if "content" not in message and not known:
        raise BadAnswer("the message has no content")
    flags: tuple[str, ...] = ()
    if calls and not text.strip():
        text, flags = "\n".join(calls), ("tool_call",)
    return _completion(
        form, choice, text, reasoning=reasoning or thinking or None, refusal=refusal or None, flags=flags
    )


def native(answer: Answer) -> Completion:
    """A chat completion whose calls are the server's own.

    The text is the content, then each call as :func:`handoff.messages.replies.read_reply` reads it, with the arguments
    as the server wrote them.
    """
    form, choice = _parts(answer)
    message = _dict(choice, "message")
    if message is None:
        raise BadAnswer("the answer has no message")
    text, thinking, refusal = _content(message)
    calls = [_native_call(call) for call in _functions(message)]
    reasoning = _string(message, "reasoning_content") or _string(message, "reasoning")
    if "content" not in message and not (calls or reasoning or thinking):
        raise BadAnswer("the message has no content")
    whole = "\n".join([*([text] if text.strip() else []), *calls])
    read = _completion(
        form,
        choice,
        whole,
        reasoning=reasoning or thinking or None,
        refusal=_string(message, "refusal") or refusal or None,
    )
    if calls and read.output.finish == "stop":  # as some servers say
        read = attrs.evolve(read, output=attrs.evolve(read.output, finish="tool_calls"))
    return read


def completion(answer: Answer) -> Completion:
    """A text completion without token ids."""
    form, choice = _parts(answer)
    if "text" not in choice:
        raise BadAnswer("the choice has no text")
    return _completion(form, choice, _string(choice, "text") or "")


def chat_with_ids(answer: Answer) -> Completion | None:
    """A chat completion with the token ids of prompt and reply.

    ``None`` if it lacks them, or if the server has taken the reply apart.
    """
    read = chat(answer)
    choice = answer.form["choices"][0]
    sent, ids = answer.token_ids("prompt_token_ids", answer.form), answer.token_ids("token_ids", choice)
    output = read.output
    apart = output.flags or output.reasoning is not None or output.refusal is not None or _calls(choice["message"])
    if sent is None or ids is None or apart:
        return None
    return _with_ids(read, sent, ids)


def completion_with_ids(answer: Answer) -> Completion:
    """A text completion with the token ids of prompt and reply."""
    read = completion(answer)
    choice = answer.form["choices"][0]
    sent, ids = answer.token_ids("prompt_token_ids", choice), answer.token_ids("token_ids", choice)
    if sent is None or ids is None:
        raise BadAnswer("the answer has no token ids")
    return _with_ids(read, sent, ids)


def within(read: Callable[[Answer], C], most: int, most_prompt: int | None = None) -> Callable[[Answer], C]:
    """``read``, for a reply that was to have at most ``most`` tokens, after a prompt that can have ``most_prompt``.

    All solvers have equal budgets: of a server that does not keep to one, no reply counts.  A count of prompt tokens
    that its characters cannot have is no overflow.
    """

    def limited(answer: Answer) -> C:
        completion = read(answer)
        if completion is not None:
            ids, count = completion.output.ids, completion.output.tokens
            count = len(ids) if ids is not None else count
            if count is not None and count > most:
                raise BadAnswer(f"the reply has {count} tokens, where at most {most} were asked for")
            stated = completion.prompt_tokens
            if most_prompt is not None and stated is not None and stated > most_prompt:
                raise BadAnswer(f"the prompt is said to have {stated} tokens, and can have {most_prompt} at most")
        return completion

    return limited


def _with_ids(read: Completion, sent: TokenIds, ids: TokenIds) -> Completion:
    return attrs.evolve(read, prompt=sent, output=attrs.evolve(read.output, ids=ids, tokens=None))


def _completion(form: dict[str, Any], choice: dict[str, Any], text: str, **more: Any) -> Completion:
    finish = choice.get("finish_reason")
    if type(finish) is not str or finish in FAILED:
        raise BadAnswer(f"generation did not end (finish reason {finish!r:.80})")
    if finish not in FINISH_TERMS:
        raise BadAnswer(f"the finish reason {finish!r:.80} is not known")
    usage = _dict(form, "usage") or {}
    for one in (text, more.get("reasoning"), more.get("refusal")):
        _require_characters(one or "")
    return Completion(
        Output(
            text,
            FINISH_TERMS[finish],
            _stop(choice),
            tokens=_count(usage, "completion_tokens"),
            **more,
        ),
        prompt_tokens=_count(usage, "prompt_tokens"),
        model=_string(form, "model"),
        system_fingerprint=_string(form, "system_fingerprint"),
    )


def _parts(answer: Answer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer's form, and its only choice."""
    form = answer.form
    if not isinstance(form, dict):
        raise BadAnswer("the answer is no JSON object")
    if form.get("error") is not None or form.get("object") == "error":
        raise Stated(refusals.read(200, form, "the answer states an error"))
    choices = form.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        number = f"{len(choices)} choices" if isinstance(choices, list) else "no choices"
        raise BadAnswer(f"the answer has {number}, not one")
    choice = choices[0]
    if choice.get("error") is not None:
        raise Stated(refusals.read(200, {"error": choice["error"]}, "the choice states an error"))
    if type(choice.get("index", 0)) is not int or choice.get("index", 0) != 0:
        raise BadAnswer(f"the only choice has the index {choice['index']!r:.40}")
    return form, choice


def _content(message: dict[str, Any]) -> tuple[str, str, str]:
    """Text, thinking and refusal of a message's content: a text, nothing, or a list of parts."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or "", "", ""
    if not isinstance(content, list):
        raise BadAnswer(f"the content is a {type(content).__name__}")
    pieces: dict[str, list[str]] = {"text": [], "thinking": [], "refusal": []}
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("text", "thinking", "reasoning", "refusal"):
            raise BadAnswer(f"the content has a part of an unknown type, {kind!r:.40}")
        pieces["thinking" if kind == "reasoning" else kind].append(_part(part, kind))
    return "".join(pieces["text"]), "".join(pieces["thinking"]), "".join(pieces["refusal"])


def _part(part: dict[str, Any], kind: str) -> str:
    """The text of a part: under its type, or under "text"; thinking can itself be a list of text parts."""
    value = part.get(kind, part.get("text"))
    if isinstance(value, str):
        return value
    inner = value if kind == "thinking" and isinstance(value, list) else [None]
    texts = [one.get("text") if isinstance(one, dict) and one.get("type") == "text" else None for one in inner]
    if not all(isinstance(text, str) for text in texts):
        raise BadAnswer(f"the content has a part {kind!r} without a text")
    return "".join(map(str, texts))


def _calls(message: dict[str, Any]) -> list[str]:
    """Tool calls, each as the text that a model without a tool parser would have written."""
    return [_call_text(function) for function in _functions(message)]


def _functions(message: dict[str, Any]) -> list[Any]:
    """The functions that a message calls, not looked at."""
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise BadAnswer(f"the tool calls are a {type(calls).__name__}")
    functions = [call.get("function") if isinstance(call, dict) else None for call in calls or []]
    if message.get("function_call") is not None:  # OpenAI's older models
        functions.append(message["function_call"])
    return functions


def _native_call(function: Any) -> str:
    name, arguments = _call(function)
    return call_text(name, arguments)


def _call_text(function: Any) -> str:
    name, arguments = _call(function)
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def _call(function: Any) -> tuple[str, Any]:
    name, arguments = (function.get("name"), function.get("arguments")) if isinstance(function, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        raise BadAnswer("a tool call has no name or no arguments")
    for one in (name, arguments if isinstance(arguments, str) else ""):
        _require_characters(one)
    return name, arguments


def _stop(choice: dict[str, Any]) -> str | None:
    """The stop string that ended the reply; a number is a stop token."""
    stop = choice.get("stop_reason", choice.get("matched_stop"))  # vLLM's, SGLang's
    if stop is not None and type(stop) not in (str, int):
        raise BadAnswer(f"the stop reason is a {type(stop).__name__}")
    return stop if isinstance(stop, str) else None


def _count(usage: dict[str, Any], key: str) -> int | None:
    count = usage.get(key)
    if count is not None and (type(count) is not int or not 0 <= count <= MOST):
        raise BadAnswer(f"the usage has {count!r:.40} as {key}")
    return count


def _string(holder: dict[str, Any], key: str) -> str | None:
    return _typed(holder, key, str)


def _dict(holder: dict[str, Any], key: str) -> dict[str, Any] | None:
    return _typed(holder, key, dict)


def _typed(holder: dict[str, Any], key: str, kind: type[T]) -> T | None:
    """``holder[key]``, which is a ``kind``, ``null`` or absent."""
    value = holder.get(key)
    if value is not None and not isinstance(value, kind):
        raise BadAnswer(f"{key.replace('_', ' ')} is a {type(value).__name__}")
    if isinstance(value, str):
        _require_characters(value)
    return value


def _require_characters(text: str) -> None:
    """Raise :class:`BadAnswer` for half a character, which JSON can write and nobody can send on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadAnswer("a text has half a character (a lone surrogate)") from None
