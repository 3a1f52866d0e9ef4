"""How fast is the bootstrap?  All estimands of a paper-sized study against scipy's bootstrap of the interaction alone.

    python benchmarks/bootstrap.py [--quick]

Both sides run in this process on the same data: 100,000 task-stratified draws.  ``scipy.stats.bootstrap`` knows no
strata, so it gets one sample a task type (the tasks' values of E_RL - E_SFT) and a vectorised statistic, the mean of
the types' means: its fastest form, for one of the estimands that the other side computes all of, with the default
intervals.  The scipy side runs fewer draws with ``--quick`` and is then scaled up, which is said.  Memory is the peak
resident size of a process that does the large study alone, less what the imports took.

Last line: one JSON object with ``seconds_100k`` (default interval), ``seconds_100k_paper``, ``ratio_vs_scipy``,
``seconds_scipy``, ``estimands``, ``seconds_large`` and ``mb_large`` (2,000 tasks x 16 seeds).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import stats

from handoff.bootstrap import estimate
from handoff.estimands import standard
from handoff.simulate import Design, centre
from handoff.table import Table

NAMES = ("sft", "rl")
DRAWS = 100_000


def study(tasks: int, slots: int, seed: int = 0) -> Table:
    """Six balanced types with the paper's unseen-split rates."""
    per_type = np.full(6, tasks // 6)
    per_type[: tasks % 6] += 1
    return Design(
        reachers=NAMES,
        solvers=NAMES,
        tasks_G=tuple(int(n) for n in per_type),
        slots=slots,
        reach_WG=np.array([[centre(p, 1.0)] * 6 for p in (0.13, 0.82)]),
        solve_WRG=np.array([[[centre(p, 1.0)] * 6 for p in row] for row in ((0.44, 0.93), (0.58, 0.95))]),
    ).draw(np.random.default_rng(seed))


def seconds_of(call: object, times: int) -> float:
    """The least of ``times`` runs, after one that warms up."""
    assert callable(call)
    call()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def with_scipy(table: Table, draws: int) -> tuple[float, tuple[float, float]]:
    """Seconds and interval of scipy's percentile bootstrap of the interaction."""
    won_WRT = table.won_WRTS.mean(axis=3)
    value_T = (won_WRT[1, 1] - won_WRT[1, 0]) - (won_WRT[0, 1] - won_WRT[0, 0])
    samples = [value_T[np.array(table.strata) == type] for type in table.types]
    share = [len(sample) / len(value_T) for sample in samples]

    def statistic(*parts: np.ndarray, axis: int = -1) -> np.ndarray:
        return sum(w * part.mean(axis=axis) for w, part in zip(share, parts, strict=True))

    start = time.perf_counter()
    found = stats.bootstrap(
        samples, statistic, n_resamples=draws, vectorized=True, method="percentile", rng=np.random.default_rng(0)
    )
    low, high = found.confidence_interval
    return time.perf_counter() - start, (float(low), float(high))


def large() -> None:
    """The large study alone: prints its seconds and its peak memory in MB."""
    table = study(2000, 16)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    made = estimate(table, draws=DRAWS)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, peak, peak - before, len(made.estimates)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="scipy with 10,000 draws, scaled up; one repeat")
    parser.add_argument("--large-alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large_alone:
        large()
        return
    table = study(30, 4)
    times = 1 if options.quick else 5
    ours = seconds_of(lambda: estimate(table, draws=DRAWS), times)
    paper = seconds_of(lambda: estimate(table, draws=DRAWS, interval="paper"), times)
    number = len(standard(table))
    print(f"{table.rows} rows, {number} estimands, {DRAWS:,} draws: {ours:.3f} s (paper's interval {paper:.3f} s)")
    draws = 10_000 if options.quick else DRAWS
    scipy_seconds, scipy_ends = with_scipy(table, draws)
    scaled = scipy_seconds * DRAWS / draws
    note = f" ({draws:,} draws took {scipy_seconds:.2f} s, scaled up)" if draws != DRAWS else ""
    made = estimate(table, draws=DRAWS, interval="paper")
    mine = made.get("interaction", a="sft", b="rl", c="sft", d="rl")
    print(f"scipy.stats.bootstrap, the interaction alone: {scaled:.2f} s{note}")
    print(f"interaction: scipy [{scipy_ends[0]:.4f}, {scipy_ends[1]:.4f}], here [{mine.low:.4f}, {mine.high:.4f}]")
    print(f"ratio for all estimands {scaled / ours:.0f}; for as many calls of scipy {scaled * number / ours:.0f}")
    alone = [sys.executable, __file__, "--large-alone"]
    out = subprocess.run(alone, capture_output=True, text=True, check=True).stdout
    seconds, peak, added, many = json.loads(out)
    print(f"2,000 tasks x 16 seeds, {many} estimands: {seconds:.2f} s, {peak:.0f} MB in all, {added:.0f} MB of its own")
    result = {
        "seconds_100k": round(ours, 4),
        "seconds_100k_paper": round(paper, 4),
        "seconds_scipy": round(scaled, 3),
        "ratio_vs_scipy": round(scaled / ours, 1),
        "estimands": number,
        "seconds_large": round(seconds, 3),
        "mb_large": round(peak, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
