"""Answers of OpenAI-compatible servers: JSON with long lists of token ids kept as text.

Every function that reads an answer raises :class:`BadAnswer` for one that lacks what was asked for.
:mod:`handoff.policies.openai.schema` reads generated answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from handoff.policies.language.tokens import TokenIds

#: In JSON the key's quotation marks are written so outside of strings only: inside they are escaped.
_ARRAY = re.compile(rb'"(prompt_token_ids|token_ids|tokens)":(\[[0-9,]*\])')
_ZERO_AHEAD = re.compile(rb"[\[,]0[0-9]")
#: Digits of a token id, at most.
_DIGITS = 9
_TOO_LONG = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1))


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
        if ids and (min(ids) < 0 or max(ids) >= 10**_DIGITS):
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
    """Whether ``array``, of digits and commas, is a canonical JSON array of token ids."""
    if array[1:2] == b"," or array[-2:-1] == b"," or b",," in array:
        return False
    if _TOO_LONG.search(array):
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
