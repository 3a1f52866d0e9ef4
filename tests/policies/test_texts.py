"""One rule for how token ids become text: a model in this process and one behind a server say the same.

The server has the checkpoint's own tokenizer and makes texts of ids by ``DecodeStream`` of the library ``tokenizers``,
as vLLM does; greedy ids come from transformers' own ``generate``.  ``test_vllm.py`` asks vLLM itself.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from handoff.policies import ModelOptions, Policy, Turn
from handoff.policies.bindings import make
from handoff.policies.doctor import requests
from handoff.policies.language.texts import ReplyText, ReplyTextAlone
from handoff.records import Decision

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from kit.checkpoints import TOKENIZERS, make_with  # noqa: E402

GREEDY = ModelOptions(temperature=0, max_new_tokens=10, dtype="float32", rows=1, device="cpu", template="turns")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=TOKENIZERS)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_with(TOKENIZERS[request.param](), tmp_path_factory.mktemp("checkpoint") / request.param, seed=1)


class Server(HTTPServer):
    """A checkpoint in the vLLM dialect."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(checkpoint)

    def ids(self, body: dict[str, Any]) -> list[int]:
        if "messages" in body:
            text = self.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        prompt = body["prompt"]
        return prompt if isinstance(prompt, list) else list(self.tokenizer(prompt)["input_ids"])

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        from tokenizers.decoders import DecodeStream

        ids = self.ids(body)
        if path == "/tokenize":
            return {"tokens": ids}
        generated = self.model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=body["max_tokens"])
        reply = generated[0, len(ids) :].tolist()
        ended = reply[-1] == self.tokenizer.eos_token_id
        stream = DecodeStream(ids=ids, skip_special_tokens=True)
        backend = self.tokenizer.backend_tokenizer
        text = "".join(stream.step(backend, token) or "" for token in (reply[:-1] if ended else reply))
        choice: dict[str, Any] = {"finish_reason": "stop" if ended else "length", "token_ids": reply}
        if "chat" in path:
            return {"choices": [choice | {"message": {"content": text}}], "prompt_token_ids": ids}
        return {"choices": [choice | {"text": text, "prompt_token_ids": ids}]}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        cards = [{"id": "m", "max_model_len": 4096}]
        self._send({"version": "test"} if self.path == "/version" else {"data": cards})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/detokenize":
            self._send({"error": {"message": "not found"}}, 404)
        else:
            self._send(self.server.answer(self.path, body))

    def _send(self, form: dict[str, Any], status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(form).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def conversation(policy: Policy) -> list[Decision]:
    """The decisions of four turns, each of which shows the replies before it as they were."""
    request = requests(1)[0]
    decisions: list[Decision] = []
    for _ in range(4):
        decision = policy.decide([request])[0]
        decisions.append(decision)
        turn = Turn(decision.action or "", request.record, decision.text)
        request = attrs.evolve(request, history=(*request.history, turn))
    return decisions


def test_a_conversation_has_equal_prompt_ids_and_texts_in_this_process_and_behind_a_server(checkpoint: Path) -> None:
    with Server(checkpoint) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            served = make(f"openai:http://127.0.0.1:{server.server_address[1]}/v1#m", GREEDY)
            asyncio.run(served.introduce())
            here, there = conversation(make(f"hf:{checkpoint}", GREEDY)), conversation(served)
        finally:
            server.shutdown()
    assert [decision.prompt_digest for decision in here] == [decision.prompt_digest for decision in there]
    assert here == there
    assert all(decision.text for decision in here)
    if checkpoint.name != "bytes":
        assert any(decision.text.startswith(" ") for decision in here), "the space that decoding alone would drop"


def test_a_run_that_was_begun_with_replies_decoded_alone_goes_on_so(checkpoint: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(checkpoint), AutoTokenizer.from_pretrained(checkpoint)
    policy = make(f"hf:{checkpoint}", GREEDY)
    assert policy.describe()["texts"] == "decoded after the prompt"
    assert policy.resume_from(policy.describe()) == []
    assert "goes on with texts of that kind" in " ".join(policy.resume_from({}))
    for decision in conversation(policy)[:1]:
        request = requests(1)[0]
        ids = policy.encoder.ids(policy.speaker.render(request))  # type: ignore[attr-defined]
        reply = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=10)[0, len(ids) :]
        assert decision.text == tokenizer.decode(reply, skip_special_tokens=True)


def test_constrained_replies_are_actions_and_their_manifest_names_no_rule_for_texts(checkpoint: Path) -> None:
    policy = make(f"hf:{checkpoint}", attrs.evolve(GREEDY, constrain=True))
    assert "texts" not in policy.describe()
    assert policy.resume_from({}) == []


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_texts_of_any_ids_are_those_of_the_library_that_vllm_uses(kind: str) -> None:
    from tokenizers.decoders import DecodeStream

    tokenizer, generator = TOKENIZERS[kind](), random.Random(1)
    count = tokenizer.get_vocab_size()
    for _ in range(300):
        prompt = generator.choices(range(count), k=generator.randrange(8))
        stream = DecodeStream(ids=prompt, skip_special_tokens=True)
        reply, expected = ReplyText(tokenizer.decode, prompt), ""
        for token in generator.choices(range(count), k=12):
            reply.add(token)
            expected += stream.step(tokenizer, token) or ""
            assert reply.text == expected


def _decode(ids: list[int]) -> str:
    return bytes(ids).decode("utf-8", "replace")


def test_an_incomplete_character_waits_and_is_dropped_at_the_end() -> None:
    reply = ReplyText(_decode, b"ab")
    texts = []
    for byte in "né€".encode()[:-1]:
        reply.add(byte)
        texts.append(reply.text)
    assert texts == ["n", "n", "né", "né", "né"]


def test_ids_that_change_the_text_before_them_start_it_anew() -> None:
    # A 0 after anything else changes all of the text.
    reply = ReplyText(lambda ids: "".join("xy"[one] for one in ids) if 0 not in ids[1:] else "longer text", [1])
    reply.add(1)
    reply.add(0)
    assert reply.text == "yx"


def test_of_several_stop_strings_the_one_that_is_complete_first_ends_the_reply() -> None:
    # One id makes both complete: "b" before "abc", as vLLM has it.
    reply = ReplyText(lambda ids: "".join(["x", "abc"][one] for one in ids), [], stops=("abc", "b"))
    reply.add(0)
    assert reply.stop is None
    reply.add(1)
    assert (reply.text, reply.stop) == ("xa", "b")


def test_a_reply_decoded_alone_has_no_prompt() -> None:
    reply = ReplyTextAlone(_decode, b"ab")
    reply.add(ord("c"))
    assert reply.text == "c"
