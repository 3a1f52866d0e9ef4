"""Compares the built-in games with the release's: the same figures of both, by room type.

    python benchmarks/generated_games.py --data DIR [--quick]

DIR holds the release's games (``json_2.1.1``).  Structure is counted in all games of both sides; admissible actions
(native engine, at reset and after each action of the stored plan) and SAS operators on a sample of each side that is
the same in size for every task type.  The last line is one JSON object; ``structure`` and ``dynamics`` map room type
and figure to [release, built-in] means.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from alfworld_sample import all_tasks

from handoff.envs.alfworld.games.builtin import BuiltinSource
from handoff.envs.alfworld.games.files import TASK_TYPES, FolderSource, Game, GameSource
from handoff.envs.alfworld.generator.planning import Facts
from handoff.envs.alfworld.generator.scenes import room_of
from handoff.envs.alfworld.native.engine import NativeEngine, host_unharmed
from handoff.records import Task

SIDES = ("release", "built-in")
Figures = Mapping[str, float]


def structure(game: Game) -> tuple[Figures, Mapping[str, list[int]]]:
    """Figures of one game, and the number of objects in each receptacle, by receptacle type."""
    facts = Facts.of(game.problem)
    table = facts.table
    inside: dict[str, list[str]] = defaultdict(list)
    for thing, receptacle in table.get("inReceptacle", ()):
        inside[thing].append(receptacle)
    pickupable = facts.of_one("pickupable")
    held = Counter(receptacle for holders in inside.values() for receptacle in holders)
    contents: dict[str, list[int]] = defaultdict(list)
    for receptacle, kind in facts.mapping("receptacleType").items():
        contents[kind.removesuffix("Type")].append(held[receptacle])
    kinds = facts.mapping("objectType")
    figures = {
        "receptacles": len(facts.mapping("receptacleType")),
        "places to stand at one": len(set(facts.mapping("receptacleAtLocation").values())),
        "receptacles that open": len(facts.of_one("openable")),
        "objects": len(re.findall(r"_bar_\S+ - object", game.problem)),
        "objects to pick up": len(pickupable),
        "  of them out of reach": sum(thing not in inside for thing in pickupable),
        "  of them in two receptacles": sum(len(inside[thing]) > 1 for thing in pickupable),
        "types to pick up": len({kinds[thing] for thing in pickupable}),
        "objects in movable ones": len(table.get("inReceptacleObject", ())),
        "plan length": len(game.walkthrough or ()),
        "plan opens something": sum(c.startswith("open ") for c in game.walkthrough or ()),
    }
    return figures, contents


def dynamics(game: Game, engine: NativeEngine) -> Figures:
    import fast_downward

    record = engine.reset(game)
    at_reset = len(record.admissible)
    along = []
    for action in game.walkthrough or ():
        record = engine.step(action)
        along.append(len(record.admissible))
    with host_unharmed():
        _, sas = fast_downward.pddl2sas(game.domain, game.problem, verbose=False, optimize=False)
    return {
        "admissible at reset": at_reset,
        "admissible along the plan": statistics.mean(along),
        "SAS operators": len(re.findall(r"^begin_operator$", sas, re.MULTILINE)),
    }


def room(task: Task) -> str:
    return room_of(scene(task))


def scene(task: Task) -> int:
    return int(task.name.partition("/")[0].rpartition("-")[2])


def sample(tasks: Sequence[Task], per_type: int) -> list[Task]:
    by_type = {kind: [task for task in tasks if task.type == kind] for kind in TASK_TYPES}
    return [
        task
        for candidates in by_type.values()
        for task in random.Random(0).sample(
            sorted(candidates, key=lambda task: task.id), min(per_type, len(candidates))
        )
    ]


def means(rows: Mapping[str, list[Figures]]) -> dict[str, dict[str, float]]:
    return {
        name: {figure: statistics.mean(row[figure] for row in figures) for figure in figures[0]}
        for name, figures in sorted(rows.items())
        if figures
    }


def print_table(
    title: str, sides: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> dict[str, dict[str, list[float]]]:
    """Print one table; the same numbers for the JSON line."""
    print(f"\n{title:<34}" + "".join(f"{name:>19}" for name in sides[SIDES[0]]))
    print(" " * 34 + f"{'release  built-in':>19}" * len(sides[SIDES[0]]))
    figures = dict.fromkeys(f for side in sides.values() for row in side.values() for f in row)
    data: dict[str, dict[str, list[float]]] = {}
    for figure in figures:
        line = f"{figure:<34}"
        for name in sides[SIDES[0]]:
            pair = [sides[side].get(name, {}).get(figure) for side in SIDES]
            line += "".join(f"{'-' if v is None else f'{v:.2f}':>{w}}" for v, w in zip(pair, (9, 10), strict=True))
            data.setdefault(name, {})[figure.strip()] = [None if v is None else round(v, 3) for v in pair]
        print(line)
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, type=Path, help="folder with the release's games")
    parser.add_argument("--quick", action="store_true", help="a smaller sample for the figures of the dynamics")
    parser.add_argument("--no-dynamics", action="store_true", help="count structure only")
    options = parser.parse_args()
    sources: dict[str, GameSource] = {"release": FolderSource(options.data), "built-in": BuiltinSource()}

    engine = None if options.no_dynamics else NativeEngine()
    by_room: dict[str, dict[str, dict[str, float]]] = {}
    contents: dict[str, dict[str, dict[str, float]]] = {}
    moves: dict[str, dict[str, dict[str, float]]] = {}
    variety: dict[str, dict[str, dict[str, float]]] = {}
    games = {}
    for side, source in sources.items():
        tasks = all_tasks(source, ("train", "valid_seen", "valid_unseen"))
        games[side] = len(tasks)
        rows: dict[str, list[Figures]] = defaultdict(list)
        load: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for task in tasks:
            figures, held = structure(source.load(task))
            rows[room(task)].append(figures)
            for kind, numbers in held.items():
                load[room(task)][kind] += numbers
        by_room[side] = means(rows)
        contents[side] = {
            name: {kind: statistics.mean(numbers) for kind, numbers in sorted(by_type.items())}
            for name, by_type in sorted(load.items())
        }
        per_type: dict[str, dict[str, float]] = {}
        for kind in TASK_TYPES:
            words = [task.name.partition("/")[0].split("-") for task in sample(tasks, 24) if task.type == kind]
            per_type[kind.removeprefix("pick_").partition("_then")[0]] = {
                "games in the sample": len(words),
                "objects": len({w[1] for w in words}),
                "targets": len({w[3] for w in words}),
                "object and target pairs": len({(w[1], w[3]) for w in words}),
                "scenes": len({w[4] for w in words}),
            }
        variety[side] = per_type
        if engine is not None:
            rows = defaultdict(list)
            for task in sample(tasks, 2 if options.quick else 10):
                rows[room(task)].append(dynamics(source.load(task), engine))
            moves[side] = means(rows)
    print(f"games: {games['release']} of the release, {games['built-in']} built-in; means by room type")
    result = {"games": games, "structure": print_table("structure", by_room)}
    result["contents"] = print_table("objects per receptacle", contents)
    result["variety"] = print_table("variety in 24 games of a type", variety)
    result["dynamics"] = print_table("dynamics (sample)", moves) if moves else None
    print(json.dumps(result))


if __name__ == "__main__":
    main()
