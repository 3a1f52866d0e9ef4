"""What the ALFWorld benchmarks share: a sample of games that is balanced over task types, and walks through them."""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from handoff.envs.alfworld.games.files import SPLITS, Game, GameSource, find_source
from handoff.errors import UsageError
from handoff.records import Task


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--data", help="folder with games (else ALFWORLD_DATA, else the built-in games)")
    result.add_argument("--quick", action="store_true", help="a few games only")
    return result


def all_tasks(source: GameSource, splits: Sequence[str] = (*SPLITS, "default")) -> list[Task]:
    """The tasks of every split that the source has, in order."""
    found: dict[str, Task] = {}
    for split in splits:
        try:
            tasks = source.tasks(split)
        except UsageError:
            continue
        for task in tasks:
            found.setdefault(task.id, task)
    return list(found.values())


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


def mixed_action(rng: random.Random, commands: Sequence[str], plan: Sequence[str], chance: float) -> str:
    """With probability ``chance`` the first command of the plan, else (or without a plan) a random one."""
    if plan and rng.random() < chance:
        return plan[0]
    return rng.choice(list(commands))
