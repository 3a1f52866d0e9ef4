"""The audit of a run: its records against themselves, then against the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handoff.auditing.checks import Audit, check_folder, check_identity, check_order, read_run
from handoff.auditing.policies import check_policies
from handoff.auditing.reference import Reference
from handoff.auditing.register import check_register, note_seeds
from handoff.episodes.start import Where
from handoff.errors import StoreError
from handoff.progress import Progress, Silent
from handoff.protocols.registry import protocol_of_run
from handoff.runs.folder import read_keys, read_manifest

#: The checks of the reference environment itself.
REFERENCE_CLAIMS = {
    "tasks": "the tasks are what the selection seed draws from the split",
    "environment": "versions and digests of the environment are those that the run recorded",
}


def audit_run(
    folder: Path,
    options: Mapping[str, Any] | None = None,
    where: Where | None = None,
    progress: Progress | None = None,
    replay: bool = True,
    templates: Sequence[str] = (),
    register: Path | None = None,
) -> Audit:
    """Audit the run in ``folder``, of any protocol.

    ``options`` are environment options that take the place of those that the run was made with (where its data lies
    now); ``replay`` false leaves out the checks that need the environment, which are then called not done; ``where``
    says where that lives; ``templates`` are files of prompt templates that may be rendered beside the toolkit's own;
    ``register`` is a plan that was registered before the run (:mod:`handoff.runs.register`).  Raises
    :class:`~handoff.errors.StoreError` if ``folder`` is no run and :class:`~handoff.errors.UsageError` if its protocol,
    environment or data cannot be found.
    """
    try:
        protocol = protocol_of_run(folder)
    except StoreError:
        audit, _ = read_run(folder, _refuse)
        return audit
    audit, run = read_run(folder, protocol.load)
    if run is None:
        return audit
    audit.templates = tuple(templates)
    size = protocol.size(run.tasks, run.config)
    check_folder(audit, run)
    check_identity(audit, run)
    note_seeds(audit, run)
    if register is not None:
        check_register(audit, run, size, register)
    check_order(audit, partial(protocol.plan, run.tasks, run.config), size, read_keys(folder))
    protocol.check(audit, run, templates)
    check_policies(audit, run)
    if not replay:
        audit.leave_out({**REFERENCE_CLAIMS, **protocol.replays}, "only the records were to be checked")
    else:
        bar = progress or Silent()
        with Reference(audit, run, options or {}, where or Where()) as reference:
            before = len(audit.checks)
            reference.certify(lambda pool, tasks, lanes: protocol.certify(audit, run, pool, tasks, bar, lanes))
            missing = sum(task.id not in reference.tasks for task in run.tasks)
            for check in audit.checks[before:] if missing else ():
                check.owe(f"{missing} of {len(run.tasks)} tasks were not found")
    return audit


def _refuse(folder: Path) -> Any:
    """Raises the :class:`~handoff.errors.StoreError` of a manifest that cannot be read."""
    read_manifest(folder)
    raise AssertionError("the manifest can be read")
