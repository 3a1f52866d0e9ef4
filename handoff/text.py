"""Make untrusted text safe to print: names of tasks, types and policies, and the texts of errors."""

from __future__ import annotations

from collections.abc import Iterable

from handoff.errors import DataError


def printable(text: str) -> str:
    """``text`` with control characters, line breaks and lone surrogates as escapes.

    Such text can neither steer a terminal nor fail to be encoded.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def require_printable(what: str, names: Iterable[str]) -> None:
    """Raise :class:`~handoff.errors.DataError` if one of ``names`` (each the name of a ``what``) is not printable."""
    for name in names:
        if not name.isprintable():
            raise DataError(f"the {what} {name[:80]!r} contains an unprintable character")


def reason(error: BaseException) -> str:
    """An exception of foreign code in safe words: its type and the beginning of its text.  Never raises."""
    try:
        text = printable(" ".join(str(error).split())[:300])
    except Exception:
        text = ""
    name = printable(type(error).__name__[:80])
    return f"{name}: {text}" if text else name
