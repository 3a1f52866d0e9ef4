"""Files that are read and written whole, the text in them, and why the system refuses one."""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import os
import select
import stat
import time
from pathlib import Path
from typing import BinaryIO

from handoff.errors import DataError

#: The most bytes of a user's file: more than any has, and less than the memory.
MOST_BYTES = 2**30
#: Seconds that a named pipe may have no writer before it is refused.
WRITER_WAIT = 5.0

_PLACE = "choose a place on another file system"
_PERMISSION = "choose a path that you may use, or have its permissions changed"
_LOCAL = "choose a place on a local disk"
#: The way out of an error of the system.  An error whose own words say it all has none.
WAYS_OUT = {
    errno.ENOSPC: f"free space there, or {_PLACE}",
    errno.EDQUOT: f"delete files of yours there, or {_PLACE}",
    errno.EROFS: _PLACE,
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EFBIG: f"raise the limit on the size of a file (ulimit -f), or {_PLACE}",
    errno.EMFILE: "raise the limit on open files (ulimit -n), or use fewer --workers",
    errno.ENFILE: "close other programs: the machine's table of open files is full",
    errno.ENOMEM: "free memory, raise its limit (ulimit -v), or use fewer --workers",
    errno.EAGAIN: "raise the limit on processes (ulimit -u), or use fewer --workers",
    errno.ENOLCK: f"the file system keeps no locks: {_LOCAL}",
    errno.EOPNOTSUPP: f"the file system cannot do this: {_LOCAL}",
    errno.ENOSYS: f"the file system cannot do this: {_LOCAL}",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.ELOOP: "links lead in a circle there: choose the path of the file itself",
    errno.EIO: "check the disk, or choose another",
    errno.ESTALE: "the file system was taken away: mount it again",
}
#: Marks at the start of texts that are not UTF-8.  The longer ones come first: one begins with another.
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def way_out(error: BaseException) -> str | None:
    """What to do about an error of the system; ``None`` for one whose own words say it all, and for any other error."""
    if not isinstance(error, OSError):
        return None
    if "failed to map segment" in str(error):  # of the dynamic linker, which gives no number
        return "no program may run from its folder (noexec); set TMPDIR to a folder where one may, then try again"
    return WAYS_OUT.get(error.errno or 0)


def cause(error: OSError) -> str:
    """Why the system refused, and the way out that fits, to be put after "cannot read FILE: "."""
    words, way = error.strerror or str(error) or type(error).__name__, way_out(error)
    return words if way is None else f"{words}; {way}"


def read(path: Path, most: int | None = None) -> bytes:
    """Read an untrusted file.

    Raises ``OSError``, also for pipes and devices, which could block forever, and for more than ``most`` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        _require(path, most is None or size <= most, f"it has {size:,} bytes; at most {most or 0:,} are read")
        return file.read()


def open_regular(path: Path) -> BinaryIO:
    """An untrusted file, open to be read in parts.  Raises ``OSError``, also for pipes and devices."""
    _require(path, stat.S_ISREG(path.stat().st_mode), "it is not a regular file")
    return open(path, "rb")


def read_input(path: Path) -> bytes:
    """Read a file or a pipe that a user names.

    Raises ``OSError``, also for a device and for more than :data:`MOST_BYTES`.
    """
    kind = path.stat().st_mode
    _require(path, not (stat.S_ISCHR(kind) or stat.S_ISBLK(kind)), "it is a device, not a file")
    if stat.S_ISFIFO(kind):
        data = _read_pipe(path)
    else:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    _require(path, len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES:,} bytes")
    return data


def _read_pipe(path: Path) -> bytes:
    """All that is written to a pipe.  Waits for a writer as long as it has one, and :data:`WRITER_WAIT` for the first.

    A blocking open would wait for the first one for ever.
    """
    pieces, size = [], 0
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        deadline = time.monotonic() + WRITER_WAIT
        while size <= MOST_BYTES:
            try:
                piece = os.read(handle, 1 << 16)
            except BlockingIOError:  # it has a writer, who has nothing to say yet
                poll.poll()
                continue
            pieces.append(piece)
            size += len(piece)
            # At the end of a pipe that never had a writer nothing hangs up.
            if not piece and (size or any(event & select.POLLHUP for _, event in poll.poll(0))):
                break
            if not piece:
                if time.monotonic() >= deadline:
                    raise OSError(errno.ETIMEDOUT, "it is a pipe that nobody writes to", str(path))
                poll.poll(50)
    finally:
        os.close(handle)
    return b"".join(pieces)


def read_text(path: Path, name: str | None = None) -> str:
    """Read the text of a file or a pipe that a user names (:func:`text_of`); ``name`` is its name in sentences.

    Raises ``OSError`` as :func:`read_input` does and :class:`~handoff.errors.DataError` for what is no text.
    """
    return text_of(read_input(path), name or str(path))


def text_of(data: bytes, name: str) -> str:
    """The text in a user's file: UTF-8, with or without a byte order mark, which is dropped.

    Raises :class:`~handoff.errors.DataError` for another encoding and for a NUL character.
    """
    for mark, encoding in _OTHER_MARKS:
        if data.startswith(mark):
            raise DataError(f"{name} is not UTF-8 text but {encoding}; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise DataError(f"{name} is not UTF-8 text ({where}); save it as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{name}, line {line}: a NUL character is no text; save it as UTF-8")
    return text


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
        temporary.unlink(missing_ok=True)  # of a process that died, or a link
        with open(temporary, "xb") as file:
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
