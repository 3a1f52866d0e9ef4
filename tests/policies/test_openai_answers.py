"""What a server says, and what it means for the decision: through a real HTTP server and the real policy.

``tests/data/answers`` has one answer per file: who gives it, the public document that shows it, and its outcome.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import fault_server
from kit.fault_server import Model, serving

from handoff.errors import Interrupted, UsageError
from handoff.policies import ModelOptions, Policy, Request
from handoff.policies.bindings import make
from handoff.policies.language.model import FINISH_TERMS
from handoff.policies.openai import client, refusals
from handoff.policies.openai.answers import BadAnswer, parse
from handoff.policies.openai.schema import Completion, Stated, chat
from handoff.records import STATUSES, Decision, Generation, Record, Task, from_json, to_json

FOLDER = Path(__file__).parents[1] / "data" / "answers"
SHAPES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}

TASK = Task("0" * 64, "t", "t", "s")
RECORD = Record("You see a room.", ("look", "go"), 0.0, False, False)
REQUEST = Request(TASK, 5, RECORD, (), 3)
OPTIONS = ModelOptions(patience=30.0, timeout=5.0)
GOOD = "<action>go</action>"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)


def introduced(server: Model, options: ModelOptions = OPTIONS) -> Policy:
    policy = make(f"openai:{server.url}#m", options)
    asyncio.run(policy.introduce())
    server.reply = lambda prompt, seed: (GOOD, "stop")
    server.bodies.clear()
    return policy


def decided(server: Model, *canned: tuple[int, Any], options: ModelOptions = OPTIONS, **headers: str) -> Decision:
    """The decision where the server's first answers are ``canned`` and all further ones are good."""
    policy = introduced(server, options)
    server.canned = [(status, as_bytes(body), headers) for status, body in canned]
    return policy.decide([REQUEST])[0]


def as_bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


@pytest.fixture(scope="module")
def plain() -> Iterator[Model]:
    """A server of another kind than vLLM, which does not state its context length."""
    with serving(dialect="plain") as server:
        server.max_model_len = None
        yield server


@pytest.mark.parametrize("name", SHAPES)
def test_a_recorded_answer_comes_to_what_its_file_says(plain: Model, name: str) -> None:
    shape = SHAPES[name]
    form = "text" if shape["endpoint"] == "completions" else "chat"
    options = ModelOptions(patience=30.0, prompt_form=form)
    body = shape["body"] if "body" in shape else shape["text"]
    outcome, headers = shape["comes_to"], shape.get("headers", {})

    def decide() -> Decision:
        return decided(plain, (shape["status"], body), options=options, **headers)

    if "refused" in outcome:
        with pytest.raises(UsageError) as refusal:
            decide()
        assert outcome["refused"] in str(refusal.value)
        assert ("; type --" in str(refusal.value)) == ("; type --" in outcome["refused"])
    elif "interrupted" in outcome:
        with pytest.raises(Interrupted, match=outcome["interrupted"]):
            decide()
    else:
        decision = decide()
        assert decision.status in STATUSES
        assert decision.generation is not None
        if outcome.get("retried"):
            assert (decision.text, decision.status) == (GOOD, "parsed"), "the good answer to the second request"
        else:
            expected = {"flags": [], "reasoning": None, "refusal": None, **outcome["decision"]}
            flat = {**to_json(decision.generation), **to_json(decision)}
            assert {key: flat.get(key) for key in expected} == expected
            assert (decision.action == "look") == (expected["status"] == "parsed")
    requests = [body for _, body in plain.bodies]
    assert len(requests) == (2 if outcome.get("retried") else 1)
    assert len(set(requests)) == 1, "a retry repeats the request byte for byte"


