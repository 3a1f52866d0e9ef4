"""Environments on a Ray cluster: a real one of two nodes on this machine, parts of it killed in the middle of runs.

What becomes of an episode that loses its worker is tested without Ray too, at every call that could be lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from kit.command import handoff, handoff_without, start
from kit.runs import record_bytes

from handoff import registry
from handoff.auditing.checks import read_run
from handoff.episodes.host import Host, WorkerLost
from handoff.episodes.places import Workers
from handoff.episodes.pool import Pool
from handoff.episodes.start import Where
from handoff.errors import Interrupted, UsageError, install_command
from handoff.policies import Policy, Request
from handoff.policies.bindings import make
from handoff.progress import Silent
from handoff.protocols.frontier import FRONTIER, study
from handoff.protocols.frontier.certify import certify
from handoff.protocols.frontier.config import FrontierConfig
from handoff.records import Decision
from handoff.runs.launch import Running
from handoff.runs.store import Store

CONFIG = FrontierConfig(
    split="test", reachers=("a",), solvers=("a",), tasks=6, slots=2, reach_budget=8, run_seed=3, distances=6
)
SPEC = "noisy:0.5"


class Watched(Policy):
    """The noisy expert: notes every decision, and calls ``at[n]`` when it is asked for the n-th one."""

    needs_plan = True

    def __init__(self, at: Mapping[int, Callable[[], None]]) -> None:
        self.inner = make(SPEC)
        self.at = dict(at)
        self.seen: list[tuple[str, int, int]] = []

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        for request in requests:
            self.seen.append((request.task.id, request.slot, request.seed))
            if len(self.seen) in self.at:
                self.at[len(self.seen)]()
        return self.inner.decide(requests)


def prepared(config: FrontierConfig = CONFIG, at: Mapping[int, Callable[[], None]] | None = None) -> Any:
    plan = FRONTIER.prepare("sokoban", {}, config, {"a": SPEC})
    plan.policies["a"] = Watched(at or {})
    return plan


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study, run in one process."""
    folder = tmp_path_factory.mktemp("local") / "run"
    prepared().run(folder, Where(0))
    return folder


class Losing(Workers):
    """Two real hosts in this process.  The ``fatal``-th calls lose theirs: before the work is done, or after it."""

    moves = 3
    count = 2

    def __init__(self, fatal: Sequence[int], after: bool) -> None:
        self.fatal, self.after, self.calls = frozenset(fatal), after, 0
        self.hosts = [Host("sokoban", {}), Host("sokoban", {})]

    async def call(self, worker: int, method: str, *arguments: Any) -> Any:
        await asyncio.sleep(0)
        self.calls += 1
        if self.calls not in self.fatal:
            return getattr(self.hosts[worker], method)(*arguments)
        if self.after:
            getattr(self.hosts[worker], method)(*arguments)
        self.hosts[worker] = Host("sokoban", {})
        raise WorkerLost(f"worker {worker} was lost in call {self.calls}")


def run_on(workers: Workers, config: FrontierConfig, folder: Path, concurrency: int) -> Any:
    plan = prepared(config)
    with Store(folder, plan.identity, plan.plan, {}) as store:
        asyncio.run(plan.carry_out(Running(Pool(workers), store, Silent(), concurrency)))
        store.complete()
    return plan.policies["a"]


ONE = FrontierConfig(split="test", reachers=("a",), solvers=("a",), tasks=3, slots=1, reach_budget=8, run_seed=3)


@pytest.mark.parametrize("after", [False, True], ids=["before the work", "after the work"])
def test_whichever_call_is_lost_the_records_are_the_same_and_no_decision_is_made_again(
    tmp_path: Path, after: bool
) -> None:
    undisturbed = Losing((), after)
    expected = run_on(undisturbed, ONE, tmp_path / "whole", 1).seen
    assert undisturbed.calls >= 20
    for fatal in range(1, undisturbed.calls + 1):
        policy = run_on(Losing((fatal,), after), ONE, tmp_path / str(fatal), 1)
        assert record_bytes(tmp_path / str(fatal)) == record_bytes(tmp_path / "whole"), (
            f"call {fatal} of {undisturbed.calls}"
        )
        assert policy.seen == expected
        shutil.rmtree(tmp_path / str(fatal))


def test_many_losses_among_many_episodes_change_nothing(tmp_path: Path, local: Path) -> None:
    policy = run_on(Losing(random.Random(2).sample(range(2000), 60), True), CONFIG, tmp_path / "run", 5)
    assert record_bytes(tmp_path / "run") == record_bytes(local)
    assert len(set(policy.seen)) == len(policy.seen)


