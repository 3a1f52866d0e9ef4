"""The 200 tasks of the installed benchmark: gold calls, broken ones, and the engine against the benchmark's own."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from decimal import getcontext
from multiprocessing import get_context
from typing import Any

import pytest

from handoff.envs.bfcl.calls import bound, parse_call
from handoff.envs.bfcl.checker import Checked, check
from handoff.envs.bfcl.engine import Instances, state_of
from handoff.envs.bfcl.package import INSTALL, benchmark, checker, utilities
from handoff.envs.bfcl.rounds import NO_CALL, as_rounds, as_rounds_of_replies
from handoff.envs.bfcl.rows import score_row
from handoff.envs.bfcl.schemas import parameters, tools
from handoff.envs.bfcl.surroundings import OutOfTime, limited, surroundings
from handoff.errors import DataError
from handoff.messages.replies import functions

pytest.importorskip("bfcl_eval", reason=f"needs bfcl-eval: {INSTALL}")

IDS = list(benchmark().entries)
FILES = "multi_turn_base_0"


def gold(id: str) -> list[list[str]]:
    return [list(calls) for calls in benchmark().answers[id]]


def without_last_call(id: str) -> list[list[str]]:
    turns = gold(id)
    next(calls for calls in reversed(turns) if calls).pop()
    return turns


def verdicts(ids: list[str]) -> list[Checked]:
    return [check(id, as_rounds(id, gold(id))) for id in ids]


def test_the_benchmark_has_200_tasks_with_at_most_7_gold_calls_per_turn() -> None:
    assert len(IDS) == 200
    assert max(len(calls) for id in IDS for calls in gold(id)) == 7


def test_the_gold_calls_of_every_task_are_valid() -> None:
    assert verdicts(IDS) == [Checked(True)] * 200


def test_without_the_last_gold_call_every_task_is_invalid() -> None:
    errors = Counter(check(id, as_rounds(id, without_last_call(id))) for id in IDS)
    kinds = Counter()
    for checked, count in errors.items():
        assert not checked.valid
        kinds[checked.error] += count
    assert kinds == {
        "multi_turn:empty_turn_model_response": 137,
        "multi_turn:instance_state_mismatch": 52,
        "multi_turn:execution_response_mismatch": 11,
    }


def test_the_turn_that_failed_is_the_one_that_was_broken() -> None:
    for id in IDS:
        turns = gold(id)
        broken = max(number for number, calls in enumerate(turns) if calls)
        assert check(id, as_rounds(id, without_last_call(id))).turn == broken


def test_after_gold_turns_a_gold_last_turn_passes_200_tasks_and_a_silent_one_1() -> None:
    silent = [id for id in IDS if check(id, as_rounds(id, [*gold(id)[:-1], []])).valid]
    assert [gold(id)[-1] for id in silent] == [[]]  # the one task without a gold call in its last turn
    assert sum(check(id, as_rounds(id, [*gold(id)[:-1], gold(id)[-1]])).valid for id in IDS) == 200


def broken(id: str, rng: random.Random) -> list[list[str]]:
    """Gold turns with one or two changes: a call dropped, doubled, moved, foreign, misspelt or with another value."""
    turns = gold(id)
    for _ in range(rng.randint(1, 2)):
        turn = rng.choice([calls for calls in turns if calls] or turns)
        place = rng.randrange(len(turn) or 1)
        call = turn.pop(place) if turn else "ls()"
        other = rng.choice(rng.choice([calls for calls in gold(rng.choice(IDS)) if calls] or [["ls()"]]))
        changed = re.sub(r"\d+", lambda match: str(int(match.group()) + 1), call, count=1)
        turn[place:place] = rng.choice(
            [
                [],
                [call, call],
                [call, other],
                [call, "nope(x=1)"],
                [call.replace("=", "x=", 1)],
                [changed],
                [call, "ls("],
            ]
        )
        if rng.random() < 0.2:
            rng.shuffle(turn)
    return turns


def test_verdicts_on_broken_calls_equal_those_of_the_checker_alone() -> None:
    rng, counts = random.Random(1), Counter[bool]()
    for number, id in enumerate(IDS * 2):
        turns, name = broken(id, rng), f"alone{number}x"
        with surroundings():
            result = checker().multi_turn_checker(
                [[calls] if calls else [] for calls in turns],
                gold(id),
                benchmark().entries[id],
                "multi_turn_base",
                name,
            )
        for key in [key for key in vars(utilities()) if key.startswith(name)]:
            del vars(utilities())[key]
        ours = check(id, as_rounds(id, turns))
        assert (ours.valid, ours.error) == (result["valid"], result.get("error_type", "")), (id, turns)
        counts[ours.valid] += 1
    assert min(counts[True], counts[False]) > 50


def test_missing_turns_are_empty_and_surplus_turns_are_not_checked() -> None:
    assert check(FILES, []) == Checked(False, "multi_turn:empty_turn_model_response", 0)
    assert check(FILES, [*as_rounds(FILES, gold(FILES)), [["ls()"]]]).valid


def native(id: str, name: str) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Results and instances of the benchmark's own executor after each gold turn."""
    entry = benchmark().entries[id]
    try:
        for calls in gold(id):
            with surroundings():
                yield utilities().execute_multi_turn_func_call(
                    calls, entry["initial_config"], entry["involved_classes"], name, id
                )
    finally:
        module = vars(utilities())
        for key in [key for key in module if key.startswith(name)]:
            del module[key]


