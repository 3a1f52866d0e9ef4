"""Checks on a game file's PDDL before the planner reads it: completeness, size, and plain names.

The largest game of the ALFWorld release has 379 objects, 1,130 facts and 4,287 words in 136 kB; the limits are far
higher.  Time and memory of a translation grow with a power of these numbers, and nothing else bounds them.  A name with
a character of the grammar (braces, ``#``, ``|``) is text to one engine and an expression to the other.
"""

from __future__ import annotations

import re

from handoff.errors import DataError

MOST_BYTES = 4_000_000
MOST_WORDS = 40_000
MOST_OBJECTS = 2_000
MOST_FACTS = 10_000

_COMMENT = re.compile(r";[^\n]*")
_WORD = re.compile(r"[^\s()]+")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:?<>=*/+-]+")


def require_translatable(domain: str, problem: str, where: str) -> None:
    """Raise :class:`~handoff.errors.DataError`, beginning with ``where``, for PDDL that the planner must not read."""
    texts = {"pddl_domain": _COMMENT.sub("", domain).lower(), "pddl_problem": _COMMENT.sub("", problem).lower()}
    for key, text in texts.items():
        words = _WORD.findall(text)
        if len(words) > MOST_WORDS:
            raise DataError(f"{where} has {len(words):,} words in {key!r}; at most {MOST_WORDS:,} are accepted")
        for word in words:
            if not _PLAIN.fullmatch(word):
                raise DataError(f"{where}: {key!r} holds the name {word[:40]!r}; a name is letters, digits, - and _")
    text = texts["pddl_problem"]
    sections = ("(:objects", "(:init", "(:goal")
    starts = [text.find(section) for section in sections]
    for part, place in zip(sections, starts, strict=True):
        if place < 0 or text.count(part) != 1:
            raise DataError(f"{where}: 'pddl_problem' has no {part} ...), or more than one")
    if text.count("(") != text.count(")"):
        raise DataError(f"{where}: 'pddl_problem' has {text.count('('):,} ( and {text.count(')'):,} )")
    ends = sorted([*starts, len(text)])
    objects_text, facts_text, _ = (text[start : ends[ends.index(start) + 1]] for start in starts)
    objects = len([word for word in _WORD.findall(objects_text)[1:] if word != "-"])
    facts = facts_text.count("(") - 1
    # Each name may be followed by its type.
    if objects > 2 * MOST_OBJECTS or facts > MOST_FACTS:
        raise DataError(
            f"{where} has {objects:,} words in (:objects ...) and {facts:,} facts; "
            f"at most {2 * MOST_OBJECTS:,} and {MOST_FACTS:,} are accepted"
        )
