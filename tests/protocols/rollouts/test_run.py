"""The rollouts protocol on real Sokoban: counts, resume, audit, and the tax of two runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from kit.audits import command_checks, failed
from kit.command import output_of
from kit.fault_server import serving
from kit.interrupting import interrupt
from kit.runs import first, forge, play, record_bytes

from handoff.cli.inputs import counts as read_counts
from handoff.episodes.start import Where
from handoff.errors import Interrupted, StoreError, UsageError
from handoff.passk.counts import Counts
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts import study as rollouts_study
from handoff.protocols.rollouts.config import RolloutsConfig
from handoff.runs.launch import Prepared
from handoff.seeds import ROLLOUT, SeedSchedule

N = 6


def prepared(policies: dict[str, str], n: int = N) -> Prepared:
    config = RolloutsConfig(split="test", policies=tuple(policies), rollouts=n, tasks=6, budget=12, run_seed=5)
    return ROLLOUTS.prepare("sokoban", {}, config, policies)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollouts") / "run"
    prepared({"base": "noisy:0.7", "post": "noisy:0.2"}).run(folder, Where(0))
    return folder


def test_every_task_has_n_rollouts_whose_successes_are_counted(finished: Path) -> None:
    loaded = rollouts_study.load(finished)
    assert loaded.sealed
    assert loaded.count == loaded.planned == 6 * 2 * N
    for name in ("base", "post"):
        counts = loaded.counts(name)
        assert list(counts.n_T) == [N] * 6
        for task, successes in zip(counts.tasks, counts.c_T, strict=True):
            assert successes == sum(loaded.rollouts[task, name, index].won for index in range(N))
    assert loaded.counts("post").c_T.sum() > loaded.counts("base").c_T.sum(), "less noise succeeds more often"


def test_rollouts_that_are_one_are_warned_of_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ("-p", "same=expert", "-p", "drawn=tempered:1:2", "-n", "4", "--tasks", "6", "--budget", "12")
    warning = "On 6 of 6 tasks (100.0%) all 4 rollouts of same are equal: there they are one rollout"
    for command in (
        ("rollout", "sokoban", *arguments, "--out", folder, "--workers", "0", "-q"),
        ("report", folder),
        ("tax", f"{folder}#same", f"{folder}#drawn"),
    ):
        assert warning in " ".join(output_of(*command).split())
    output_of("report", folder, "--html")
    output_of("tax", f"{folder}#drawn", f"{folder}#same", "--html")
    for page in ("report.html", "tax.html"):
        text = (folder / page).read_text()
        assert warning in text
        assert "rollouts of drawn are equal" not in text
    policies = json.loads(output_of("report", folder, "--json"))["policies"]
    assert [policy.get("alike") for policy in policies] == [6, None]
    assert json.loads(output_of("tax", f"{folder}#drawn", f"{folder}#same", "--json"))["alike"] == {"same": 6}


def test_rollouts_that_differ_in_one_word_or_one_record_are_not_one(tmp_path: Path) -> None:
    run = play(tmp_path / "run", "rollout", "sokoban", "-p", "a=expert", "-n", "2", "--tasks", "6", "--budget", "12")
    assert rollouts_study.load(run).counts("a").alike == 6

    def reword(key: list[str], body: Any) -> bool:
        body["decisions"][0]["text"] = "hm"
        return True

    def other_records(key: list[str], body: Any) -> bool:
        body["digest"] = "0" * 64
        return True

    for name, change in (("word", reword), ("record", other_records)):
        assert rollouts_study.load(forge(run, tmp_path / name, first(change))).counts("a").alike == 5


def test_half_of_the_tasks_is_not_most_of_them() -> None:
    counts = Counts.of("a", [(f"task {n}", 4, n) for n in range(4)])
    assert [attrs.evolve(counts, alike=alike).repeated is None for alike in (None, 0, 2, 3)] == [
        True,
        True,
        True,
        False,
    ]


def test_a_policy_at_temperature_0_is_remarked_on_before_its_rollouts() -> None:
    with serving(dialect="plain") as server:
        arguments = ["rollout", "sokoban", "-p", f"a=openai:{server.url}#m", "--tasks", "6", "--dry-run"]
        for options, said in (
            (["--temperature", "0", "-n", "16"], True),
            (["--temperature", "0", "-n", "1"], False),
            (["--temperature", "0.4", "-n", "16"], False),
        ):
            text = output_of(*arguments, *options)
            assert ("temperature 0, so its 16 rollouts of a task are one," in text) == said
        plan = ["run", "sokoban", "-p", f"a=openai:{server.url}#m", "--cross", "a", "--tasks", "6", "--dry-run"]
        assert "so its 3 seed slots of a task are one," in output_of(*plan, "--temperature", "0", "--slots", "3")
        assert "are one," not in output_of(*plan, "--slots", "3")


def test_rollouts_are_independent_and_paired_between_policies(finished: Path) -> None:
    loaded = rollouts_study.load(finished)
    schedule = SeedSchedule(5)
    seeds = set()
    for (task, _, index), run in loaded.rollouts.items():
        for position, decision in enumerate(run.decisions):
            assert decision.seed == schedule.decision(task, index, ROLLOUT, position)
            seeds.add((task, index, position, decision.seed))
    assert len({seed for *_, seed in seeds}) == len(seeds), "no two places share a seed"


def test_an_interrupted_run_resumes_to_the_bytes_of_an_undisturbed_one(finished: Path, tmp_path: Path) -> None:
    run = prepared({"base": "noisy:0.7", "post": "noisy:0.2"})
    interrupt([run.policies["post"]], after=40)
    with pytest.raises(Interrupted, match=r"\d+ of 72 records are owed"):
        run.run(tmp_path, Where(0))
    with pytest.raises(StoreError, match="are owed"):
        rollouts_study.load(tmp_path).counts("post")
    prepared({"base": "noisy:0.7", "post": "noisy:0.2"}).run(tmp_path, Where(0))
    assert record_bytes(tmp_path) == record_bytes(finished)


def test_the_audit_replays_every_rollout_and_finds_a_forged_success(finished: Path, tmp_path: Path) -> None:
    code, checks = command_checks(finished)
    assert code == 0, checks
    assert checks["replay"]["count"] == 2 * 72

    def win(key: list[str], body: Any) -> bool:
        if body["outcome"] != "budget":
            return False
        body.update(outcome="won", won=True)
        return True

    assert failed(forge(finished, tmp_path / "forged", first(win))) == ["replay"]


def test_counts_are_read_from_a_run_by_the_policys_name(finished: Path) -> None:
    assert list(read_counts(f"{finished}#post").c_T) == list(rollouts_study.load(finished).counts("post").c_T)
    with pytest.raises(UsageError, match="name one by"):
        read_counts(str(finished))
    with pytest.raises(UsageError, match="base, post"):
        read_counts(f"{finished}#nobody")


def test_the_tax_command_reads_both_policies_of_a_run(finished: Path) -> None:
    numbers = json.loads(output_of("tax", f"{finished}#base", f"{finished}#post", "--draws", "50", "--json"))
    base = rollouts_study.load(finished).counts("base")
    assert str(round(base.c_T.sum() / base.n_T.sum(), 6))[:6] in json.dumps(numbers)


def test_the_command_prints_pass_at_k(tmp_path: Path) -> None:
    arguments = ["rollout", "sokoban", "-p", "x=expert", "-n", "2", "--tasks", "3", "--workers", "0", "-q"]
    arguments += ["--out", str(tmp_path / "run")]
    numbers = json.loads(output_of(*arguments, "--json"))
    assert numbers["policies"][0]["successes"] == 6, "the expert always succeeds"
    assert numbers["policies"][0]["pass_at_k"] == {"1": 1.0, "2": 1.0}
    assert "6/6" in output_of(*arguments)
    assert "6/6" in output_of("report", tmp_path / "run")
    output_of("report", tmp_path / "run", "--html")
    assert "x at k = 2: 100.0%" in (tmp_path / "run" / "report.html").read_text()
    assert json.loads((tmp_path / "run" / "report.json").read_text()) | {"folder": numbers["folder"]} == numbers


FILE = """
environment = "sokoban"

