"""Compares every whole record of the compiled ALFWorld engine with textworld's.

    python benchmarks/differential.py --data DIR [--quick] [--steps 50] [--workers 2] [--games N]

Every game below DIR is walked for at least ``--steps`` steps with random, planned and adversarial actions: text that
is not admissible, wrong case, extra spaces, nothing, very long text, a lamp used again, a receptacle opened and closed
again, going on after success, and resets in between.  The records are compared after every step; the first difference
of a game is printed with the actions that lead to it, and the game is left.  The last line is one JSON object.

The native engine is the one that certifies runs: textworld with a memory for what its parsers make of a text.  With
``--stock`` it is textworld without it, which takes several times longer.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext

from alfworld_sample import all_tasks, parser

from handoff.envs.alfworld.compiled.engine import CompiledGame
from handoff.envs.alfworld.games.files import Game
from handoff.envs.alfworld.games.sources import find_source
from handoff.envs.alfworld.native import memory
from handoff.envs.alfworld.native.engine import NativeEngine
from handoff.records import Record

_engine: NativeEngine | None = None


def adversarial(rng: random.Random, admissible: Sequence[str], last: str) -> str:
    """An action that could break an engine."""
    some = rng.choice(list(admissible))
    return rng.choice(
        [
            "",
            " ",
            "\n",
            some.upper(),
            some.capitalize(),
            f"  {some}",
            f"{some}\t\n ",
            some.replace(" ", "  ", 1),
            f"{some} ",
            some[:-1],
            f"{some}.",
            f"{some} and look",
            "go to nowhere 1",
            "take nothing 1 from desk 1",
            "xyzzy",
            "look\x00",
            "прыгнуть",
            some + " " * 5000,
            "go to " + "a" * 20000,
            "{o}",
            "#look.feedback#",
            "[{r.name | openable(r:receptacle)}]",
            last,
        ]
    )


def choose(rng: random.Random, record: Record, plan: Sequence[str], last: str) -> str:
    """The next action: a third planned, a third random, the rest deliberate trouble."""
    draw = rng.random()
    if draw < 0.35 and plan:
        return plan[0]
    if draw < 0.7:
        return rng.choice(record.admissible)
    if draw < 0.82:
        wanted = ("use", "open", "close", "examine", "inventory", "look", "take", "move", "help")
        verb = rng.choice(wanted)
        fitting = [action for action in record.admissible if action.startswith(verb)]
        return rng.choice(fitting or list(record.admissible))
    if draw < 0.88:
        return last or "look"
    return adversarial(rng, record.admissible, last)


def walk(game: Game, steps: int, seed: int, stock: bool) -> tuple[int, Counter[str], str | None]:
    """(records compared, kinds of steps, the first difference)."""
    with memory.without() if stock else nullcontext():
        return _walk(game, steps, seed)


def _walk(game: Game, steps: int, seed: int) -> tuple[int, Counter[str], str | None]:
    global _engine
    _engine = _engine or NativeEngine()
    rng = random.Random(f"{game.id} {seed}")
    coverage: Counter[str] = Counter()
    episode = CompiledGame.of(game).episode()
    expected, actual = _engine.reset(game), episode.reset()
    records, actions, last = 1, [], ""
    resets = 0
    while True:
        if expected != actual:
            fields = [f for f in ("observation", "admissible", "score", "done", "won") if _differs(expected, actual, f)]
            detail = "; ".join(
                f"{f}: {getattr(expected, f)!r:.300} against {getattr(actual, f)!r:.300}" for f in fields
            )
            return records, coverage, f"after {actions!r}: {detail}"
        if len(actions) >= steps:
            return records, coverage, None
        if actual.won and rng.random() < 0.15 and resets < 2:
            resets += 1
            coverage["resets"] += 1
            expected, actual = _engine.reset(game), episode.reset()
            records += 1
            continue
        action = choose(rng, actual, episode.plan(), last)
        coverage["after success"] += actual.won
        coverage["not admissible"] += action.strip() not in actual.admissible
        coverage["repeated"] += bool(action) and action == last
        expected, actual = _engine.step(action), episode.step(action)
        coverage["won"] += actual.won
        actions.append(action)
        records += 1
        last = action


def _differs(one: Record, two: Record, name: str) -> bool:
    return bool(getattr(one, name) != getattr(two, name))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=50, help="steps per game (default: 50)")
    options.add_argument("--games", type=int, help="stop after so many games, drawn evenly (default: all)")
    options.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--stock", action="store_true", help="textworld without its memory: several times slower")
    arguments = options.parse_args()
    source = find_source(arguments.data)
    tasks = all_tasks(source)
    limit = 12 if arguments.quick else arguments.games
    if limit and limit < len(tasks):
        tasks = [tasks[i * len(tasks) // limit] for i in range(limit)]
    games = records = differences = 0
    coverage: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.workers) as pool:
        jobs = [
            (task, pool.submit(walk, source.load(task), arguments.steps, arguments.seed, arguments.stock))
            for task in tasks
        ]
        for task, job in jobs:
            count, seen, difference = job.result()
            games, records, coverage = games + 1, records + count, coverage + seen
            if difference:
                differences += 1
                print(f"{task.split} {task.name}: {difference}", flush=True)
            if games % 50 == 0:
                print(f"{games} of {len(tasks)} games, {records} records, {differences} differences", flush=True)
    print(json.dumps({"games": games, "records": records, "differences": differences, "covered": dict(coverage)}))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
