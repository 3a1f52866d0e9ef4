"""Answers of OpenAI-compatible servers: JSON with long lists of token ids kept as text, and what is read from it.

Every function that reads an answer raises :class:`BadAnswer` for one that lacks what was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from handoff.policies.language.model import FAILED, Output
from handoff.policies.language.tokens import TokenIds

#: In JSON the key's quotation marks are written so outside of strings only: inside they are escaped.
_ARRAY = re.compile(rb'"(prompt_token_ids|token_ids|tokens)":(\[[0-9,]*\])')
_ZERO_AHEAD = re.compile(rb"[\[,]0[0-9]")


class BadAnswer(ValueError):
    """An answer of status 200 that lacks what was asked for."""


@attrs.frozen
class Answer:
    """A JSON answer of a server."""

    form: Any
    #: Arrays of token ids by their keys; each is ``None`` in ``form``.
    ids: Mapping[str, TokenIds]

    def token_ids(self, key: str, holder: Any) -> TokenIds | None:
        """The token ids called ``key`` in ``holder``, a part of the form; ``None`` if there are none."""
        if key in self.ids:
            return self.ids[key]
        ids = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(ids, list) or not set(map(type, ids)) <= {int}:
            return None
        return TokenIds.of(ids)


def parse(raw: bytes) -> Answer:
    """The answer in ``raw``.  Raises ``ValueError`` or ``RecursionError`` if it is not JSON."""
    pieces, ids, start = [], dict[str, TokenIds](), 0
    for match in _ARRAY.finditer(raw):
        key = match.group(1).decode()
        if key in ids or not _is_canonical(match.group(2)):  # of several it takes the structure to tell which is meant
            return Answer(json.loads(raw), {})
        ids[key] = TokenIds(match.group(2))
        pieces += [raw[start : match.start(2)], b"null"]
        start = match.end(2)
    if not ids:
        return Answer(json.loads(raw), {})
    pieces.append(raw[start:])
    return Answer(json.loads(b"".join(pieces)), ids)


def _is_canonical(array: bytes) -> bool:
    """Whether ``array``, of digits and commas, is a canonical JSON array."""
    if array[1:2] == b"," or array[-2:-1] == b"," or b",," in array:
        return False
    zeros = array[1:2] == b"0" or b",0" in array
    return not (zeros and _ZERO_AHEAD.search(array))


def models(answer: Answer) -> dict[str, Any]:
    """The cards of a server's models, by name."""
    try:
        return {str(card["id"]): card for card in answer.form["data"]}
    except (KeyError, TypeError) as error:
        raise BadAnswer(f"no list of models: {error}") from None


def tokenized(answer: Answer) -> TokenIds:
    tokens = answer.token_ids("tokens", answer.form)
    if tokens is None:
        raise BadAnswer("no token ids in the answer")
    return tokens


def completion_with_ids(answer: Answer) -> tuple[TokenIds, Output]:
    """Token ids of the prompt, and the output."""
    choice = _only_choice(answer)
    sent, ids = answer.token_ids("prompt_token_ids", choice), answer.token_ids("token_ids", choice)
    if sent is None or ids is None:
        raise BadAnswer("the answer has no token ids")
    return sent, Output(choice.get("text") or "", choice["finish_reason"], _stop(choice), ids)


def chat_with_ids(answer: Answer) -> tuple[TokenIds, Output] | None:
    """As :func:`completion_with_ids`; ``None`` if the answer lacks token ids, or the reply was taken apart."""
    choice = _only_choice(answer)
    message = _message(choice)
    sent, ids = answer.token_ids("prompt_token_ids", answer.form), answer.token_ids("token_ids", choice)
    apart = any(message.get(part) not in (None, []) for part in ("reasoning", "reasoning_content", "tool_calls"))
    if sent is None or ids is None or apart:
        return None
    return sent, Output(_text(message), choice["finish_reason"], _stop(choice), ids)


def completion(answer: Answer) -> tuple[int | None, Output]:
    """The number of prompt tokens, if it is stated, and the output."""
    choice = _only_choice(answer)
    prompt, reply = _usage(answer)
    return prompt, Output(choice.get("text") or "", choice["finish_reason"], _stop(choice), tokens=reply)


def chat(answer: Answer) -> tuple[int | None, Output]:
    """As :func:`completion`."""
    choice = _only_choice(answer)
    message = _message(choice)
    prompt, reply = _usage(answer)
    text, calls = _text(message), message.get("tool_calls")
    flags: tuple[str, ...] = ()
    if not text.strip() and isinstance(calls, list) and calls:
        text, flags = "\n".join(_call_text(call) for call in calls), ("tool_call",)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return prompt, Output(
        text,
        choice["finish_reason"],
        _stop(choice),
        tokens=reply,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        flags=flags,
    )


def _only_choice(answer: Answer) -> dict[str, Any]:
    """The one choice, whose finish reason is a string."""
    form = answer.form
    choices = form.get("choices") if isinstance(form, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadAnswer("the answer has no choice")
    finish = choices[0].get("finish_reason")
    if finish in FAILED:
        raise BadAnswer(f"generation did not end (finish reason {finish!r})")
    return {**choices[0], "finish_reason": str(finish)}


def _message(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer("the answer has no message")
    return message


def _text(message: Mapping[str, Any]) -> str:
    text = message.get("content")
    return text if isinstance(text, str) else ""


def _stop(choice: Mapping[str, Any]) -> str | None:
    stop = choice.get("stop_reason")
    return stop if isinstance(stop, str) else None


def _usage(answer: Answer) -> tuple[int | None, int | None]:
    usage = answer.form.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, reply = (count if type(count) is int else None for count in counts)
    return prompt, reply


def _call_text(call: Any) -> str:
    """A tool call as the text that a model without a tool parser would have written."""
    function = call.get("function") if isinstance(call, dict) else None
    function = function if isinstance(function, dict) else {}
    form = {"name": function.get("name"), "arguments": function.get("arguments")}
    return f"<tool_call>{json.dumps(form)}</tool_call>"
