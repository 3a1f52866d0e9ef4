"""Tools, conversations and worlds of TravelPlanner."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.command import invoke, output_of
from kit.shared import shared_path as shared

from handoff.envs.travelplanner import TravelPlannerEnvironment
from handoff.envs.travelplanner.generator import SEED, generate
from handoff.envs.travelplanner.plans import read_plan
from handoff.envs.travelplanner.world import load
from handoff.errors import DataError, UsageError
from handoff.messages.history import conversation
from handoff.messages.replies import as_text
from handoff.records import Record, Task

ARTIFACTS = Path(__file__).resolve().parents[3] / "artifacts" / "travelplanner"


def environment(**options: Any) -> tuple[TravelPlannerEnvironment, Task]:
    made = TravelPlannerEnvironment(**options)
    return made, made.tasks("validation")[0]


def test_the_shipped_world_is_what_its_seed_gives() -> None:
    files = generate(SEED)
    assert {path.name for path in ARTIFACTS.iterdir() if not path.name.startswith("__")} == set(files)
    assert {name: (ARTIFACTS / name).read_bytes() for name in files} == files
    assert generate(SEED + 1) != files


def test_the_shipped_queries_are_four_of_each_length_and_level() -> None:
    queries = load(None, None).queries["validation"].values()
    kinds = [(query["days"], query["level"]) for query in queries]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        (days, level): 4 for days in (3, 5, 7) for level in ("easy", "medium", "hard")
    }


def test_an_episode_is_a_conversation_that_ends_with_an_answer() -> None:
    made, task = environment()
    reset = made.reset(task, 0)
    turns: list[tuple[str, Record]] = []
    while not (turns and turns[-1][1].done):
        reply = made.plan()[0]
        turns.append((reply, made.step(reply)))
    assert list(made.messages()) == list(conversation(reset, turns))
    assert turns[-1][1].won
    assert made.answer() is not None
    assert made.score(task, read_plan(str(made.answer()))).passed


BAD = [
    ("<tool_call>{</tool_call>", "not valid JSON"),
    ("<tool_call>[]</tool_call>", "names no tool"),
    ('<tool_call>{"name": "__class__", "arguments": {}}</tool_call>', "there is no tool '__class__'"),
    ('<tool_call>{"name": "SearchCity", "arguments": {}}</tool_call>', "needs state"),
    ('<tool_call>{"name": "SearchCity", "arguments": {"state": 1}}</tool_call>', "must be of the type string"),
    ('<tool_call>{"name": "SearchCity", "arguments": {"state": "A", "x": 1}}</tool_call>', "has no argument 'x'"),
    ('<tool_call>{"name": "SearchCity", "arguments": [1]}</tool_call>', "not a JSON object"),
    ('<tool_call>{"name": "SearchCity", "arguments": "{\\"state\\": 1}"}</tool_call>', "must be of the type string"),
    ("I wonder.", "neither a call nor an answer"),
    ("<tool_call>" + "[" * 5000 + "</tool_call>", "not valid JSON"),
]


@pytest.mark.parametrize(("reply", "problem"), BAD)
def test_a_bad_call_is_a_message_and_a_spent_decision(reply: str, problem: str) -> None:
    made, task = environment()
    made.reset(task, 0)
    record = made.step(reply)
    assert problem in record.problem
    assert not record.done
    assert (record.observation == "") == (problem == "neither a call nor an answer")
    assert record.observation == "" or problem in record.observation


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<answer>A plan</answer> and more", "A plan"),
        ("<think>so</think><answer>an unclosed plan", "an unclosed plan"),
        ("<answer></answer>", ""),
    ],
)
def test_an_answer_ends_the_episode_closed_or_not(reply: str, answer: str) -> None:
    made, task = environment()
    made.reset(task, 0)
    record = made.step(reply)
    assert (record.done, made.answer()) == (True, answer)
    assert made.step("<answer>another</answer>").problem


def test_a_call_counts_before_an_answer_in_the_same_reply() -> None:
    made, task = environment()
    made.reset(task, 0)
    call = as_text("", [("SearchCity", {"state": "Arvenia"})])
    record = made.step(f"<answer>done</answer> {call} {call}")
    assert record.observation.startswith("4 cities lie in Arvenia")
    assert made.answer() is None


@pytest.mark.parametrize("answer", ["", "  ", "Answer not found", "sorry: ANSWER NOT FOUND."])
def test_an_answer_that_says_nothing_needs_no_formatter(answer: str) -> None:
    made, task = environment()
    assert made.formatting(task, answer) == ()
    assert made.formatting(task, "Day 1: go.")[-1].content == "Day 1: go."


def test_a_plan_is_read_from_json_and_from_tagged_days() -> None:
    days = [{"days": 1, "current_city": "A", "breakfast": "-"}]
    text = json.dumps(days)
    for form in (
        text,
        f"```json\n{text}\n```",
        f"Here it is: {text} Enjoy!",
        f"<answer>{text}</answer>",
        f'{{"plan": {text}}}',
    ):
        assert read_plan(form) == days
    tagged = "Day 1:\nCurrent City: from A to B\n**Breakfast**: Kitchen, A\nLunch: \n\nDay 2:\nCurrent City: B\n"
    assert read_plan(tagged) == [
        {"days": 1, "current_city": "from A to B", "breakfast": "Kitchen, A", "lunch": "-"},
        {"days": 2, "current_city": "B"},
    ]
    for junk in ("", "no plan", "[" * 100_000, "[1, NaN]", "Day 1:\nDay 2:\n", '{"plan": 3}', "x" * 300_000):
        assert read_plan(junk) is None


def test_a_leg_that_the_table_does_not_know_is_no_leg_without_a_flight() -> None:
    folder = str(shared("data/travelplanner"))
    call = as_text("", [("SearchFlight", {"departure": "Boston", "destination": "Miami", "date": "2022-05-01"})])
    made, task = environment(data=folder)
    made.reset(task, 0)
    with pytest.raises(DataError, match="--closed-world"):
        made.step(call)
    made, task = environment(data=folder, closed_world=True)
    made.reset(task, 0)
    record = made.step(call)
    assert record.observation == "There is no flight from Boston to Miami on 2022-05-01."
    assert record.flags == ("closed_world",)


def test_an_unknown_leg_stays_owed_in_a_run(tmp_path: Path) -> None:
    folder = shared("data/travelplanner")
    call = as_text("", [("SearchFlight", {"departure": "Boston", "destination": "Miami", "date": "2022-05-01"})])
    replies = tmp_path / "calls.json"
    replies.write_text(json.dumps({"train-000": [call]}))
    command = (
        "run", "travelplanner", "--protocol", "recorded", "-p", f"a=calls:{replies}", "--cross", "a", "--data", folder,
        "--split", "train", "--decisions", 3, "--workers", 0, "-q", "--out", tmp_path / "run",
    )  # fmt: skip
    result = invoke(*command)
    assert "the flight table does not say" in str(result.exception)
    assert "records are owed" in str(result.exception)


def test_episodes_in_a_closed_world_are_counted_in_the_report(tmp_path: Path) -> None:
    folder = shared("data/travelplanner")
    call = as_text("", [("SearchFlight", {"departure": "Boston", "destination": "Miami", "date": "2022-05-01"})])
    replies = tmp_path / "calls.json"
    replies.write_text(json.dumps({"train-000": [call, "<answer>none</answer>"]}))
    run = tmp_path / "run"
    output_of(
        "run", "travelplanner", "--protocol", "recorded", "-p", f"a=calls:{replies}", "--cross", "a", "--data", folder,
        "--split", "train", "--decisions", 2, "--closed-world", "--workers", 0, "-q", "--out", run,
    )  # fmt: skip
    assert "The environment's remark closed_world is on 1 episode" in " ".join(output_of("report", run).split())
    output_of("export", run, "--format", "jsonl")
    (row,) = [json.loads(line) for line in (run / "export" / "calls.jsonl").read_text().splitlines()]
    assert (row["tool"], row["problem"]) == ("SearchFlight", "")
    assert json.loads(row["arguments"]) == {"departure": "Boston", "destination": "Miami", "date": "2022-05-01"}
    assert json.loads(row["raw"])["name"] == "SearchFlight"


@pytest.mark.parametrize("name", ["distance.csv", "clean_accommodations_2022.csv", "citySet_with_states.txt"])
def test_a_missing_or_broken_file_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    shutil.copytree(ARTIFACTS, folder)
    (folder / name).unlink()
    result = invoke("run", "travelplanner", "--protocol", "recorded", "--cross", "gold", "--data", folder, "--dry-run")
    assert name in str(result.exception)
    (folder / name).write_text("nothing\n")
    result = invoke("run", "travelplanner", "--protocol", "recorded", "--cross", "gold", "--data", folder, "--dry-run")
    assert name in str(result.exception)


def test_a_changed_table_is_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(ARTIFACTS, folder)
    command = (
        "run", "travelplanner", "--protocol", "recorded", "--cross", "gold", "--data", folder, "--tasks", 3,
        "--workers", 0, "-q", "--out", tmp_path / "run",
    )  # fmt: skip
    output_of(*command)
    with (folder / "flights.csv").open("a") as file:
        file.write("F1,10,01:00,02:00,1 hours 0 minutes,2022-03-01,A,B,1.0\n")
    load.cache_clear()
    result = invoke(*command)
    assert "differs" in str(result.exception) or "another" in str(result.exception), result.exception
    audit = invoke("audit", tmp_path / "run", "-q", "--workers", 0, "--json")
    assert audit.exit_code == 1
    load.cache_clear()


def test_wrong_options_are_refused() -> None:
    for options, word in (({"evaluator": "mine"}, "agent-star"), ({"closed_world": "yes"}, "true or false")):
        with pytest.raises(UsageError, match=word):
            TravelPlannerEnvironment(**options)
    with pytest.raises(DataError, match="no such folder"):
        TravelPlannerEnvironment(data="/nowhere")
    with pytest.raises(UsageError, match="no split"):
        TravelPlannerEnvironment().tasks("train")


def test_a_scripted_study_of_the_45_train_tasks_has_endpoints_known_by_arithmetic(tmp_path: Path) -> None:
    folder = shared("data/travelplanner")
    rows = [
        json.loads(line)
        for line in gzip.decompress((folder / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
    ]
    gold = {row["idx"]: row for row in rows if row["split"] == "train" and row["case"] == "gold"}
    names = [f"train-{idx:03d}" for idx in range(45)]
    queries = [json.loads(line) for line in (folder / "queries_train.jsonl").read_text().splitlines()]
    look = {
        name: [as_text("", [("SearchAccommodation", {"city": queries[idx]["org"]})])] * 2
        for idx, name in enumerate(names)
    }
    right = dict.fromkeys(names, "<answer>Answer not found</answer>")
    right |= {f"train-{idx:03d}": f"<answer>{json.dumps(row['plan'])}</answer>" for idx, row in gold.items()}
    broken = {name: reply.replace("Flight Number", "Flight Mumber") for name, reply in right.items()}
    arguments: list[object] = []
    for name, last in (("right", right), ("broken", broken)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({task: [*look[task], last[task], last[task]] for task in names}))
        arguments += ["-p", f"{name}=calls:{path}"]
    for evaluator in ("official", "agent-star"):
        passing = sum(row[evaluator.replace("-", "_")]["passed"] for row in gold.values())
        driving = sum(
            row[evaluator.replace("-", "_")]["passed"] and "Flight Number" not in json.dumps(row["plan"])
            for row in gold.values()
        )
        run = tmp_path / evaluator
        form = json.loads(
            output_of(
                "run", "travelplanner", "--protocol", "recorded", *arguments, "--cross", "right,broken", "--data",
                folder, "--split", "train", "--evaluator", evaluator, "--workers", 0, "-q", "--json", "--out", run,
            )
        )  # fmt: skip
        passed = {(cell["reacher"], cell["solver"]): cell["passed"] for cell in form["cells"]}
        # RECORDED: of the 40 gold plans in the file 40 pass the official evaluator, and 12 Agent-STAR's.
        assert passing == {"official": 40, "agent-star": 12}[evaluator]
        # A flight whose number is misspelt is none: what flies fails, and the rest is as right as before.
        assert passed == {
            (reacher, solver): count
            for reacher in ("right", "broken")
            for solver, count in (("right", passing), ("broken", driving))
        }
        audit = json.loads(output_of("audit", run, "--json", "-q", "--workers", 0))
        assert audit["passed"]


def test_whoever_must_not_fly_could_fly_on_every_leg() -> None:
    world = load(None, None)
    forbidden = 0
    for (split, idx), plan in world.gold.items():
        query = world.queries[split][idx]
        if query["local_constraint"]["transportation"] != "no flight":
            continue
        forbidden += 1
        for day, date in zip(plan, query["date"], strict=True):
            if day["current_city"].startswith("from "):
                start, _, end = day["current_city"].removeprefix("from ").partition(" to ")
                text = (ARTIFACTS / "flights.csv").read_text(encoding="utf-8")
                rows = [row for row in csv.DictReader(text.splitlines()) if row["FlightDate"] == date]
                assert any((row["OriginCityName"], row["DestCityName"]) == (start, end) for row in rows), (idx, date)
    assert forbidden >= 4
