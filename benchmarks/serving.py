"""A run's throughput against one model server, beside a bare client that sends the same prompts.

    python benchmarks/serving.py --server URL#MODEL [--episodes 64] [--budget 10] [--new-tokens 64] [--rounds 3]

`handoff run` plays `--episodes` FrozenLake games at once with the served model as reacher, every reply `--new-tokens`
long at most.  Then a bare asyncio client sends exactly the prompts that the run sent (token ids, seeds and limits are
taken from the run's records), as many at once, doing nothing else.  Both are repeated in turn, with the server's prefix
cache emptied before each (of a vLLM server that was started with VLLM_SERVER_DEV_MODE=1; others keep theirs, which
favours the bare client).  Tokens per second are generated tokens over the wall time of the run's reach phase, or of the
client.  The CPU time is that of the run's own process in that phase: rendering, HTTP, parsing, storing, all episodes'
coroutines; environments live in worker processes of their own.

`--quick`: 16 episodes, 4 actions, one round.  The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from handoff.audit import requests_of
from handoff.policies import ModelOptions, make
from handoff.policies.openai_server import OpenAIServer
from handoff.progress import Silent
from handoff.protocols import frontier
from handoff.study import load


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, metavar="URL#MODEL")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.episodes, given.budget, given.rounds = 16, 4, 1
    options = ModelOptions(
        max_new_tokens=given.new_tokens, concurrency=given.episodes, history=4, action_format="last_line"
    )
    policy = make(f"openai:{given.server}", options)
    assert isinstance(policy, OpenAIServer)
    if not policy.full:
        print("this benchmark needs a server that gives token ids (vLLM)", file=sys.stderr)
        return 2
    ours, bare, cpu = [], [], []
    for number in range(given.rounds):
        asyncio.run(empty_cache(policy))
        tokens, seconds, own, bodies = run(given, options, number)
        ours.append(tokens / seconds)
        cpu.append(own)
        prompts = asyncio.run(tokenized(policy, bodies))
        asyncio.run(empty_cache(policy))
        theirs, seconds = asyncio.run(client(policy, prompts, given.episodes))
        bare.append(theirs / seconds)
        print(
            f"round {number + 1}: {len(bodies)} decisions, {tokens} tokens; run {ours[-1]:.0f}, bare client "
            f"{bare[-1]:.0f} tokens/s ({theirs} tokens); {own:.2f} ms of CPU time a decision"
        )
        assert theirs == tokens, "the same requests gave another number of tokens"
    result = {
        "ratio_vs_bare_client": round(statistics.median(a / b for a, b in zip(ours, bare, strict=True)), 3),
        "cpu_ms_per_decision": round(statistics.median(cpu), 3),
        "tokens_per_second": round(statistics.median(ours)),
        "bare_tokens_per_second": round(statistics.median(bare)),
        "episodes": given.episodes,
        "new_tokens": given.new_tokens,
        "rounds": given.rounds,
    }
    print(json.dumps(result))
    return 0


def run(given: Any, options: ModelOptions, number: int) -> tuple[int, float, float, list[dict[str, Any]]]:
    """One run: generated tokens, seconds of its reach phase, CPU milliseconds a decision, and what it asked."""
    tasks = max(2, given.episodes // 4)
    config = frontier.Config(
        split="test", reachers=("m",), solvers=("random",), tasks=tasks, slots=given.episodes // tasks,
        reach_budget=given.budget, run_seed=number,
    )  # fmt: skip
    specs = {"m": f"openai:{given.server}", "random": "random"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        prepared = frontier.prepare("frozenlake", {}, config, specs, {"m": options})
        clock: dict[str, float] = {}
        progress = Clocked(clock)
        prepared.run(folder, given.workers, progress, concurrency=given.episodes)
        study = load(folder)
    policy = prepared.policies["m"]
    assert isinstance(policy, OpenAIServer)
    tokens, asked = 0, []
    for trajectory in study.trajectories.values():
        task = study.task(trajectory.task)
        requests = requests_of(task, trajectory.reset, (), trajectory.steps, given.budget)
        for request, step in zip(requests, trajectory.steps, strict=True):
            generation = step.decision.generation
            assert generation is not None
            tokens += generation.tokens or 0
            prompt = policy.speaker.render(request)
            assert prompt.digest() == generation.rendered
            asked.append({"messages": prompt.chat(), "seed": step.decision.seed, "max_tokens": generation.max_tokens})
    return tokens, clock["wall"], 1000 * clock["cpu"] / len(asked), asked


class Clocked(Silent):
    """Notes wall-clock and CPU seconds of the reach phase."""

    def __init__(self, clock: dict[str, float]) -> None:
        self._clock = clock

    def phase(self, name: str, total: int) -> Any:
        inner = super().phase(name, total)
        return _Timed(inner, self._clock) if name == "reach" else inner


class _Timed:
    def __init__(self, inner: Any, clock: dict[str, float]) -> None:
        self._inner, self._clock = inner, clock

    def __enter__(self) -> Any:
        self._started = time.perf_counter(), time.process_time()
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self._clock["wall"] = time.perf_counter() - self._started[0]
        self._clock["cpu"] = time.process_time() - self._started[1]
        return self._inner.__exit__(*error)


async def tokenized(policy: OpenAIServer, asked: list[dict[str, Any]]) -> list[bytes]:
    """The request bodies that the run sent, as bytes."""
    server, bodies = policy.servers[0], []
    sampling = policy.options
    try:
        for one in asked:
            body = {"model": policy.model, "messages": one["messages"], "add_generation_prompt": True}
            ids = await server.ask(f"{server.root}/tokenize", body, lambda form: form["tokens"])
            bodies.append(
                json.dumps(
                    {
                        "model": policy.model, "prompt": ids, "max_tokens": one["max_tokens"], "seed": one["seed"],
                        "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": -1, "min_p": 0.0,
                        "repetition_penalty": 1.0, "return_token_ids": True,
                    }
                ).encode()
            )  # fmt: skip
    finally:
        await policy.aclose()
    return bodies


async def client(policy: OpenAIServer, bodies: list[bytes], concurrency: int) -> tuple[int, float]:
    """A bare client: generated tokens and seconds for ``bodies``, ``concurrency`` at once."""
    url = f"{policy.servers[0].url}/completions"
    queue = iter(bodies)
    tokens = 0

    async def lane(session: aiohttp.ClientSession) -> None:
        nonlocal tokens
        for body in queue:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                answer = json.loads(await response.read())
                tokens += len(answer["choices"][0]["token_ids"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = time.perf_counter()
        await asyncio.gather(*(lane(session) for _ in range(concurrency)))
        return tokens, time.perf_counter() - started


async def empty_cache(policy: OpenAIServer) -> None:
    url = f"{policy.servers[0].root}/reset_prefix_cache"
    async with aiohttp.ClientSession() as session, session.post(url) as response:
        await response.read()


if __name__ == "__main__":
    sys.exit(main())
