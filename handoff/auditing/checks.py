"""An audit is a list of named checks: the claim of each, how many things it looked at, and every failure in words.

A check has passed, has failed, or was not done.  One that looked at nothing was not done, and says why: there was
nothing to look at (:meth:`Check.excuse`), or something was due and could not be looked at (:meth:`Check.owe`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import attrs

from handoff import __version__, files
from handoff.auditing import known
from handoff.canonical import canonical, parse
from handoff.errors import DataError, StoreError, brief
from handoff.records import STATUSES, Decision
from handoff.runs.chain import Key, Lines
from handoff.runs.folder import JOURNAL, MANIFEST, read_head_line, read_records, read_seal
from handoff.runs.identity import stated_seeds
from handoff.runs.run import Run


class State(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_DONE = "not done"


class Sentences(list[str]):
    """Sentences of a check, each :func:`brief <handoff.errors.brief>`: a run folder may hold texts of any length."""

    def append(self, sentence: str) -> None:
        super().append(brief(sentence))

    def extend(self, sentences: Iterable[str]) -> None:
        super().extend(map(brief, sentences))


@attrs.define
class Check:
    """One claim, and how it held."""

    name: str
    claim: str
    #: Things that were held against the claim.
    count: int = 0
    failures: Sentences = attrs.Factory(lambda: Sentences())
    #: Limits of the check's reach.
    notes: Sentences = attrs.Factory(lambda: Sentences())
    #: What was due and could not be looked at, in words.
    owed: Sentences = attrs.Factory(lambda: Sentences())
    #: Why there was nothing to look at, in words.
    excuses: Sentences = attrs.Factory(lambda: Sentences())

    @property
    def state(self) -> State:
        if self.failures:
            return State.FAILED
        return State.PASSED if self.count and not self.owed else State.NOT_DONE

    @property
    def passed(self) -> bool:
        return self.state is State.PASSED

    @property
    def due(self) -> bool:
        """Whether it was not done though something was due.  Without an excuse that is taken for granted."""
        return self.state is State.NOT_DONE and bool(self.owed or not self.excuses)

    @property
    def blocks(self) -> bool:
        """Whether the audit does not pass because of this check."""
        return self.state is State.FAILED or self.due

    @property
    def reason(self) -> str | None:
        """Why it was not done; ``None`` if it was."""
        if self.state is not State.NOT_DONE:
            return None
        return "; ".join(self.owed or self.excuses or ["it looked at nothing"])

    def require(self, condition: bool, failure: str) -> bool:
        """Count one thing; ``failure`` says in words that ``condition`` does not hold.  Returns ``condition``."""
        self.count += 1
        if not condition:
            self.failures.append(failure)
        return condition

    def collect(self, label: str, problems: Iterable[str]) -> None:
        """Count one thing, called ``label``, with all its problems."""
        self.count += 1
        self.failures.extend(f"{label}: {problem}" for problem in problems)

    def owe(self, reason: str) -> None:
        """State that something was due and was not looked at: the audit does not pass."""
        self.owed.append(reason)

    def excuse(self, reason: str) -> None:
        """State why there may be nothing to look at, or why nobody wants it: it counts where nothing was looked at."""
        self.excuses.append(reason)


@attrs.define
class Audit:
    """The checks of one run, in order."""

    folder: Path
    checks: list[Check] = attrs.Factory(list)
    #: Files of prompt templates that the auditor trusts.
    templates: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """No check failed, and none left undone what was due."""
        return not any(check.blocks for check in self.checks)

    def check(self, name: str, claim: str) -> Check:
        """Add a check."""
        check = Check(name, claim)
        self.checks.append(check)
        return check

    def leave_out(self, claims: Mapping[str, str], reason: str) -> None:
        """Add checks, by name, that nobody wants done."""
        for name, claim in claims.items():
            self.check(name, claim).excuse(reason)

    def to_json(self) -> dict[str, Any]:
        keys = ("name", "claim", "count", "passed", "state", "due", "reason", "failures", "notes")
        return {
            "passed": self.passed,
            "checks": [{key: getattr(check, key) for key in keys} for check in self.checks],
        }


R = TypeVar("R", bound=Run)


def read_run(folder: Path, load: Callable[[Path], R]) -> tuple[Audit, R | None]:
    """The checks of the folder's own integrity, and the run that ``load`` reads (``None`` if it cannot be read).

    Raises :class:`~handoff.errors.StoreError` if ``folder`` is no run.
    """
    audit = Audit(folder)
    chain = audit.check("chain", "every record has its digest, its place and follows the one before")
    try:
        run = load(folder)
    except (StoreError, DataError) as error:
        if not (folder / MANIFEST).exists():
            raise
        chain.require(False, str(error))
        return audit, None
    chain.count = 1 + run.count
    seal = audit.check("seal", "the run is complete and its last record is the one that was sealed")
    stated = read_seal(folder)
    if stated is None:
        seal.require(False, f"not complete: {run.still_owed or 'no records'} are owed")
    else:
        count, last = read_head_line(folder)
        head = str(run.manifest["digest"]) if last is None else last
        counted = type(stated["records"]) is int and stated["records"] == count
        seal.require(counted, f"{count} records, but {stated['records']!r:.80} were sealed")
        seal.require(stated["head"] == head, "the last record is not the one that was sealed")
    return audit, run


def check_folder(audit: Audit, run: Run) -> None:
    """Add the check ``folder``: what else lies there.

    A command that ended between the seal and the end of its work leaves the journal behind: then all that it holds is
    sealed.  Files of other programs are named and not read.
    """
    check = audit.check("folder", "the folder holds a run's files, and no finished record beside the sealed ones")
    names = {entry.name for entry in run.folder.iterdir() if not entry.name.startswith(".")}
    check.count = len(names)
    others = sorted(name for name in names - known.FILES - known.REPORTS if not name.startswith(known.TORN))
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        check.notes.append(f"not a run's, and not looked at: {', '.join(others[:5])}{more}")
    if run.sealed and JOURNAL in names:
        _check_journal(check, run)


def _check_journal(check: Check, run: Run) -> None:
    """Hold a journal that remains after the seal against the sealed records."""
    sealed = {line.key: canonical(line.body) for line in read_records(run.folder, run.manifest)}
    try:
        _check_entries(check, Lines(run.folder / JOURNAL), sealed)
    except OSError as error:
        check.failures.append(f"{JOURNAL} remains after the seal, and cannot be read: {files.cause(error)}")
    except StoreError as error:
        check.failures.append(str(error))
    if not check.failures:
        check.notes.append(f"{JOURNAL} remains, and holds only what is sealed; the command of the run removes it")


def _check_entries(check: Check, lines: Lines, sealed: Mapping[Key, bytes]) -> None:
    """Hold each entry of a journal against the canonical JSON of the sealed bodies."""

    def entries() -> Iterator[bytes]:
        yield from lines
        if lines.rest:
            yield lines.rest

    for number, raw in enumerate(entries(), start=1):
        where = f"{JOURNAL}, line {number}"
        try:
            entry = parse(raw)
            key, body = tuple(entry["key"]), canonical(entry["body"])
            equal = sealed.get(key) == body
        except (ValueError, KeyError, TypeError, RecursionError):
            check.failures.append(f"{where}: it is not a record, though the run was sealed complete")
            continue
        if not equal:
            check.failures.append(f"{where}: another record of {'/'.join(map(str, key))} than the sealed one")


def check_identity(audit: Audit, run: Run) -> None:
    """Add the checks ``identity`` and ``manifest``."""
    check = audit.check("identity", "the manifest states this version of the toolkit and the seeds of its schedule")
    made_by = run.identity.get("handoff")
    check.require(made_by == __version__, f"made by handoff {made_by!r:.40}; this is {__version__}")
    seeds = stated_seeds(run.config.run_seed)
    check.require(run.identity.get("seeds") == seeds, f"seeds {run.identity.get('seeds')!r:.200} instead of {seeds}")
    form = audit.check("manifest", "the manifest holds what this version writes, and nothing else")
    for what, part, keys, more in (
        ("it", run.manifest, known.MANIFEST_KEYS, ()),
        ("its identity", run.identity, known.IDENTITY_KEYS, known.MORE_IDENTITY_KEYS),
    ):
        problems = list(known.key_problems(what, part, keys, more))
        form.require(not problems, "; ".join(problems))
    for task in run.tasks:
        form.require(not task.source, f"task {task.name} states a place, {task.source!r:.80}, which no manifest does")


#: Places of a plan without a record that an audit names one by one.  A plan of more of them is any number of a forger,
#: and its keys are not made.
MOST_MISSING = 10_000


def check_order(audit: Audit, plan: Callable[[], Sequence[Key]], size: int, sealed: Sequence[Key]) -> None:
    """Add the check ``order``: the keys of all lines against those of the ``plan``, which has ``size`` places, one by
    one."""
    check = audit.check("order", "there is one record for each place of the plan, in the plan's order")
    if size - len(sealed) <= MOST_MISSING:
        for mine, theirs in zip(plan(), sealed, strict=False):
            check.require(mine == theirs, f"{'/'.join(theirs)} is in the place of {'/'.join(mine)}")
    if len(sealed) != size:
        check.failures.append(f"{len(sealed)} records, but the plan has {size}")


def check_statuses(decision: Decision, admissible: Sequence[str]) -> Iterator[str]:
    """Contradictions between a decision's status, its action and the admissible actions of the state before it."""
    action, status = decision.action, decision.status
    if status not in STATUSES:
        yield f"has the unknown status {status!r}"
    if status == "parsed" and action not in admissible:
        yield f"is called parsed, but {action!r} was not admissible"
    if status == "inadmissible" and action in admissible:
        yield f"is called inadmissible, but {action!r} was admissible"
    if action and status not in ("parsed", "inadmissible"):
        yield f"is called {status}, yet has the action {action!r}"
