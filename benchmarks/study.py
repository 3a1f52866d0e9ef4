"""The environment side of the paper's whole ALFWorld study, in minutes by phase.

    python benchmarks/study.py [--data DIR] [--split valid_unseen] [--engine NAME] [--workers 2] [--quick]

30 tasks, 4 seed slots, two reachers: 240 trajectories of at most 48 actions, every state checked for membership in F_2,
every arrival crossed with two solvers, and the full audit: every record replayed on the native engine, every frontier
searched again.  The policies are scripted (no model time): `rl` is the expert with one random action in five, `sft`
acts at random four times in five.  `--quick`: 6 tasks, 1 slot.

Phases: `reach` (trajectories with their checks), `solve` (clones and continuations), `audit_records`, `certify` (native
replay, continuations, frontiers).  The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from handoff.canonical import parse
from handoff.episodes.start import Where
from handoff.protocols.audit import audit_run
from handoff.protocols.frontier import FRONTIER
from handoff.protocols.frontier.config import FrontierConfig
from handoff.protocols.frontier.study import load


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with ALFWorld games (default: the built-in ones)")
    parser.add_argument("--split", default="valid_unseen")
    parser.add_argument("--engine", help="engine of the rollouts (default: the adapter's)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()

    options = {"data": arguments.data or "builtin"}
    if arguments.engine:
        options["engine"] = arguments.engine
    tasks, slots = (6, 1) if arguments.quick else (30, 4)
    config = FrontierConfig(
        split=arguments.split, reachers=("sft", "rl"), solvers=("sft", "rl"), tasks=tasks, slots=slots
    )
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        started = time.perf_counter()
        prepared = FRONTIER.prepare("alfworld", options, config, {"rl": "noisy:0.2", "sft": "noisy:0.8"})
        prepared.run(folder, Where(arguments.workers))
        run = time.perf_counter() - started
        timings = parse((folder / "timings.json").read_bytes())
        seconds["reach"], seconds["solve"] = timings["trajectory"], timings["endpoint"]
        seconds["setup"] = run - seconds["reach"] - seconds["solve"]

        started = time.perf_counter()
        records_only = audit_run(folder, {}, Where(arguments.workers), replay=False)
        seconds["audit_records"] = time.perf_counter() - started
        started = time.perf_counter()
        result = audit_run(folder, {}, Where(arguments.workers))
        seconds["certify"] = time.perf_counter() - started - seconds["audit_records"]

        study = load(folder)
        size = (folder / "records.jsonl").stat().st_size
    arrived = sum(run.arrived for run in study.trajectories.values())
    checked = sum(1 + len(run.steps) for run in study.trajectories.values())
    print(f"{len(study.trajectories)} trajectories, {checked} states checked, {arrived} arrivals, {size / 1e6:.1f} MB")
    for name, value in seconds.items():
        print(f"{name:>14}: {value / 60:6.2f} min")
    passed = result.passed and records_only.passed
    print(f"{'audit':>14}: {'passed' if passed else 'FAILED'}")
    print(
        json.dumps(
            {
                "minutes_total": round(sum(seconds.values()) / 60, 3),
                "minutes_without_certification": round((sum(seconds.values()) - seconds["certify"]) / 60, 3),
                **{f"minutes_{name}": round(value / 60, 4) for name, value in seconds.items()},
                "trajectories": len(study.trajectories),
                "arrivals": arrived,
                "states_checked": checked,
                "audit_passed": passed,
            }
        )
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
