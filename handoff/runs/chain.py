"""Chained records: a line's digest covers the line before it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.canonical import canonical, digest, parse
from handoff.errors import StoreError

#: Bytes of a line, and of a manifest: more than any has, and less than the memory.
MOST_BYTES = 2**29
#: Bytes of blank text in a row.
_MOST_BLANK = 2**16

Key = tuple[str, ...]


@attrs.frozen
class Line:
    """One sealed record."""

    #: Place in the run, counted from 0.
    seq: int
    #: Digest of the line before, or of the manifest.
    prev: str
    digest: str
    #: Kind of record, and the cell that it belongs to.
    key: Key
    body: Any

    @classmethod
    def make(cls, seq: int, prev: str, key: Key, body: Any) -> Line:
        return cls(seq, prev, digest([seq, prev, list(key), body]), key, body)

    def encode(self) -> bytes:
        form = {"seq": self.seq, "prev": self.prev, "digest": self.digest, "key": list(self.key), "body": self.body}
        return canonical(form) + b"\n"


def seal_line(seq: int, prev: str, key: Key, body: bytes) -> tuple[str, bytes]:
    """Digest and encoding of the line :meth:`Line.make` would make, from the canonical JSON of its body.

    A body is long, and its JSON is needed four times: this encodes it once.
    """
    place, before = canonical(list(key)), prev.encode()
    sealed = hashlib.sha256(b'[%d,"%s",%s,%s]' % (seq, before, place, body)).hexdigest()
    form = b'{"body":%s,"digest":"%s","key":%s,"prev":"%s","seq":%d}\n'
    return sealed, form % (body, sealed.encode(), place, before, seq)


class Damage(StoreError):
    """A file of a run is damaged, and not by a torn last line."""


def decode_line(raw: bytes, seq: int, prev: str, where: str) -> Line:
    """The sealed record in ``raw`` (without its newline), which must be number ``seq`` and follow ``prev``.

    Raises :class:`Damage` with the reason: not JSON, a changed byte, a line missing, moved or from another run.
    """
    try:
        form = parse(raw)
    except ValueError as error:
        raise Damage(f"{where} is not valid JSON ({error})") from None
    if not isinstance(form, dict) or set(form) != {"seq", "prev", "digest", "key", "body"}:
        raise Damage(f"{where} is not a record of a run")
    key = form["key"]
    if not (isinstance(key, list) and all(isinstance(part, str) for part in key)):
        raise Damage(f"{where} has no valid key")
    line = Line(form["seq"], form["prev"], form["digest"], tuple(key), form["body"])
    try:
        honest = Line.make(line.seq, line.prev, line.key, line.body)
    except (ValueError, TypeError, RecursionError):
        raise Damage(f"{where} has no canonical form") from None
    if honest.digest != line.digest or line.encode() != raw + b"\n":
        raise Damage(f"{where} was changed: its content does not have the digest {str(line.digest)[:12]}...")
    if type(line.seq) is not int or line.seq != seq:
        raise Damage(f"{where} is record {line.seq!r}, expected record {seq}: a line was deleted, added or moved")
    if line.prev != prev:
        raise Damage(f"{where} does not follow the line before it: it belongs to another run or place")
    return line


def line_key(raw: bytes) -> Key:
    """The key of a record's line that is known to be valid.

    The form is canonical, so what follows the key is of known length, and a body is not parsed again.
    """
    head, _, _ = raw.rpartition(b',"prev":')
    return tuple(parse(head.rpartition(b',"key":')[2]))


@attrs.define
class Lines:
    """The whole lines of a file, without their newlines, read one after the other.

    A file may have any number of lines.  Reading raises ``OSError``, and :class:`Damage` for a line that no run has
    written: it is longer than :data:`MOST_BYTES`, or follows more blank text than any crash leaves.
    """

    path: Path
    #: The torn end, after all lines were read: the text after the last newline, blank lines at the end, and a last line
    #: that is cut short (not JSON), even if a newline ends it.
    rest: bytes = b""

    def __iter__(self) -> Iterator[bytes]:
        last, blank, torn, number = b"", b"", b"", 0
        with files.open_regular(self.path) as file:
            while raw := file.readline(MOST_BYTES + 1):
                number += 1
                if len(raw) > MOST_BYTES or len(blank) > _MOST_BLANK:
                    raise Damage(f"{self.path}, line {number}: longer than any record ({MOST_BYTES:,} bytes at most)")
                if not raw.endswith(b"\n"):
                    torn = raw
                elif not raw.strip():
                    blank += raw
                else:
                    yield from _whole(last + blank)
                    last, blank = raw, b""
        if last and _is_json(last):
            yield last[:-1]
            last = b""
        self.rest = last + blank + torn


def _whole(text: bytes) -> list[bytes]:
    return text[:-1].split(b"\n") if text else []


def _is_json(raw: bytes) -> bool:
    try:
        parse(raw)
    except ValueError:
        return False
    return True
