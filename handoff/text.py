"""Make untrusted text safe to print and to type: names of tasks, types and policies, paths, and the texts of errors."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable

from handoff import signals
from handoff.errors import DataError


def printable(text: str) -> str:
    """``text`` with control characters, line breaks and lone surrogates as escapes.

    Such text can neither steer a terminal nor fail to be encoded.  A byte of a path that is no character here is
    written as bash reads it in ``$'...'`` (``\\xff``).
    """
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # how Python holds such a byte
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def shell_word(text: str | os.PathLike[str]) -> str:
    """``text`` as one word of a command that a reader may type into a shell.

    A word with characters that the terminal cannot show is written as ``$'...'`` with the bytes of those, as bash, zsh
    and ksh read it.
    """
    text = os.fspath(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if text.isprintable() and _has(encoding, text):
        return shlex.quote(text)
    letters = (
        f"\\{letter}" if letter in "\\'" else letter if " " <= letter <= "~" else _as_bytes(letter) for letter in text
    )
    return f"$'{''.join(letters)}'"


def command(*words: str | os.PathLike[str]) -> str:
    """A command that a reader may type into a shell."""
    return " ".join(map(shell_word, words))


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _as_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))


#: Controls and lone surrogates, and marks that turn the direction of a line, but for line feed and tab.
_INVISIBLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_text(text: str) -> str:
    """``text`` as a CSV cell that a spreadsheet shows and does not compute.

    Controls are escapes (``\\x1b``).  A text that begins with ``=``, ``+``, ``-``, ``@`` or a tab, or with apostrophes
    before one of these, gets an apostrophe in front, which :func:`from_csv` takes away.
    """
    shown = _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def from_csv(cell: str) -> str:
    """The text of a cell that :func:`csv_text` may have written."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


#: Characters of a name.
MOST_NAME = 10_000


def require_printable(what: str, names: Iterable[str]) -> None:
    """Raise :class:`~handoff.errors.DataError` if one of ``names`` (each the name of a ``what``) is not printable, or
    longer than :data:`MOST_NAME`."""
    for name in names:
        if len(name) > MOST_NAME:
            raise DataError(
                f"the {what} {name[:80]!r}... has {len(name):,} characters; a name has at most {MOST_NAME:,}"
            )
        if not name.isprintable():
            raise DataError(f"the {what} {name[:80]!r} contains an unprintable character")


def reason(error: BaseException) -> str:
    """An exception of foreign code in safe words: its type and the beginning of its text.  Only Ctrl-C is raised."""
    text, name = said(error, 300), printable(class_name(type(error))[:80])
    return f"{name}: {text}" if text else name


def said(error: BaseException, most: int) -> str:
    """The beginning of an exception's text in one safe line, "" if it has none that can be read.

    The text comes from foreign code, which may raise anything.  Only Ctrl-C is raised here.
    """
    try:
        return printable(" ".join(str(error).split())[:most])
    except BaseException as another:
        if signals.from_user(another):
            raise
        return ""


def class_name(kind: type) -> str:
    """The name of a class, of which its metaclass runs no code."""
    return str(type.__dict__["__name__"].__get__(kind))
