"""The frontier protocol from the command line, on real Sokoban: kills, tampering, pairing, refusals."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from kit.audits import command_checks, failed, failures
from kit.command import handoff, start
from kit.runs import first, forge, record_bytes, records, reseal

from handoff.episodes.start import Where
from handoff.errors import Interrupted, StoreError, UsageError
from handoff.policies import Policy, Request
from handoff.policies.bindings import make
from handoff.protocols.frontier import FRONTIER, study
from handoff.protocols.frontier.config import FrontierConfig
from handoff.records import Decision
from handoff.runs.launch import Prepared
from handoff.runs.selection import draw_tasks
from handoff.seeds import REACH, SOLVE, SeedSchedule

STUDY = [
    "run",
    "sokoban",
    "-p",
    "rl=expert",
    "-p",
    "sft=noisy:0.5",
    "--cross",
    "sft,rl",
    "--budget",
    "12",
    "--seed",
    "3",
]


def small(folder: Path, *more: str, tasks: int = 6, slots: int = 2) -> subprocess.CompletedProcess[str]:
    return handoff(*STUDY, "--tasks", str(tasks), "--slots", str(slots), "--out", str(folder), "--workers", "0", *more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    result = small(folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_a_run_prints_its_tables_and_passes_its_audit(finished: Path) -> None:
    loaded = study.load(finished)
    assert loaded.sealed
    assert loaded.owed == (0, 0)
    assert len(loaded.trajectories) == 6 * 2 * 2
    assert len(loaded.endpoints) == 6 * 2 * 2 * 2
    report = handoff("report", str(finished), "--json")
    numbers = json.loads(report.stdout)
    for cell in numbers["cells"]:
        rows = [e for e in loaded.endpoints.values() if (e.reacher, e.solver) == (cell["reacher"], cell["solver"])]
        assert cell["won"] == sum(e.won for e in rows)
        assert cell["endpoint"] == cell["won"] / 12
    assert any(not e.arrived and not e.won for e in loaded.endpoints.values()), "non-arrivals stay in the table"
    result = handoff("audit", str(finished))
    assert result.returncode == 0, result.stdout
    assert "every check that was done passed; not done: prompts" in result.stdout


def test_typing_a_finished_run_again_shows_it_and_changes_nothing(finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    result = small(finished)
    assert result.returncode == 0
    assert "owed 0 and 0" in result.stdout
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


def test_paired_arms_draw_equal_seeds_and_solvers_of_a_clone_get_equal_inputs(finished: Path) -> None:
    loaded = study.load(finished)
    schedule = SeedSchedule(3)
    by_cell: dict[tuple[str, int, str], set[tuple[str, str]]] = {}
    for end in loaded.endpoints.values():
        for position, step in enumerate(end.steps):
            assert step.decision.seed == schedule.decision(end.task, end.slot, SOLVE, position)
        if end.arrived:
            assert end.clone is not None
            key = (end.task, end.slot, end.reacher)
            by_cell.setdefault(key, set()).add((end.clone.digest, end.steps[0].decision.input_digest))
    assert by_cell
    assert all(len(inputs) == 1 for inputs in by_cell.values())
    for run in loaded.trajectories.values():
        for position, step in enumerate(run.steps):
            assert step.decision.seed == schedule.decision(run.task, run.slot, REACH, position)
    slots = {(run.reset_seed, run.task) for run in loaded.trajectories.values()}
    assert len(slots) == 12, "a reset seed belongs to a task and slot, not to a reacher"


def test_the_first_arrival_ends_the_reachers_turn_exactly_two_actions_from_success(finished: Path) -> None:
    for run in study.load(finished).trajectories.values():
        checks = [run.reset_check, *(step.check for step in run.steps)]
        assert all(check is not None for check in checks)
        members = [index for index, check in enumerate(checks) if check is not None and check.member]
        assert members == ([run.arrival] if run.arrived else [])
        assert run.arrival in (None, len(run.steps))


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_runs_killed_at_random_moments_and_resumed_end_in_the_bytes_of_an_undisturbed_run(
    tmp_path: Path, workers: str
) -> None:
    arguments = [*STUDY, "--tasks", "30", "--slots", "4", "-q"]
    assert handoff(*arguments, "--out", str(tmp_path / "undisturbed"), "--workers", "0").returncode == 0
    expected = record_bytes(tmp_path / "undisturbed")
    generator = random.Random(int(workers))
    folder = tmp_path / "killed"
    kills = 0
    while kills < 25:
        options = {"stdout": subprocess.DEVNULL, "start_new_session": True}
        child = start(*arguments, "--out", folder, "--workers", workers, **options)
        # Mostly while episodes run, now and then while the process starts or has just sealed.
        time.sleep(generator.uniform(0.2, 2.0))
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        _, errors = child.communicate()
        if child.returncode == 0:
            # It was through before the kill: keep the records and start over, so that every kill has work to disturb.
            assert record_bytes(folder) == expected
            shutil.rmtree(folder)
            continue
        assert child.returncode == -signal.SIGKILL, errors
        kills += 1
    result = handoff(*arguments, "--out", str(folder), "--workers", workers)
    assert result.returncode == 0, result.stderr
    assert record_bytes(folder) == expected
    assert (folder / "seal.json").read_bytes() == (tmp_path / "undisturbed" / "seal.json").read_bytes()
    assert (folder / "manifest.json").read_bytes() == (tmp_path / "undisturbed" / "manifest.json").read_bytes()


class Counting(Policy):
    """The noisy expert, counting every decision and failing after ``limit`` of them."""

    needs_plan = True

    def __init__(self, limit: int | None = None) -> None:
        self.inner = make("noisy:0.5")
        self.limit = limit
        self.seen: list[tuple[str, int]] = []

    def decide(self, requests: Any) -> list[Decision]:
        for request in requests:
            self._note(request)
        return self.inner.decide(requests)

    def _note(self, request: Request) -> None:
        if self.limit is not None and len(self.seen) >= self.limit:
            raise Interrupted("the model server went away")
        self.seen.append((request.task.id, request.seed))


def prepared(counting: Counting) -> Prepared:
    config = FrontierConfig(split="test", reachers=("a",), solvers=("a",), tasks=6, slots=2, reach_budget=8)
    study_plan = FRONTIER.prepare("sokoban", {}, config, {"a": "noisy:0.5"})
    study_plan.policies["a"] = counting  # type: ignore[index]
    return study_plan


def test_no_finished_episode_is_ever_run_again_after_an_interruption(tmp_path: Path) -> None:
    undisturbed = Counting()
    prepared(undisturbed).run(tmp_path / "whole", Where(0))
    spent: list[tuple[str, int]] = []
    finished_before: set[tuple[str, int]] = set()
    for limit in (20, 45, None):
        counting = Counting(limit)
        study_plan = prepared(counting)
        if limit is None:
            study_plan.run(tmp_path / "parts", Where(0))
        else:
            with pytest.raises(Interrupted, match=r"the model server went away; \d+ of 24 records are owed"):
                study_plan.run(tmp_path / "parts", Where(0))
        assert not finished_before & set(counting.seen), "a decision of a finished episode was made again"
        spent.extend(counting.seen)
        for name in ("records.jsonl", "journal.jsonl"):
            path = tmp_path / "parts" / name
            for raw in path.read_bytes().splitlines() if path.exists() else []:
                body = json.loads(raw)["body"]
                finished_before |= {(body["task"], step["decision"]["seed"]) for step in body["steps"]}
    assert set(spent) == set(undisturbed.seen)
    assert record_bytes(tmp_path / "whole") == record_bytes(tmp_path / "parts")


def test_a_vanished_worker_is_one_sentence_exit_code_3_and_loses_nothing(tmp_path: Path, finished: Path) -> None:
    import psutil

    folder = tmp_path / "run"
    arguments = [*STUDY, "--tasks", "12", "--slots", "4", "--out", str(folder), "--workers", "1"]
    child = start(*arguments)
    path = folder / "records.jsonl"
    while child.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.01)
    # In the middle of its work: the first episode of many has just been sealed.
    for worker in psutil.Process(child.pid).children():
        if "spawn_main" in " ".join(worker.cmdline()):
            worker.kill()
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 3, errors
    assert "Traceback" not in errors
    last = errors.strip().splitlines()[-1]
    assert "ended unexpectedly" in last
    assert "records are owed" in last
    assert "type the same command" in last
    assert handoff(*arguments).returncode == 0
    assert handoff("audit", str(folder), "--records-only").returncode == 0


def flip_win(key: list[str], body: Any) -> bool:
    if key[0] != "endpoint" or not body["arrived"]:
        return False
    body["won"] = not body["won"]
    return True


def other_seed(key: list[str], body: Any) -> None:
    if key[0] == "trajectory" and body["steps"]:
        body["steps"][0]["decision"]["seed"] += 1


def other_observation(key: list[str], body: Any) -> None:
    if key[0] == "trajectory" and key[2] == "0":
        body["reset"]["observation"] += " "


def fewer_tried(key: list[str], body: Any) -> None:
    if key[0] == "trajectory" and body["arrival"] is not None:
        check = body["steps"][-1]["check"] if body["steps"] else body["reset_check"]
        check["tried"][-1] -= 1


def hide_arrival(key: list[str], body: Any) -> None:
    if key[0] == "endpoint" and body["arrived"]:
        body.update(arrived=False, won=False, bridge=None, clone=None, steps=[])


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (first(flip_win), "protocol"),
        (other_seed, "seeds"),
        (other_observation, "replay"),
        (fewer_tried, "frontier"),
        (hide_arrival, "protocol"),
    ],
)
def test_a_forged_record_under_a_forged_chain_fails_the_check_of_its_claim(
    finished: Path, tmp_path: Path, change: Any, check: str
) -> None:
    code, checks = command_checks(forge(finished, tmp_path / "forged", change))
    assert code == 1
    assert not checks[check]["passed"]
    assert checks["chain"]["passed"]


def test_a_forged_run_without_its_non_arrivals_fails(finished: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(finished, tmp_path / "forged")
    reseal(folder, [(key, body) for key, body in records(folder) if key[0] != "endpoint" or body["arrived"]])
    result = handoff("audit", str(folder), "--records-only")
    assert result.returncode == 1
    assert "missing endpoint" in result.stdout


@pytest.mark.parametrize("fault", ["byte", "delete", "swap", "foreign", "tail", "manifest"])
def test_each_tampering_of_the_files_fails_the_audit_and_is_named(finished: Path, tmp_path: Path, fault: str) -> None:
    folder = shutil.copytree(finished, tmp_path / "tampered")
    path = folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    expected = "line 6"
    if fault == "byte":
        lines[5] = lines[5].replace(b"observation", b"observatiom", 1)
    elif fault == "delete":
        del lines[5]
    elif fault == "swap":
        lines[5], lines[6] = lines[6], lines[5]
    elif fault == "foreign":
        other = tmp_path / "other"
        assert (
            handoff(*STUDY[:-1], "4", "--tasks", "6", "--slots", "2", "--out", str(other), "--workers", "0").returncode
            == 0
        )
        lines[5] = (other / "records.jsonl").read_bytes().splitlines(keepends=True)[5]
    elif fault == "tail":
        del lines[-1]
        expected = "were sealed"
    path.write_bytes(b"".join(lines))
    if fault == "manifest":
        text = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text.replace('"slots":2', '"slots":1'))
        expected = "manifest.json was changed"
    result = handoff("audit", str(folder), "--workers", "0")
    assert result.returncode == 1
    assert expected in " ".join(result.stdout.split()), result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "sokobam", "--cross", "random"], "did you mean 'sokoban'"),
        (["run", "sokoban", "--reacher", "rl", "--solver", "random"], "policy 'rl' is not bound"),
        (["run", "sokoban", "--reacher", "random"], "name at least one solver"),
        (["run", "sokoban", "--cross", "random,random"], "occurs twice"),
        (["run", "sokoban", "-p", "rl", "--cross", "rl"], "-p NAME=SPEC"),
        (["run", "sokoban", "-p", "rl=expert", "-p", "rl=random", "--cross", "rl"], "bound twice"),
        (["run", "sokoban", "--cross", "noisy:2"], "probability between 0 and 1"),
        (["run", "sokoban", "--cross", "noisy"], "noisy:0.3"),
        (["run", "sokoban", "--cross", "actions:/nowhere/x"], "cannot read the file"),
        (["run", "sokoban", "--cross", "random", "--tasks", "7"], "multiple of 3"),
        (["run", "sokoban", "--cross", "random", "--tasks", "9000"], "are asked for"),
        (["run", "sokoban", "--cross", "random", "--slots", "0"], "at least 1"),
        (["run", "sokoban", "--cross", "random", "--depth", "3", "--solver-budget", "2"], "at least D = 3"),
        (["run", "sokoban", "--cross", "random", "--split", "nowhere"], "nowhere"),
        (["run", "sokoban", "--cross", "random", "--env-option", "colour=red"], "does not take these options"),
        (["run", "sokoban", "--cross", "random", "--reacher", "expert"], "either --cross"),
        (["run", "sokoban", "--cross", "random", "--dry-run", "--slots", "99999999999999"], "ask for at most"),
        (["rollout", "sokoban", "-p", "a=random", "-n", "99999999999999"], "ask for at most"),
        (["run", "sokoban", "-p", "a\x1b[31m=random", "--cross", "a\x1b[31m"], "unprintable character"),
        (["audit", "/nowhere"], "not a run folder"),
        (["report", "/nowhere"], "not a run folder"),
        (["export", "/nowhere"], "not a run folder"),
    ],
)
def test_bad_requests_get_one_sentence_and_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = handoff(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_same_folder_with_another_configuration_is_refused_naming_the_keys(finished: Path) -> None:
    result = small(finished, "--depth", "3")
    assert result.returncode == 2
    assert "protocol.depth" in result.stderr
    assert "protocol.solve_budget" in result.stderr


def test_a_run_whose_solvers_stand_in_another_order_than_its_reachers_is_reported(tmp_path: Path) -> None:
    names = ["--reacher", "sft", "--reacher", "rl", "--solver", "rl", "--solver", "sft"]
    folder = tmp_path / "run"
    arguments = [*STUDY[:6], *names, "--tasks", "6", "--slots", "2", "--budget", "12"]
    assert handoff(*arguments, "--out", str(folder), "--workers", "0").returncode == 0
    result = handoff("report", str(folder), "--draws", "200")
    assert result.returncode == 0, result.stderr


def test_a_type_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    types = ["--type", "long", "--type", "long"]
    arguments = ["run", "sokoban", "--cross", "random", *types, "--tasks", "4", "--slots", "1", "--budget", "2"]
    result = handoff(*arguments, "--out", str(tmp_path / "run"), "--workers", "0")
    assert result.returncode == 0, result.stderr
    assert len(study.load(tmp_path / "run").tasks) == 4


def test_a_run_of_all_tasks_passes_its_audit(tmp_path: Path) -> None:
    arguments = ["run", "sokoban", "--cross", "random", "--type", "short", "--tasks", "all", "--slots", "1"]
    result = handoff(*arguments, "--budget", "1", "--out", str(tmp_path / "run"), "--workers", "0")
    assert result.returncode == 0, result.stderr
    assert len(study.load(tmp_path / "run").tasks) > 1
    for more in ([], ["--records-only"]):
        audit = handoff("audit", str(tmp_path / "run"), *more, "--workers", "0")
        assert audit.returncode == 0, audit.stdout


def test_a_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    result = handoff(*STUDY, "--tasks", "6", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert "48 trajectories" in result.stdout
    assert "96 endpoints" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_exported_tables_hold_every_row_in_all_three_formats(finished: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    assert handoff("export", str(finished), "--out", str(tmp_path)).returncode == 0
    loaded = study.load(finished)
    rows = [json.loads(line) for line in (tmp_path / "endpoints.jsonl").read_text().splitlines()]
    assert len(rows) == len(loaded.endpoints)
    assert sum(row["won"] for row in rows) == sum(end.won for end in loaded.endpoints.values())
    assert pq.read_table(tmp_path / "endpoints.parquet").to_pylist() == rows
    assert len((tmp_path / "endpoints.csv").read_text().splitlines()) == 1 + len(rows)
    steps = pq.read_table(tmp_path / "steps.parquet").num_rows
    assert steps == sum(len(r.steps) for r in loaded.trajectories.values()) + sum(
        len(e.steps) for e in loaded.endpoints.values()
    )


def test_the_exported_table_gives_every_estimate_of_the_run(finished: Path, tmp_path: Path) -> None:
    assert handoff("export", str(finished), "--out", str(tmp_path)).returncode == 0
    found = []
    for source in (finished, tmp_path / "endpoints.csv"):
        result = handoff("estimate", str(source), "--draws", "500", "--budgets", "2,4", "--json")
        assert result.returncode == 0, result.stderr
        found.append(json.loads(result.stdout)["estimates"])
    assert found[0] == found[1]
    assert {"mean_actions", "reach_within", "bridge"} <= {one["name"] for one in found[0]}


def test_tasks_are_drawn_in_equal_numbers_and_do_not_depend_on_the_order_of_the_games() -> None:
    from handoff import registry

    tasks = list(registry.create("sokoban").tasks("test"))
    chosen = draw_tasks(tasks, "test", 9, (), 2029)
    assert draw_tasks(tasks[::-1], "test", 9, (), 2029) == chosen
    assert sorted([sum(t.type == kind for t in chosen) for kind in {t.type for t in tasks}]) == [3, 3, 3]
    assert set(chosen) < set(draw_tasks(tasks, "test", 12, (), 2029))
    with pytest.raises(UsageError, match="no task of type 'castle'"):
        draw_tasks(tasks, "test", 30, ("castle",), 2029)


def test_a_file_where_a_folder_belongs_is_one_sentence(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("a file, not a folder")
    result = small(target / "run")
    assert result.returncode == 2
    assert f"{target / 'run'} is not a folder; choose another --out" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unfinished_run_reports_what_is_owed_and_its_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        prepared(Counting(30)).run(tmp_path, Where(0))
    loaded = study.load(tmp_path)
    assert not loaded.sealed
    assert sum(loaded.owed) > 0
    with pytest.raises(StoreError, match="is not complete"):
        _ = loaded.table
    result = handoff("report", str(tmp_path))
    assert "The run is not complete" in result.stdout
    audit = handoff("audit", str(tmp_path), "--records-only")
    assert audit.returncode == 1
    assert "not complete" in audit.stdout


def test_an_honest_first_decision_without_an_action_keeps_the_clones_distance(tmp_path: Path) -> None:
    actions = tmp_path / "one.txt"
    actions.write_text("banana\n")
    words = ["run", "sokoban", "-p", f"a=actions:{actions}", "-p", "b=expert", "--reacher", "b", "--solver", "a"]
    folder = tmp_path / "run"
    more = ("--tasks", "3", "--slots", "1", "--budget", "20", "--distances", "4", "--workers", "0", "-q")
    handoff(*words, *more, "--out", str(folder))
    ends = [body for key, body in records(folder) if key[0] == "endpoint" and body["arrived"]]
    assert ends
    assert all(end["steps"][0]["decision"]["action"] is None for end in ends)
    assert all(end["steps"][0]["distance"] == 2 for end in ends), "the frontier of depth 2"
    assert not failed(folder)

    def forget(key: list[str], body: Any) -> None:
        """The distance of the clone, which no action has changed, is left out."""
        for step in body["steps"][:1] if "solver" in body else ():
            step["distance"] = None

    problems = failures(forge(folder, tmp_path / "forgotten", forget), replay=True)
    assert set(problems) == {"frontier"}
    assert len(problems["frontier"]) == len(ends)
    assert all("distance was recorded as None and is 2" in problem for problem in problems["frontier"])
