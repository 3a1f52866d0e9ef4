"""A real HTTP server in the test process that speaks the vLLM dialect, answers by a pure function of the request, and
suffers what servers suffer.

Its "model" picks among commands of the prompt by a hash of (prompt ids, seed), so a reply depends on the request alone.
Its tokenizer is bytes: token id = byte value.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = (
    "500",
    "503",
    "429",
    "429 date",
    "refuse",
    "drop",
    "half",
    "empty body",
    "not json",
    "no choices",
    "null unfinished",
    "slow",
)


#: Where the server says that its model comes from.
MODEL_ROOT = "/some/where/m"


class Model(ThreadingHTTPServer):
    """``plan`` says for each POST (numbered from 0) which fault it meets, or ``None``.

    In the vLLM dialect the thinking is taken out of chat replies where ``apart`` is set, as by a reasoning parser.
    Requests for replies get the answers in ``canned`` (status, body, headers) first, in order.  ``delay`` says how many
    seconds a request takes.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, plan: Callable[[int], str | None], dialect: str = "vllm", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.plan, self.dialect = plan, dialect
        self.max_model_len: int | None = 100_000
        #: What the card of the model states in its place, if anything.
        self.stated_length: Any = None
        #: What it calls the source of its weights, and its own version.
        self.root, self.version = MODEL_ROOT, "0.0.test"
        self.canned: list[tuple[int, bytes, dict[str, str]]] = []
        self.delay: Callable[[], float] = lambda: 0.0
        self.gets = 0
        self.posts = self.faults = 0
        self.answered: list[dict[str, Any]] = []
        self.answered_bytes: list[bytes] = []
        self.apart = False
        #: The chat template: text of messages and ``chat_template_kwargs``.
        self.chat: Callable[..., str] = chat
        self.bodies: list[tuple[str, bytes]] = []
        self.keys: set[str | None] = set()
        self.dead = False
        #: Further entries of every answer to a request for generation.
        self.says: dict[str, Any] = {}
        self.reply: Callable[[str, int], tuple[str | None, str]] | None = None
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # broken connections are what this server is for


