"""A real headless Chromium for tests, driven by its DevTools protocol over a pipe (no driver, no library)."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


#: A report page sets this at the end of its script.
READY = "document.documentElement?.dataset.ready === 'yes'"


def path() -> str:
    """Where Chromium is: ``HANDOFF_CHROMIUM``, or ``chromium`` on PATH; without one the test is skipped."""
    found = os.environ.get("HANDOFF_CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.skip("no Chromium: install one as `chromium` or set HANDOFF_CHROMIUM to it")
    return found


class Page:
    """One tab.  ``problems`` are console messages of level warning or error, exceptions, and refused loads;
    ``requests`` the addresses that it asked for."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, limit - time.monotonic()))
            assert ready, "Chromium did not answer"
            part = os.read(self._answers, 1 << 20)
            assert part, "Chromium went away"
            self._buffer += part
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(raw)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.problems.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def view(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """The size of the window in CSS pixels, and the preferred colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, file: Path, ready: str = "document.readyState === 'complete'", fragment: str = "") -> None:
        """Open a file from disk and wait until the expression ``ready`` holds."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=file.resolve().as_uri() + fragment)
        self.wait(ready)

    def show(self, page: Path, width: int, scheme: str = "light") -> None:
        """Open a report page and wait until its script is done; forget earlier problems and requests."""
        self.problems.clear()
        self.requests.clear()
        self.view(width, scheme=scheme)
        self.open(page, READY)

    def figures(self) -> dict[str, dict[str, float]]:
        """Place and size of each figure by its id, with the number of its ``parts``."""
        boxes: dict[str, dict[str, float]] = self.run(
            """Object.fromEntries([...document.querySelectorAll("figure svg")].map((figure) => {
              const box = figure.getBoundingClientRect();
              return [figure.id, { left: box.left, right: box.right, height: box.height, width: box.width,
                                   parts: figure.querySelectorAll("line, path, circle, polygon, rect").length }];
            }))"""
        )
        return boxes

    def check_alone(self, page: Path) -> None:
        """Assert that the shown page had no problem and requested nothing but itself."""
        assert self.problems == []
        assert {address.split("#")[0] for address in self.requests} <= {
            page.resolve().as_uri(), "about:blank", "data:,",
        }  # fmt: skip

    def check_figures(self, names: set[str], width: int) -> None:
        """Assert that the shown page has these figures, each drawn and inside the window together with its text."""
        boxes = self.figures()
        assert set(boxes) == names
        for name, box in boxes.items():
            assert box["parts"] >= 3, name
            assert box["height"] > 60, name
            assert box["width"] > 300, name
            assert 0 <= box["left"] < box["right"] <= width, name
        assert self.run("document.documentElement.scrollWidth") == width
        outside = self.run(
            """[...document.querySelectorAll("figure svg text")].filter((text) => {
              const box = text.getBoundingClientRect(), around = text.ownerSVGElement.getBoundingClientRect();
              return box.left < Math.max(0, around.left) - 1 || box.right > Math.min(innerWidth, around.right) + 1;
            }).map((text) => text.textContent)"""
        )
        assert outside == []

    def wait(self, condition: str) -> None:
        limit = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < limit, f"never became true: {condition}; {self.problems}"
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, which must be JSON-safe."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, file: Path, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def page() -> Iterator[Page]:
    """A fresh Chromium with one tab, ended afterwards."""
    program = path()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        to_read, commands = os.pipe()
        answers, to_write = os.pipe()
        # Chromium reads commands from 3 and writes answers to 4: out of the way of both first.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in (to_read, to_write)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (to_read, to_write, *high):
            os.close(fd)
        try:
            yield Page(commands, answers)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(commands)
            os.close(answers)
