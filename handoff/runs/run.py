"""A run folder read back: the part that every protocol's runs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import attrs

from handoff.errors import DataError, StoreError
from handoff.policies.policy import Request, Turn
from handoff.records import Decision, Record, Step, Task, from_json
from handoff.runs.chain import Key
from handoff.runs.folder import read_manifest, read_seal
from handoff.text import command, require_printable

C = TypeVar("C")


@attrs.frozen
class RecordedDecision:
    """One decision of a run."""

    #: The decision's episode, in words.
    cell: str
    policy: str
    decision: Decision
    #: Admissible actions of the state that the policy was shown; ``None`` where the records do not tell.
    admissible: Sequence[str] | None


@attrs.frozen(kw_only=True)
class Run(ABC):
    """The records of a run, as far as it has got.  A protocol's subclass adds its records."""

    folder: Path
    manifest: Mapping[str, Any] = attrs.field(repr=False)
    #: The protocol's configuration, as the manifest states it.
    config: Any
    tasks: tuple[Task, ...] = attrs.field(repr=False)
    #: Whether the run states that it is complete.
    sealed: bool

    @property
    def identity(self) -> Mapping[str, Any]:
        identity: Mapping[str, Any] = self.manifest["identity"]
        return identity

    @property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """What the manifest says of each policy, by name."""
        described: Mapping[str, Mapping[str, Any]] = self.identity["policies"]
        return described

    @property
    @abstractmethod
    def count(self) -> int:
        """Sealed records."""

    @property
    @abstractmethod
    def still_owed(self) -> str:
        """The owed records in words; empty if there are none."""

    @abstractmethod
    def keys(self) -> Iterator[Key]:
        """Keys of the sealed records, in the order of their lines."""

    @abstractmethod
    def decisions(self) -> Iterator[RecordedDecision]:
        """Every decision of the run."""

    def require_consistent(self) -> None:  # noqa: B027 - a protocol may have nothing to add
        """Raise :class:`~handoff.errors.DataError`, naming the record, where the run contradicts itself.

        Whoever reads a run takes its consistency for granted; an audit reports each contradiction as a failure.
        """

    @property
    def complete(self) -> bool:
        return self.sealed and not self.still_owed

    def require_complete(self) -> None:
        """Raise :class:`~handoff.errors.StoreError` while records are owed."""
        if self.still_owed:
            raise StoreError(
                f"{self.folder} is not complete: {self.still_owed} are owed; type the command that started it again"
            )

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    def task(self, id: str) -> Task:
        """The task of digest ``id``.  Raises :class:`~handoff.errors.DataError` if the manifest does not list it."""
        if id not in self._tasks:
            raise DataError(f"{self.folder} has a record of task {id[:12]}..., which its manifest does not list")
        return self._tasks[id]


def _way_on(folder: Path, protocol: Any, policies: Any) -> str:
    """The commands for a run of this protocol."""
    shows = f"`{command('handoff', 'report', folder)}` shows it"
    names = list(policies)[:2] if protocol == "rollouts" and isinstance(policies, dict) else []
    if len(names) < 2:
        return shows
    pair = command("handoff", "tax", *(f"{folder}#{name}" for name in names))
    return f"{shows}, and `{pair}` compares its policies"


def read_head(folder: Path, protocol: str, config: type[C]) -> dict[str, Any]:
    """The fields of :class:`Run` from the manifest and the seal.

    Raises :class:`~handoff.errors.StoreError` for a folder that is no run and :class:`~handoff.errors.DataError` for a
    manifest of another form or another protocol.
    """
    manifest = read_manifest(folder)
    identity = manifest["identity"]
    stated = protocol_of(identity)
    if stated.get("name") != protocol:
        raise DataError(
            f"{folder} holds a run of the protocol {stated.get('name')!r:.40}, not {protocol!r}; "
            f"{_way_on(folder, stated.get('name'), identity.get('policies'))}"
        )
    for key, kind in (("tasks", list), ("policies", dict), ("environment", dict)):
        if type(identity.get(key)) is not kind:
            raise DataError(f"{folder}: the manifest has no valid {key!r}")
    form = {key: value for key, value in stated.items() if key != "name"}
    configuration = from_json(config, form, f"{folder}: the manifest's protocol")
    tasks = tuple(from_json(Task, form, f"{folder}: task in manifest") for form in identity["tasks"])
    require_printable("task", [word for task in tasks for word in (task.id, task.name, task.type, task.split)])
    require_printable("policy", identity["policies"])
    times = Counter(task.id for task in tasks)
    twice = next((task.name for task in tasks if times[task.id] > 1), None)
    if twice is not None:
        raise DataError(f"{folder}: the manifest lists the task {twice:.80} twice")
    return {
        "folder": folder,
        "manifest": manifest,
        "config": configuration,
        "tasks": tasks,
        "sealed": read_seal(folder) is not None,
    }


def protocol_of(identity: Any) -> Mapping[str, Any]:
    """The protocol's part of a manifest's identity, empty if it has none."""
    protocol = identity.get("protocol") if isinstance(identity, dict) else None
    return protocol if isinstance(protocol, dict) else {}


def requests_of(
    task: Task, reset: Record, before: Sequence[Step], steps: Sequence[Step], budget: int
) -> Iterator[Request]:
    """The request of each decision in ``steps``, from the records; ``before`` are an earlier policy's steps."""
    history = [Turn.of(step) for step in before]
    for position, step in enumerate(steps):
        yield Request(task, step.decision.seed, reset, tuple(history), budget - position)
        history.append(Turn.of(step))