def test_an_episode_that_always_loses_its_worker_at_one_place_ends_the_run_with_what_is_owed(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="lost 4 workers at the same place"):
        run_on(Losing(range(20, 10**6), False), ONE, tmp_path / "run", 1)
    assert run_on(Losing((), False), ONE, tmp_path / "run", 1).seen, "it is resumed"


@pytest.mark.parametrize("after", [False, True], ids=["before the work", "after the work"])
def test_a_certification_that_loses_workers_checks_as_much_and_passes(local: Path, after: bool) -> None:
    counts = []
    for fatal in ((), random.Random(1).sample(range(2000), 250)):
        audit, run = read_run(local, study.load)
        assert run is not None
        tasks = {task.id: task for task in registry.create("sokoban").tasks("test")}
        asyncio.run(certify(audit, run, Pool(Losing(fatal, after)), tasks, Silent(), 3))
        assert audit.passed, audit.to_json()
        counts.append([(check.name, check.count) for check in audit.checks])
    assert counts[0] == counts[1]


def refused(*arguments: str) -> str:
    result = handoff("run", "sokoban", "--cross", "random", "--tasks", "3", *arguments)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr.strip().splitlines()[-1]


def test_without_ray_the_request_is_refused_with_the_command_that_installs_it(tmp_path: Path) -> None:
    arguments = ["run", "sokoban", "--cross", "random", "--tasks", "3", "--out", tmp_path / "run", "--ray", "auto"]
    result = handoff_without("ray", *arguments)
    assert result.returncode == 2
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("handoff: --ray needs ray (")
    assert last.endswith(f"; install it: {install_command('ray')}")


needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
#: Ray gives a silent node up after three seconds, not fifteen.
IMPATIENT = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 6,
}


class TwoNodes:
    """A cluster of a head and one more node, a core each."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={**NODE, "temp_dir": folder, "_system_config": IMPATIENT}
        )
        self.second = self.cluster.add_node(**NODE)

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def kill_second(self) -> None:
        """Kill every process of the second node, as a power cut would."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def kill_the_first_ones_worker(self) -> None:
        """Kill the worker process of the head node; the node stays."""
        raylet = self.cluster.head_node.all_processes["raylet"][0].process.pid
        (worker,) = (process for process in worker_processes() if process.ppid() == raylet)
        worker.kill()

    def close(self) -> None:
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def started() -> Iterator[TwoNodes]:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Misnamed: off, Ray keeps to the loopback interface.
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        Path("/tmp/ray").mkdir(exist_ok=True)  # where the cluster writes its address whatever its own folder
        nodes = TwoNodes(folder)
        try:
            yield nodes
        finally:
            nodes.close()


@pytest.fixture
def nodes(started: TwoNodes) -> TwoNodes:
    if started.second is None:
        started.second = started.cluster.add_node(**NODE)
    return started


