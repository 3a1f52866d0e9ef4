"""The audit of a verified-frontier run: its records against themselves, then against the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff import environment as registry
from handoff.audit import Audit, Check, check_records, read_run
from handoff.certification import certify, reference_options
from handoff.progress import Progress
from handoff.protocols.frontier import Config, identity, plan, select_tasks
from handoff.records import Task, from_json
from handoff.rollout import Pool
from handoff.store import differing_keys
from handoff.study import Study


def audit(folder: Path, overrides: Mapping[str, Any], workers: int, progress: Progress, replay: bool = True) -> Audit:
    """Audit the run in ``folder``.

    ``overrides`` are environment options that take the place of those that the run was made with (where its data lies
    now); ``replay`` false leaves out what needs the environment.  Raises :class:`~handoff.errors.StoreError` if
    ``folder`` is no run and :class:`~handoff.errors.UsageError` if its environment or data cannot be found.
    """
    result, study = read_run(folder)
    if study is None:
        return result
    config = _config(study)
    _check_order(result.check("order", "records are sealed in the plan's order"), study, config)
    check_records(result, study)
    if not replay:
        return result
    name = str(study.identity["environment"].get("name"))
    # Options of an untrusted folder: they choose data and engine, never trust.
    recorded = dict(study.manifest.get("host", {}).get("options", {}))
    recorded.pop("trust_games", None)
    options = {**recorded, **overrides}
    environment = registry.create(name, options)
    try:
        options = reference_options(environment, options)
        available = {task.id: task for task in environment.tasks(study.protocol["split"])}
        _check_tasks(
            result.check("tasks", "the tasks are what the selection seed draws from the split"),
            study,
            available,
            config,
        )
        chosen = [available[task.id] for task in study.tasks if task.id in available]
        described = identity(environment, config, chosen, study.policies)["environment"]
    finally:
        environment.close()
    versions = result.check("environment", "versions and digests of the environment are those that the run recorded")
    different = differing_keys(dict(study.identity["environment"]), described)
    versions.require(not different, f"these differ here: {', '.join(different)}")
    pool = Pool(name, options, workers)
    try:
        asyncio.run(certify(result, study, pool, available, progress, 4 * max(1, workers)))
    finally:
        pool.close()
    return result


def _config(study: Study) -> Config:
    stated = {key: value for key, value in study.protocol.items() if key != "name"}
    return from_json(Config, stated, f"{study.folder}: the manifest's protocol")


def _check_order(check: Check, study: Study, config: Config) -> None:
    # Mappings keep the order in which lines were read.
    found = [
        *(("trajectory", task, str(slot), reacher) for task, slot, reacher in study.trajectories),
        *(("endpoint", task, str(slot), *names) for task, slot, *names in study.endpoints),
    ]
    for mine, theirs in zip(plan(study.tasks, config), found, strict=False):
        check.require(mine == theirs, f"{'/'.join(theirs)} stands where {'/'.join(mine)} belongs")


def _check_tasks(check: Check, study: Study, available: Mapping[str, Task], config: Config) -> None:
    for task in study.tasks:
        found = available.get(task.id)
        if not check.require(found is not None, f"no game of digest {task.id[:12]}... (task {task.name}) is there"):
            continue
        assert found is not None
        stated, there = f"{task.type} of {task.split}", f"{found.type} of {found.split}"
        check.require(stated == there, f"task {task.name} is stated as {stated}, but is {there}")
    if check.passed:
        drawn = [task.id for task in select_tasks(list(available.values()), config)]
        check.require(drawn == [task.id for task in study.tasks], "the selection seed draws other tasks")
