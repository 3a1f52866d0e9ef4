"""A server's answer: JSON, with long lists of token ids kept as text."""

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


@attrs.frozen
class Answer:
    """A JSON answer of a server.  ``ids`` are arrays of token ids by their keys; each is ``None`` in ``form``."""

    form: Any
    ids: Mapping[str, TokenIds]

    def token_ids(self, key: str, holder: Any) -> TokenIds | None:
        """The token ids called ``key``, which stand in ``holder``, a part of the form; ``None`` if there are none."""
        if key in self.ids:
            return self.ids[key]
        found = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(found, list) or not set(map(type, found)) <= {int}:
            return None
        return TokenIds.of(found)


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