def worker_processes() -> list[psutil.Process]:
    """The processes of the actors (Ray names a process by what it does)."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(psutil.Error):
            if " ".join(process.info["cmdline"] or []).startswith("ray::Actor"):
                found.append(process)
    return found


@needs_ray
@pytest.mark.slow
def test_a_node_and_a_process_killed_in_the_middle_change_no_byte_and_no_decision_is_made_again(
    nodes: TwoNodes, local: Path, tmp_path: Path
) -> None:
    undisturbed = prepared()
    undisturbed.run(tmp_path / "undisturbed", Where(ray=nodes.address))
    assert record_bytes(tmp_path / "undisturbed") == record_bytes(local)
    total = len(undisturbed.policies["a"].seen)
    at = {total // 4: nodes.kill_the_first_ones_worker, total // 2: nodes.kill_second}
    disturbed = prepared(at=at)
    remarks = disturbed.run(tmp_path / "disturbed", Where(ray=nodes.address))
    assert record_bytes(tmp_path / "disturbed") == record_bytes(local)
    assert (tmp_path / "disturbed" / "manifest.json").read_bytes() == (local / "manifest.json").read_bytes()
    assert sorted(disturbed.policies["a"].seen) == sorted(undisturbed.policies["a"].seen)
    assert len(set(disturbed.policies["a"].seen)) == total
    assert len(remarks) >= 2
    assert all("on node 127.0.0.1 was lost" in remark for remark in remarks)
    assert worker_processes() == [], "the cluster is left as it was found"


@needs_ray
def test_workers_live_on_both_nodes(nodes: TwoNodes) -> None:
    from handoff.episodes.ray import RayWorkers

    workers = RayWorkers("sokoban", {}, nodes.address, None)
    try:
        assert workers.count == 2
        import ray

        ask = [
            actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()) for actor in workers._actors
        ]
        assert len(set(ray.get(ask))) == 2
    finally:
        workers.close()


@needs_ray
@pytest.mark.slow
def test_from_the_command_line_a_killed_node_costs_a_remark_and_standard_output_stays_json(
    nodes: TwoNodes, tmp_path: Path
) -> None:
    study_of = ["run", "sokoban", "-p", "rl=expert", "-p", "sft=noisy:0.5", "--cross", "sft,rl", "--budget", "12"]
    study_of += ["--tasks", "15", "--slots", "4", "--json"]
    here, there = tmp_path / "here", tmp_path / "there"
    assert handoff(*study_of, "--out", str(here), "--workers", "0").returncode == 0
    child = start(*study_of, "--out", there, "--ray", nodes.address)
    while child.poll() is None and not ((there / "records.jsonl").exists() and record_bytes(there)):
        time.sleep(0.01)
    nodes.kill_second()
    output, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    assert json.loads(output)["complete"]
    assert "was lost" in errors
    assert "Traceback" not in errors
    assert record_bytes(there) == record_bytes(here)
    audit = handoff("audit", str(there), "--ray", nodes.address, "--json")
    assert audit.returncode == 0, audit.stdout
    assert json.loads(audit.stdout)["passed"]


@needs_ray
@pytest.mark.slow
def test_rollouts_on_a_cluster_are_those_of_one_process(nodes: TwoNodes, tmp_path: Path) -> None:
    arguments = ["rollout", "sokoban", "-p", "base=noisy:0.6", "-n", "4", "--tasks", "6", "-q"]
    here, there = tmp_path / "here", tmp_path / "there"
    assert handoff(*arguments, "--out", str(here), "--workers", "0").returncode == 0
    result = handoff(*arguments, "--out", str(there), "--ray", nodes.address)
    assert result.returncode == 0, result.stderr
    assert record_bytes(there) == record_bytes(here)


@needs_ray
@pytest.mark.slow
def test_a_cluster_that_kills_every_worker_ends_the_run_with_what_is_owed_and_it_is_resumed_elsewhere(
    nodes: TwoNodes, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handoff.episodes import ray

    monkeypatch.setattr(ray, "RESTARTS", 4)
    over = threading.Event()

    def kill_all() -> None:
        while not over.wait(0.05):
            for process in worker_processes():
                with contextlib.suppress(psutil.Error):
                    process.kill()

    killer = threading.Thread(target=kill_all)
    run = prepared(at={20: killer.start})
    try:
        with pytest.raises(Interrupted, match=r"the Ray cluster.* records are owed") as caught:
            run.run(tmp_path / "run", Where(ray=nodes.address))
    finally:
        over.set()
        killer.join()
    assert "type the same command to go on" in str(caught.value)
    rest = prepared()
    rest.run(tmp_path / "run", Where(0))
    assert record_bytes(tmp_path / "run") == record_bytes(local)


@needs_ray
def test_a_node_with_another_version_is_refused_naming_what_differs(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handoff.episodes import ray

    mine = ray.identity("sokoban", {})
    other = {**mine, "environment": {**mine["environment"], "rules": 2}}
    monkeypatch.setattr(ray, "identity", lambda *_: other)
    with pytest.raises(UsageError, match=r"node 127\.0\.0\.1 .* other versions .* differ: environment\.rules"):
        prepared().run(tmp_path / "run", Where(1, ray=nodes.address))


@needs_ray
def test_a_cluster_without_a_free_core_is_waited_for_and_then_named(nodes: TwoNodes) -> None:
    from handoff.episodes.ray import RayWorkers

    busy = RayWorkers("sokoban", {}, nodes.address, 2)
    try:
        assert asyncio.run(busy.choose([0, 0])) == 0
        waiting = RayWorkers("sokoban", {}, nodes.address, 1, patience=2.0)
        try:
            with pytest.raises(Interrupted, match="no core to an environment worker for 2 seconds"):
                asyncio.run(waiting.choose([0]))
        finally:
            waiting.close()
    finally:
        busy.close()


@needs_ray
@pytest.mark.slow
def test_an_address_where_no_cluster_can_be_is_one_sentence(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "run")]
    assert "write --ray HOST:PORT" in refused("--ray", "nonsense", *out)
    assert "no Ray cluster answers at 127.0.0.1:1 (Connection refused)" in refused("--ray", "127.0.0.1:1", *out)
    assert "ray job submit --address http://127.0.0.1:8265" in refused("--ray", "ray://127.0.0.1:10001", *out)
    assert "--workers is 1 or more" in refused("--ray", "auto", "--workers", "0", *out)
    assert os.listdir(tmp_path / "run") != [], "the run was begun"
    assert handoff("run", "sokoban", "--cross", "random", "--tasks", "3", "--workers", "0", *out).returncode == 0
