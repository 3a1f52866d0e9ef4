"""Reads a run folder.  Needs no lock: a reader sees whole lines only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import digest, parse
from handoff.errors import DataError, StoreError
from handoff.runs.chain import MOST_BYTES, Damage, Key, Line, Lines, decode_line, line_key

MANIFEST, RECORDS, JOURNAL, SEAL, TIMINGS, LOCK = (
    "manifest.json",
    "records.jsonl",
    "journal.jsonl",
    "seal.json",
    "timings.json",
    "lock",
)
FORMAT = 1
#: Bytes of a seal and of the times: more than any has.
MOST_SEAL, MOST_TIMINGS = 2**12, 2**24


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run, checked against its own digest.  Raises :class:`~handoff.errors.StoreError`."""
    path = folder / MANIFEST
    try:
        raw = files.read(path, MOST_BYTES)
    except FileNotFoundError:
        raise StoreError(f"{folder} is not a run folder: it has no {MANIFEST}") from None
    except NotADirectoryError:
        raise StoreError(f"{folder} is a file, not a run folder; of a table, `handoff estimate` tells more") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {files.cause(error)}") from error
    try:
        manifest = parse(raw)
        if manifest["format"] != FORMAT or type(manifest["format"]) is not int:
            raise StoreError(f"{path} has format {manifest['format']!r}; this version reads format {FORMAT}")
        if digest(manifest["identity"]) != manifest["digest"]:
            raise Damage(f"{path} was changed: its content does not have the digest it states")
    except (ValueError, KeyError, TypeError) as error:
        raise Damage(f"{path} is not a valid manifest ({type(error).__name__}: {error})") from None
    return dict(manifest)


def read_records(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Line]:
    """The sealed records of a run, each verified; safe while another process writes.

    A torn last line is not there yet.  Raises :class:`Damage` at the first line that is wrong, or that holds a second
    record of one key.
    """
    path = folder / RECORDS
    prev, keys, lines = str(manifest["digest"]), dict[Key, int](), Lines(path)
    try:
        for number, raw in enumerate(lines, start=1):
            line = decode_line(raw, number - 1, prev, f"{path}, line {number}")
            prev = line.digest
            if keys.setdefault(line.key, number) != number:
                key = "/".join(line.key)
                raise Damage(f"{path}, line {number} holds a second record of {key}, beside line {keys[line.key]}")
            yield line
    except FileNotFoundError:
        if (folder / SEAL).exists():
            raise Damage(f"{path} is missing, though the run was sealed complete") from None
        return
    except OSError as error:
        raise StoreError(f"cannot read {path}: {files.cause(error)}") from error
    if lines.rest and (folder / SEAL).exists():
        raise after_the_seal(path, len(keys), lines.rest)


def read_keys(folder: Path) -> list[Key]:
    """The keys of the sealed records, in the order of their lines, which :func:`read_records` has verified."""
    path = folder / RECORDS
    return [line_key(raw) for raw in Lines(path)] if path.exists() else []


def read_head_line(folder: Path) -> tuple[int, str | None]:
    """The number of the sealed records, which :func:`read_records` has verified, and the digest of the last one."""
    count, last = 0, b""
    for count, last in enumerate(Lines(folder / RECORDS), start=1):  # noqa: B007 - the last ones are wanted
        pass
    return count, str(parse(last)["digest"]) if count else None


def after_the_seal(path: Path, records: int, rest: bytes) -> Damage:
    what = f"torn or not a record ({len(rest)} bytes)" if rest.strip() else "blank"
    return Damage(f"{path}, line {records + 1}: {what}, though the run was sealed complete")


def read_seal(folder: Path) -> dict[str, Any] | None:
    """The content of ``seal.json``; ``None`` while the run is not complete."""
    path = folder / SEAL
    try:
        seal = parse(files.read(path, MOST_SEAL))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {files.cause(error)}") from error
    except ValueError as error:
        raise Damage(f"{path} is not valid JSON ({error})") from None
    if not (isinstance(seal, dict) and set(seal) == {"records", "head"}):
        raise Damage(f"{path} is not a valid seal")
    return seal


def require_key(key: Key, stated: Key, where: str) -> None:
    if key != stated:
        raise DataError(f"{where} holds the record of {'/'.join(stated)}")
