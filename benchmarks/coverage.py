"""How often do 95% intervals cover?  Simulated studies with known truth, the paper's interval against the default one.

    python benchmarks/coverage.py [--quick] [--repeats N] [--draws N] [--processes N] [--markdown]

Each repeat draws new tasks and new outcomes from a population whose truth is known exactly
(``handoff.planning.population``), makes both intervals with the library's code, and asks whether they hold the truth.
A refused interval is no failure to cover: refusals are counted apart, and coverage is that of the intervals given.  The
standard error of a coverage of 95% is 0.34 points at 4,000 repeats.  The last line is one JSON object: ``coverage``
(default interval) and ``coverage_paper``, each {design: {estimand: share}}, and the same for ``width``,
``width_paper``, ``refused`` and ``refused_paper``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attrs
import numpy as np

from handoff.estimation.bootstrap import estimate
from handoff.estimation.estimands import Estimand, estimand
from handoff.estimation.method import Intervals
from handoff.estimation.transport import Sample, transport
from handoff.planning.population import Design, centre

NAMES = ("sft", "rl")
CROSS = {"a": "sft", "b": "rl", "c": "sft", "d": "rl"}
#: Near the paper's unseen split: Reach, and Solve by reacher and solver.
REACH = (0.13, 0.82)
SOLVE = ((0.44, 0.93), (0.58, 0.95))


def design(
    tasks: tuple[int, ...],
    slots: int = 4,
    reach: tuple[float, float] = REACH,
    solve: tuple[tuple[float, float], tuple[float, float]] = SOLVE,
    task_sd: float = 1.0,
    type_sd: float = 0.8,
    pairing: float = 0.5,
) -> Design:
    """Types differ by ``type_sd`` and tasks within a type by ``task_sd``, on the logit scale."""
    rng = np.random.default_rng(1)
    reach_G, solve_G = type_sd * rng.standard_normal((2, len(tasks)))
    reach_G, solve_G = reach_G - reach_G.mean(), solve_G - solve_G.mean()
    return Design(
        reachers=NAMES,
        solvers=NAMES,
        tasks_G=tasks,
        slots=slots,
        reach_WG=np.array([centre(p, task_sd) + reach_G for p in reach]),
        solve_WRG=np.array([[centre(p, task_sd) + solve_G for p in row] for row in solve]),
        reach_sd=task_sd,
        solve_sd=task_sd,
        pairing=pairing,
    )


DESIGNS = {
    "paper-sized": design((5,) * 6),
    "tasks differ much": design((5,) * 6, task_sd=2.0),
    "no pairing": design((5,) * 6, pairing=0.0),
    "full pairing": design((5,) * 6, pairing=1.0),
    "20 tasks a type": design((20,) * 6),
    "unbalanced 2-12": design((2, 3, 5, 8, 12)),
    "one seed": design((5,) * 6, slots=1, reach=(0.3, 0.8)),
    "16 seeds": design((5,) * 6, slots=16),
    "one type of 30": design((30,), task_sd=1.5),
    "two tasks a type": design((2,) * 10),
    "rare arrival": design((5,) * 6, reach=(0.04, 0.5)),
    "weak arms": design((5,) * 6, reach=(0.4, 0.5), solve=((0.5, 0.55), (0.5, 0.6))),
    "strong arms": design((5,) * 6, reach=(0.9, 0.97), solve=((0.9, 0.97), (0.9, 0.98))),
}
QUICK = ("paper-sized", "unbalanced 2-12", "rare arrival")


def estimands_of(one: Design) -> dict[str, Estimand]:
    cell = {f"endpoint({w}, {r})": estimand("endpoint", reacher=w, solver=r) for w in NAMES for r in NAMES}
    solve = {f"Solve({w}, {r})": estimand("solve", reacher=w, solver=r) for w in NAMES for r in NAMES}
    return {
        "I": estimand("interaction", **CROSS),
        "survivor-only": estimand("survivor_interaction", **CROSS),
        "survivor minus I": estimand("survivor_minus_interaction", **CROSS),
        "arrival term": estimand("arrival_term", **CROSS),
        "state term": estimand("state_term", **CROSS),
        "Reach(sft)": estimand("reach", reacher="sft"),
        "Reach(rl)": estimand("reach", reacher="rl"),
        "Reach gap": estimand("reach_gap", a="sft", b="rl"),
        "completion gap": estimand("completion_gap", reachers=NAMES, a="sft", b="rl"),
        "completion(rl)": estimand("completion", reachers=NAMES, solver="rl"),
        "won by rl only": estimand("won_only", reachers=NAMES, winner="rl", loser="sft"),
        "Delta(sft)": estimand("solver_effect", reacher="sft", a="sft", b="rl"),
        "Delta(rl)": estimand("solver_effect", reacher="rl", a="sft", b="rl"),
        "E(sft)": estimand("endpoint_effect", reacher="sft", a="sft", b="rl"),
        "E(rl)": estimand("endpoint_effect", reacher="rl", a="sft", b="rl"),
        "endpoint gain": estimand("endpoint_gain", a="sft", b="rl"),
        **solve,
        **cell,
        "I of one type": estimand("interaction", type=one.types[0], **CROSS),
        "Reach(rl) of one type": estimand("reach", type=one.types[0], reacher="rl"),
    }


TRANSPORT = {"I predicted": "predicted", "I observed": "observed", "residual": "residual"}
EXTERNAL = design((5,) * 6, reach=(0.16, 0.82), solve=((0.5, 0.76), (0.5, 0.76)))


def transported(work: tuple[str, int, int, int]) -> np.ndarray:
    """As :func:`repeats`, for the prediction of the paper-sized design from another population of as many tasks."""
    _, first, last, draws = work
    target, pair = DESIGNS["paper-sized"], ("sft", "rl", "sft", "rl")
    truth_E = transport_truth()
    sums = np.zeros((2, len(TRANSPORT), 3))
    for repeat in range(first, last):
        rng = np.random.default_rng([2027, repeat])
        here, there = target.draw(rng), EXTERNAL.draw(rng)
        there = attrs.evolve(there, tasks=tuple(f"x{task}" for task in there.tasks))
        for m, method in enumerate(("rescaled", "paper")):
            prediction = transport(Sample("a", here), Sample("b", there), pair, Intervals(method, draws, repeat))
            whole = {e.estimand.name: e for e in prediction.estimates.estimates if e.estimand.type is None}
            for e, name in enumerate(TRANSPORT.values()):
                result = whole[f"transport_{name}"]
                if result.low is not None and result.high is not None:
                    sums[m, e] += result.low <= truth_E[e] <= result.high, 1, result.high - result.low
    return sums


def transport_truth() -> np.ndarray:
    target = DESIGNS["paper-sized"]
    gap_G = target.truth([estimand("reach_gap", type=type, a="sft", b="rl") for type in target.types])
    there = [estimand("completion_gap", type=type, reachers=NAMES, a="sft", b="rl") for type in EXTERNAL.types]
    predicted = float((gap_G * EXTERNAL.truth(there)).mean())
    observed = float(target.truth([estimand("interaction", **CROSS)])[0])
    return np.array([predicted, observed, observed - predicted])


def repeats(work: tuple[str, int, int, int]) -> np.ndarray:
    """Shape (methods, estimands, [covered, given, width]) summed over repeats ``first`` to ``last`` of a design."""
    name, first, last, draws = work
    one = DESIGNS[name]
    estimands = list(estimands_of(one).values())
    truth_E = one.truth(estimands)
    sums = np.zeros((2, len(estimands), 3))
    seed = list(DESIGNS).index(name)
    for repeat in range(first, last):
        table = one.draw(np.random.default_rng([2026, seed, repeat]))
        for m, method in enumerate(("rescaled", "paper")):
            estimates = estimate(table, estimands, Intervals(method, draws, repeat)).estimates
            for e, result in enumerate(estimates):
                if result.low is not None and result.high is not None:
                    inside = result.low - 1e-12 <= truth_E[e] <= result.high + 1e-12
                    sums[m, e] += inside, 1, result.high - result.low
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three designs, 300 repeats")
    parser.add_argument("--repeats", type=int, default=None, help="studies a design (4,000; 300 with --quick)")
    parser.add_argument("--only", nargs="*", metavar="DESIGN", help="these designs only")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws a study")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/statistics.md too")
    options = parser.parse_args()
    number = options.repeats or (300 if options.quick else 4000)
    names = [name for name in DESIGNS if not options.quick or name in QUICK]
    report: dict[str, dict[str, dict[str, float | None]]] = {
        key + suffix: {} for key in ("coverage", "width", "refused") for suffix in ("", "_paper")
    }
    if not options.quick:
        names.append("transport")
    if options.only:
        names = [name for name in [*DESIGNS, "transport"] if name in options.only]
    with ProcessPoolExecutor(options.processes) as pool:
        for name in names:
            work, keys, truth_E = _task(name)
            start = time.perf_counter()
            chunks = [(name, k, min(k + 50, number), options.draws) for k in range(0, number, 50)]
            sums = np.sum(list(pool.map(work, chunks)), axis=0)
            print(f"\n{name}: {number} studies, {time.perf_counter() - start:.0f} s", flush=True)
            print(f"{'':24}{'truth':>8}{'default':>10}{'paper':>8}{'widths':>16}{'refused':>16}")
            for suffix, m in (("", 0), ("_paper", 1)):
                for key, values in (("coverage", _share(sums[m, :, 0], sums[m, :, 1])),
                                    ("width", _share(sums[m, :, 2], sums[m, :, 1])),
                                    ("refused", [1 - float(given) / number for given in sums[m, :, 1]])):  # fmt: skip
                    report[key + suffix][name] = dict(zip(keys, values, strict=True))
            for key, truth in zip(keys, truth_E, strict=True):
                cells = [_text(report[kind][name][key]) for kind in ("coverage", "coverage_paper")]
                widths = [_text(report[kind][name][key]) for kind in ("width", "width_paper")]
                refused = [_text(report[kind][name][key]) for kind in ("refused", "refused_paper")]
                print(f"{key:24}{truth:8.3f}{cells[0]:>10}{cells[1]:>8}{'/'.join(widths):>16}{'/'.join(refused):>16}")
    if options.markdown:
        _markdown(report, names)
    print(json.dumps(report, allow_nan=False))


def _task(name: str) -> tuple[Callable[[tuple[str, int, int, int]], np.ndarray], list[str], np.ndarray]:
    """What to run for a design, the names of its estimands, and their truth."""
    if name == "transport":
        return transported, list(TRANSPORT), transport_truth()
    estimands = estimands_of(DESIGNS[name])
    return repeats, list(estimands), DESIGNS[name].truth(list(estimands.values()))


def _share(above: np.ndarray, below: np.ndarray) -> list[float | None]:
    return [float(a / b) if b else None for a, b in zip(above, below, strict=True)]


def _text(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _markdown(report: dict[str, dict[str, dict[str, float | None]]], names: list[str]) -> None:
    """Coverage with the paper's in brackets, then the shares refused where there are any; a few designs a table."""
    groups = [[name for name in names if name != "transport"][k : k + 5] for k in range(0, len(names), 5)]
    groups.append([name for name in names if name == "transport"])
    for group in filter(None, groups):
        print("\n| estimand | " + " | ".join(group) + " |\n| --- |" + " --- |" * len(group))
        for key in report["coverage"][group[0]]:
            cells = [f"{_text(report['coverage'][n][key])} ({_text(report['coverage_paper'][n][key])})" for n in group]
            print(f"| {key} | " + " | ".join(cells) + " |")
    print("\n| design | estimand | refused: default | refused: paper |\n| --- | --- | --- | --- |")
    for name in names:
        for key, share in report["refused"][name].items():
            if share is not None and share >= 0.005:
                print(f"| {name} | {key} | {_text(share)} | {_text(report['refused_paper'][name][key])} |")


if __name__ == "__main__":
    main()
