"""The policy behind a server, against a real HTTP server that fails in every way that servers do."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest
from kit import fault_server
from kit.audits import checks
from kit.command import handoff, hear_the_terminal, invoke, output_of, start
from kit.fault_server import FAULTS, Model, answer, serving
from kit.runs import forge, play, record_bytes, records

from handoff.canonical import digest
from handoff.episodes.start import Where
from handoff.errors import DataError, Interrupted, UsageError
from handoff.policies import ModelOptions, Policy, Request, Served, Turn
from handoff.policies.bindings import make
from handoff.policies.openai import client
from handoff.policies.openai.client import check_url
from handoff.protocols.frontier import FRONTIER, study
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.frontier.failures import failures
from handoff.records import Decision, Record, Task

OPTIONS = ModelOptions(max_prompt_tokens=50_000, patience=60.0, timeout=1.0, concurrency=16)
CONFIG = FrontierConfig(split="test", reachers=("a", "b"), solvers=("a", "b"), tasks=6, slots=2, reach_budget=6)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.02)


def run(url: str, folder: Path, options: ModelOptions = OPTIONS) -> study.Study:
    specs = {"a": f"openai:{url}#m", "b": "noisy:0.3"}
    FRONTIER.prepare("sokoban", {}, CONFIG, specs, {"a": options}).run(folder, Where(0))
    return study.load(folder)


@pytest.fixture(scope="module", params=["vllm", "plain"])
def faultless(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("faultless") / "run"
    with serving(dialect=request.param) as server:
        run(server.url, folder)
    return request.param, folder


def test_decisions_are_what_the_server_said_under_the_schedules_seeds(faultless: tuple[str, Path]) -> None:
    dialect, folder = faultless
    loaded = study.load(folder)
    statuses = set()
    for trajectory in loaded.trajectories.values():
        if trajectory.reacher != "a":
            continue
        for step in trajectory.steps:
            decision = step.decision
            statuses.add(decision.status)
            assert decision.generation is not None
            assert decision.prompt_tokens is not None
            if dialect == "vllm":
                assert decision.generation.digest == digest(list(decision.text.encode()))
                assert decision.prompt_digest is not None
            else:
                assert decision.generation.digest is None
                assert decision.prompt_digest is None
    assert {"parsed", "no_action", "truncated", "empty"} <= statuses
    assert loaded.policies["a"]["tokens"] == ("ids" if dialect == "vllm" else "rendered prompt only")
    assert "127.0.0.1" not in json.dumps(loaded.manifest["identity"])


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_now_and_then_leaves_the_records_as_they_were(
    faultless: tuple[str, Path], tmp_path: Path, fault: str
) -> None:
    dialect, folder = faultless
    every = 40 if fault in ("slow", "429 date") else 5
    with serving(lambda n: fault if n % every == 3 else None, dialect=dialect) as server:
        run(server.url, tmp_path / "run")
        assert server.faults > 0
    assert record_bytes(tmp_path / "run") == record_bytes(folder)


def test_faults_of_all_kinds_at_random_leave_the_records_as_they_were(
    faultless: tuple[str, Path], tmp_path: Path
) -> None:
    dialect, folder = faultless
    generator = random.Random(7)
    quick = [fault for fault in FAULTS if fault not in ("slow", "429 date")]
    with serving(lambda n: generator.choice(quick) if generator.random() < 0.4 else None, dialect=dialect) as server:
        run(server.url, tmp_path / "run")
    assert record_bytes(tmp_path / "run") == record_bytes(folder)


@pytest.mark.parametrize(
    ("change", "check", "failure"),
    [
        (lambda decision: decision["generation"].update(rendered="0" * 64), "prompts", "not what its template makes"),
        (lambda decision: decision.update(status="no_action"), "protocol", "yet has the action"),
    ],
)
def test_a_forged_decision_fails_the_audit_and_the_weaker_guarantee_is_named(
    faultless: tuple[str, Path], tmp_path: Path, change: Callable[[dict[str, Any]], None], check: str, failure: str
) -> None:
    dialect, folder = faultless
    honest = checks(folder)
    assert not any(entry.blocks for entry in honest.values())
    assert honest["prompts"].count > 0
    assert ("no token ids are recorded for a" in " ".join(honest["prompts"].notes)) == (dialect == "plain")

    def change_all(key: list[str], body: Any) -> None:
        for step in body["steps"] if key[0] == "endpoint" and key[-1] == "a" else []:
            change(step["decision"])

    forged = checks(forge(folder, tmp_path / "forged", change_all))
    assert forged["chain"].passed
    assert any(failure in text for text in forged[check].failures)


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_refused_replies_and_stopped_prompts_are_outcomes_that_an_audit_holds_against_their_records(
    tmp_path: Path, dialect: str
) -> None:
    flagged = {"error": {"code": 403, "message": "your input was flagged", "metadata": {"flagged_input": "..."}}}

    def reply(prompt: str, seed: int) -> tuple[str, str]:
        text, finish = answer(prompt, seed)
        return (text, "content_filter") if seed % 4 == 0 else (text, finish)

    with serving(dialect=dialect) as server:
        server.reply = reply
        specs = {"a": f"openai:{server.url}#m", "b": "noisy:0.3"}
        prepared = FRONTIER.prepare("sokoban", {}, CONFIG, specs, {"a": OPTIONS})
        server.canned = [(403, json.dumps(flagged).encode(), {})] * 4
        prepared.run(tmp_path / "run", Where(0), concurrency=1)
    loaded = study.load(tmp_path / "run")
    steps = [step for run in loaded.trajectories.values() if run.reacher == "a" for step in run.steps]
    refused = [step.decision for step in steps if step.decision.status == "refused"]
    stopped = [one for one in refused if one.generation is not None and one.generation.refusal is not None]
    assert len(stopped) == (2 if dialect == "vllm" else 4), "vLLM is asked again by token ids"
    assert len(refused) == len({*stopped} | {one.decision for one in steps if one.decision.seed % 4 == 0})
    assert not any(entry.failures for entry in checks(tmp_path / "run").values())
    failed = failures([run for run in loaded.trajectories.values() if run.reacher == "a"])["a"]
    lost = [run for run in loaded.trajectories.values() if run.reacher == "a" and not run.arrived]
    in_vain = sum(step.decision.status == "refused" for run in lost for step in run.steps)
    assert failed.refused == in_vain > 0
    shown = output_of("report", tmp_path / "run", "--draws", "200")
    row = next(line for line in shown.splitlines() if "refused by model or filter" in line)
    assert f"{100 * in_vain / failed.steps:.1f}%" in row
    numbers = json.loads(output_of("report", tmp_path / "run", "--draws", "200", "--json"))
    every = [one.decision for one in loaded.decisions() if one.policy == "a"]
    count = sum(one.status == "refused" for one in every)
    assert numbers["failures"]["refusals"] == [{"policy": "a", "refused": count, "decisions": len(every)}]
    assert f"a or a content filter refused {count} of {len(every)} decisions" in " ".join(
        numbers["sentences"]["failures"]
    )

    def call_it_empty(key: list[str], body: Any) -> None:
        for step in body["steps"]:
            if step["decision"]["status"] == "refused":
                step["decision"]["status"] = "empty"

    forged = checks(forge(tmp_path / "run", tmp_path / "forged", call_it_empty))
    assert any("yet it is called 'empty'" in text for text in forged["policies"].failures)


def test_a_report_of_rollouts_counts_refusals(tmp_path: Path) -> None:
    with serving(dialect="plain") as server:
        server.reply = lambda prompt, seed: (answer(prompt, seed)[0], "content_filter" if seed % 2 else "stop")
        words = ["rollout", "sokoban", "-p", f"x=openai:{server.url}#m", "--tasks", "3", "-n", "2", "--budget", "3"]
        play(tmp_path / "run", *words)
    decisions = [decision for _, body in records(tmp_path / "run") for decision in body["decisions"]]
    refused = sum(decision["seed"] % 2 for decision in decisions)
    assert 0 < refused < len(decisions)
    shown = " ".join(output_of("report", tmp_path / "run").split())
    assert f"x or a content filter refused {refused} of {len(decisions)} decisions" in shown


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_key_with_blanks_at_its_ends_is_not_told_in_any_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, escaped: bool
) -> None:
    key = "sk-very-secret-0123"
    monkeypatch.setenv("OPENAI_API_KEY", f" {key}\n")
    told = "".join(f"\\u{ord(letter):04x}" for letter in key) if escaped else key
    with serving(dialect="plain") as server:
        server.canned = [(401, f'{{"error": {{"message": "no such key: {told}"}}}}'.encode(encoding), {})] * 9
        words = ["rollout", "sokoban", "-p", f"x=openai:{server.url}#m", "--tasks", "3", "-n", "1", "--budget", "2"]
        refused = invoke(*words, "--out", tmp_path / "run", "--workers", "0", "-q")
        assert server.keys == {f"Bearer {key}"}
    sentence = str(refused.exception)
    assert "wants an API key" in sentence
    assert key not in sentence.replace("\0", "")


def test_a_gateway_with_a_page_for_every_address_is_a_plain_server(tmp_path: Path) -> None:
    with serving(dialect="pages") as server:
        words = ["rollout", "sokoban", "-p", f"x=openai:{server.url}#m", "--tasks", "3", "-n", "1", "--budget", "2"]
        play(tmp_path / "run", *words)
        assert server.gets < 8  # it was not asked again until patience ended
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["identity"]["policies"]["x"]["engine"]["version"] is None


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_a_key_that_the_server_repeats_in_every_answer_stands_in_no_file_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    key = "sk-very-secret-0123"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with serving(lambda n: "500" if n % 5 == 3 else None, dialect=dialect) as server:
        server.reply = lambda prompt, seed: (f"Bearer {key}: {answer(prompt, seed)[0]}", "stop")
        run(server.url, tmp_path / "run")
        assert server.keys == {f"Bearer {key}"}
    assert b"Bearer ***: " in record_bytes(tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        assert key.encode() not in path.read_bytes()


def test_a_retry_repeats_the_request_byte_for_byte(tmp_path: Path) -> None:
    with serving(lambda n: "500" if n % 2 else None) as server:
        run(server.url, tmp_path / "run")
        asked = {body for path, body in server.bodies if path.endswith("/completions")}
        assert asked == set(server.answered_bytes)
        assert len(asked) > 20


def command(url: str, folder: Path, *more: str) -> list[str]:
    return [
        *("run", "sokoban", "-p", f"a=openai:{url}#m", "-p", "b=noisy:0.3"),
        *("--cross", "a,b", "--tasks", "6", "--slots", "2", "--budget", "6", "--workers", "0", "-q"),
        *("--max-prompt-tokens", "50000", "--patience", "2", "--out", str(folder), *more),
    ]


@pytest.mark.parametrize("end", ["engine dead", "gone"])
def test_a_dead_server_ends_the_run_with_what_is_owed_and_resume_finishes_it(
    faultless: tuple[str, Path], tmp_path: Path, end: str
) -> None:
    dialect, folder = faultless
    environment = {**os.environ, "OPENAI_API_KEY": "secret-key-123"}

    def play(model: Model) -> Callable[[int], str | None]:
        def plan(number: int) -> str | None:
            if number >= 60:
                if end == "engine dead":
                    model.dead = True
                return "500" if end == "engine dead" else "refuse"
            return None

        return plan

    with serving(dialect=dialect) as server:
        server.plan = play(server)
        arguments = command(server.url, tmp_path / "run")
        result = handoff(*arguments, env=environment)
        port = server.server_address[1]
        assert server.keys == {"Bearer secret-key-123"}
    assert result.returncode == 3, result.stderr
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert "of 72 records are owed" in last
    assert "type the same command" in last
    assert ("its engine is dead" in last) == (end == "engine dead")
    done = record_bytes(tmp_path / "run")
    assert record_bytes(folder).startswith(done), "what was finished is what a faultless run has"
    with serving(dialect=dialect, port=port) as server:
        result = handoff(*arguments, env=environment)
    assert result.returncode == 0, result.stderr
    assert record_bytes(tmp_path / "run") == record_bytes(folder)
    for path in (tmp_path / "run").iterdir():
        assert b"secret-key-123" not in path.read_bytes()


def test_ctrl_c_leaves_a_run_that_the_same_command_finishes(faultless: tuple[str, Path], tmp_path: Path) -> None:
    dialect, folder = faultless
    with serving(lambda n: time.sleep(0.02) or None, dialect=dialect) as server:
        arguments = command(server.url, tmp_path / "run")
        child = start(*arguments, preexec_fn=hear_the_terminal)
        deadline = time.monotonic() + 60
        while server.posts < 60 and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=300)
        assert child.returncode == 3, errors
        assert "stopped by the user" in errors
        assert "Traceback" not in errors
        assert handoff(*arguments).returncode == 0
    assert record_bytes(tmp_path / "run") == record_bytes(folder)


TASK = Task("0" * 64, "t", "t", "s")
RECORD = Record("You see a room.", ("look", "go"), 0.0, False, False)


def introduced(spec: str, options: ModelOptions = OPTIONS) -> Policy:
    policy = make(spec, options)
    asyncio.run(policy.introduce())
    return policy


def one(server: Model, options: ModelOptions = OPTIONS, seed: int = 5, slot: int = 0) -> Decision:
    policy = introduced(f"openai:{server.url}#m", options)
    server.answered.clear()
    return policy.decide([Request(TASK, seed, RECORD, (Turn("look", RECORD, "look"),), 3, slot=slot)])[0]


@pytest.mark.parametrize("content", ["", None])
@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_an_empty_reply_that_ended_is_one_decision_and_is_not_asked_again(content: str | None, dialect: str) -> None:
    with serving(dialect=dialect) as server:
        server.reply = lambda prompt, seed: (content, "stop")
        decision = one(server)
        assert len(server.answered) == 1
    assert (decision.text, decision.action, decision.status) == ("", None, "empty")
    assert decision.generation is not None
    assert decision.generation.finish == "stop"


def test_room_is_computed_before_sending() -> None:
    with serving() as server:
        count = one(server).prompt_tokens
        assert count is not None
        server.max_model_len = count + 5
        server.reply = lambda prompt, seed: ("abcde", "length")
        decision = one(server, ModelOptions(max_prompt_tokens=10**6, max_new_tokens=50))
        assert server.answered[-1]["max_tokens"] == 5
        assert decision.generation is not None
        assert (decision.status, decision.flags, decision.generation.max_tokens) == ("truncated", ("clamped",), 5)
        server.answered.clear()
        server.max_model_len = count
        decision = one(server, ModelOptions(max_prompt_tokens=10**6, max_new_tokens=50))
        assert (decision.status, decision.action, decision.prompt_tokens) == ("context_overflow", None, count)
        server.max_model_len = 10**6
        decision = one(server, ModelOptions(max_prompt_tokens=count - 1))
        assert (decision.status, decision.prompt_tokens) == ("context_overflow", count)
        assert server.answered == [], "a prompt that does not fit is never sent"


def test_one_request_and_two_requests_end_in_the_same_decision() -> None:
    wide = ModelOptions(max_prompt_tokens=10**6)
    with serving() as server:
        narrow = ModelOptions(max_prompt_tokens=one(server).prompt_tokens or 0)
        for seed in range(20):
            before = len(server.bodies)
            at_once = one(server, wide, seed)
            posts = [path for path, _ in server.bodies[before:]]
            assert posts[11:] == ["/v1/chat/completions"], "after the eleven by which the server is known"
            before = len(server.bodies)
            by_ids = one(server, narrow, seed)
            posts = [path for path, _ in server.bodies[before:]]
            assert posts[11:] == ["/tokenize", "/v1/completions"]
            assert server.answered[-1]["prompt"] == list(
                fault_server.chat(json.loads(server.bodies[-2][1])["messages"]).encode()
            )
            assert by_ids == at_once


def test_a_prompt_of_more_tokens_than_was_guessed_is_an_overflow_and_no_reply_to_it_is_kept() -> None:
    record = Record("看" * 400, ("look",), 0.0, False, False)  # three tokens a character
    request = Request(TASK, 5, record, (), 3)
    with serving() as server:
        policy = introduced(f"openai:{server.url}#m", ModelOptions(max_prompt_tokens=1400))
        server.answered.clear()
        decision = policy.decide([request])[0]
        count = len(fault_server.chat(server.answered[0]["messages"]).encode())
    assert (decision.status, decision.text, decision.prompt_tokens) == ("context_overflow", "", count)
    assert count > 1400


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_asked_for_a_decision_does_not_depend_on_the_order_in_which_answers_arrive(
    tmp_path: Path, apart: bool
) -> None:
    """Neither on how many are under way: some prompts leave room for the whole reply, and others may not."""
    asked = []
    options = attrs.evolve(OPTIONS, max_prompt_tokens=1200, timeout=30.0)
    for number, (lanes, delay) in enumerate(((1, 0.0), (16, 0.01), (16, 0.01))):
        generator = random.Random(number)
        with serving() as server:
            specs = {"a": f"openai:{server.url}#m", "b": "noisy:0.3"}
            prepared = FRONTIER.prepare("sokoban", {}, CONFIG, specs, {"a": options})
            server.delay = lambda generator=generator, delay=delay: generator.random() * delay  # type: ignore[misc]
            server.bodies.clear()
            server.apart = apart  # after the introduction, which would have found it out
            prepared.run(tmp_path / str(number), Where(0), concurrency=lanes)
            asked.append(sorted(server.bodies))
    assert asked[0] == asked[1] == asked[2]
    paths = [path for path, _ in asked[0]]
    assert paths.count("/v1/chat/completions") > 20
    assert paths.count("/tokenize") > 20
    assert record_bytes(tmp_path / "0") == record_bytes(tmp_path / "1") == record_bytes(tmp_path / "2")


def test_from_a_server_that_takes_replies_apart_the_whole_text_is_had_all_the_same() -> None:
    with serving() as server:
        whole = [one(server, seed=seed) for seed in range(12)]
        server.apart = True
        assert [one(server, seed=seed) for seed in range(12)] == whole
        assert any("</think>" in decision.text for decision in whole)


def test_a_plain_servers_word_on_overflow_is_the_outcome() -> None:
    with serving(dialect="plain") as server:
        server.max_model_len = 100
        assert one(server).status == "context_overflow"
        server.max_model_len = 10**6
        assert one(server, ModelOptions(max_prompt_tokens=10)).status == "context_overflow"


def test_every_setting_is_stated_and_the_ids_that_were_used_are_recorded() -> None:
    with serving() as server:
        server.reply = lambda prompt, seed: ("look", "stop")
        decision = one(server, ModelOptions(max_prompt_tokens=10**6, constrain=True, stop=("x",)), seed=2**62 + 1)
        body = server.answered[-1]
    ids = list(fault_server.chat(body["messages"]).encode())
    assert (decision.prompt_digest, decision.prompt_tokens) == (digest(ids), len(ids))
    assert (body["seed"], body["temperature"], body["top_p"], body["max_tokens"]) == (2**62 + 1, 0.4, 1.0, 512)
    assert (body["top_k"], body["repetition_penalty"], body["stop"]) == (-1, 1.0, ["x"])
    assert body["structured_outputs"] == {"choice": ["look", "go"]}


def test_a_server_that_does_not_constrain_is_found_out() -> None:
    options = ModelOptions(max_prompt_tokens=10**6, constrain=True)
    with serving() as server:
        server.reply = lambda prompt, seed: ("I would look around.", "stop")
        with pytest.raises(DataError, match="is no admissible action"):
            one(server, options)
        server.reply = lambda prompt, seed: ("loo", "length")  # cut off by the limit of tokens: the model's own outcome
        assert one(server, options).status == "truncated"


def test_episodes_are_spread_over_equal_servers_by_task_and_slot_alone() -> None:
    with serving() as first, serving() as second:
        policy = introduced(f"openai:{first.url},{second.url}#m")
        spread = []
        for _ in range(2):
            for slot in range(12):
                before = len(first.answered)
                decision = policy.decide([Request(TASK, slot, RECORD, (), 3, slot=slot)])[0]
                assert decision.text == answer(_prompt(first, second, before), slot)[0]
                spread.append(len(first.answered) > before)
    assert spread[:12] == spread[12:]
    assert 0 < sum(spread[:12]) < 12


def _prompt(first: Model, second: Model, before: int) -> str:
    return fault_server.chat((first if len(first.answered) > before else second).answered[-1]["messages"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("#m", "write openai:URL#MODEL"),
        ("ftp://host/v1#m", "write a server's URL"),
        ("http://user:pass@host/v1#m", "keys come from the environment"),
        ("http://127.0.0.1:1/v1,http://127.0.0.1:1/v1#m", "named twice"),
    ],
)
def test_malformed_servers_are_refused(argument: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(f"openai:{argument}", OPTIONS)


def test_an_unknown_model_is_refused_with_those_that_there_are() -> None:
    with serving() as server:
        with pytest.raises(UsageError, match="serves no model 'other' \\(it serves: m\\)"):
            introduced(f"openai:{server.url}#other")
        assert introduced(f"openai:{server.url}").describe()["model"] == "m"


def test_a_server_that_is_not_there_is_an_interruption() -> None:
    with pytest.raises(Interrupted, match=r"gave no good answer in \d+ tries"):
        introduced("openai:http://127.0.0.1:9/v1#m", ModelOptions(patience=0.1))


def test_a_constructor_asks_nothing_and_an_introduction_asks_once() -> None:
    with serving() as server:
        policy = make(f"openai:{server.url}#m", OPTIONS)
        assert server.posts == 0
        with pytest.raises(UsageError, match=r"await policy\.introduce\(\)"):
            policy.describe()
        asyncio.run(policy.introduce())
        assert server.posts == 11, (
            "/tokenize and /detokenize, /tokenize twice, a chat, and three prompts of the fingerprint twice"
        )
        asyncio.run(policy.introduce())
        assert server.posts == 11
        assert policy.describe()["spec"] == "openai:#m"


def test_a_policy_is_made_introduced_and_asked_inside_a_running_event_loop() -> None:
    async def notebook(url: str) -> tuple[Decision, Decision]:
        policy = make(f"openai:{url}#m", OPTIONS)
        assert isinstance(policy, Served)
        await policy.introduce()
        request = Request(TASK, 5, RECORD, (), 3)
        try:
            return policy.decide([request])[0], await policy.decide_one(request)
        finally:
            await policy.aclose()

    with serving() as server:
        alone, awaited = asyncio.run(notebook(server.url))
    assert alone == awaited


def test_a_study_is_prepared_and_run_inside_a_running_event_loop(faultless: tuple[str, Path], tmp_path: Path) -> None:
    async def notebook(url: str) -> None:
        run(url, tmp_path / "run")

    dialect, folder = faultless
    with serving(dialect=dialect) as server:
        asyncio.run(notebook(server.url))
    assert record_bytes(tmp_path / "run") == record_bytes(folder)


def test_servers_of_one_policy_that_differ_are_refused() -> None:
    with serving() as first, serving() as second:
        second.max_model_len = 5
        with pytest.raises(UsageError, match="must be equal"):
            introduced(f"openai:{first.url},{second.url}#m")


def test_an_answer_that_is_too_long_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST", 1000)
    with serving() as server:
        server.reply = lambda prompt, seed: ("x" * 2000, "stop")
        with pytest.raises(Interrupted, match="more than 1000 bytes"):
            one(server, ModelOptions(max_prompt_tokens=50_000, patience=0.1))


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/v1/other")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    paths: list[str] = []
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        with pytest.raises(UsageError, match=r"not an OpenAI-compatible server: HTTP 302"):
            introduced(f"openai:http://127.0.0.1:{server.server_address[1]}/v1#m")
        server.shutdown()
    assert paths == ["/v1/models"]


@pytest.mark.parametrize(
    ("url", "variables", "proxied"),
    [
        ("http://far.example/v1", {"http_proxy": "http://proxy:1"}, True),
        ("https://far.example/v1", {"http_proxy": "http://proxy:1"}, False),
        ("http://far.example/v1", {"http_proxy": "http://proxy:1", "no_proxy": "far.example"}, False),
        ("http://127.0.0.1:8000/v1", {"http_proxy": "http://proxy:1"}, False),
        ("http://far.example/v1", {}, False),
    ],
)
def test_a_proxy_of_the_environment_is_for_other_machines(
    url: str, variables: dict[str, str], proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            monkeypatch.delenv(spelling, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert client.has_proxy(url) == proxied


def test_urls_get_their_v1_and_nothing_else() -> None:
    assert check_url("http://h:8000") == "http://h:8000/v1"
    assert check_url("https://h/api/v1/") == "https://h/api/v1"