def test_results_and_states_equal_those_of_the_benchmarks_own_executor() -> None:
    count = 0
    for id in IDS:
        instances = Instances(benchmark().entries[id])
        for calls, (results, theirs) in zip(gold(id), native(id, "native"), strict=True):
            assert [instances.execute(parse_call(text)) for text in calls] == results
            assert instances.state() == state_of(theirs)
            count += len(calls)
    assert count == 1142  # the number of gold calls in the package's file


ODD = [
    "cd(folder=5)",
    "cd()",
    "cd('a', 'b', 'c')",
    "cd(directory='a')",
    "cd(folder=None)",
    "ls(a=[1])",
    "post_tweet(content='sort (by line), then cd(folder)')",
    "touch(file_name='a (1).txt')",
    "echo(content='\\\\(', file_name='b')",
    "tail(file_name='b', lines='x')",
    "get_user_tweets(username='analyst_pro')",
    "get_tweet(tweet_id=0)",
    "get_user_stats(username={})",
]


def test_odd_calls_have_the_texts_of_the_benchmarks_own_executor() -> None:
    entry, name = benchmark().entries[FILES], "odd"
    instances = Instances(entry)
    texts = [parse_call(text).text() for text in ODD]
    with surroundings():
        results, theirs = utilities().execute_multi_turn_func_call(
            texts, entry["initial_config"], entry["involved_classes"], name, FILES
        )
    for key in [key for key in vars(utilities()) if key.startswith(name)]:
        del vars(utilities())[key]
    assert [instances.execute(parse_call(text)) for text in texts] == results
    assert instances.state() == state_of(theirs)


def test_a_state_tells_calls_apart_and_equal_calls_give_equal_states() -> None:
    entry = benchmark().entries[FILES]
    first, second = Instances(entry), Instances(entry)
    assert first.state() == second.state()
    first.execute(parse_call("cd(folder='document')"))
    assert first.state() != second.state()
    second.execute(parse_call("cd(folder='document')"))
    assert first.digest() == second.digest()


def test_a_directory_that_lies_in_itself_has_a_state() -> None:
    instances = Instances(benchmark().entries["multi_turn_base_1"])
    instances.execute(parse_call("mkdir(dir_name='x')"))
    instances.execute(parse_call("cp(source='x', destination='x')"))
    for _ in range(70):  # every level would double the directories below it
        instances.execute(parse_call("cd(folder='x')"))
        instances.execute(parse_call("cp(source='x', destination='y')"))
    assert len(instances.digest()) == 64


