"""pass@k over a million tasks against a per-task loop, and the bootstrap of a whole sharpening tax.

    python benchmarks/passk.py [--quick]

Both sides of the comparison are measured in this run.  The reference is the published estimator (Chen et al. 2021),
called for each task and each k; it is timed on a sample of the tasks and extrapolated.  A second reference, one
cumulative product per task, shows the ratio without the loop over k.  The last line is JSON:

    seconds_1m             pass@1 ... pass@128 of every one of 1,000,000 tasks
    seconds_1m_mean        the same curves' mean over tasks alone
    ratio_vs_reference     reference time / ours, per task
    ratio_vs_cumprod_loop  second reference / ours, per task
    seconds_tax_bootstrap  the whole tax of two policies: 1,000 draws, 770 tasks, K = 128
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.passk.curves import mean_pass_at_k, pass_at_k_curves

BUDGET, ROLLOUTS = 128, 128


def published(n: int, c: int, k: int) -> float:
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


def cumprod(n: int, c: int, budget: int) -> np.ndarray:
    i = np.arange(budget)
    return 1.0 - np.cumprod(np.maximum(n - c - i, 0) / (n - i))


def best(call: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of some calls: other work on the machine only adds to the time."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    tasks, sample = (100_000, 100) if quick else (1_000_000, 1_000)
    rng = np.random.default_rng(0)
    n = np.full(tasks, ROLLOUTS)
    c = rng.binomial(n, rng.beta(0.5, 1.0, tasks))

    ours = best(lambda: pass_at_k_curves(n, c, BUDGET)) / tasks
    mean = best(lambda: mean_pass_at_k(n, c, BUDGET)) / tasks
    rows = list(zip(n[:sample].tolist(), c[:sample].tolist(), strict=True))
    loop = best(lambda: [[published(a, b, k) for k in range(1, BUDGET + 1)] for a, b in rows]) / sample
    products = best(lambda: [cumprod(a, b, BUDGET) for a, b in rows]) / sample
    theirs = np.array([[published(a, b, k) for k in range(1, BUDGET + 1)] for a, b in rows])
    difference = float(np.abs(theirs - pass_at_k_curves(n[:sample], c[:sample], BUDGET)).max())

    names = [f"task-{i}" for i in range(770)]
    pair = [
        Counts.of(name, list(zip(names, [ROLLOUTS] * 770, rng.binomial(ROLLOUTS, p).tolist(), strict=True)))
        for name, p in (("base", rng.beta(0.5, 1.5, 770)), ("post", rng.beta(0.2, 0.3, 770)))
    ]
    bootstrap = best(lambda: compare(*pair, BUDGET, draws=1_000))

    print(f"{tasks:,} tasks, n = {ROLLOUTS}, k = 1..{BUDGET}; reference timed on {sample:,} of them and extrapolated")
    print(f"  ours, every task      {1e6 * ours:10.3f} s per 1,000,000 tasks")
    print(f"  ours, mean curve      {1e6 * mean:10.3f} s")
    print(f"  published estimator   {1e6 * loop:10.3f} s  ({loop / ours:,.0f} times ours)")
    print(f"  cumprod loop          {1e6 * products:10.3f} s  ({products / ours:,.0f} times ours)")
    print(f"  greatest difference to the published estimator: {difference:.1e}")
    print(f"tax of 770 tasks, K = {BUDGET}, 1,000 draws: {bootstrap:.3f} s")
    figures = {
        "seconds_1m": 1e6 * ours,
        "seconds_1m_mean": 1e6 * mean,
        "ratio_vs_reference": loop / ours,
        "ratio_vs_cumprod_loop": products / ours,
        "seconds_tax_bootstrap": bootstrap,
    }
    print(json.dumps({key: float(f"{value:.4g}") for key, value in figures.items()}))


if __name__ == "__main__":
    main()
