"""ACEBench: verdicts beside those of the original, and the set that ships."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke, output_of
from kit.shared import shared_path

from handoff.envs.acebench import AceBenchEnvironment
from handoff.envs.acebench.checker import passes
from handoff.envs.acebench.data import load
from handoff.envs.acebench.generator import TEA, generate
from handoff.errors import DataError, UsageError

ARTIFACTS = Path(__file__).resolve().parents[3] / "artifacts" / "acebench"


def data() -> str:
    return str(shared_path("data/acebench"))


def test_all_recorded_verdicts_are_equal(tmp_path: Path) -> None:
    lines = gzip.decompress((Path(data()) / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
    rows, out = tmp_path / "rows.jsonl", tmp_path / "scored.jsonl"
    with rows.open("w") as file:
        for line in lines:
            file.write(json.dumps({**json.loads(line), "passed": None}) + "\n")
    output_of("score", "acebench", rows, "--out", out, "--data", data())
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["passed"] for row in scored] == [json.loads(line)["passed"] for line in lines]
    assert len(scored) == 10_589


def test_the_gold_answers_pass_but_for_the_two_that_the_rules_refuse() -> None:
    environment, lost = AceBenchEnvironment(data=data()), []
    for task in environment.tasks("en"):
        environment.reset(task, 0)
        if not environment.plan():
            lost.append(task.source)
    assert len(environment.tasks("en")) == len(environment.tasks("zh")) == 750
    # The original refuses the gold of these, in whatever words it is said.
    lines = gzip.decompress((Path(data()) / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
    gold = [row for row in map(json.loads, lines) if row["case"] == "gold" and row["lang"] == "en"]
    assert lost == [row["id"] for row in gold if not row["passed"]]
    assert len(lost) == 2


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("[orderTea(kind='mint', cups=3)]", True),
        ("Here: [orderTea(cups=3, kind='mint')] as asked.", True),
        # An argument that is not required may be left out, and a number is typed only: rules of the benchmark.
        ("[orderTea(kind='mint')]", True),
        ("[orderTea(kind='mint', cups=4)]", True),
        ("[orderTea(cups=3)]", False),
        ("[orderTea(kind='black', cups=3)]", False),
        ("[orderTea(kind='mint', cups='3')]", False),
        ("[orderTea(kind='mint', cups=3, sugar=True)]", False),
        ("[orderTea(kind='mint', cups=3), orderTea(kind='mint', cups=3)]", False),
        ("[orderTea('mint', 3)]", False),
        ("[orderTea(**{'kind': 'mint', 'cups': 3})]", False),
        ("[orderTea(kind=open('/etc/passwd').read(), cups=3)]", False),
        ("[orderTea(kind=__import__('os').getcwd(), cups=3)]", False),
        ("orderTea(kind='mint', cups=3)", False),
        ("[orderTea(kind='mint', cups=3)", False),
        ("", False),
        ("[]", False),
        ("[" * 50_000, False),
        ("[" + "(" * 5_000 + ")" * 5_000 + "]", False),
        ("[orderTea(kind='mint', cups=" + "-" * 100_000 + "3)]", False),
        ("[orderTea(kind='\x00', cups=3)]", False),
        ("[orderTea(kind='\ud800', cups=3)]", False),
    ],
)
def test_a_reply_is_read_as_calls_with_literals_and_nothing_else(reply: str, passed: bool) -> None:
    assert passes("normal_atom_number", [TEA], {"orderTea": {"kind": "mint", "cups": 3}}, reply) is passed


def test_the_set_that_ships_is_what_the_generator_gives_and_all_of_its_gold_passes() -> None:
    made = generate()
    found = {str(path.relative_to(ARTIFACTS)): path.read_bytes() for path in ARTIFACTS.rglob("*.json")}
    assert found == made
    environment = AceBenchEnvironment()
    tasks = environment.tasks("en")
    assert len(tasks) == 26
    for task in tasks:
        environment.reset(task, 0)
        (reply,) = environment.plan()
        assert environment.step(reply).won
        assert not environment.score(task, "[orderTeas()]").passed


def test_no_question_of_the_set_that_ships_is_one_of_the_benchmark() -> None:
    theirs = {task.question for task in load(data()).tasks["en"].values()}
    ours = {task.question for task in load(str(ARTIFACTS)).tasks["en"].values()}
    assert len(ours) == 26
    assert not ours & theirs


def test_a_run_by_the_command_gives_gold_26_and_a_wrong_answer_none(tmp_path: Path) -> None:
    calls = tmp_path / "wrong.jsonl"
    names = [task.name for task in AceBenchEnvironment().tasks("en")]
    calls.write_text("".join(json.dumps({"task": name, "replies": ["[]"]}) + "\n" for name in names))
    wins = {}
    for name, policy in (("right", "g=gold"), ("wrong", f"g=calls:{calls}")):
        output_of("rollout", "acebench", "-p", policy, "--tasks", "all", "-n", "2", "--out", tmp_path / name)
        rows = [json.loads(line) for line in (tmp_path / name / "records.jsonl").read_text().splitlines()]
        wins[name] = [row["body"]["won"] for row in rows]
    assert wins == {"right": [True] * 52, "wrong": [False] * 52}


def test_a_second_step_changes_nothing() -> None:
    environment = AceBenchEnvironment()
    task = environment.tasks("en")[0]
    environment.reset(task, 0)
    assert not environment.step("[]").won
    assert environment.plan() == ()
    late = environment.step("[setLamp(lamp='desk lamp', on=True)]")
    assert late.done
    assert not late.won
    assert late.problem
    assert environment.answer() == "[]"


def _damage(folder: Path, change: str) -> None:
    file, gold = folder / "data_en/data_normal_atom_bool.json", folder / "data_en/possible_answer"
    if change == "no gold":
        shutil.rmtree(gold)
    elif change == "half a line":
        file.write_bytes(file.read_bytes()[:50])
    elif change == "not UTF-8":
        file.write_bytes(b"\xff\xfe")
    elif change == "a list":
        file.write_text("[1]\n")
    elif change == "a name":
        row: dict[str, Any] = json.loads(file.read_text().splitlines()[0])
        file.write_text(json.dumps({**row, "id": "other"}) + "\n")
    else:
        row = json.loads(file.read_text().splitlines()[0])
        file.write_text(json.dumps({**row, "function": json.loads(change)}) + "\n")


@pytest.mark.parametrize(
    "change",
    [
        "no gold",
        "half a line",
        "not UTF-8",
        "a list",
        "a name",
        "[1]",
        '[{"name": 1}]',
        '[{"name": "f", "parameters": [1]}]',
        '[{"name": "f", "parameters": {"properties": 1}}]',
        '[{"name": "f", "parameters": {"properties": {"x": 1}}}]',
        '[{"name": "f", "parameters": {"properties": {}, "required": 1}}]',
    ],
)
def test_a_damaged_folder_is_one_sentence_with_the_file(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "set"
    shutil.copytree(ARTIFACTS, folder)
    _damage(folder, change)
    with pytest.raises(DataError, match=r"normal_atom_bool\.json"):
        AceBenchEnvironment(data=str(folder))


def test_wrong_requests_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no tasks of ACEBench"):
        AceBenchEnvironment(data=str(tmp_path))
    with pytest.raises(UsageError, match="has no split"):
        AceBenchEnvironment().tasks("zh")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "no", "output": ""}\n{"id": "normal_atom_bool_0", "output": 1}\n')
    result = invoke("score", "acebench", rows, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    errors = [json.loads(line)["error"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert "there is no task 'no'" in errors[0]
    assert "not a text" in errors[1]
