"""The report of a paper-sized study: seconds of the tables and of the page, megabytes of the page.

    python benchmarks/report.py             # 30 built-in ALFWorld games
    python benchmarks/report.py --quick     # 30 Sokoban tasks
    python benchmarks/report.py RUN         # a run folder that is there already

The study is run first (30 tasks x 4 seed slots x 2 reachers x 2 solvers, 48 steps), then reported from its folder: once
unchanged, and once with every decision given 300 words that do not recur, as a language model would say.  The episodes
are also written as plain JSON in the same run, to set the page's size against.

Last line: ``seconds_load``, ``seconds_numbers`` (100,000 draws), ``seconds_page`` (both and the page itself),
``mb_page``, ``seconds_page_wordy``, ``mb_page_wordy``, ``mb_plain``, ``ratio_plain_to_page``.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from handoff.protocols.frontier import study
from handoff.records import Step, to_json
from handoff.report.study import REPORT
from handoff.report.study import document as numbers

WORDS = 300


def finished(folder: Path, environment: str) -> Path:
    """A finished paper-sized run."""
    command = [sys.executable, "-m", "handoff", "run", environment, "-p", "rl=noisy:0.3", "-p", "sft=noisy:0.8"]
    command += ["--cross", "sft,rl", "--budget", "48", "--tasks", "30", "--slots", "4", "--out", str(folder), "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=Path(__file__).resolve().parents[1])
    return folder


def wordy(loaded: study.Study) -> study.Study:
    """The same study with something said at every decision."""
    rng = random.Random(0)
    lexicon = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(3000)]

    def say(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(
            attrs.evolve(step, decision=attrs.evolve(step.decision, text=" ".join(rng.choices(lexicon, k=WORDS))))
            for step in steps
        )

    return attrs.evolve(
        loaded,
        trajectories={key: attrs.evolve(run, steps=say(run.steps)) for key, run in loaded.trajectories.items()},
        endpoints={key: attrs.evolve(end, steps=say(end.steps)) for key, end in loaded.endpoints.items()},
    )


def measure(loaded: study.Study, folder: Path) -> tuple[float, float, float]:
    """Seconds of the numbers, seconds of the page on top of them, and its megabytes."""
    begin = time.perf_counter()
    document = numbers.document(loaded)
    between = time.perf_counter()
    written, _ = REPORT.write(loaded, document, folder / "page.html")
    end = time.perf_counter()
    return between - begin, end - between, written.stat().st_size / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?", type=Path, help="a finished run folder")
    parser.add_argument("--quick", action="store_true", help="Sokoban instead of ALFWorld")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = arguments.run or finished(folder / "run", "sokoban" if arguments.quick else "alfworld")
        begin = time.perf_counter()
        loaded = study.load(source)
        seconds_load = time.perf_counter() - begin
        steps = sum(len(run.steps) for run in loaded.trajectories.values())
        print(f"{len(loaded.trajectories)} trajectories, {len(loaded.endpoints)} endpoints, {steps} reacher steps")
        records = [*loaded.trajectories.values(), *loaded.endpoints.values()]
        plain = sum(len(json.dumps(to_json(record))) for record in records) / 1e6
        seconds_numbers, seconds_render, mb = measure(loaded, folder)
        numbers_wordy, render_wordy, mb_wordy = measure(wordy(loaded), folder)
    result: dict[str, Any] = {
        "seconds_load": seconds_load,
        "seconds_numbers": seconds_numbers,
        "seconds_page": seconds_load + seconds_numbers + seconds_render,
        "mb_page": mb,
        "seconds_page_wordy": seconds_load + numbers_wordy + render_wordy,
        "mb_page_wordy": mb_wordy,
        "mb_plain": plain,
        "ratio_plain_to_page": plain / mb,
    }
    for key, value in result.items():
        print(f"{key:22} {value:8.2f}")
    print(json.dumps({key: round(value, 3) for key, value in result.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