def test_a_deep_tree_of_directories_has_a_state() -> None:
    instances = Instances(benchmark().entries[FILES])
    for _ in range(1500):
        instances.execute(parse_call("mkdir(dir_name='d')"))
        instances.execute(parse_call("cd(folder='d')"))
    assert len(instances.digest()) == 64


def test_an_earlier_check_does_not_spoil_a_later_one() -> None:
    assert [check(FILES, as_rounds(FILES, without_last_call(FILES))).valid for _ in range(2)] == [False, False]
    assert [check(FILES, as_rounds(FILES, gold(FILES))).valid for _ in range(3)] == [True] * 3


def test_a_check_leaves_nothing_in_the_benchmarks_module() -> None:
    before = set(vars(utilities()))
    check(FILES, as_rounds(FILES, gold(FILES)))
    assert set(vars(utilities())) == before


@pytest.mark.timeout(120)
def test_several_processes_check_at_once() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(verdicts, [IDS[::20], IDS[10::20]], timeout=100))
    assert results == [[Checked(True)] * 10] * 2


def test_the_time_zone_and_precisions_of_the_process_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        id = next(id for id in IDS if "MathAPI" in benchmark().entries[id]["involved_classes"])
        instances, precision = Instances(benchmark().entries[id]), getcontext().prec
        assert instances.execute(parse_call("square_root(number=2, precision=5)")) == "{'result': Decimal('1.4142')}"
        import mpmath

        digits = mpmath.mp.dps
        instances.execute(parse_call("logarithm(value=8, base=2, precision=70)"))
        assert (mpmath.mp.dps, getcontext().prec) == (digits, precision)
        check(id, as_rounds(id, gold(id)))
        assert os.environ["TZ"] == "Asia/Tokyo"
        assert time.localtime(0).tm_hour == 9
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_transaction_has_the_same_time_in_every_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    id = next(id for id in IDS if any("withdraw_funds" in text for calls in gold(id) for text in calls))
    states = []
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            instances = Instances(benchmark().entries[id])
            for calls in gold(id):
                for text in calls:
                    instances.execute(parse_call(text))
            states.append(instances.digest())
    finally:
        monkeypatch.undo()
        time.tzset()
    assert len(set(states)) == 1


@pytest.mark.timeout(60)
def test_a_call_that_takes_too_long_is_ended_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = Instances(benchmark().entries[FILES], limit=0.2)

    def endless(folder: str) -> None:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # as the benchmark, which catches these
                continue

    monkeypatch.setitem(vars(instances)["_methods"], "cd", endless)
    assert instances.execute(parse_call("cd(folder='a')")) == "Error during execution: it took longer than 0.2 s"


@pytest.mark.timeout(60)
def test_a_check_that_takes_too_long_is_ended_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gorilla_file_system import GorillaFileSystem

    def endless(self: Any, folder: str) -> None:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(GorillaFileSystem, "cd", endless)
    before = set(vars(utilities()))
    assert check(FILES, as_rounds(FILES, gold(FILES)), limit=0.2) == Checked(False, "time_limit")
    assert set(vars(utilities())) == before


@pytest.mark.timeout(60)
def test_a_limit_inside_a_longer_one_leaves_that_at_work() -> None:
    def nested() -> None:
        with limited(0.3):
            with limited(30):
                pass
            with pytest.raises(OutOfTime), limited(0.05):
                time.sleep(10)
            ends.append("inner")
            time.sleep(10)

    ends: list[str] = []
    with pytest.raises(OutOfTime):
        nested()
    assert ends == ["inner"]


@pytest.mark.timeout(60)
def test_outside_the_main_thread_a_late_end_is_still_an_end() -> None:
    ends: list[str] = []

    def late() -> None:
        try:
            with limited(0.01):
                time.sleep(0.05)
        except OutOfTime:
            ends.append("late")

    thread = threading.Thread(target=late)
    thread.start()
    thread.join(30)
    assert ends == ["late"]


# Calls that were made elsewhere


