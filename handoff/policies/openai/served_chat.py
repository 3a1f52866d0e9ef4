"""The chat template behind a server that tokenizes: what it takes from earlier replies, and whether it shows the date.

The template itself is not known.  A server that also turns token ids back into text (vLLM's ``/detokenize``) shows what
it makes of a few messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from handoff.policies.language.chat import Messages, probes, rewritten
from handoff.policies.language.clock import reader
from handoff.policies.openai import answers
from handoff.policies.openai.answers import Answer, BadAnswer
from handoff.policies.openai.client import Refused, Server

#: The variable by which chat templates of the Llama family take a date, and how they write one.
_DATE, _DATE_FORMAT = "date_string", "%d %b %Y"
#: A date that no clock shows.
_OTHER = "2001-02-03T04:05:06"
_FORMATS = (
    _DATE_FORMAT, "%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y",
)  # fmt: skip
_TIME_OF_DAY = re.compile(r"\b\d{1,2}:\d{2}\b")


@attrs.frozen
class ServedChat:
    """What is known of a server's chat template."""

    #: As :func:`handoff.policies.language.chat.rewritten`; ``None``: not known, or not asked.
    rewritten: dict[str, list[int]] | None = None
    reads_clock: bool = False
    #: Whether the server can be told the date.
    takes_date: bool = False
    #: Whether equal messages get other texts within a run.
    restless: bool = False

    def arguments(self, now: str) -> dict[str, Any]:
        """Entries of a request that pin the date to that of ``now``."""
        return template_arguments(now) if self.takes_date else {}


def template_arguments(now: str) -> dict[str, Any]:
    return {"chat_template_kwargs": {_DATE: reader(now)(_DATE_FORMAT)}}


UNKNOWN = ServedChat()


async def examine(server: Server, model: str, replies: bool) -> ServedChat:
    """What the chat template behind ``server`` does; ``replies``: look at earlier replies, too."""
    texts = await _texts(server, model, probes() if replies else probes()[:1], {})
    if texts is None:
        return UNKNOWN
    lost, now = rewritten(texts, exact=False) if replies else None, datetime.now()
    if not _shows_clock(texts[0], now):
        return ServedChat(lost)
    told = await _texts(server, model, probes()[:1], template_arguments(_OTHER))
    takes_date = told is not None and reader(_OTHER)(_DATE_FORMAT) in told[0] and not _shows_clock(told[0], now)
    restless = not takes_date and bool(_TIME_OF_DAY.search(texts[0]))
    return ServedChat(lost, reads_clock=True, takes_date=takes_date, restless=restless)


async def _texts(
    server: Server, model: str, conversations: Sequence[Messages], more: Mapping[str, Any]
) -> list[str] | None:
    """What the server makes of each conversation; ``None``: it does not say."""
    texts = []
    for messages in conversations:
        body = {
            "model": model,
            "messages": messages,
            "add_generation_prompt": True,
            "add_special_tokens": False,
            **more,
        }
        try:
            ids = await server.ask(f"{server.root}/tokenize", json.dumps({**body, **more}).encode(), answers.tokenized)
            data = b'{"model": %s, "tokens": %s}' % (json.dumps(model).encode(), ids.text)
            texts.append(await server.ask(f"{server.root}/detokenize", data, _detokenized))
        except Refused:
            return None
    return texts


def _detokenized(answer: Answer) -> str:
    text = answer.form.get("prompt") if isinstance(answer.form, dict) else None
    if not isinstance(text, str):
        raise BadAnswer("no text in the answer")
    return text


def _shows_clock(text: str, present: datetime) -> bool:
    """Whether ``text`` shows a time of day, or a date of today in any time zone."""
    days = [present + timedelta(days=days) for days in (-1, 0, 1)]
    return bool(_TIME_OF_DAY.search(text)) or any(day.strftime(form) in text for day in days for form in _FORMATS)
