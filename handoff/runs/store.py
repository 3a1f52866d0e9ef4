"""Writes a run folder: a manifest, append-only records with chained digests, resume.

    manifest.json   written once, before the first episode: the run's whole identity and its digest
    records.jsonl   the sealed records in the plan's order, one JSON line each, chained: a line's digest covers the
                    digest before it, and the first line's that of the manifest
    journal.jsonl   finished episodes that are not sealed yet, in the order in which they finished; gone at the end
    seal.json       written when the plan is complete: the number of records and the last digest
    timings.json    wall-clock times, apart from all that is compared
    lock            held by the one process that writes

The invariant: a finished episode is on disk, in ``journal.jsonl`` or ``records.jsonl``, before anything depends on it.
So no finished episode is ever played again, and the bytes of ``records.jsonl`` depend on the plan alone.  Readers need
no lock: they see whole lines only.

Only a torn *last* line is dropped, and a copy is kept.  Damage anywhere else is an error that names the line.

A sealed run is only read: it may lie where nothing can be written, and no lock is taken.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from handoff import files
from handoff.canonical import canonical, differing_keys, digest, parse
from handoff.errors import ProtocolFault, StoreError
from handoff.runs.chain import MOST_BYTES, Damage, Key, Lines, decode_line, seal_line
from handoff.runs.folder import (
    FORMAT,
    JOURNAL,
    LOCK,
    MANIFEST,
    MOST_TIMINGS,
    RECORDS,
    SEAL,
    TIMINGS,
    after_the_seal,
    read_manifest,
    read_seal,
)
from handoff.runs.identity import commanded

#: Seconds of a phase beyond which a time is no time: 30,000 years.
_MOST_SECONDS = 1e12
#: Bytes of a record's body, whose line is to be read back.
_MOST_BODY = MOST_BYTES - 2**16
#: The entry of ``timings.json`` about the servers' software and hardware.
SYSTEMS = "system_fingerprints"


#: How a finished record contradicts itself, as a clause, by its key, its body and the bodies of others by their keys.
Contradiction = Callable[[Key, Any, Callable[[Key], Any]], str | None]


def no_contradiction(key: Key, body: Any, body_of: Callable[[Key], Any]) -> str | None:
    """The :data:`Contradiction` of records that nobody knows."""
    return None


class Store:
    """The one writer of a run folder.

    Records are sealed in the order of ``plan``; :meth:`finish` may be called in any order.
    """

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        plan: Sequence[Key],
        host: Mapping[str, Any],
        hold: Callable[[Mapping[str, Any]], list[str]] = lambda theirs: [],
        contradiction: Contradiction = no_contradiction,
    ) -> None:
        """Create the run in ``folder``, or continue the same run.

        ``identity`` is everything that the results depend on; ``host`` are remarks (paths, versions) that they do not
        depend on.  ``hold`` compares what was observed of the models with the identity of the run that is continued,
        before anything is written: it raises, or returns remarks.  A finished record with a ``contradiction`` is
        refused before the run goes on from it.
        Raises :class:`~handoff.errors.StoreError` if another process writes there, if the folder holds another
        configuration (naming the keys that differ) or something else, or if it cannot be written.
        """
        self.folder = folder
        self._plan = list(plan)
        self._keys = frozenset(self._plan)
        self._contradiction = contradiction
        self._done: dict[Key, Any] = {}
        self._waiting: dict[Key, bytes] = {}  # canonical JSON of the bodies that are finished and not sealed
        self._sealed = 0
        self._lock: BinaryIO | None = None
        self._records: FileIO | None = None
        self._journal: FileIO | None = None
        self.dropped: list[str] = []
        #: On how the run is continued.
        self.remarks: list[str] = []
        with self._disk("create"):
            if not (folder / SEAL).exists():
                folder.mkdir(parents=True, exist_ok=True)
            others = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}
            if others and MANIFEST not in others and others != {LOCK}:
                raise StoreError(f"{folder} is not empty and is not a run folder; choose another --out")
            if SEAL not in others:
                self._require_own_files()
                self._take_lock()
        try:
            with self._disk("open"):
                manifest = self._manifest(identity, host, hold)
                self._head = str(manifest["digest"])
                self._resume()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def body(self, key: Key) -> Any | None:
        """The body of a finished record, or ``None``."""
        return self._done.get(key)

    @property
    def owed(self) -> int:
        return len(self._plan) - len(self._done)

    @property
    def planned(self) -> int:
        return len(self._plan)

    def finish(self, key: Key, body: Any, durable: bool = True) -> None:
        """Put a finished record on disk, then seal every record whose turn has come.

        ``durable`` false leaves out the journal, for a record that is derived from others at no cost.
        """
        if key in self._done:
            return
        if key not in self._keys:
            name = "/".join(map(str, key))
            raise ProtocolFault(
                f"the protocol finished the record {name!r:.200}, which is not in its plan; mend plan()"
            )
        text = canonical(body)
        if len(text) > _MOST_BODY:
            raise StoreError(
                f"the record {'/'.join(key)!r:.200} has {len(text):,} bytes, and at most {_MOST_BODY:,} are read back; "
                "ask for fewer actions"
            )
        with self._disk("write"):
            if durable and self._sealed < len(self._plan) and self._plan[self._sealed] != key:
                assert self._journal is not None
                self._append(self._journal, _journal_line(key, text))
            self._done[key] = body
            self._waiting[key] = text
            self._seal_ready()

    def complete(self) -> None:
        """State that the plan is complete.  Raises :class:`~handoff.errors.StoreError` if records are owed."""
        if self.owed:
            raise StoreError(f"{self.folder}: {self.owed} of {self.planned} records are owed; the run is not complete")
        with self._disk("seal"):
            if not (self.folder / SEAL).exists():
                files.write_atomically(
                    self.folder / SEAL, canonical({"records": self._sealed, "head": self._head}) + b"\n"
                )
            if self._journal is not None:
                self._journal.close()
                self._journal = None
            # Of a run that was sealed before, a crash may have left it; it does no harm where nothing can be written.
            with contextlib.suppress(*(() if self._lock is not None else (OSError,))):
                (self.folder / JOURNAL).unlink(missing_ok=True)

    def note_timings(
        self, timings: Mapping[str, float], systems: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, list[str]]:
        """Keep wall-clock seconds by phase, added to those of earlier parts of the same run, and the system
        fingerprints that servers named, by policy.  Returns those of all parts."""
        path = self.folder / TIMINGS
        total, named = dict(timings), {name: set(entries) for name, entries in (systems or {}).items() if entries}
        earlier: Any = None
        with contextlib.suppress(OSError, ValueError):
            earlier = parse(files.read(path, MOST_TIMINGS))
        for name, entry in (earlier if isinstance(earlier, dict) else {}).items():
            if type(entry) in (int, float) and 0 <= entry <= _MOST_SECONDS:
                total[name] = total.get(name, 0.0) + float(entry)
            elif name == SYSTEMS and isinstance(entry, dict):
                for policy, entries in entry.items():
                    if isinstance(entries, list) and all(isinstance(one, str) for one in entries):
                        named.setdefault(policy, set()).update(entries)
        form: dict[str, Any] = {name: round(seconds, 3) for name, seconds in total.items()}
        both = {policy: sorted(entries) for policy, entries in named.items()}
        if both:
            form[SYSTEMS] = both
        if form:
            with self._disk("write"):
                files.write_atomically(path, canonical(form) + b"\n")
        return both

    def close(self) -> None:
        for file in (self._records, self._journal, self._lock):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
        self._records = self._journal = self._lock = None

    def _require_own_files(self) -> None:
        """Refuse a folder whose files lie elsewhere: it may be another's, and what is written would go there."""
        for name in (MANIFEST, RECORDS, JOURNAL, SEAL, TIMINGS, LOCK):
            if (self.folder / name).is_symlink():
                raise StoreError(
                    f"{self.folder / name} is a link that came with the run; put the file itself there, "
                    "or choose another --out"
                )

    def _take_lock(self) -> None:
        self._lock = open(self.folder / LOCK, "a+b")  # noqa: SIM115 - held until close
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            self._lock = None
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise StoreError(
                    f"another process writes to {self.folder}; wait for it or choose another --out"
                ) from None
            raise

    def _manifest(
        self,
        identity: Mapping[str, Any],
        host: Mapping[str, Any],
        hold: Callable[[Mapping[str, Any]], list[str]],
    ) -> dict[str, Any]:
        path = self.folder / MANIFEST
        mine = {"format": FORMAT, "identity": dict(identity), "digest": digest(dict(identity)), "host": dict(host)}
        if not path.exists():
            if (self.folder / RECORDS).exists() or (self.folder / JOURNAL).exists():
                raise StoreError(f"{self.folder} holds records but no {MANIFEST}; it cannot be continued")
            files.write_atomically(path, canonical(mine) + b"\n")
            return mine
        theirs = read_manifest(self.folder)
        names = ", ".join(differing_keys(commanded(theirs["identity"]), commanded(identity)))
        if names:
            raise StoreError(
                f"{self.folder} holds a run of another configuration; these keys differ: {names}. "
                "Choose another --out, or type the command that the run was started with"
            )
        self.remarks += hold(theirs["identity"])
        return theirs

    def _resume(self) -> None:
        """Read everything before writing anything: sealed records, then the journal."""
        records_path, journal_path = self.folder / RECORDS, self.folder / JOURNAL
        lines, length = Lines(records_path), 0
        for number, raw in enumerate(lines if records_path.exists() else (), start=1):
            line = decode_line(raw, number - 1, self._head, f"{records_path}, line {number}")
            if number > len(self._plan) or line.key != self._plan[number - 1]:
                raise Damage(f"{records_path}, line {number}: {'/'.join(line.key)} is not what the plan has there")
            self._done[line.key] = line.body
            self._head = line.digest
            length += len(raw) + 1
            self._sealed = number
        seal = read_seal(self.folder)
        if seal is not None and lines.rest:
            raise after_the_seal(records_path, self._sealed, lines.rest)
        if seal is not None and (seal["records"] != self._sealed or seal["head"] != self._head):
            raise Damage(
                f"{records_path} has {self._sealed} records that end in {self._head[:12]}..., but {SEAL} states "
                f"{seal['records']!r} that end in {str(seal['head'])[:12]}...: lines were deleted or changed"
            )
        if seal is not None and self._sealed < len(self._plan):
            raise Damage(f"{records_path} was sealed with {self._sealed} of the {len(self._plan)} records of its plan")
        entries, kept = Lines(journal_path), 0
        for number, raw in enumerate(entries if journal_path.exists() else (), start=1):
            key, body = _read_journal_line(raw, f"{journal_path}, line {number}")
            if key not in self._keys:
                raise Damage(f"{journal_path}, line {number}: {'/'.join(key)} is not in the plan")
            self._done.setdefault(key, body)
            kept += len(raw) + 1
        if seal is not None:
            return  # complete: no record is written any more
        for key, body in self._done.items():
            clause = self._contradiction(key, body, self._done.get)
            if clause is not None:
                raise Damage(
                    f"{self.folder} cannot go on: its record {'/'.join(key)} contradicts itself: {clause}. Nothing was "
                    "changed there: choose another --out"
                )
        for path in (records_path, journal_path):
            # Others are replaced as a whole; to these lines are added, and a second name of one would change as well.
            if path.exists() and path.stat().st_nlink > 1:
                raise StoreError(
                    f"{path} has a second name elsewhere (a hard link), which would change too; put a copy "
                    "of it there, or choose another --out"
                )
        self._cut(records_path, length, lines.rest)
        self._cut(journal_path, kept, entries.rest)
        # Unbuffered: after a failed write nothing must be left that a later flush would put on disk.
        self._records = open(records_path, "ab", buffering=0)  # noqa: SIM115 - held until close
        self._journal = open(journal_path, "ab", buffering=0)  # noqa: SIM115
        self._seal_ready()

    def _cut(self, path: Path, length: int, rest: bytes) -> None:
        """Drop a torn last line, keeping a copy of it."""
        if not rest:
            return
        copy = self.folder / f"torn-{path.stem}-{hashlib.sha256(rest).hexdigest()[:12]}"
        files.write_atomically(copy, rest)
        with open(path, "r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())
        self.dropped.append(f"{path.name}: a torn last line of {len(rest)} bytes was dropped (copy: {copy.name})")

    def _seal_ready(self) -> None:
        if self._records is None:
            return
        lines = []
        while self._sealed < len(self._plan) and self._plan[self._sealed] in self._done:
            key = self._plan[self._sealed]
            text = self._waiting.pop(key, None) or canonical(self._done[key])
            self._head, line = seal_line(self._sealed, self._head, key, text)
            lines.append(line)
            self._sealed += 1
        if lines:
            self._append(self._records, b"".join(lines))

    @staticmethod
    def _append(file: FileIO, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())

    @contextlib.contextmanager
    def _disk(self, what: str) -> Iterator[None]:
        try:
            yield
        except (FileExistsError, NotADirectoryError) as error:
            raise StoreError(f"{error.filename or self.folder} is not a folder; choose another --out") from error
        except OSError as error:
            if self._lock is not None and not self.folder.exists():
                raise StoreError(
                    f"cannot {what} run folder {self.folder}: somebody removed it, and all its records are gone. "
                    "Type the same command again to start anew"
                ) from error
            raise StoreError(
                f"cannot {what} run folder {self.folder}: {files.cause(error)}. What is finished is kept: "
                "type the same command again to go on, or with another --out to start anew"
            ) from error


def _journal_line(key: Key, body: bytes) -> bytes:
    """The line of a finished record, of which ``body`` is the canonical JSON."""
    where = canonical(list(key))
    sealed = hashlib.sha256(b"[%s,%s]" % (where, body)).hexdigest()
    return b'{"body":%s,"digest":"%s","key":%s}\n' % (body, sealed.encode(), where)


def _read_journal_line(raw: bytes, where: str) -> tuple[Key, Any]:
    try:
        form = parse(raw)
        key, body = tuple(form["key"]), form["body"]
        if _journal_line(key, canonical(body)) != raw + b"\n":
            raise ValueError("its content does not have the digest it states")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damage(f"{where} was changed or is not a record: {error}") from None
    return key, body
