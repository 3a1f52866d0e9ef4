"""ACEBench: the checker on recorded verdicts, and its checks per second.

    python benchmarks/acebench.py [--quick] [--data FOLDER]

* verdicts, equal: recorded verdicts, and how many of them are equal;
* checks_per_second: checks per second and core, reading of the reply included;
* seconds_load: reading both languages.

FOLDER has the official layout and ``reference_verdicts.jsonl.gz``.  Without it the gold replies of the shipped set are
checked, and every one must pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from importlib import resources
from pathlib import Path

from handoff.envs.acebench.checker import passes
from handoff.envs.acebench.data import AceData, AceTask, load
from handoff.envs.acebench.prompts import gold_reply


def recorded(folder: Path | None, data: AceData) -> list[tuple[AceTask, str, bool]]:
    """Tasks, replies and verdicts."""
    if folder is None:
        return [(task, gold_reply(task), True) for tasks in data.tasks.values() for task in tasks.values()]
    lines = gzip.decompress((folder / "reference_verdicts.jsonl.gz").read_bytes()).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    return [(data.tasks[row["lang"]][row["id"]], row["output"], row["passed"]) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one pass, not five")
    parser.add_argument("--data", type=Path, default=None, help="folder in the official layout")
    arguments = parser.parse_args()
    shared = Path(os.environ.get("HANDOFF_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    folder = arguments.data or (shared / "data" / "acebench")
    folder = folder if folder.is_dir() else None
    began = time.perf_counter()
    shipped = str(resources.files("handoff.artifacts") / "acebench")
    data = load(shipped if folder is None else str(folder))
    seconds_load = time.perf_counter() - began
    rows = recorded(folder, data)
    times = []
    for _ in range(1 if arguments.quick else 5):
        began = time.process_time()
        verdicts = [passes(task.category, task.functions, task.gold, reply) for task, reply, _ in rows]
        times.append(time.process_time() - began)
    result = {
        "verdicts": len(rows),
        "equal": sum(verdict == stated for verdict, (_, _, stated) in zip(verdicts, rows, strict=True)),
        "checks_per_second": round(len(rows) / min(times)),
        "seconds_load": round(seconds_load, 3),
        "data": "invented" if folder is None else "official",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