@contextmanager
def serving(plan: Callable[[int], str | None] = lambda n: None, **options: Any) -> Iterator[Model]:
    server = Model(plan, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(prompt: str, seed: int) -> tuple[str, str]:
    """The reply of the "model": one of the commands listed in the prompt, sometimes nonsense, sometimes nothing."""
    commands = [
        line[2:] for line in prompt.split("Commands that you can use now:")[-1].splitlines() if line[:2] == "- "
    ] or ["look"]
    generator = random.Random(hashlib.sha256(f"{prompt}|{seed}".encode()).digest())
    luck = generator.random()
    if luck < 0.05:
        return "", "stop"
    if luck < 0.1:
        return "I would rather not", "stop"
    if luck < 0.15:
        return "<think>so many", "length"
    return f"<think>hm</think><action>{commands[int(generator.random() * len(commands))]}</action>", "stop"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits for 40 ms
    server: Model

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        model = self.server
        model.gets += 1
        if self.path == "/v1/models":
            card: dict[str, Any] = {"id": "m", "root": model.root}
            length = model.max_model_len if model.stated_length is None else model.stated_length
            if length is not None:
                card["max_model_len"] = length
            self._send(200, {"data": [card]})
        elif self.path == "/version" and model.dialect == "vllm":
            self._send(200, {"version": model.version})
        elif model.dialect == "pages":
            self._raw(200, b"<!doctype html><title>Gateway</title>", {"Content-Type": "text/html"})
        elif self.path == "/health":
            self._send(503 if model.dead else 200, {})
        else:
            self._send(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        model = self.server
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        with model.lock:
            number = model.posts
            model.posts += 1
            model.bodies.append((self.path, raw))
            model.keys.add(self.headers.get("Authorization"))
            fault = "dead" if model.dead else model.plan(number)
            model.faults += fault is not None
            canned = model.canned.pop(0) if model.canned and self.path.endswith("completions") else None
        time.sleep(model.delay())
        if canned is not None:
            self._raw(*canned)
            return
        if fault == "refuse":
            self._abort()
            return
        if fault in ("500", "503", "dead"):
            status = 503 if fault == "503" else 500
            message = "EngineCore encountered an issue" if fault == "dead" else "try again"
            self._send(status, {"error": {"message": message, "code": status}})
            return
        if fault in ("429", "429 date"):
            wait = "0.05" if fault == "429" else formatdate(time.time() + 1, usegmt=True)
            self._send(429, {"error": {"message": "slow down"}}, {"Retry-After": wait})
            return
        if fault == "slow":
            time.sleep(1.2)
        status, form = self._answer(raw)
        self._fail_or_send(fault, status, form)

    def _fail_or_send(self, fault: str | None, status: int, form: dict[str, Any]) -> None:
        data = json.dumps(form).encode()
        if fault in ("drop", "half"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if fault == "half" else b"")
            self.wfile.flush()
            self._abort()
        elif fault == "empty body":
            self._raw(200, b"")
        elif fault == "not json":
            self._raw(200, b"<html>gateway</html>")
        elif fault == "no choices":
            self._send(200, {"choices": []})
        elif fault == "null unfinished":
            message = {"content": None}
            self._send(200, {"choices": [{"text": None, "message": message, "finish_reason": None}], "tokens": None})
        else:
            self._send(status, form)

    def _answer(self, raw: bytes) -> tuple[int, dict[str, Any]]:
        model, body = self.server, json.loads(raw)
        if self.path == "/tokenize" and model.dialect == "vllm":
            text = body["prompt"] if "prompt" in body else self._chat(body)
            return 200, {"tokens": list(text.encode()), "count": len(text.encode())}
        if self.path == "/detokenize" and model.dialect == "vllm":
            return 200, {"prompt": bytes(body["tokens"]).decode()}
        if self.path not in ("/v1/completions", "/v1/chat/completions"):
            return 404, {"error": {"message": "not found"}}
        prompt = self._chat(body) if "messages" in body else body["prompt"]
        text = bytes(prompt).decode() if isinstance(prompt, list) else prompt
        limit = body["max_completion_tokens"] if "max_completion_tokens" in body else body["max_tokens"]
        if model.max_model_len is not None and len(text.encode()) + limit > model.max_model_len:
            return 400, {"error": {"message": f"This model's maximum context length is {model.max_model_len} tokens."}}
        reply, finish = (model.reply or answer)(text, body["seed"])
        ids = list((reply or "").encode())
        with model.lock:
            model.answered.append(body)
            model.answered_bytes.append(raw)
        form: dict[str, Any] = {}
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "stop_reason": None}
        if self.path == "/v1/completions":
            choice |= {"text": reply}
            if model.dialect == "vllm":
                choice |= {"token_ids": ids, "prompt_token_ids": list(text.encode())}
        else:
            choice |= {"message": {"role": "assistant", "content": reply}}
            if model.dialect == "vllm":
                choice |= {"token_ids": ids}
                form["prompt_token_ids"] = list(text.encode())
                choice["message"] |= {"reasoning": None, "tool_calls": []}
                if model.apart:
                    self._take_apart(choice, bool(body.get("include_reasoning", True)))
        usage = {"prompt_tokens": len(text.encode()), "completion_tokens": len(ids)}
        return 200, {"choices": [choice], "usage": usage, **form, **model.says}

    def _chat(self, body: dict[str, Any]) -> str:
        return self.server.chat(body["messages"], **body.get("chat_template_kwargs", {}))

    @staticmethod
    def _take_apart(choice: dict[str, Any], include: bool) -> None:
        """What vLLM makes of a reply with a reasoning parser."""
        thinking, _, rest = (choice["message"]["content"] or "").rpartition("</think>")
        choice["message"] |= {"content": rest, "reasoning": thinking.removeprefix("<think>") if include else None}
        if not include:
            choice["token_ids"] = None

    def _send(self, status: int, form: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._raw(status, json.dumps(form).encode(), headers)

    def _raw(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _abort(self) -> None:
        # A reset rather than an orderly end.
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True


def chat(messages: list[dict[str, str]]) -> str:
    """The prompt that the chat template makes."""
    return "".join(f"<{m['role']}>{m['content']}\n" for m in messages) + "<assistant>"
