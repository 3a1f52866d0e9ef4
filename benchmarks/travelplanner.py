"""TravelPlanner: both evaluators on recorded verdicts, and the plans per second of each.

    python benchmarks/travelplanner.py [--quick] [--data FOLDER]

* verdicts, equal: recorded verdicts (two per plan), and how many of them are equal, check by check;
* plans_per_second: plans per second and core after loading, the slower of the two evaluators; plans_per_second_official
  and plans_per_second_agent_star;
* seconds_load: reading the tables of the official layout.

FOLDER has the official layout and ``reference_verdicts.jsonl.gz``.  Without it the gold plans of the shipped world are
evaluated, and every one must pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

from handoff.envs.travelplanner import world as worlds
from handoff.envs.travelplanner.evaluation.evaluator import Evaluator
from handoff.envs.travelplanner.evaluation.names import Rules
from handoff.envs.travelplanner.queries import Query

FIELDS = {"official": Rules.OFFICIAL, "agent_star": Rules.AGENT_STAR}


def recorded(folder: Path | None, world: worlds.World) -> list[dict[str, Any]]:
    """Rows with a plan and the verdict of each evaluator."""
    if folder is not None:
        lines = gzip.decompress((folder / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
        return [json.loads(line) for line in lines]
    rows = []
    for (split, idx), plan in world.gold.items():
        passing: dict[str, Any] = {name: {"passed": True} for name in FIELDS}
        rows.append({"split": split, "idx": idx, "plan": plan, "query_changes": {}, **passing})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one pass per evaluator, not five")
    parser.add_argument("--data", type=Path, default=None, help="folder in the official layout")
    arguments = parser.parse_args()
    shared = Path(os.environ.get("HANDOFF_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    folder = arguments.data or (shared / "data" / "travelplanner")
    folder = folder if folder.is_dir() else None
    began = time.perf_counter()
    world = worlds.load(None if folder is None else str(folder), None)
    seconds_load = time.perf_counter() - began
    rows = recorded(folder, world)
    queries = [Query.of({**world.queries[row["split"]][row["idx"]], **row["query_changes"]}, "") for row in rows]
    equal, speeds = 0, {}
    for name, rules in FIELDS.items():
        times = []
        for _ in range(1 if arguments.quick else 5):
            evaluator = Evaluator(world.database, rules)
            began = time.process_time()
            verdicts = [evaluator.evaluate(query, row["plan"]) for query, row in zip(queries, rows, strict=True)]
            times.append(time.process_time() - began)
        for verdict, row in zip(verdicts, rows, strict=True):
            stated = row[name]
            equal += verdict.to_json() == stated if "hard" in stated else verdict.passed == stated["passed"]
        speeds[name] = len(rows) / min(times)
        print(f"{name}: {speeds[name]:.0f} plans per second of CPU")
    result = {
        "verdicts": 2 * len(rows),
        "equal": equal,
        "plans_per_second": round(min(speeds.values())),
        **{f"plans_per_second_{name}": round(speed) for name, speed in speeds.items()},
        "seconds_load": round(seconds_load, 3),
        "data": "invented" if folder is None else "official",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