def test_the_recorded_answers_cover_every_server_and_outcome() -> None:
    servers = {shape["server"] for shape in SHAPES.values()}
    named = {"OpenAI API", "vLLM", "SGLang", "llama.cpp server", "Text Generation Inference", "Ollama", "LM Studio"}
    assert named <= servers
    assert any("gateway" in server for server in servers)
    statuses = {shape["comes_to"]["decision"]["status"] for shape in SHAPES.values() if "decision" in shape["comes_to"]}
    assert {"parsed", "truncated", "empty", "no_action", "context_overflow", "refused"} <= statuses
    assert all(shape["source"] and "//" not in shape["source"] for shape in SHAPES.values())


@pytest.mark.parametrize("name", ["unknown_finish_object", "unknown_content_number", "unknown_usage_huge"])
def test_an_answer_that_stays_unknown_is_owed_and_never_the_models(plain: Model, name: str) -> None:
    answers = [(200, SHAPES[name]["body"])] * 50
    with pytest.raises(Interrupted, match="gave no good answer in 3 tries"):
        decided(plain, *answers, options=ModelOptions(patience=0.0))
    plain.canned.clear()


@pytest.mark.parametrize("depth", [100, 400, 900, 100_000])
@pytest.mark.parametrize("key", [None, "sk-secret/0123456789"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_is_nested_deep_is_a_bad_one(
    plain: Model, monkeypatch: pytest.MonkeyPatch, depth: int, key: str | None, status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key or "")
    nested = "[" * depth + r'"\"' + "]" * depth
    if status == 200:
        for part in ('"finish_reason": "stop"', '"index": 0', '"prompt_tokens": 20'):
            body = json.dumps(SHAPES["openai_success"]["body"])
            assert part in body
            assert decided(plain, (200, body.replace(part, f"{part.split(':')[0]}: {nested}"))).text == GOOD
    else:
        with pytest.raises(UsageError, match="HTTP 400"):
            decided(plain, (400, f'{{"error": {nested}}}'))


def overflow(**more: Any) -> dict[str, Any]:
    message = "This model's maximum context length is 100000 tokens."
    return {"error": {"message": message, "code": "context_length_exceeded", **more}}


def test_an_overflow_that_the_known_context_length_contradicts_is_a_bad_answer(plain: Model) -> None:
    prompt = 4 * 2000 + 4096 + 512  # more than the prompt, any chat template and the reply can have
    with serving(dialect="plain") as server:
        for length, status in ((prompt, "parsed"), (600, "context_overflow")):
            server.max_model_len = length
            assert decided(server, (400, overflow())).status == status
    assert decided(plain, (400, overflow(n_ctx=prompt))).status == "parsed"
    assert decided(plain, (400, overflow(n_ctx=600))).status == "context_overflow"


@pytest.mark.parametrize("answer", [SHAPES["vllm_overflow"], SHAPES["gateway_moderation"]], ids=["overflow", "filter"])
def test_from_a_server_that_gives_token_ids_an_error_ends_in_the_same_outcome_with_the_prompts_ids(
    answer: dict[str, Any],
) -> None:
    with serving() as server:
        server.max_model_len = None
        error = (answer["status"], answer["body"])
        decision = decided(server, error, error)
        paths = [path for path, _ in server.bodies]
    assert paths == ["/v1/chat/completions", "/tokenize", "/v1/completions"]
    assert decision.status == answer["comes_to"]["decision"]["status"]
    assert decision.prompt_digest is not None
    assert decision.prompt_tokens


def test_a_refused_reply_yields_no_action_and_keeps_its_words_apart(plain: Model) -> None:
    decision = decided(plain, (200, SHAPES["openai_content_filter"]["body"]))
    assert (decision.text, decision.action, decision.status) == ("<action>look</act", None, "refused")
    whole = json.loads(json.dumps(SHAPES["openai_refusal"]["body"]))
    whole["choices"][0]["message"]["content"] = "<action>look</action>"
    decision = decided(plain, (200, whole))
    assert (decision.text, decision.action, decision.status) == ("<action>look</action>", None, "refused")
    assert decision.generation is not None
    assert decision.generation.refusal == "I'm sorry, I cannot assist with that request."


def test_a_record_without_a_refusal_keeps_the_form_that_it_had() -> None:
    generation = Generation("0" * 64, "stop", None, 3, None, 512, None)
    form = to_json(generation)
    assert list(form) == ["rendered", "finish", "stop", "tokens", "digest", "max_tokens", "reasoning"]
    assert from_json(Generation, form) == generation
    refused = Generation("0" * 64, "stop", None, 3, None, 512, None, "No.")
    assert from_json(Generation, to_json(refused)) == refused


def test_every_finish_reason_has_a_term_of_the_toolkit() -> None:
    assert set(FINISH_TERMS.values()) == {"stop", "length", "tool_calls", "content_filter"}


def test_the_answering_model_and_the_servers_fingerprint_are_read() -> None:
    body = {**SHAPES["openai_success"]["body"], "model": "m-2026-01-01"}
    completion = chat(parse(json.dumps(body).encode()))
    assert isinstance(completion, Completion)
    assert (completion.model, completion.system_fingerprint) == ("m-2026-01-01", "fp_1")
    for key in ("model", "system_fingerprint"):
        completion = chat(parse(json.dumps({**body, key: None}).encode()))
        assert getattr(completion, key) is None


@pytest.mark.parametrize("ids", ["[1, -5]", "[12345678901]", "[1.0]", "[true]", "{}"])
def test_token_ids_that_cannot_be_are_none(ids: str) -> None:
    answer = parse(f'{{"tokens": {ids}}}'.encode())
    assert answer.token_ids("tokens", answer.form) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(list(FINISH_TERMS)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "message", "error", "code", "detail", "loc", "raw"]), inner)
    ),
    max_leaves=6,
)
WHOLE = [shape["body"] for shape in SHAPES.values() if shape["status"] == 200 and "body" in shape]


