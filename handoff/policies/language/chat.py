"""Chat templates: the text that a checkpoint makes of messages, and what it leaves out of them.

A checkpoint's own template is rendered as transformers renders it (the same delimiters, filters and functions), with
a clock that the run pins and a bound (:mod:`handoff.policies.language.sandbox`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from handoff.policies.language.clock import READER, reader

Messages = Sequence[Mapping[str, str]]


@attrs.frozen(slots=False)
class ChatTemplate:
    """The chat template of a checkpoint."""

    source: str = attrs.field(repr=False)
    #: Special tokens by name, such as ``bos_token``.
    tokens: Mapping[str, Any] = attrs.Factory(dict)

    @cached_property
    def reads_clock(self) -> bool:
        from handoff.policies.language.sandbox import reads_clock

        return reads_clock(self.source)

    def render(self, messages: Messages, now: str) -> str:
        """The text of ``messages``, up to where the model is to reply; the clock shows ``now``.

        Raises whatever the template raises.
        """
        compiled = self._compiled
        compiled.environment.begin()
        text = str(
            compiled.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **{**self.tokens, READER: reader(now)},
            )
        )
        text.encode()  # an escape in a template can make half a character, which no tokenizer takes
        return text

    @cached_property
    def _compiled(self) -> Any:
        import jinja2

        from handoff.policies.language.sandbox import CHAT_EXTENSIONS, Sandbox

        def fail(message: str) -> None:
            raise jinja2.TemplateError(message)

        sandbox = Sandbox(extensions=CHAT_EXTENSIONS)
        sandbox.filters["tojson"] = _as_json
        sandbox.globals["raise_exception"] = fail
        return sandbox.bounded(self.source)


def _as_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


#: Replies of a conversation that a probe renders.
_REPLIES = 3
#: Replies that agents write, each with a mark in its thinking and one in its action.
_SHAPES = (
    "<think>\nthought-{0}\n</think>\n\n<action>deed-{0}</action>",
    "thought-{0}\n</think>\n\n<action>deed-{0}</action>",
    "\n <action>deed-{0}</action> \n",
)


def probes() -> list[list[dict[str, str]]]:
    """Conversations of three replies, for :func:`rewritten`."""
    conversations = []
    for shape in _SHAPES:
        messages = [{"role": "user", "content": "view-0"}]
        for number in range(1, _REPLIES + 1):
            messages.append({"role": "assistant", "content": shape.format(number)})
            messages.append({"role": "user", "content": f"view-{number}"})
        conversations.append(messages)
    return conversations


def rewritten(texts: Sequence[str], exact: bool = True) -> dict[str, list[int]]:
    """What a chat template does not show of earlier replies as they were: by part, the replies that lose it.

    ``texts`` are the texts that it makes of :func:`probes`; replies count from 1.  A part is ``thinking``, ``action``,
    ``white space`` (unless ``exact`` is false) or ``wording``.  Empty: every reply is shown unchanged.
    """
    lost: dict[str, set[int]] = {}
    for shape, text in zip(_SHAPES, texts, strict=True):
        for number in range(1, _REPLIES + 1):
            part = _lost_part(shape.format(number), f"thought-{number}", f"deed-{number}", text)
            if part is not None and (exact or part != "white space"):
                lost.setdefault(part, set()).add(number)
    return {part: sorted(lost[part]) for part in sorted(lost)}


def _lost_part(reply: str, thought: str, deed: str, text: str) -> str | None:
    if reply in text:
        return None
    if thought in reply and thought not in text:
        return "thinking"
    if deed not in text:
        return "action"
    return "white space" if "".join(reply.split()) in "".join(text.split()) else "wording"


def in_words(lost: Mapping[str, Sequence[int]]) -> str:
    """What :func:`rewritten` found, as the rest of a sentence about a chat template."""
    ways = {
        "thinking": "leaves out the thinking",
        "action": "leaves out the action",
        "white space": "changes the white space",
        "wording": "changes the wording",
    }
    each = [
        f"{ways.get(part, 'changes ' + part)} of {'every earlier reply' if len(of) == _REPLIES else _numbers(of)}"
        for part, of in lost.items()
    ]
    return " and ".join(each) or "shows every earlier reply unchanged"


def _numbers(of: Sequence[int]) -> str:
    which = " and ".join(map(str, of))
    return f"{'reply' if len(of) == 1 else 'replies'} {which} of {_REPLIES} earlier ones"
