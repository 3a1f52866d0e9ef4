"""The honest runs that are forged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kit.command import output_of
from kit.fault_server import serving

from handoff.episodes.start import Where
from handoff.policies import ModelOptions
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.rollouts import ROLLOUTS
from handoff.protocols.rollouts.config import RolloutsConfig


def _play(folder: Path, *words: str) -> None:
    output_of(*words, "--workers", "0", "-q", "--out", folder)


def _handoff(folder: Path) -> None:
    words = ("-p", "a=noisy:0.5", "-p", "b=expert", "--cross", "a,b", "--budget", "12", "--distances", "6")
    _play(folder, "run", "sokoban", *words, "--tasks", "6", "--slots", "2")


def _rollouts(folder: Path) -> None:
    words = ("-p", "x=noisy:0.2", "-p", "y=random", "-n", "3", "--budget", "12")
    _play(folder, "rollout", "sokoban", *words, "--tasks", "6")


def _pilots(folder: Path) -> None:
    words = ("-p", "x=tempered:0.2:2", "-p", "y=tempered:0.4:2", "-n", "4", "--ptgs", "--pilot", "2", "--budget", "10")
    _play(folder, "rollout", "frozenlake", *words, "--tasks", "2")


def _games(folder: Path) -> None:
    words = ("-p", "a=noisy:0.9", "-p", "b=expert", "--reacher", "b", "--solver", "a", "--solver", "b")
    more = ("--type", "pick_and_place_simple", "--tasks", "1", "--slots", "1", "--budget", "12")
    _play(folder, "run", "alfworld", "--data", "builtin", *words, *more)


SERVED = ModelOptions(max_prompt_tokens=50_000, concurrency=16)


def _served(folder: Path) -> None:
    config = FrontierConfig(split="test", reachers=("b",), solvers=("a", "c"), tasks=3, slots=2, reach_budget=12)
    with serving() as server:
        specs = {"a": f"openai:{server.url}#m", "b": "noisy:0.1", "c": f"openai:{server.url}#m"}
        FRONTIER.prepare("sokoban", {}, config, specs, {"a": SERVED, "c": SERVED}).run(folder, Where(0))


def _served_rollouts(folder: Path) -> None:
    config = RolloutsConfig(split="test", policies=("a", "c"), tasks=3, rollouts=2, budget=6)
    with serving() as server:
        specs = {"a": f"openai:{server.url}#m", "c": f"openai:{server.url}#m"}
        ROLLOUTS.prepare("sokoban", {}, config, specs, {"a": SERVED, "c": SERVED}).run(folder, Where(0))


def _builtin(folder: Path) -> None:
    words = ("-p", "b=expert", "--reacher", "b", "--solver", "base", "--solver", "sft", "--budget", "12")
    more = ("--type", "pick_and_place_simple", "--tasks", "1", "--slots", "1")
    _play(folder, "run", "alfworld", "--data", "builtin", *words, *more)


def _builtin_rollouts(folder: Path) -> None:
    words = ("-p", "base=builtin:base", "-p", "sft=builtin:sft", "-n", "2", "--budget", "4")
    _play(folder, "rollout", "alfworld", "--data", "builtin", *words, "--type", "pick_and_place_simple", "--tasks", "1")


#: The honest runs that are forged: how to play each.
RUNS: Mapping[str, Callable[[Path], None]] = {
    "handoff": _handoff,
    "rollouts": _rollouts,
    "pilot rollouts": _pilots,
    "games": _games,
    "served": _served,
    "served rollouts": _served_rollouts,
    "builtin": _builtin,
    "builtin rollouts": _builtin_rollouts,
}
#: Those whose policies need torch.
NEED_TORCH = ("builtin", "builtin rollouts")
