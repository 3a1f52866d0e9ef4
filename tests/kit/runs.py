"""Run folders that tests play, read and forge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kit.command import output_of
from kit.forger import Forger, canonical, digest

#: Changes the key and the body of a record in place.
RecordChange = Callable[[list[str], Any], Any]
#: Changes the identity in a manifest in place.
IdentityChange = Callable[[Any], Any]


def play(folder: Path, *arguments: object) -> Path:
    """Play a study to its end in this process, without workers; its folder."""
    output_of(*arguments, "--workers", "0", "-q", "--out", folder)
    return folder


def record_bytes(folder: Path) -> bytes:
    return (folder / "records.jsonl").read_bytes()


def records(folder: Path) -> list[tuple[list[str], Any]]:
    """Key and body of every record, in the order of the file."""
    forms = map(json.loads, record_bytes(folder).splitlines())
    return [(form["key"], form["body"]) for form in forms]


def reseal(folder: Path, records: Iterable[tuple[list[str], Any]]) -> None:
    """Write the records into the run under a valid chain and seal."""
    forger = Forger.read(folder)
    forger.records = list(records)
    shutil.rmtree(folder)
    forger.write(folder)


def rewrite_identity(folder: Path, change: IdentityChange) -> None:
    """Change the identity in the run's manifest and make the manifest's digest fit."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest["identity"])
    manifest["digest"] = digest(manifest["identity"])
    path.write_bytes(canonical(manifest) + b"\n")


def forge(
    run: Path,
    folder: Path,
    change: RecordChange | None = None,
    *,
    identity: IdentityChange | None = None,
    keep: Callable[[list[str], Any], bool] = lambda key, body: True,
) -> Path:
    """Copy the run to ``folder`` with changes under a valid chain and seal, as an attacker would.

    ``change`` gets each record, and ``identity`` the identity in the manifest; records that ``keep`` refuses are left
    out.
    """
    forger = Forger.read(run)
    if identity is not None:
        identity(forger.identity)
    forger.records = [(key, body) for key, body in forger.records if keep(key, body)]
    for key, body in forger.records:
        if change is not None:
            change(key, body)
    forger.write(folder)
    assert record_bytes(folder) != record_bytes(run), "the forgery changed nothing"
    return folder


def first(change: Callable[[list[str], Any], bool]) -> RecordChange:
    """Apply ``change`` to one record only: it returns False for each record that it leaves alone."""
    done = False

    def once(key: list[str], body: Any) -> None:
        nonlocal done
        done = done or change(key, body)

    return once
