"""The audit of a run: its records against themselves, then against the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handoff.auditing.checks import Audit
from handoff.auditing.reference import _Place
from handoff.progress import Progress
from handoff.protocols import registry
from handoff.protocols.frontier import config as frontier_config
from handoff.protocols.frontier.audit import _audit_frontier
from handoff.protocols.rollouts import config as rollouts_config
from handoff.protocols.rollouts.audit import _audit_rollouts
from handoff.runs.chain import Damage


def audit(
    folder: Path,
    overrides: Mapping[str, Any],
    workers: int | None,
    progress: Progress,
    replay: bool = True,
    ray: str | None = None,
    templates: Sequence[str] = (),
) -> Audit:
    """Audit the run in ``folder``, of whichever protocol.

    ``overrides`` are environment options that take the place of those that the run was made with (where its data lies
    now); ``replay`` false leaves out what needs the environment; ``workers`` and ``ray`` say where that lives
    (:func:`handoff.episodes.start.start`); ``templates`` are prompt templates, by file, that may be rendered beside the
    toolkit's own.  Raises :class:`~handoff.errors.StoreError` if
    ``folder`` is no run and :class:`~handoff.errors.UsageError` if its environment or data cannot be found.
    """
    try:
        name = registry.protocol_name(folder)
    except Damage:
        name = frontier_config.NAME  # reading the run fails the first check, with the reason
    if name == rollouts_config.NAME:
        return _audit_rollouts(folder, _Place(overrides, workers, ray), progress, replay)
    return _audit_frontier(folder, _Place(overrides, workers, ray), progress, replay, templates)
