"""The numbers of a rollouts run: :func:`handoff.protocols.rollouts.summary.summary` as values.

Of a PTGS run they are of the scored rollouts; pilots and temperatures stand beside them.
"""

from __future__ import annotations

import attrs

from handoff.protocols.rollouts.study import RolloutStudy
from handoff.protocols.rollouts.summary import summary
from handoff.records import from_json
from handoff.report.format import Json


@attrs.frozen
class PilotCounts:
    """The pilots of one policy."""

    rollouts: int
    successes: int
    #: Share of the tasks.
    never_solved: float


@attrs.frozen
class TaskCounts:
    """One policy on one task: ``c`` successes in ``n`` rollouts."""

    task: str
    n: int
    c: int
    pilot_successes: int | None = None
    #: Of the scored rollouts.
    temperature: float | None = None


@attrs.frozen
class PolicyCounts:
    """One policy on all tasks."""

    policy: str
    rollouts: int
    successes: int
    #: Share of the tasks.
    never_solved: float
    tasks: tuple[TaskCounts, ...]
    #: For k = 1, 2, 4, ... up to the rollouts of a task.
    pass_at_k: dict[str, float]
    pass_hat_k: dict[str, float]
    pilots: PilotCounts | None = None
    #: Tasks whose scored rollouts are all equal; stated where these are most tasks.
    alike: int | None = None

    @property
    def mean_success(self) -> float:
        return self.successes / self.rollouts

    @property
    def temperatures(self) -> list[float]:
        return [row.temperature for row in self.tasks if row.temperature is not None]


@attrs.frozen
class RolloutDocument:
    """Everything that is reported of a rollouts run."""

    run: RolloutStudy
    #: The JSON twin.
    summary: Json
    #: Empty while rollouts are owed.
    policies: tuple[PolicyCounts, ...]
    #: Policies whose rollouts are mostly one, in words.
    warnings: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return self.summary


def document(run: RolloutStudy) -> RolloutDocument:
    """Counts per policy and task, and the curves."""
    form = summary(run)
    policies = (from_json(PolicyCounts, entry, f"{run.folder}: summary") for entry in form.get("policies", ()))
    warnings = () if run.still_owed else (run.counts(name).repeated for name in run.policies)
    return RolloutDocument(run, form, tuple(policies), tuple(filter(None, warnings)))
