"""A run held against the plan that was registered before it, and the seeds that an author may have searched."""

from __future__ import annotations

from pathlib import Path

from handoff.auditing.checks import Audit
from handoff.canonical import differing_keys
from handoff.runs.register import read_registered, registered_plan
from handoff.runs.run import Run
from handoff.settings import settings

CLAIM = "the run is the plan that was registered before it"


def check_register(audit: Audit, run: Run, size: int, path: Path) -> None:
    """Add the check ``register`` to ``audit``: the manifest gives the plan in the file ``path``, key by key.

    ``size`` is the number of places of the run's plan.  Raises :class:`~handoff.errors.UsageError` or
    :class:`~handoff.errors.DataError` if there is no plan in ``path``.
    """
    check = audit.check("register", CLAIM)
    stated = read_registered(path)
    actual = registered_plan(run.identity, size)
    for key in sorted({*stated, *actual}):
        theirs, mine = stated.get(key), actual.get(key)
        names = ", ".join(differing_keys(theirs, mine, key))
        says = f": {theirs!r:.80} was registered, the run has {mine!r:.80}" if not isinstance(mine, dict) else ""
        check.require(not names, f"{names} of {path.name} differ{'s' if ',' not in names else ''}{says}")
    check.notes.append(
        f"the digest {str(stated['digest'])[:12]}... proves something only if it was published before the first episode"
    )


def note_seeds(audit: Audit, run: Run) -> None:
    """Note in the check ``identity`` every seed of ``run`` that is not the default: it may have been searched."""
    check = next(check for check in audit.checks if check.name == "identity")
    for stated in settings(type(run.config)):
        if stated.field in ("run_seed", "selection_seed"):
            seed = getattr(run.config, stated.field)
            if seed != stated.default:
                check.notes.append(
                    f"the {stated.field.replace('_', ' ')} {seed} is not the default seed {stated.default}: an author "
                    "may have tried several; a registered plan (--register) shows that this one came first"
                )
