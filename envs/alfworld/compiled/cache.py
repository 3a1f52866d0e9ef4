"""A cache on disk that can save time and never change a result.

One entry is one file: a line with the sha256 of its kind, its key and the rest, then zlib-compressed canonical JSON.
So an entry that was moved to another name counts as absent, like one that cannot be read, that does not match its sum,
or whose content has another shape than it should (:func:`has_shape`).  Nothing in it is executed or unpickled.  A
writer moves a temporary file into place, so any number of writers may race.  Without write access only the caching is
lost.

The sum is no secret: whoever can write here can make a right one over wrong content.  An audit must not trust such a
person, so the native engine, on which every run is certified, takes nothing from the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from handoff.canonical import canonical, parse

T = TypeVar("T")

#: The most bytes of an entry's JSON: the largest game of the release has 2 MB.
MOST_BYTES = 2**28


def folder() -> Path:
    """``HANDOFF_CACHE``, else ``handoff`` below the XDG cache folder."""
    named = os.environ.get("HANDOFF_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "handoff"


def _path(kind: str, key: str) -> Path:
    return folder() / kind / f"{key}.json.z"


def _sum(kind: str, key: str, body: bytes) -> bytes:
    return hashlib.sha256(canonical([kind, key]) + b"\n" + body).hexdigest().encode()


def load(kind: str, key: str, shape: Any, read: Callable[[Any], T]) -> T | None:
    """What ``read`` makes of the value of ``shape`` that is stored under ``key`` (a hexadecimal digest), or ``None``.

    ``read`` may raise any exception for a value that contradicts itself: such an entry counts as absent.
    """
    try:
        head, _, body = _path(kind, key).read_bytes().partition(b"\n")
        if _sum(kind, key, body) != head:
            return None
        inflate = zlib.decompressobj()
        text = inflate.decompress(body, MOST_BYTES)
        if not inflate.eof:
            return None
        value = parse(text)
    except (OSError, RuntimeError, ValueError, zlib.error):  # RuntimeError: no home folder
        return None
    try:
        return read(value) if has_shape(value, shape) else None
    except Exception:
        return None


def store(kind: str, key: str, value: Any) -> None:
    """Keep a JSON-safe ``value`` under ``key``; a failure is no error."""
    body = zlib.compress(canonical(value), 3)
    with contextlib.suppress(OSError, RuntimeError):
        path = _path(kind, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_sum(kind, key, body) + b"\n" + body)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def has_shape(value: Any, shape: Any) -> bool:
    """Whether a JSON value is built as ``shape`` says.

    A shape is a type; ``[shape]``, a list of any length; ``(shape, ...)``, a list of this length; or a dictionary of
    shapes by key, where the key ``str`` means any number of keys.
    """
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, Mapping):
        if type(value) is not dict:
            return False
        if str in shape:
            return all(has_shape(one, shape[str]) for one in value.values())
        return set(value) == set(shape) and all(has_shape(value[key], shape[key]) for key in shape)
    if type(value) is not list:
        return False
    if isinstance(shape, tuple):
        return len(value) == len(shape) and all(map(has_shape, value, shape))
    (item,) = shape
    if isinstance(item, type):
        return set(map(type, value)) <= {item}
    return all(has_shape(one, item) for one in value)