@given(st.sampled_from(WHOLE), st.lists(st.integers(0, 20), min_size=1, max_size=5), JSON)
def test_an_answer_with_any_part_exchanged_is_read_in_known_terms_or_is_a_bad_one(
    whole: Any, path: list[int], value: Any
) -> None:
    form = json.loads(json.dumps(whole))
    place = form
    for step in path:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[step % len(keys)] if keys else None
        if key is None or not (isinstance(place[key], dict | list) and place[key]) or step == path[-1]:
            break
        place = place[key]
    if key is not None:
        place[key] = value
    try:
        completion = chat(parse(json.dumps(form).encode()))
    except (BadAnswer, Stated):
        return
    output = completion.output
    assert output.finish in FINISH_TERMS.values()
    assert isinstance(output.text, str)
    assert all(isinstance(part, str | None) for part in (output.reasoning, output.refusal, output.stop))
    assert all(count is None or 0 <= count <= 10**9 for count in (output.tokens, completion.prompt_tokens))


@given(st.sampled_from([200, 400, 403, 422, 429, 500]), JSON, st.sampled_from([None, "error", "detail"]))
def test_any_error_of_a_server_has_a_verdict(status: int, value: Any, key: str | None) -> None:
    complaint = refusals.read(status, value if key is None else {key: value}, "raw")
    assert complaint.verdict in refusals.Verdict
    assert complaint.message
    assert len(complaint.message) <= 300


# -- the field of the limit --


def test_the_limit_of_tokens_goes_by_the_name_that_was_asked_for_in_chats_only(plain: Model) -> None:
    named = ModelOptions(token_limit_field="max_completion_tokens", max_new_tokens=77)
    policy = introduced(plain, named)
    policy.decide([REQUEST])
    body = json.loads(plain.bodies[-1][1])
    assert body["max_completion_tokens"] == 77
    assert "max_tokens" not in body
    assert policy.describe()["sampling"]["token_limit_field"] == "max_completion_tokens"
    policy = introduced(plain, ModelOptions(prompt_form="text", token_limit_field="max_completion_tokens"))
    policy.decide([REQUEST])
    assert json.loads(plain.bodies[-1][1])["max_tokens"] == 512
    assert "token_limit_field" not in ModelOptions().sampling()


