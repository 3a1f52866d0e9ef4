"""A plan that is registered before the run: the digest of what was commanded, in a file for a public place.

An audit knows a run by its folder alone.  It cannot know that the folder is not the best of ten, or a favourable part
of a larger one.  Whoever publishes the plan before the first episode shows that it was chosen before its outcome was
known.

The file states no time, so the same plan is the same bytes at any time: the public place dates it.  It states no path
of this machine but those in the policies' specs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import differing_keys, digest, parse
from handoff.errors import DataError, StoreError, UsageError
from handoff.runs.folder import JOURNAL, MANIFEST, RECORDS
from handoff.runs.identity import commanded

#: Version of the form.
FORMAT = 1
#: The most bytes of a registered plan.
MOST_BYTES = 2**20


def registered_plan(identity: Mapping[str, Any], records: int) -> dict[str, Any]:
    """The plan of a run with this ``identity`` and so many ``records``, in the form that is published.

    ``digest`` covers everything that follows from the command, and not what was observed of the models that answer,
    which can differ from one introduction to the next; the rest says in words of what it is the digest.
    """
    identity = commanded(identity)
    tasks = [task["id"] for task in identity["tasks"]]
    policies = identity["policies"]
    return {
        "format": FORMAT,
        "digest": digest(dict(identity)),
        "handoff": identity.get("handoff"),
        "environment": identity["environment"].get("name"),
        "protocol": identity["protocol"],
        "tasks": {"count": len(tasks), "digest": digest(tasks)},
        "policies": {name: facts.get("spec") for name, facts in policies.items() if isinstance(facts, Mapping)},
        "records": records,
    }


def register(path: Path, identity: Mapping[str, Any], records: int, folder: Path) -> bool:
    """Write the plan of the run in ``folder`` to ``path``, or check that it is there; whether it was written.

    Raises :class:`~handoff.errors.UsageError` if the file holds something else, naming the keys that differ, or if the
    run has begun without it, and :class:`~handoff.errors.StoreError` if it cannot be written.
    """
    mine = registered_plan(identity, records)
    if folder.absolute() in path.absolute().parents:
        raise UsageError(f"{path} is inside the run folder; a plan is for a public place: give another --register")
    if path.exists():
        theirs = read_registered(path)
        if theirs != mine:
            keys = ", ".join(differing_keys(theirs, mine))
            raise UsageError(
                f"{path} registers another plan; these keys differ: {keys}. Give another --register, or type the "
                "command whose plan was registered"
            )
        return False
    if _begun(folder):
        raise UsageError(
            f"{folder} has finished episodes, and a plan is registered before the first one: there is no {path}. Give "
            "the file that was registered, or leave out --register"
        )
    text = json.dumps(mine, indent=2, sort_keys=True, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, text.encode() + b"\n")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {files.cause(error)}") from error
    return True


def read_registered(path: Path) -> dict[str, Any]:
    """The plan in a file.  Raises :class:`~handoff.errors.UsageError` if it cannot be read and
    :class:`~handoff.errors.DataError` if it is none."""
    try:
        text = files.text_of(files.read(path, MOST_BYTES), str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {files.cause(error)}") from error
    try:
        plan = parse(text)
    except ValueError as error:
        raise DataError(f"{path} is not a registered plan: it is not valid JSON ({error})") from error
    if not isinstance(plan, dict) or plan.get("format") != FORMAT or not isinstance(plan.get("digest"), str):
        raise DataError(f"{path} is not a registered plan of format {FORMAT}; `handoff run --register` writes one")
    return plan


def _begun(folder: Path) -> bool:
    """Whether a run in ``folder`` has finished episodes."""
    try:
        return (folder / MANIFEST).exists() and any(
            (folder / name).exists() and (folder / name).stat().st_size > 0 for name in (RECORDS, JOURNAL)
        )
    except OSError:
        return False
