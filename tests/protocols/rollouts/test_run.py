"""The rollouts protocol on real Sokoban: counts, resume, audit, and the tax of two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from handoff.cli import group, inputs
from handoff.errors import Interrupted, StoreError, UsageError
from handoff.progress import Silent
from handoff.protocols.rollouts import config as rollouts_config
from handoff.protocols.rollouts import play as rollouts_play
from handoff.protocols.rollouts import study as rollouts_study
from handoff.runs.chain import Line
from handoff.runs.folder import read_manifest
from handoff.seeds import ROLLOUT, SeedSchedule

N = 6


def prepared(policies: dict[str, str], n: int = N) -> rollouts_play.Prepared:
    config = rollouts_config.Config(split="test", policies=tuple(policies), rollouts=n, tasks=6, budget=12, run_seed=5)
    return rollouts_play.prepare("sokoban", {}, config, policies)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollouts") / "run"
    prepared({"base": "noisy:0.7", "post": "noisy:0.2"}).run(folder, 0, Silent())
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
    policy = run.policies["post"]
    plain, made = policy.decide, 0

    def failing(requests):  # type: ignore[no-untyped-def]
        nonlocal made
        made += len(requests)
        if made > 40:
            raise Interrupted("the model server went away")
        return plain(requests)

    policy.decide = failing  # type: ignore[method-assign]
    with pytest.raises(Interrupted, match=r"\d+ of 72 records are owed"):
        run.run(tmp_path, 0, Silent())
    with pytest.raises(StoreError, match="are owed"):
        rollouts_study.load(tmp_path).counts("post")
    prepared({"base": "noisy:0.7", "post": "noisy:0.2"}).run(tmp_path, 0, Silent())
    assert (tmp_path / "records.jsonl").read_bytes() == (finished / "records.jsonl").read_bytes()


def test_the_audit_replays_every_rollout_and_finds_a_forged_success(finished: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["audit", str(finished), "--json", "-q", "--workers", "0"])
    assert result.exit_code == 0, result.output
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["replay"]["count"] == 2 * 72
    forged = tmp_path / "forged"
    forged.mkdir()
    head, lines, changed = read_manifest(finished)["digest"], [], False
    for seq, raw in enumerate((finished / "records.jsonl").read_bytes().splitlines()):
        form = json.loads(raw)
        if form["body"]["outcome"] == "budget" and not changed:
            form["body"].update(outcome="won", won=True)
            changed = True
        line = Line.make(seq, head, tuple(form["key"]), form["body"])
        head = line.digest
        lines.append(line.encode())
    assert changed
    (forged / "manifest.json").write_bytes((finished / "manifest.json").read_bytes())
    (forged / "records.jsonl").write_bytes(b"".join(lines))
    (forged / "seal.json").write_text(json.dumps({"head": head, "records": len(lines)}))
    result = CliRunner().invoke(group, ["audit", str(forged), "--json", "-q", "--workers", "0"])
    assert result.exit_code == 1
    failed = [check["name"] for check in json.loads(result.stdout)["checks"] if not check["passed"]]
    assert failed == ["replay"]


def test_counts_are_read_from_a_run_by_the_policys_name(finished: Path) -> None:
    assert list(inputs.counts(f"{finished}#post").c_T) == list(rollouts_study.load(finished).counts("post").c_T)
    with pytest.raises(UsageError, match="name one by"):
        inputs.counts(str(finished))
    with pytest.raises(UsageError, match="base, post"):
        inputs.counts(f"{finished}#nobody")


def test_the_tax_command_reads_both_policies_of_a_run(finished: Path) -> None:
    result = CliRunner().invoke(group, ["tax", f"{finished}#base", f"{finished}#post", "--draws", "50", "--json"])
    assert result.exit_code == 0, result.output
    numbers = json.loads(result.stdout)
    base = rollouts_study.load(finished).counts("base")
    assert str(round(base.c_T.sum() / base.n_T.sum(), 6))[:6] in json.dumps(numbers)


def test_the_command_prints_pass_at_k(tmp_path: Path) -> None:
    arguments = ["rollout", "sokoban", "-p", "x=expert", "-n", "2", "--tasks", "3", "--workers", "0", "-q"]
    result = CliRunner().invoke(group, [*arguments, "--out", str(tmp_path / "run"), "--json"])
    assert result.exit_code == 0, result.output
    numbers = json.loads(result.stdout)
    assert numbers["policies"][0]["successes"] == 6, "the expert always succeeds"
    assert numbers["policies"][0]["pass_at_k"] == {"1": 1.0, "2": 1.0}
    shown = CliRunner().invoke(group, [*arguments, "--out", str(tmp_path / "run")])
    assert "6/6" in shown.stdout
    assert "6/6" in CliRunner().invoke(group, ["report", str(tmp_path / "run")]).stdout
    page = CliRunner().invoke(group, ["report", str(tmp_path / "run"), "--html"])
    assert isinstance(page.exception, UsageError)
    assert "handoff tax" in str(page.exception)
