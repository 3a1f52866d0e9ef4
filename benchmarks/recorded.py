"""Recorded-history handoff at the size of the paper: 180 tasks, four cells, scripted policies, audit included.

    python benchmarks/recorded.py [--quick]

* rows: continuations (tasks x reachers x solvers);
* seconds_run, seconds_audit, seconds_total: wall clock of the two commands in new processes, on all cores;
* differences: failures that the audit found (0);
* calls: unique calls of the formatter that served the rows.

The tasks are those of the shipped world, five seed slots each (36 x 5 = 180); --quick takes one slot.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def command(*arguments: str) -> tuple[Any, float]:
    """The JSON that the command prints, and its seconds."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "handoff", *arguments, "--json", "-q"], capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed slot, not five")
    slots = 1 if parser.parse_args().quick else 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "run")
        policies = ["-p", "sft=noisy-gold:0.5", "-p", "rl=noisy-gold:0.1", "--cross", "sft,rl"]
        size = ["--slots", str(slots), "--out", folder]
        counts, seconds_run = command("run", "travelplanner", "--protocol", "recorded", *policies, *size)
        audit, seconds_audit = command("audit", folder)
    rows = sum(cell["rows"] for cell in counts["cells"])
    result = {
        "rows": rows,
        "seconds_run": round(seconds_run, 2),
        "seconds_audit": round(seconds_audit, 2),
        "seconds_total": round(seconds_run + seconds_audit, 2),
        "differences": sum(len(check["failures"]) for check in audit["checks"]),
        "calls": counts["formatting"]["calls"],
    }
    for name, value in result.items():
        print(f"{name}: {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
