"""A rollouts run read back: successes per policy and task.

Of a PTGS run the pilots are read apart: only the rollouts after them are scored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from handoff.errors import DataError, UsageError
from handoff.passk.counts import Counts
from handoff.passk.ptgs import EstimateThenSample
from handoff.protocols.rollouts.config import RolloutsConfig
from handoff.protocols.rollouts.records import ROLLOUT, Rollout, RolloutCell, rollout_problem
from handoff.records import from_json
from handoff.runs.chain import Key
from handoff.runs.folder import read_records, require_key
from handoff.runs.run import RecordedDecision, Run, read_head
from handoff.text import shell_word

NAME = "rollouts"


@attrs.frozen(kw_only=True)
class RolloutStudy(Run):
    """The records of a rollouts run, as far as it has got."""

    config: RolloutsConfig
    rollouts: Mapping[RolloutCell, Rollout] = attrs.field(repr=False)

    @property
    def ptgs(self) -> EstimateThenSample | None:
        return self.config.ptgs

    @property
    def policies(self) -> tuple[str, ...]:
        return self.config.policies

    @property
    def planned(self) -> int:
        return len(self.tasks) * len(self.policies) * self.config.rollouts

    @property
    def count(self) -> int:
        return len(self.rollouts)

    @property
    def still_owed(self) -> str:
        owed = self.planned - self.count
        return f"{owed} of {self.planned} rollouts" if owed else ""

    def keys(self) -> Iterator[Key]:
        # A mapping keeps the order in which lines were read.
        return (cell.key for cell in self.rollouts)

    def label(self, cell: RolloutCell) -> str:
        """A cell in words."""
        return f"task {self.task(cell.task).name}, policy {cell.policy}, rollout {cell.rollout}"

    def decisions(self) -> Iterator[RecordedDecision]:
        for cell, rollout in self.rollouts.items():
            for decision in rollout.decisions:
                yield RecordedDecision(self.label(cell), cell.policy, decision, None)

    def require_consistent(self) -> None:
        for cell, rollout in self.rollouts.items():
            problem = rollout_problem(rollout, self.config.budget)
            if problem is not None:
                raise DataError(f"{self.folder}: {self.label(cell)} contradicts itself: {problem}")

    @property
    def pilots(self) -> int:
        """Rollouts of each task and policy that are not scored."""
        return 0 if self.ptgs is None else self.ptgs.pilots

    def counts(self, policy: str | None = None) -> Counts:
        """Successes per task of one policy (the only one, if no name is given), in the rollouts that are scored.

        Raises :class:`~handoff.errors.UsageError` for a name that the run does not have, or if it must be given, and
        :class:`~handoff.errors.StoreError` while rollouts are owed.
        """
        if policy is None and len(self.policies) == 1:
            policy = self.policies[0]
        if policy not in self.policies:
            names = ", ".join(self.policies)
            raise UsageError(f"{self.folder} holds rollouts of {names}; name one by {shell_word(self.folder)}#NAME")
        self.require_complete()
        total = self.config.rollouts
        scored = f"{total - self.pilots} scored rollouts per task after {self.pilots} pilots"
        return self._count(policy, range(self.pilots, total), "" if self.ptgs is None else scored)

    def pilot_counts(self, policy: str) -> Counts:
        """Successes per task in the pilots of a complete PTGS run."""
        return self._count(policy, range(self.pilots), "pilots")

    def _count(self, policy: str, indices: range, remark: str) -> Counts:
        rows, alike = [], 0
        for task in self.tasks:
            rollouts = [self.rollouts[RolloutCell(task.id, policy, index)] for index in indices]
            rows.append((task.id, len(rollouts), sum(rollout.won for rollout in rollouts)))
            alike += len(rollouts) > 1 and len({_course(rollout) for rollout in rollouts}) == 1
        names = {task.id: task.name for task in self.tasks}
        return attrs.evolve(Counts.of(policy, rows), remark=remark, names=names, alike=alike)

    def temperatures(self, policy: str) -> dict[str, float]:
        """T_x of the scored rollouts of a complete PTGS run, by task."""
        set_by = {task.id: self.rollouts[RolloutCell(task.id, policy, self.pilots)].temperature for task in self.tasks}
        return {task: temperature for task, temperature in set_by.items() if temperature is not None}


def _course(rollout: Rollout) -> Hashable:
    """What happened in a rollout: every record, and all that was decided, without the seeds."""
    said = tuple((decision.text, decision.action, decision.status) for decision in rollout.decisions)
    return rollout.digest, said


def contradiction(config: RolloutsConfig, key: Key, body: Any) -> str | None:
    """How a finished record contradicts itself, as a clause."""
    try:
        rollout = from_json(Rollout, body)
        require_key(key, rollout.cell.key, "its place")
    except DataError as error:
        return str(error)
    return rollout_problem(rollout, config.budget)


def load(path: str | Path) -> RolloutStudy:
    """Read the rollouts run in ``path``, complete or not.

    Raises as :func:`handoff.protocols.frontier.study.load` does.
    """
    head: dict[str, Any] = read_head(Path(path), NAME, RolloutsConfig)
    folder, config = head["folder"], head["config"]
    others = sorted({*config.policies} ^ {*head["manifest"]["identity"]["policies"]})
    if others:
        names = ", ".join(others)
        raise DataError(f"{folder}: the manifest's protocol names other policies than the manifest describes: {names}")
    known = {task.id for task in head["tasks"]}
    rollouts: dict[RolloutCell, Rollout] = {}
    for line in read_records(folder, head["manifest"]):
        where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
        if line.key[:1] != (ROLLOUT,):
            raise DataError(f"{where} is of no known kind")
        rollout = from_json(Rollout, line.body, where)
        planned = rollout.task in known and rollout.policy in config.policies
        if not planned or not 0 <= rollout.index < config.rollouts:
            raise DataError(f"{where} is of no task, policy or rollout that the manifest lists")
        require_key(line.key, rollout.cell.key, where)
        rollouts[rollout.cell] = rollout
    return RolloutStudy(**head, rollouts=rollouts)