def test_what_is_no_call_of_the_tasks_classes_fails_without_being_evaluated() -> None:
    hostile = ["__import__('os').abort()", "cd.__class__('x')", "startEngine(ignitionMode='START')", "kill(pid=1)", 7]
    assert as_rounds(FILES, [hostile]) == [[[NO_CALL] * 5]]
    turns: list[list[Any]] = gold(FILES)
    turns[0] = [*hostile, *turns[0]]
    assert check(FILES, as_rounds(FILES, turns)).valid  # calls that fail change nothing


def test_calls_of_every_form_are_one_call() -> None:
    expected = [[["cd(folder='a')"]]]
    arguments = {"folder": "a"}
    for call in (
        "cd( folder = 'a' )",
        {"name": "cd", "arguments": arguments},
        {"name": "cd", "arguments": '{"folder": "a"}'},
        {"type": "function", "function": {"name": "cd", "arguments": '{"folder": "a"}'}},
        {"cd": arguments},
        {"cd": '{"folder": "a"}'},
    ):
        assert as_rounds(FILES, [[call]]) == as_rounds(FILES, [[[call]]]) == expected
        assert as_rounds_of_replies(FILES, [[[call]]]) == expected
    assert as_rounds_of_replies(FILES, [["[cd(folder='a')]", "I went there."]]) == expected
    assert as_rounds_of_replies(FILES, [["I cannot do that."], []]) == [[], []]
    assert as_rounds_of_replies(FILES, [[[{"cd": "{folder"}]]]) == [[]]


def test_a_row_comes_back_with_its_verdict_and_its_other_fields() -> None:
    row = {"id": FILES, "calls": gold(FILES), "model": "m"}
    assert score_row(row) == {**row, "passed": True, "error_type": None, "turn": None}
    row = {"id": FILES, "calls": gold(FILES)[:2]}
    assert score_row(row) == {
        **row, "passed": False, "error_type": "multi_turn:empty_turn_model_response", "turn": 2,
    }  # fmt: skip


def test_rows_in_the_benchmarks_own_form_of_results_are_read() -> None:
    replies = [[f"[{', '.join(calls)}]", "Done."] for calls in gold(FILES)]
    assert score_row({"id": FILES, "result": replies})["passed"]
    calls = [[parse_call(text) for text in calls] for calls in gold(FILES)]
    steps = [[[{one.name: dict(bound(one, parameters(FILES)[one.name]))}] for one in turn] for turn in calls]
    assert score_row({"id": FILES, "result": steps})["passed"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "id"),
        ({"id": 3, "calls": []}, "id"),
        ({"id": "multi_turn_base_200", "calls": []}, "multi_turn_base_200"),
        ({"id": FILES}, "no list of calls per turn"),
        ({"id": FILES, "calls": "cd(folder='a')"}, "not a list of turns"),
        ({"id": FILES, "calls": ["cd(folder='a')"]}, "not a list of turns"),
    ],
)
def test_a_row_that_cannot_be_read_has_one_sentence(row: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        score_row(row)


# Tools


def types(schema: Any) -> Iterator[Any]:
    yield schema.get("type")
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from types(inner)


def test_every_tool_is_json_schema_and_gold_calls_name_offered_tools() -> None:
    known = {"object", "string", "number", "integer", "boolean", "array"}
    for id in IDS:
        offered = functions(tools(id))
        assert {one for tool in offered for one in types(tool["function"]["parameters"])} <= known
        names = {tool["function"]["name"] for tool in offered}
        assert names & set(benchmark().entries[id].get("excluded_function", ())) == set()
        assert {parse_call(text).name for calls in gold(id) for text in calls} <= names


def test_positional_arguments_are_bound_as_the_code_orders_them() -> None:
    id = next(id for id in IDS if "TravelAPI" in benchmark().entries[id]["involved_classes"])
    # The documents put insurance_cost before booking_id, the code the other way round.
    assert parameters(id)["purchase_insurance"] == (
        "access_token", "insurance_type", "booking_id", "insurance_cost", "card_id",
    )  # fmt: skip