[study]
tasks = 3
rollouts = 4
budget = 9
ptgs = true
pilot = 2

[policies]
x = "tempered:0.5"
y = "tempered:1.0"
"""


def test_a_study_file_plans_and_runs_rollouts_and_the_command_line_counts_more(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FILE)
    arguments = ("rollout", "--config", str(tmp_path / "study.toml"), "--workers", "0", "-q")
    planned = json.loads(output_of(*arguments, "--dry-run", "--json"))["protocol"]
    assert (planned["rollouts"], planned["budget"], planned["ptgs"]["pilots"]) == (4, 9, 2)
    assert planned["policies"] == ["x", "y"]
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"], "a plan writes nothing"
    output_of(*arguments, "--budget", "5", "--out", str(tmp_path / "run"))
    loaded = rollouts_study.load(tmp_path / "run")
    assert loaded.count == 3 * 2 * 4
    assert loaded.config.budget == 5
    assert loaded.manifest["host"]["config"]["text"] == FILE


def test_rollouts_are_exported_as_rows(finished: Path, tmp_path: Path) -> None:
    output_of("export", str(finished), "--out", str(tmp_path), "--format", "csv")
    loaded = rollouts_study.load(finished)
    with open(tmp_path / "rollouts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    wins = {(row["task"], row["policy"], int(row["index"])): int(row["won"]) for row in rows}
    assert wins == {tuple(cell): int(rollout.won) for cell, rollout in loaded.rollouts.items()}
    with open(tmp_path / "decisions.csv", newline="") as file:
        decisions = list(csv.DictReader(file))
    assert len(decisions) == sum(len(rollout.decisions) for rollout in loaded.rollouts.values())
