"""A cache on disk that can save time and never change a result.

One entry is one file: a line with the sha256 of the rest, then zlib-compressed canonical JSON.  Nothing in it is
executed or unpickled.  A writer moves a temporary file into place, so any number of writers may race.  An entry that
cannot be read or does not match its sum counts as absent.  Without write access only the caching is lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from handoff.canonical import canonical


def folder() -> Path:
    """``HANDOFF_CACHE``, else ``handoff`` below the XDG cache folder."""
    named = os.environ.get("HANDOFF_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "handoff"


def _path(kind: str, key: str) -> Path:
    return folder() / kind / f"{key}.json.z"


def load(kind: str, key: str) -> Any | None:
    """The value stored under ``key`` (a hexadecimal digest), or ``None``."""
    try:
        head, _, body = _path(kind, key).read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != head:
            return None
        return json.loads(zlib.decompress(body))
    except (OSError, RuntimeError, ValueError, zlib.error):  # RuntimeError: no home folder
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
                stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
