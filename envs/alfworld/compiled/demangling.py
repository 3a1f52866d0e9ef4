"""The names that the agent sees: alfworld's demangler without shuffling.

``desk_bar__minus_01_dot_58_bar_...`` becomes ``desk 2``: everything before the first ``_bar_`` is the kind (with
``basin`` appended where the identifier contains it), and the instances of a kind are numbered downwards in the sort
order of the identifiers.  An identifier without ``_bar_`` keeps its text and gets a trailing space, as in alfworld.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_ESCAPES = (("_bar_", "|"), ("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))


def demangle(identifiers: Iterable[str]) -> dict[str, str]:
    """The name of every identifier."""
    ids = sorted(set(identifiers))
    kinds = {text: _kind(text) for text in ids}
    left = Counter(kind for kind in kinds.values() if kind is not None)
    names = {}
    for text in ids:
        kind = kinds[text]
        if kind is None:
            names[text] = f"{_unescape(text)} "
        else:
            names[text] = f"{kind} {left[kind]}"
            left[kind] -= 1
    return names


def _kind(text: str) -> str | None:
    plain = _unescape(text)
    if "|" not in plain:
        return None
    return plain.split("|", 1)[0] + ("basin" if "basin" in text else "")


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text
