"""A real HTTP server whose model calls tools by the interface for them, and adds numbers up (:mod:`kit.talking`)."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: A message of the assistant and a finish reason, from the body of a request.
Model = Callable[[dict[str, Any]], tuple[dict[str, Any], str]]


def adder(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Ask for the number of every name, then answer the sum; without tools, say "ok"."""
    if "tools" not in body:
        return {"content": "ok"}, "stop"
    messages = body["messages"]
    question = next(message["content"] for message in messages if message["role"] == "user")
    names = re.findall("ash|birch|cedar|elm", question)
    told = [message["content"] for message in messages if message["role"] == "tool"]
    if len(told) == len(names):
        return {"content": f"<answer>{sum(map(int, told))}</answer>"}, "stop"
    arguments = json.dumps({"name": names[len(told)]})
    call = {"id": f"x{len(told)}", "type": "function", "function": {"name": "Number", "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}, "tool_calls"


class ToolServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self.bodies: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def tool_server(model: Model = adder) -> Iterator[ToolServer]:
    server = ToolServer(model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ToolServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send(200, {"object": "list", "data": [{"id": "m", "object": "model"}]})
        else:
            self._send(404, {"error": {"message": "no such page"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": "no such page"}})
            return
        self.server.bodies.append(body)
        message, finish = self.server.model(body)
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        self._send(
            200,
            {
                "id": "1", "object": "chat.completion", "model": "m", "choices": [choice],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            },
        )  # fmt: skip

    def _send(self, status: int, form: dict[str, Any]) -> None:
        data = json.dumps(form).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
