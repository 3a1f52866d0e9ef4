"""How fast is the bootstrap?  All estimands of a paper-sized study against scipy's bootstrap of the interaction alone.

    python benchmarks/bootstrap.py [--quick]

Both sides run in this process on the same data: 100,000 task-stratified draws.  ``scipy.stats.bootstrap`` knows no
strata, so it gets one sample of task numbers per task type.  Two forms of it are measured:

``plain``
    the statistic computes Eq. 4 from the table at the drawn tasks, one draw per call, the plain way to write it;
``tuned``
    the statistic is vectorised and gets every task's E_RL - E_SFT computed beforehand.  The interaction is linear in
    tasks, so this is possible; for Solve and all that is computed from it, it is not.

``ratio_vs_scipy`` is plain scipy's time for the interaction alone over the time for all estimands here, with default
intervals; ``ratio_interaction`` compares the interaction alone on both sides; ``ratio_vs_scipy_tuned`` is the first
with the tuned form.  With ``--quick`` scipy does fewer draws and is scaled up.  Memory is the peak resident size of a
process that does the large study alone, imports included (Linux counts what its parent held when it started it).

Last line: one JSON object with these and ``seconds_100k`` (default interval), ``seconds_100k_paper``,
``seconds_interaction``, ``seconds_scipy``, ``seconds_scipy_tuned``, ``estimands``, ``seconds_large`` and ``mb_large``
(2,000 tasks x 16 seeds).
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

from handoff.estimation.bootstrap import estimate
from handoff.estimation.estimands import estimand, standard
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.planning.population import Design, centre

NAMES = ("sft", "rl")
DRAWS = Intervals().draws


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


Ends = tuple[float, float]


def plain_scipy(table: Table, draws: int) -> tuple[float, Ends]:
    """Seconds, scaled to ``DRAWS``, and interval."""
    won_WRTS = table.won_WRTS
    samples = [np.flatnonzero(np.array(table.strata) == type) for type in table.types]

    def interaction(*drawn: np.ndarray) -> float:
        endpoint_WR = won_WRTS[:, :, np.concatenate(drawn)].mean(axis=(2, 3))
        return float((endpoint_WR[1, 1] - endpoint_WR[1, 0]) - (endpoint_WR[0, 1] - endpoint_WR[0, 0]))

    return _scipy(samples, interaction, draws, vectorized=False)


def tuned_scipy(table: Table, draws: int) -> tuple[float, Ends]:
    """Seconds, scaled to ``DRAWS``, and interval."""
    won_WRT = table.won_WRTS.mean(axis=3)
    value_T = (won_WRT[1, 1] - won_WRT[1, 0]) - (won_WRT[0, 1] - won_WRT[0, 0])
    samples = [value_T[np.array(table.strata) == type] for type in table.types]
    share = [len(sample) / len(value_T) for sample in samples]

    def interaction(*parts: np.ndarray, axis: int = -1) -> np.ndarray:
        return sum(w * part.mean(axis=axis) for w, part in zip(share, parts, strict=True))

    return _scipy(samples, interaction, draws, vectorized=True)


def _scipy(samples: list[np.ndarray], statistic: object, draws: int, vectorized: bool) -> tuple[float, Ends]:
    start = time.perf_counter()
    result = stats.bootstrap(
        samples,
        statistic,
        n_resamples=draws,
        vectorized=vectorized,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    seconds = (time.perf_counter() - start) * DRAWS / draws
    return seconds, (float(result.confidence_interval.low), float(result.confidence_interval.high))


def large() -> None:
    """The large study alone: prints its seconds and its peak memory in MB."""
    table = study(2000, 16)
    start = time.perf_counter()
    estimates = estimate(table).estimates
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, peak, len(estimates)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="scipy with 5,000 draws, scaled up; fewer repeats")
    parser.add_argument("--large-alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large_alone:
        large()
        return
    table = study(30, 4)
    times = 2 if options.quick else 7
    draws = 5_000 if options.quick else DRAWS
    only = [estimand("interaction", a="sft", b="rl", c="sft", d="rl")]
    paper_intervals = Intervals("paper", DRAWS)
    ours = seconds_of(lambda: estimate(table), times)
    paper = seconds_of(lambda: estimate(table, intervals=paper_intervals), times)
    alone_seconds = seconds_of(lambda: estimate(table, only, paper_intervals), times)
    plain, plain_ends = plain_scipy(table, draws)
    tuned, tuned_ends = tuned_scipy(table, draws)
    number = len(standard(table))
    (mine,) = estimate(table, only, paper_intervals).estimates
    note = f", scaled up from {draws:,} draws" if draws != DRAWS else ""
    print(f"{table.rows} rows, {DRAWS:,} draws")
    print(f"here, {number} estimands: {ours:.3f} s (paper's interval {paper:.3f} s)")
    print(f"here, the interaction alone: {alone_seconds:.4f} s, [{mine.low:.4f}, {mine.high:.4f}]")
    print(f"scipy, the interaction alone, plain: {plain:.2f} s{note}, [{plain_ends[0]:.4f}, {plain_ends[1]:.4f}]")
    print(f"scipy, the interaction alone, tuned: {tuned:.3f} s{note}, [{tuned_ends[0]:.4f}, {tuned_ends[1]:.4f}]")
    alone = [sys.executable, __file__, "--large-alone"]
    out = subprocess.run(alone, capture_output=True, text=True, check=True).stdout
    seconds, peak, many = json.loads(out)
    print(f"2,000 tasks x 16 seeds, {many} estimands: {seconds:.2f} s, {peak:.0f} MB at most")
    result = {
        "seconds_100k": round(ours, 4),
        "seconds_100k_paper": round(paper, 4),
        "seconds_interaction": round(alone_seconds, 4),
        "seconds_scipy": round(plain, 3),
        "seconds_scipy_tuned": round(tuned, 4),
        "ratio_vs_scipy": round(plain / ours, 1),
        "ratio_interaction": round(plain / alone_seconds, 1),
        "ratio_vs_scipy_tuned": round(tuned / ours, 2),
        "estimands": number,
        "seconds_large": round(seconds, 3),
        "mb_large": round(peak, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