def test_one_request_and_two_end_alike_under_either_name() -> None:
    decisions = []
    with serving() as server:
        for field in ("max_tokens", "max_completion_tokens"):
            policy = introduced(server, ModelOptions(token_limit_field=field))
            decisions.append(policy.decide([REQUEST])[0])
            assert field in json.loads(server.bodies[-1][1])
    assert decisions[0] == decisions[1]


# -- secrets --

KEY = "sk-secret/0123456789"


@pytest.mark.parametrize("escape", [lambda text: text, lambda text: text.replace("/", "\\/").replace("k", "\\u006b")])
def test_a_key_that_the_server_repeats_is_in_no_part_of_a_decision(
    plain: Model, monkeypatch: pytest.MonkeyPatch, escape: Callable[[str], str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = json.dumps(SHAPES["vllm_reasoning"]["body"]).replace("I must look.", "KEY, I must look.")
    decision = decided(plain, (200, body.replace("look</action>", "KEY</action> KEY").replace("KEY", escape(KEY))))
    assert plain.keys >= {f"Bearer {KEY}"}
    assert decision.text == "<action>***</action> ***"
    assert decision.generation is not None
    assert decision.generation.reasoning == "***, I must look."
    assert KEY not in json.dumps(to_json(decision)).replace("\\/", "/")


@pytest.mark.parametrize("status", [400, 401, 402, 429, 200])
@pytest.mark.parametrize("blanks", [0, 290, 1990])
def test_a_key_that_the_server_repeats_is_in_no_message(
    plain: Model, monkeypatch: pytest.MonkeyPatch, status: int, blanks: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    error = {"error": {"message": "x" * min(blanks, 290) + " " * blanks + f"you sent Bearer {KEY}", "code": KEY}}
    with pytest.raises((UsageError, Interrupted)) as failure:
        decided(plain, *[(status, error)] * 3, options=ModelOptions(patience=0.0), Location=KEY)
    plain.canned.clear()
    assert "sk-secret" not in str(failure.value)
    assert "0123456789" not in str(failure.value)


def test_a_key_in_what_the_server_says_of_its_model_is_not_in_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(fault_server, "MODEL_ROOT", f"org/{KEY}")
    with serving(dialect="plain") as server:
        facts = json.dumps(dict(introduced(server).describe()))
    assert "org/***" in facts
    assert KEY not in facts


def test_a_short_key_is_a_placeholder_and_changes_no_reply(plain: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "go")
    assert decided(plain).text == GOOD


def test_a_key_of_digits_changes_no_number(plain: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "1234567890")
    body = json.dumps({**SHAPES["openai_success"]["body"], "created": 1234567890})
    assert decided(plain, (200, body)).text == "<action>look</action>"
    body = body.replace("look", "1234567890")
    assert decided(plain, (200, body)).text == "<action>***</action>"


# -- waiting --


class Clock:
    """A clock that only waiting moves, and the moments of all requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, server: Model) -> None:
        self.now = start = time.monotonic()
        self.asked: list[float] = []
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            self.now += seconds
            await real(0)

        def plan(number: int) -> str | None:
            self.asked.append(self.now - start)
            return server_fault[0]

        server_fault: list[str | None] = [None]
        self.fault = server_fault
        monkeypatch.setattr(client.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(client.asyncio, "sleep", sleep)
        monkeypatch.setattr(client, "FIRST_WAIT", 0.25)
        server.plan = plan


@pytest.mark.parametrize("patience", [0.0, 5.0, 15.0, 20.0, 120.0])
@pytest.mark.parametrize("fault", ["503", "refuse", "not json"])
def test_patience_lasts_as_long_as_stated_and_its_end_has_a_last_try(
    monkeypatch: pytest.MonkeyPatch, patience: float, fault: str
) -> None:
    with serving(dialect="plain") as server:
        policy = introduced(server, ModelOptions(patience=patience))
        with monkeypatch.context() as patch:
            clock = Clock(patch, server)
            clock.fault[0] = fault
            with pytest.raises(Interrupted, match="gave no good answer"):
                policy.decide([REQUEST])
    assert len(clock.asked) >= 3
    if patience:
        assert clock.asked[-1] == pytest.approx(patience)
        assert all(moment < patience - 1e-6 for moment in clock.asked[:-1])


@pytest.mark.parametrize("header", ["inf", "-inf", "nan", "-1", "-0.5", "soon", "", "1" * 400, "Fri, 99 Foo 2099"])
def test_a_retry_after_that_makes_no_sense_is_ignored(plain: Model, header: str) -> None:
    assert client.retry_after(header) is None
    slow = SHAPES["openai_rate_limit"]["body"]
    assert decided(plain, (429, slow), **{"Retry-After": header}).text == GOOD


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("1000000000", r"a wait of 1000000000 s \(about 11,574 days\)"),
        ("1e9", r"a wait of 1000000000 s"),
        (formatdate(4070908800, usegmt=True), r"a wait of \d{9,10} s \(about \d\d,\d{3} days\)"),  # in the year 2099
        ("31", r"a wait of 31 s, which is more than --patience 30"),
    ],
)
def test_a_server_that_asks_for_a_long_wait_ends_the_run_with_its_request(
    plain: Model, header: str, words: str
) -> None:
    with pytest.raises(Interrupted, match=rf"asks by Retry-After for {words}.*HTTP 429"):
        decided(plain, (429, SHAPES["openai_rate_limit"]["body"]), **{"Retry-After": header})
    assert len(plain.bodies) == 1


def test_a_bad_answer_names_what_is_wrong_with_it() -> None:
    for name, words in {
        "unknown_finish_list": "finish reason",
        "unknown_choices_object": "no choices",
        "unknown_two_choices": "2 choices",
        "unknown_usage_bool": "True as prompt_tokens",
        "unknown_content_strings": "unknown type",
    }.items():
        with pytest.raises(BadAnswer, match=words):
            chat(parse(json.dumps(SHAPES[name]["body"]).encode()))


@pytest.mark.parametrize(
    "url",
    ["http://[::1/v1", "http://[foo]/v1", "http://ex\u2100ample.com/v1", "http://a..b/v1", f"http://{'a' * 70}/v1"],
)
def test_a_url_that_names_no_host_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="write a server's URL as"):
        client.check_url(url)


@pytest.mark.parametrize("length", [-5, 0, True, 1.5, "4096", 10**40, [1]])
def test_a_context_length_that_none_can_be_is_not_known_and_no_overflow(length: Any) -> None:
    with serving() as server:
        server.stated_length = length
        policy = introduced(server)
        assert policy.describe()["engine"]["max_model_len"] is None
        assert policy.decide([REQUEST])[0].status == "parsed"


def test_a_description_holds_no_more_words_of_a_server_than_an_audit_takes() -> None:
    with serving() as server:
        server.root, server.version = "x" * 10**6, "9" * 10**6
        engine = introduced(server).describe()["engine"]
    assert engine["root"] is None
    assert engine["version"] == "9" * 1000


def test_a_count_of_prompt_tokens_beyond_what_the_prompt_can_have_is_no_overflow(plain: Model) -> None:
    body = {**SHAPES["openai_success"]["body"], "usage": {"prompt_tokens": 5_000_000, "completion_tokens": 5}}
    assert decided(plain, (200, body)).text == GOOD


def test_a_key_that_a_server_splits_over_two_parts_is_hidden(plain: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-0123")
    body = json.loads(json.dumps(SHAPES["openai_success"]["body"]))
    body["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "<action>look</action> secret-"},
        {"type": "text", "text": "key-0123"},
    ]
    assert decided(plain, (200, body)).text == "<action>look</action> ***"


def test_a_rejected_key_is_no_rate_limit_in_any_words(plain: Model) -> None:
    with pytest.raises(UsageError, match="wants an API key"):
        decided(plain, (401, {"error": {"message": "Rate limit reached for requests without a key"}}))
