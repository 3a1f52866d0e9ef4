"""An audit is a list of named checks: what each claims, how much it looked at, and every failure in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs

from handoff import __version__, files
from handoff.canonical import parse
from handoff.errors import DataError, StoreError
from handoff.protocols.frontier.study import Study
from handoff.protocols.rollouts.study import RolloutStudy
from handoff.runs import identity
from handoff.runs.chain import Key
from handoff.runs.folder import read_seal


@attrs.define
class Check:
    """One claim, how many things were held against it, and every failure in words."""

    name: str
    claim: str
    count: int = 0
    failures: list[str] = attrs.Factory(list)
    #: What a reader should know of the check's reach.
    notes: list[str] = attrs.Factory(list)

    @property
    def passed(self) -> bool:
        return not self.failures

    def require(self, condition: bool, failure: str) -> bool:
        self.count += 1
        if not condition:
            self.failures.append(failure)
        return condition


@attrs.define
class Audit:
    """The checks of one run, in order.  ``passed`` says that none failed and the run is complete."""

    folder: Path
    checks: list[Check] = attrs.Factory(list)

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def check(self, name: str, claim: str) -> Check:
        check = Check(name, claim)
        self.checks.append(check)
        return check

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "checks": [
                {
                    "name": c.name,
                    "claim": c.claim,
                    "count": c.count,
                    "passed": c.passed,
                    "failures": c.failures,
                    "notes": c.notes,
                }
                for c in self.checks
            ],
        }


class SealedRun(Protocol):
    """What the integrity checks need of a run that was read."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...

    @property
    def count(self) -> int:
        """Sealed records."""

    @property
    def still_owed(self) -> str:
        """What is owed, in words."""


R = TypeVar("R", bound=SealedRun)


def read_run(folder: Path, load: Callable[[Path], R]) -> tuple[Audit, R | None]:
    """The checks of the folder's own integrity, and the run that ``load`` reads (``None`` if it cannot be read)."""
    audit = Audit(folder)
    chain = audit.check("chain", "every record has its digest, its place and follows the one before")
    try:
        run = load(folder)
    except (StoreError, DataError) as error:
        if not (folder / "manifest.json").exists():
            raise
        chain.require(False, str(error))
        return audit, None
    chain.count = 1 + run.count
    seal = audit.check("seal", "the run is complete and its last record is the one that was sealed")
    stated = read_seal(folder)
    if stated is None:
        seal.require(False, f"not complete: {run.still_owed} are owed")
    else:
        lines = files.read(folder / "records.jsonl").splitlines()
        head = str(parse(lines[-1])["digest"]) if lines else str(run.manifest["digest"])
        seal.require(stated["records"] == len(lines), f"{len(lines)} records, but {stated['records']!r} were sealed")
        seal.require(stated["head"] == head, "the last record is not the one that was sealed")
    return audit, run


def _check_identity(result: Audit, run: Study | RolloutStudy) -> None:
    check = result.check("identity", "the manifest states this version of the toolkit and the seeds that were used")
    made_by = run.identity.get("handoff")
    check.require(made_by == __version__, f"made by handoff {made_by!r:.40}; this is {__version__}")
    seeds = identity.stated_seeds(run.protocol["run_seed"])
    check.require(run.identity.get("seeds") == seeds, f"seeds {run.identity.get('seeds')!r:.200} instead of {seeds}")


def _stated(run: Study | RolloutStudy) -> dict[str, Any]:
    return {key: value for key, value in run.protocol.items() if key != "name"}


def _check_order(result: Audit, planned: Sequence[Key], found: Iterator[Key] | Sequence[Key]) -> None:
    check = result.check("order", "records are sealed in the plan's order")
    for mine, theirs in zip(planned, found, strict=False):
        check.require(mine == theirs, f"{'/'.join(theirs)} stands where {'/'.join(mine)} belongs")
