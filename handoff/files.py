"""Files that are read and written whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path

#: The most bytes of a user's file: more than any has, and less than the memory.
MOST_BYTES = 2**30


def read(path: Path, most: int | None = None) -> bytes:
    """Read an untrusted file.

    Raises ``OSError``, also for pipes and devices, which could block forever, and for more than ``most`` bytes.
    """
    status = path.stat()
    _require(path, stat.S_ISREG(status.st_mode), "it is not a regular file")
    _require(
        path, most is None or status.st_size <= most, f"it has {status.st_size:,} bytes; at most {most or 0:,} are read"
    )
    return path.read_bytes()


def read_input(path: Path) -> bytes:
    """Read a file or a pipe that a user names.

    Raises ``OSError``, also for a device and for more than :data:`MOST_BYTES`.
    """
    kind = path.stat().st_mode
    _require(path, not (stat.S_ISCHR(kind) or stat.S_ISBLK(kind)), "it is a device, not a file")
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    _require(path, len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES:,} bytes")
    return data


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing, and a crash leaves the old one or the new one.

    Raises ``OSError``, also for a link, a pipe or a device, which a file would replace.
    """
    with contextlib.suppress(FileNotFoundError):
        _require(path, stat.S_ISREG(path.lstat().st_mode), "it is not a regular file")
    # No longer than the file's own name: the folder may allow no longer one.
    short = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    temporary = path.with_name(f".{short}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot sync a folder; the file itself is safe already.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _require(path: Path, condition: bool, failure: str) -> None:
    if not condition:
        raise OSError(errno.EINVAL, failure, str(path))
