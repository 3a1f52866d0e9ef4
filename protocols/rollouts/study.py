"""A rollouts run read back: who succeeded how often on which task.

Of a PTGS run the pilots are read apart: only the rollouts after them are scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from handoff.errors import DataError, StoreError, UsageError
from handoff.passk.counts import Counts
from handoff.passk.ptgs import EstimateThenSample
from handoff.protocols.rollouts.records import Rollout
from handoff.records import Task, from_json
from handoff.runs.folder import read_manifest, read_records, read_seal, require_key
from handoff.text import require_printable


@attrs.frozen
class RolloutStudy:
    """The records of a rollouts run, as far as it has got, keyed by (task, policy, index)."""

    folder: Path
    manifest: Mapping[str, Any] = attrs.field(repr=False)
    tasks: tuple[Task, ...] = attrs.field(repr=False)
    rollouts: Mapping[tuple[str, str, int], Rollout] = attrs.field(repr=False)
    sealed: bool
    ptgs: EstimateThenSample | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        identity: Mapping[str, Any] = self.manifest["identity"]
        return identity

    @property
    def protocol(self) -> Mapping[str, Any]:
        protocol: Mapping[str, Any] = self.identity["protocol"]
        return protocol

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self.protocol["policies"])

    @property
    def planned(self) -> int:
        return len(self.tasks) * len(self.policies) * int(self.protocol["rollouts"])

    @property
    def count(self) -> int:
        """Sealed records."""
        return len(self.rollouts)

    @property
    def still_owed(self) -> str:
        """What is owed, in words."""
        return f"{self.planned - self.count} of {self.planned} rollouts"

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
            raise UsageError(f"{self.folder} holds rollouts of {names}; name one by {self.folder}#NAME")
        if self.count < self.planned:
            raise StoreError(f"{self.folder} is not complete: {self.still_owed} are owed; type its command again")
        total = int(self.protocol["rollouts"])
        remark = "" if self.ptgs is None else f"{total - self.pilots} scored rollouts a task after {self.pilots} pilots"
        return self._count(policy, range(self.pilots, total), remark)

    def pilot_counts(self, policy: str) -> Counts:
        """Successes per task in the pilots of a complete PTGS run."""
        return self._count(policy, range(self.pilots), "pilots")

    def _count(self, policy: str, indices: range, remark: str) -> Counts:
        rows = []
        for task in self.tasks:
            won = [self.rollouts[task.id, policy, index].won for index in indices]
            rows.append((task.id, len(won), sum(won)))
        names = {task.id: task.name for task in self.tasks}
        return attrs.evolve(Counts.of(policy, rows), remark=remark, names=names)

    def temperatures(self, policy: str) -> dict[str, float]:
        """T_x of the scored rollouts of a complete PTGS run, by task."""
        found = {task.id: self.rollouts[task.id, policy, self.pilots].temperature for task in self.tasks}
        return {task: temperature for task, temperature in found.items() if temperature is not None}


def load(path: str | Path) -> RolloutStudy:
    """Read the rollouts run in ``path``, complete or not; errors as in :func:`handoff.protocols.frontier.study.load`."""
    folder = Path(path)
    manifest = read_manifest(folder)
    check_manifest(manifest, folder)
    tasks = tuple(from_json(Task, form, f"{folder}: task in manifest") for form in manifest["identity"]["tasks"])
    stated, known = manifest["identity"]["protocol"], {task.id for task in tasks}
    rollouts: dict[tuple[str, str, int], Rollout] = {}
    require_printable("task", [word for task in tasks for word in (task.id, task.name, task.type, task.split)])
    require_printable("policy", [*manifest["identity"]["protocol"]["policies"], *manifest["identity"]["policies"]])
    for line in read_records(folder, manifest):
        where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
        if line.key[:1] != ("rollout",):
            raise DataError(f"{where} is of no known kind")
        run = from_json(Rollout, line.body, where)
        if run.task not in known or run.policy not in stated["policies"] or not 0 <= run.index < stated["rollouts"]:
            raise DataError(f"{where} is of no task, policy or rollout that the manifest lists")
        require_key(line.key, ("rollout", run.task, run.policy, str(run.index)), where)
        rollouts[run.task, run.policy, run.index] = run
    ptgs = manifest["identity"]["protocol"].get("ptgs")
    if ptgs is not None:
        ptgs = from_json(EstimateThenSample, ptgs, f"{folder}: the manifest's PTGS")
    return RolloutStudy(folder, manifest, tasks, rollouts, read_seal(folder) is not None, ptgs)


def check_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise :class:`~handoff.errors.DataError` unless the manifest has the form of a rollouts run's."""
    identity = manifest["identity"]
    protocol = identity.get("protocol") if isinstance(identity, dict) else None
    if not isinstance(protocol, dict) or protocol.get("name") != "rollouts":
        raise DataError(f"{folder} does not hold rollouts; of a handoff run, `handoff report` tells more")
    kinds: dict[str, type] = {"policies": list, "rollouts": int, "budget": int, "run_seed": int, "split": str}
    for key, kind in kinds.items():
        if type(protocol.get(key)) is not kind:
            raise DataError(f"{folder}: the manifest's protocol has no valid {key!r}")
    if not all(isinstance(name, str) for name in protocol["policies"]):
        raise DataError(f"{folder}: the manifest's protocol has no valid 'policies'")
    for key, kind in (("tasks", list), ("policies", dict), ("environment", dict)):
        if type(identity.get(key)) is not kind:
            raise DataError(f"{folder}: the manifest has no valid {key!r}")
    if sorted(protocol["policies"]) != sorted(identity["policies"]):
        raise DataError(f"{folder}: the manifest's protocol names other policies than the manifest describes")
