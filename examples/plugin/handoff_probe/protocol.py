"""The protocol ``probe``: one decision per task, slot and policy, from reset."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import attrs

from handoff.auditing.checks import Audit, check_statuses
from handoff.episodes.batching import Batcher, by_policy, gather
from handoff.episodes.host import Ask
from handoff.episodes.pool import Pool
from handoff.episodes.turns import Situation, act, is_over
from handoff.errors import DataError
from handoff.policies.policy import Policy
from handoff.progress import Progress
from handoff.protocols.export import ExportTable
from handoff.protocols.protocol import Protocol, StudyConfig, role
from handoff.records import Record, Step, Task, from_json, to_json
from handoff.replay import require_equal
from handoff.runs.chain import Key
from handoff.runs.folder import read_records, require_key
from handoff.runs.launch import Running
from handoff.runs.run import RecordedDecision, Run, read_head
from handoff.seeds import SeedSchedule
from handoff.settings import setting

#: Distances to success are known up to this many actions.
FARTHEST = 12


@attrs.frozen(kw_only=True)
class ProbeConfig(StudyConfig):
    """The whole configuration."""

    policies: tuple[str, ...] = role(on_command_line=False, in_file=False)
    slots: int = setting("Seed slots per task.", kind=int, default=1, least=1, most=1000)


@attrs.frozen
class Probe:
    """One record: a decision and the state that it led to."""

    task: str
    slot: int
    policy: str
    reset: Record
    #: Actions to success at reset; ``None``: more than :data:`FARTHEST`.
    distance: int | None
    step: Step

    @property
    def key(self) -> Key:
        return ("probe", self.task, str(self.slot), self.policy)

    @property
    def nearer(self) -> bool:
        """Whether the action brought success nearer."""
        before, after = self.distance, self.step.distance
        return after is not None and (before is None or after < before)


@attrs.frozen(kw_only=True)
class ProbeRun(Run):
    """A run read back."""

    probes: Mapping[Key, Probe] = attrs.field(repr=False)

    @property
    def count(self) -> int:
        return len(self.probes)

    @property
    def still_owed(self) -> str:
        owed = len(plan(self.tasks, self.config)) - self.count
        return f"{owed} probes" if owed else ""

    def keys(self) -> Iterator[Key]:
        return iter(self.probes)

    def decisions(self) -> Iterator[RecordedDecision]:
        for key, probe in self.probes.items():
            yield RecordedDecision("/".join(key), probe.policy, probe.step.decision, probe.reset.admissible)


def plan(tasks: Sequence[Task], config: ProbeConfig) -> list[Key]:
    return [
        ("probe", task.id, str(slot), policy)
        for task in tasks
        for slot in range(config.slots)
        for policy in config.policies
    ]


class ProbeProtocol(Protocol[ProbeConfig, ProbeRun]):
    """Ask every policy for one decision per task: does it bring success nearer?"""

    name = "probe"
    config = ProbeConfig
    roles = ("policies",)
    replays: ClassVar[Mapping[str, str]] = {
        "replay": "every probe's records and distances are equal on the reference engine"
    }
    report_at = "handoff_probe.report:REPORT"

    def plan(self, tasks: Sequence[Task], config: ProbeConfig) -> list[Key]:
        return plan(tasks, config)

    async def play(
        self, config: ProbeConfig, tasks: Sequence[Task], policies: Mapping[str, Policy], running: Running
    ) -> dict[str, float]:
        started, seeds = time.perf_counter(), SeedSchedule(config.run_seed)
        batchers = {name: Batcher(policies[name]) for name in config.policies}

        async def one(task: Task, slot: int, name: str) -> None:
            ask = Ask(plan=policies[name].needs_plan, distances=FARTHEST)
            async with running.pool.episode() as episode:
                first = await episode.reset(task, seeds.reset(task.id, slot), ask)
                situation = Situation(
                    task, slot, first.record, 1, lambda position: seeds.decision(task.id, slot, "probe", position)
                )
                (step,), _ = await act(episode, batchers[name], situation, (), first, ask, is_over)
            probe = Probe(task.id, slot, name, first.record, first.distance, step)
            running.store.finish(probe.key, to_json(probe))
            tick()

        by_id = {task.id: task for task in tasks}
        owed = [key for key in plan(tasks, config) if running.store.body(key) is None]
        with running.progress.phase("probe", len(owed)) as tick:
            jobs = [(key[3], partial(one, by_id[key[1]], int(key[2]), key[3])) for key in owed]
            await by_policy(jobs, policies, running.concurrency)
        return {"probe": time.perf_counter() - started}

    def load(self, folder: Path) -> ProbeRun:
        head = read_head(folder, self.name, ProbeConfig)
        planned, probes = set(plan(head["tasks"], head["config"])), {}
        for line in read_records(folder, head["manifest"]):
            where = f"{folder}: record {line.seq} ({'/'.join(line.key)})"
            if line.key not in planned:
                raise DataError(f"{where} is not in the run's plan")
            probe = from_json(Probe, line.body, where)
            require_key(line.key, probe.key, where)
            probes[probe.key] = probe
        return ProbeRun(**head, probes=probes)

    def check(self, audit: Audit, run: ProbeRun, templates: Sequence[str]) -> None:
        seeds = SeedSchedule(run.config.run_seed)
        check = audit.check("probes", "every planned probe is there, with the schedule's seed and a fitting status")
        for key in plan(run.tasks, run.config):
            check.require(key in run.probes, f"missing: {'/'.join(key)}")
        for key, probe in run.probes.items():
            expected = seeds.decision(probe.task, probe.slot, "probe", 0)
            check.require(probe.step.decision.seed == expected, f"{'/'.join(key)}: another seed")
            check.collect("/".join(key), check_statuses(probe.step.decision, probe.reset.admissible))

    async def certify(
        self, audit: Audit, run: ProbeRun, pool: Pool, tasks: Mapping[str, Task], progress: Progress, concurrency: int
    ) -> None:
        check = audit.check("replay", self.replays["replay"])
        seeds = SeedSchedule(run.config.run_seed)

        async def one(probe: Probe) -> None:
            task, ask, action = tasks[probe.task], Ask(distances=FARTHEST), probe.step.decision.action
            async with pool.episode() as episode:
                first = await episode.reset(task, seeds.reset(task.id, probe.slot), ask)
                last = await episode.step(action, ask) if action else first
            require_equal(probe.reset, first.record, task, 0)
            require_equal(probe.step.record, last.record, task, 1)
            distances = (first.distance, last.distance) == (probe.distance, probe.step.distance)
            check.require(distances, f"{'/'.join(probe.key)}: its distances differ")

        await gather([partial(one, probe) for probe in run.probes.values() if probe.task in tasks], concurrency)

    def summary(self, run: ProbeRun) -> dict[str, Any]:
        counts = {
            name: [probe.nearer for probe in run.probes.values() if probe.policy == name]
            for name in run.config.policies
        }
        return {
            "complete": run.complete,
            "policies": [{"policy": name, "probes": len(n), "nearer": sum(n)} for name, n in counts.items()],
        }

    def tables(self, run: ProbeRun) -> Mapping[str, ExportTable]:
        columns = {"task": str, "slot": int, "policy": str, "action": str, "nearer": int}
        rows = [
            {
                "task": probe.task,
                "slot": probe.slot,
                "policy": probe.policy,
                "action": probe.step.decision.action,
                "nearer": int(probe.nearer),
            }
            for probe in run.probes.values()
        ]
        return {"probes": ExportTable(columns, rows)}


PROBE = ProbeProtocol()
