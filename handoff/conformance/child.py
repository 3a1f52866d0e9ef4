"""The same episodes in a new interpreter with another hash seed."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handoff.canonical import canonical
from handoff.conformance.subject import Subject, fail, play, watch_calls
from handoff.environment import Environment
from handoff.guard.watch import Watch, alarm
from handoff.records import Task, from_json, to_json
from handoff.text import reason

CHILD_TIMEOUT_S = 600

_CHILD = (
    "import json, sys; request = json.load(sys.stdin); sys.path[:] = request['path']; "
    "import handoff.conformance.child as suite; suite.child(request); "
    # A thread of the adapter would keep the process.
    "import os; os._exit(0)"
)


def ask_child(subject: Subject) -> dict[str, Any]:
    """Play the episodes in a new interpreter.  A fork would inherit the state that must not matter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        request = {
            # The empty entry means the working folder, so a child in another folder would read it differently.
            "path": [os.path.abspath(entry) for entry in sys.path],
            "module": subject.cls.__module__,
            "qualname": subject.cls.__qualname__,
            "options": subject.options,
            "split": subject.split,
            "answer": str(path),
            "timeout": subject.timeout,
            "episodes": [
                {"task": to_json(e.task), "seed": e.seed, "actions": list(e.actions)} for e in subject.episodes()
            ],
        }
        other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        try:
            process = subprocess.run(
                [sys.executable, "-c", _CHILD],
                input=json.dumps(request).encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": other},
                timeout=CHILD_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            fail(f"a new process had not answered after {CHILD_TIMEOUT_S} s", "look for a wait that never ends")
        try:
            answer: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            lines = process.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            fail(f"a new process could not play the episodes: {lines[-1]:.300}", "make the class importable by name")
    if "error" in answer:
        fail(f"in a new process the adapter raised {answer['error']}", "do not rely on what this process has set up")
    return answer


def child(request: Mapping[str, Any]) -> None:
    """Play the episodes of ``request`` in this process and write the answer to its file."""
    answer: dict[str, Any]
    try:
        cls: Any = importlib.import_module(request["module"])
        for part in request["qualname"].split("."):
            cls = getattr(cls, part)
        with alarm(request["timeout"]):
            environment: Environment = cls(**request["options"])
        watch_calls(environment, "", Watch(), request["timeout"])
        answer = {
            "tasks": [to_json(task) for task in environment.tasks(request["split"])],
            "episodes": [
                [to_json(record) for record in play(environment, from_json(Task, e["task"]), e["seed"], e["actions"])]
                for e in request["episodes"]
            ],
        }
        environment.close()
    except BaseException as error:
        answer = {"error": reason(error)}
    Path(request["answer"]).write_bytes(canonical(answer))
