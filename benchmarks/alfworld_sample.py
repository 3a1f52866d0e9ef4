"""Shared parts of the ALFWorld benchmarks: a balanced sample of games, walks, stock textworld, timing."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from handoff.envs.alfworld.games.files import SPLITS, Game, GameSource
from handoff.envs.alfworld.games.sources import find_source
from handoff.errors import UsageError
from handoff.records import Task

T = TypeVar("T")


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--data", help="folder with games (else ALFWORLD_DATA, else the built-in games)")
    result.add_argument("--quick", action="store_true", help="a few games only")
    return result


def all_tasks(source: GameSource, splits: Sequence[str] = (*SPLITS, "default")) -> list[Task]:
    """The tasks of every split of the source, in order."""
    by_id: dict[str, Task] = {}
    for split in splits:
        try:
            tasks = source.tasks(split)
        except UsageError:
            continue
        for task in tasks:
            by_id.setdefault(task.id, task)
    return list(by_id.values())


def sample(data: str | None, per_type: int, seed: int, splits: Sequence[str] = SPLITS) -> Iterator[tuple[Task, Game]]:
    """``per_type`` games of every task type, drawn by ``seed``."""
    source = find_source(data)
    by_type: dict[str, list[Task]] = defaultdict(list)
    for task in all_tasks(source, splits):
        by_type[task.type].append(task)
    if not by_type:
        raise SystemExit("no games found; give --data")
    rng = random.Random(seed)
    for kind in sorted(by_type):
        tasks = sorted(by_type[kind], key=lambda task: task.id)
        for task in rng.sample(tasks, min(per_type, len(tasks))):
            yield task, source.load(task)


def mixed_action(rng: random.Random, actions: Sequence[str], plan: Sequence[str], chance: float) -> str:
    """The first action of the plan with probability ``chance``, otherwise (and without a plan) a random one."""
    if plan and rng.random() < chance:
        return plan[0]
    return rng.choice(list(actions))


def timed(call: Callable[..., T], *arguments: Any) -> tuple[float, T]:
    """Seconds, and the result of the call."""
    begin = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - begin, result


class StockTextworld:
    """textworld under alfworld's demangler, without a memory between resets."""

    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        self._env = AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)), shuffle=False)

    def load(self, game: Game) -> None:
        self._env.load({"pddl_domain": game.domain, "grammar": game.grammar, "pddl_problem": game.problem})

    def reset(self) -> None:
        self._env.reset()

    def play(self, actions: Sequence[str]) -> None:
        for action in actions:
            self._env.step(action)
