"""A run's throughput against one model server, beside a bare client that sends the same requests.

    python benchmarks/serving.py --server URL#MODEL [--episodes 64] [--budget 10] [--new-tokens 64] [--rounds 9]

`handoff run` plays `--episodes` FrozenLake games at once with the served model as reacher, every reply `--new-tokens`
long at most.  The bare client is an asyncio loop with an aiohttp session that posts the very bytes that the run posted,
as many at once, reads the answers as JSON, counts their tokens, and does nothing else.  After one run that is not
counted, each round has a run and a bare client, which of them first changing from round to round, with the server's
prefix cache emptied before each (of a vLLM server that was started with VLLM_SERVER_DEV_MODE=1; others keep theirs).
All rounds have the same seeds, so all of them ask for the same tokens.

Tokens per second are generated tokens over the time from the first request to the last answer.  A round's ratio is that
of its two rates; reported is the median over rounds with the interval of order statistics that holds the true median
with at least 95 % confidence (none below 6 rounds), so that a busy machine shows as a wide interval.

The CPU time of a decision is that of the run's whole process, all its threads, user and system, over the whole reach
phase: rendering, HTTP, parsing, checks, digests, seeds, records, journal, the start of the environment workers.
Nothing is subtracted.  Environments live in worker processes of their own.  The bare client's own CPU time a request
stands beside it: so much of a decision is the price of any HTTP client of this kind.

`--prompt-form text` is for a checkpoint without a chat template, such as those that ship:

    vllm serve artifacts/checkpoints/sft --served-model-name sft --dtype float32 --max-model-len 512
    python benchmarks/serving.py --server http://127.0.0.1:8000/v1#sft --prompt-form text --new-tokens 16

`--constrain` lets the model choose among the admissible commands, so that every decision moves its environment (a
random-weight model's free text seldom does).  `--quick`: 16 episodes, 4 actions, two rounds.  The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from handoff.episodes.start import Where
from handoff.errors import HandoffError
from handoff.policies import ModelOptions
from handoff.policies.bindings import make
from handoff.policies.language.prompts import FORMS
from handoff.policies.openai.policy import OpenAIServer
from handoff.progress import Silent
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.frontier.study import load


@attrs.define
class Posted:
    """What was posted, when the first of it was and when the last answer came."""

    requests: list[tuple[str, bytes]] = attrs.Factory(list)
    first: float = math.inf
    last: float = 0.0

    def watch(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(url: str, body: bytes | None, *more: Any) -> Any:
            self.first = min(self.first, time.perf_counter())
            answer = await ask(url, body, *more)
            self.last = time.perf_counter()
            if body is not None:
                self.requests.append((url, body))
            return answer

        return watched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, metavar="URL#MODEL")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--prompt-form", choices=FORMS, default="chat")
    parser.add_argument("--constrain", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.episodes, given.budget, given.rounds = 16, 4, 2
    options = ModelOptions(
        max_new_tokens=given.new_tokens, concurrency=given.episodes, history=4, constrain=given.constrain,
        action_format="choice" if given.constrain else "last_line", prompt_form=given.prompt_form,
    )  # fmt: skip
    try:
        return measure(given, options)
    except HandoffError as error:  # a server that refuses, or a checkpoint that cannot be asked in this way
        print(f"serving.py: {error}", file=sys.stderr)
        return error.exit_code


def measure(given: Any, options: ModelOptions) -> int:
    policy = make(f"openai:{given.server}", options)
    assert isinstance(policy, OpenAIServer)
    asyncio.run(policy.introduce())
    if not policy.card.tokenizes:
        print("this benchmark needs a server that gives token ids (vLLM)", file=sys.stderr)
        return 2
    root = policy.servers[0].root
    expected, _, _, _, requests = run(given, options)
    ratios, ours, bare, cpu, bare_cpu = [], [], [], [], []
    for number in range(given.rounds):
        for turn in (0, 1):
            asyncio.run(empty_cache(root))
            if turn == number % 2:
                tokens, seconds, used, decisions, posted = run(given, options)
                ours.append(tokens / seconds)
                cpu.append(1000 * used / decisions)
                assert sorted(posted) == sorted(requests), "the same run asked for something else"
            else:
                tokens, seconds, used = asyncio.run(client(requests, given.episodes))
                bare.append(tokens / seconds)
                bare_cpu.append(1000 * used / len(requests))
            assert tokens == expected, "the same requests gave another number of tokens"
        ratios.append(ours[-1] / bare[-1])
        print(
            f"round {number + 1}: {decisions} decisions, {tokens} tokens; run {ours[-1]:.0f}, bare client "
            f"{bare[-1]:.0f} tokens/s (ratio {ratios[-1]:.3f}); CPU time {cpu[-1]:.2f} ms a decision, "
            f"{bare_cpu[-1]:.2f} ms a bare request",
            flush=True,
        )
    result = {
        "ratio_vs_bare_client": round(statistics.median(ratios), 3),
        "ratio_interval": interval(ratios),
        "ratio_quartiles": [round(q, 3) for q in statistics.quantiles(ratios, n=4)[::2]],
        "cpu_ms_per_decision": round(statistics.median(cpu), 3),
        "cpu_ms_range": [round(min(cpu), 3), round(max(cpu), 3)],
        "bare_cpu_ms_per_request": round(statistics.median(bare_cpu), 3),
        "tokens_per_second": round(statistics.median(ours)),
        "bare_tokens_per_second": round(statistics.median(bare)),
        "decisions": decisions,
        "episodes": given.episodes,
        "new_tokens": given.new_tokens,
        "rounds": given.rounds,
        "constrained": given.constrain,
    }
    print(json.dumps(result))
    return 0


def interval(values: list[float]) -> list[float] | None:
    """The shortest interval of symmetric order statistics that holds the median with 95 % confidence or more."""
    n, ordered = len(values), sorted(values)
    best = None
    for k in range(n // 2):
        # The median lies below the (k+1)-th of n with the probability that at most k of n fair coins show heads.
        outside = 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if outside <= 0.05:
            best = [round(ordered[k], 3), round(ordered[n - 1 - k], 3)]
    return best


def run(given: Any, options: ModelOptions) -> tuple[int, float, float, int, list[tuple[str, bytes]]]:
    """One run: generated tokens, seconds from first request to last answer, CPU seconds of its reach phase, decisions,
    and what it posted."""
    tasks = max(2, given.episodes // 4)
    config = FrontierConfig(
        split="test", reachers=("m",), solvers=("random",), tasks=tasks, slots=given.episodes // tasks,
        reach_budget=given.budget,
    )  # fmt: skip
    specs = {"m": f"openai:{given.server}", "random": "random"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        prepared = FRONTIER.prepare("frozenlake", {}, config, specs, {"m": options})
        policy, posted, clock = prepared.policies["m"], Posted(), {}
        assert isinstance(policy, OpenAIServer)
        for server in policy.servers:
            server.ask = posted.watch(server.ask)  # type: ignore[method-assign]
        prepared.run(folder, Where(given.workers), Clocked(clock), concurrency=given.episodes)
        study = load(folder)
    tokens = decisions = 0
    for trajectory in study.trajectories.values():
        for step in trajectory.steps:
            assert step.decision.generation is not None
            tokens += step.decision.generation.tokens or 0
            decisions += 1
    return tokens, posted.last - posted.first, clock["cpu"], decisions, posted.requests


class Clocked(Silent):
    """Notes CPU seconds of the reach phase."""

    def __init__(self, clock: dict[str, float]) -> None:
        self._clock = clock

    def phase(self, name: str, total: int) -> Any:
        inner = super().phase(name, total)
        return _Timed(inner, self._clock) if name == "reach" else inner


class _Timed:
    def __init__(self, inner: Any, clock: dict[str, float]) -> None:
        self._inner, self._clock = inner, clock

    def __enter__(self) -> Any:
        self._started = time.process_time()
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self._clock["cpu"] = time.process_time() - self._started
        return self._inner.__exit__(*error)


async def client(requests: list[tuple[str, bytes]], concurrency: int) -> tuple[int, float, float]:
    """A bare client: generated tokens, seconds and CPU seconds for ``requests``, ``concurrency`` at once."""
    queue = iter(requests)
    tokens = 0

    async def lane(session: aiohttp.ClientSession) -> None:
        nonlocal tokens
        for url, body in queue:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                answer = json.loads(await response.read())
                if "choices" in answer:  # else the prompt was only tokenized
                    tokens += len(answer["choices"][0]["token_ids"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(lane(session) for _ in range(concurrency)))
        return tokens, time.perf_counter() - started, time.process_time() - used


async def empty_cache(root: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{root}/reset_prefix_cache") as response:
        await response.read()


if __name__ == "__main__":
    sys.exit(main())
