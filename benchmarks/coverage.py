"""How often do 95% intervals cover?  Simulated studies with known truth, the paper's interval against the default one.

    python benchmarks/coverage.py [--quick] [--repeats N] [--draws N] [--processes N] [--only DESIGN...] [--markdown]

Four families: the estimands of one study, the transport prediction, the difference of two independent runs, and the
sharpening tax.  Each repeat draws new tasks and new outcomes from a population with known truth, makes both intervals
with the library's code, and asks whether they hold the truth.  A refused interval is no failure to cover: refusals are
counted apart, and coverage is that of the intervals given.  The standard error of a coverage of 95% is 0.34 points at
4,000 repeats and 1.3 at the 300 of --quick.

The last line is one JSON object: ``worst`` (by family: the least coverage of the default interval with its design and
estimand), ``most_covered`` and ``most_refused`` (by family, likewise), and ``coverage``, ``width`` and ``refused``,
each {design: {estimand: share}}, also with ``_paper``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attrs
import numpy as np
from scipy.special import expit

from handoff.estimation.bootstrap import estimate
from handoff.estimation.differences import difference
from handoff.estimation.estimands import Estimand, estimand
from handoff.estimation.method import Intervals
from handoff.estimation.table import Table
from handoff.estimation.transport import Sample, transport
from handoff.passk.comparison import compare
from handoff.passk.counts import Counts
from handoff.planning.population import Design, centre

#: The default interval and the paper's.
METHODS = ("rescaled", "paper")

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
    # Solvers that end alike on nearly all states, as two checkpoints of one family do.
    "near-equal, 2% discordant": design((5,) * 6, reach=(0.5, 0.8), solve=((0.62, 0.625),) * 2, pairing=0.95),
    "near-equal, ceiling": design((5,) * 6, reach=(0.5, 0.8), solve=((0.97, 0.972),) * 2, pairing=0.95),
    "near-equal, 5% discordant": design((5,) * 6, reach=(0.5, 0.8), solve=((0.6, 0.615),) * 2, pairing=0.88),
    "near-equal, 20 tasks a type": design((20,) * 6, reach=(0.5, 0.8), solve=((0.6, 0.615),) * 2, pairing=0.88),
    "heavy tails, three tasks a type": design((3,) * 6, 10, (0.3, 0.6), ((0.4, 0.7), (0.5, 0.8)), task_sd=3.0),
    "bimodal, types of 1 to 12": design((1, 2, 3, 6, 12), 4, (0.4, 0.7), ((0.4, 0.7), (0.5, 0.8)), task_sd=4.0),
}


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


#: An estimand's name, its truth, and the two ends of its interval (``None`` where refused).
Row = tuple[str, float, float | None, float | None]


def studies(name: str, repeat: int, method: str, draws: int) -> Iterator[Row]:
    """One study of a design."""
    one = DESIGNS[name]
    named = estimands_of(one)
    seed = list(DESIGNS).index(name)
    table = one.draw(np.random.default_rng([2026, seed, repeat]))
    made = estimate(table, list(named.values()), Intervals(method, draws, repeat)).estimates
    yield from ((key, truth, e.low, e.high) for key, truth, e in zip(named, truth_of(name), made, strict=True))


KNOWN: dict[str, list[float]] = {}


def truth_of(name: str) -> list[float]:
    if name not in KNOWN:
        KNOWN[name] = DESIGNS[name].truth(list(estimands_of(DESIGNS[name]).values())).tolist()
    return KNOWN[name]


# Two samples: the prediction from one to the other, and their difference.

ELSEWHERE = {"reach": (0.16, 0.82), "solve": ((0.5, 0.76), (0.5, 0.76))}
PAIRS = {
    f"{family}: {size}": (design(tasks), design(tasks, **ELSEWHERE))
    for family in ("transport", "compare")
    for size, tasks in {
        "five tasks a type": (5,) * 6,
        "three tasks a type": (3,) * 6,
        "two tasks a type": (2,) * 6,
        "unbalanced 2-12": (2, 3, 5, 8, 12),
    }.items()
}
COMPARED = ("I", "Reach gap", "completion gap", "E(rl)", "endpoint gain", "Reach(rl)", "endpoint(rl, rl)")


def two_tables(name: str, repeat: int) -> tuple[Table, Table]:
    rng = np.random.default_rng([2027, list(PAIRS).index(name), repeat])
    here, there = (one.draw(rng) for one in PAIRS[name])
    return here, attrs.evolve(there, tasks=tuple(f"x{task}" for task in there.tasks))


def transports(name: str, repeat: int, method: str, draws: int) -> Iterator[Row]:
    """One prediction."""
    here, there = two_tables(name, repeat)
    prediction = transport(Sample("a", here), Sample("b", there), (*NAMES, *NAMES), Intervals(method, draws, repeat))
    whole = {e.estimand.name: e for e in prediction.estimates.estimates if e.estimand.type is None}
    for key, truth in transport_truth(name).items():
        one = whole[f"transport_{key}"]
        yield f"I {key}" if key != "residual" else key, truth, one.low, one.high


TRUE_TRANSPORT: dict[str, dict[str, float]] = {}


def transport_truth(name: str) -> dict[str, float]:
    if name not in TRUE_TRANSPORT:
        here, there = PAIRS[name]
        share_G = np.array(here.tasks_G) / sum(here.tasks_G)
        gap_G = here.truth([estimand("reach_gap", type=type, a="sft", b="rl") for type in here.types])
        gaps = [estimand("completion_gap", type=type, reachers=NAMES, a="sft", b="rl") for type in there.types]
        predicted = float(share_G @ (gap_G * there.truth(gaps)))
        observed = float(here.truth([estimand("interaction", **CROSS)])[0])
        TRUE_TRANSPORT[name] = {"predicted": predicted, "observed": observed, "residual": observed - predicted}
    return TRUE_TRANSPORT[name]


TRUE_DIFFERENCE: dict[str, list[float]] = {}


def differences(name: str, repeat: int, method: str, draws: int) -> Iterator[Row]:
    """The difference of two independent runs."""
    here, there = two_tables(name, repeat)
    named = {key: estimands_of(PAIRS[name][0])[key] for key in COMPARED}
    asked = list(named.values())
    if name not in TRUE_DIFFERENCE:
        first, second = (one.truth(asked) for one in PAIRS[name])
        TRUE_DIFFERENCE[name] = (second - first).tolist()
    made = difference(here, there, asked, Intervals(method, draws, repeat), paired=False).estimates
    yield from ((key, truth, e.low, e.high) for key, truth, e in zip(named, TRUE_DIFFERENCE[name], made, strict=True))


# The sharpening tax: K = 16 of n rollouts per task.

BUDGET = 16
TAXES = {
    f"tax: {kind}, {tasks} tasks": (kind, tasks)
    for kind in ("heavy tails, sharpened", "near-equal policies", "post near the ceiling")
    for tasks in (10, 20, 50, 200)
}


def rates(kind: str, rng: np.random.Generator, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """The success rates of the base and of the post-trained policy, per task."""
    if kind == "heavy tails, sharpened":
        base, fate = rng.beta(0.3, 0.6, tasks), rng.random(tasks)
        return base, np.where(fate < 0.35, 1.0, np.where(fate < 0.5, 0.0, base))
    if kind == "near-equal policies":
        hardness = rng.normal(0, 1.5, tasks)
        return expit(hardness), expit(hardness + rng.normal(0.02, 0.15, tasks))
    return expit(rng.normal(0.5, 1.5, tasks)), expit(rng.normal(4.5, 1.5, tasks))


def tax_truth(kind: str) -> dict[str, float]:
    """From a million tasks: the Monte-Carlo error is a thousandth of an interval's width."""
    k = np.arange(1, BUDGET + 1)
    a, s, at_k, at_1 = [], [], [], []
    for rate in rates(kind, np.random.default_rng(1), 1_000_000):
        curve_K = np.array([1 - ((1 - rate) ** j).mean() for j in k])
        a.append(float((curve_K[-1] - curve_K).sum()))
        s.append(a[-1] / ((BUDGET - 1) * (1 - curve_K[0])))
        at_k.append(float(curve_K[-1]))
        at_1.append(float(curve_K[0]))
    return {"Tax_A": a[0] - a[1], "Tax_S": s[0] - s[1], "coverage lost": at_k[0] - at_k[1],
            "efficiency gained": at_1[1] - at_1[0], "A(base)": a[0], "S(base)": s[0], "S(post)": s[1],
            "pass@K(base)": at_k[0], "pass@1(post)": at_1[1]}  # fmt: skip


TRUE_TAX: dict[str, dict[str, float]] = {}


def taxes(name: str, repeat: int, method: str, draws: int) -> Iterator[Row]:
    """One pair of policies with 32 rollouts per task."""
    kind, tasks = TAXES[name]
    if kind not in TRUE_TAX:
        TRUE_TAX[kind] = tax_truth(kind)
    rng = np.random.default_rng([2028, list(TAXES).index(name), repeat])
    counts = [
        Counts.of(side, [(str(t), 32, int(c)) for t, c in enumerate(rng.binomial(32, rate))])
        for side, rate in zip(("base", "post"), rates(kind, rng, tasks), strict=True)
    ]
    one = compare(*counts, BUDGET, draws=min(draws, 300), seed=repeat,
                  method="jackknife" if method == METHODS[0] else method)  # fmt: skip
    (low, high), single = one.post.pass_at_k_band[0], one.base
    found: dict[str, tuple[Any, Any]] = {
        key: (made.low, made.high)
        for key, made in {
            "Tax_A": one.tax_a,
            "Tax_S": one.tax_s,
            "coverage lost": one.coverage_lost,
            "efficiency gained": one.efficiency_gained,
            "A(base)": single.scalability,
            "S(base)": single.calibrated,
            "S(post)": one.post.calibrated,
            "pass@K(base)": single.coverage,
        }.items()
    }
    found["pass@1(post)"] = low, high
    yield from ((key, truth, *found[key]) for key, truth in TRUE_TAX[kind].items())


FAMILIES: dict[str, tuple[list[str], Callable[[str, int, str, int], Iterator[Row]]]] = {
    "study": (list(DESIGNS), studies),
    "transport": ([name for name in PAIRS if name.startswith("transport")], transports),
    "compare": ([name for name in PAIRS if name.startswith("compare")], differences),
    "tax": (list(TAXES), taxes),
}
Result = dict[tuple[str, str], list[float]]


def repeats(work: tuple[str, str, int, int, int]) -> Result:
    """By method and estimand: covered, given, width and repeats, summed over repeats ``first`` to ``last``."""
    family, name, first, last, draws = work
    sums: Result = {}
    for repeat in range(first, last):
        for method in METHODS:
            for key, truth, low, high in FAMILIES[family][1](name, repeat, method, draws):
                row = sums.setdefault((method, key), [0.0, 0.0, 0.0, 0.0])
                row[3] += 1
                if low is not None and high is not None:
                    row[0] += low - 1e-12 <= truth <= high + 1e-12
                    row[1] += 1
                    row[2] += high - low
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300 repeats of every design")
    parser.add_argument("--repeats", type=int, default=None, help="studies a design (4,000; 300 with --quick)")
    parser.add_argument("--only", nargs="*", metavar="DESIGN", help="these designs or families only")
    parser.add_argument("--draws", type=int, default=1000, help="bootstrap draws a study")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/statistics.md too")
    options = parser.parse_args()
    number = options.repeats or (300 if options.quick else 4000)
    report: dict[str, dict[str, dict[str, float | None]]] = {
        key + suffix: {} for suffix in ("", "_paper") for key in ("coverage", "width", "refused")
    }
    homes = {name: family for family, (names, _) in FAMILIES.items() for name in names
             if not options.only or {family, name} & set(options.only)}  # fmt: skip
    with ProcessPoolExecutor(options.processes) as pool:
        for name, family in homes.items():
            start = time.perf_counter()
            chunks = [(family, name, k, min(k + 25, number), options.draws) for k in range(0, number, 25)]
            sums: Result = {}
            for part in pool.map(repeats, chunks):
                for key, row in part.items():
                    sums[key] = [a + b for a, b in zip(sums.get(key, [0.0] * 4), row, strict=True)]
            for suffix, method in (("", METHODS[0]), ("_paper", METHODS[1])):
                rows = {key: row for (made_by, key), row in sums.items() if made_by == method}
                report["coverage" + suffix][name] = {
                    key: row[0] / row[1] if row[1] else None for key, row in rows.items()
                }
                report["width" + suffix][name] = {key: row[2] / row[1] if row[1] else None for key, row in rows.items()}
                report["refused" + suffix][name] = {key: 1 - row[1] / row[3] for key, row in rows.items()}
            print(f"\n{name}: {number} studies, {time.perf_counter() - start:.0f} s", flush=True)
            print(f"{'':24}{'default':>10}{'paper':>8}{'widths':>16}{'refused':>16}")
            for key in report["coverage"][name]:
                cells = [[_text(report[kind + suffix][name][key]) for suffix in ("", "_paper")]
                         for kind in ("coverage", "width", "refused")]  # fmt: skip
                print(f"{key:24}{cells[0][0]:>10}{cells[0][1]:>8}{'/'.join(cells[1]):>16}{'/'.join(cells[2]):>16}")
    if options.markdown:
        _markdown(report, homes)
    worst, most, refused = ({family: _extreme(report[kind], [n for n in homes if homes[n] == family], which)
                       for family in dict.fromkeys(homes.values())}
                      for kind, which in (("coverage", min), ("coverage", max), ("refused", max)))  # fmt: skip
    extremes = {"worst": worst, "most_covered": most, "most_refused": refused}
    print(json.dumps({**extremes, "repeats": number, **report}, allow_nan=False))


def _extreme(shares: dict[str, dict[str, float | None]], names: list[str], which: Callable[..., Any]) -> Any:
    cells = [(share, name, key) for name in names for key, share in shares[name].items() if share is not None]
    share, name, key = which(cells)
    return {"share": share, "design": name, "estimand": key}


def _text(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _markdown(report: dict[str, dict[str, dict[str, float | None]]], homes: dict[str, str]) -> None:
    """Coverage with the paper's in brackets, a few designs per table; then what is refused in more than 0.5%."""
    for family in dict.fromkeys(homes.values()):
        names = [name for name in homes if homes[name] == family]
        for first in range(0, len(names), 5 if family == "study" else 4):
            group = names[first : first + (5 if family == "study" else 4)]
            titles = [name.removeprefix(f"{family}: ") for name in group]
            print(f"\n| {family} | " + " | ".join(titles) + " |\n| --- |" + " --- |" * len(group))
            for key in report["coverage"][group[0]]:
                cells = [
                    f"{_text(report['coverage'][n][key])} ({_text(report['coverage_paper'][n][key])})" for n in group
                ]
                print(f"| {key} | " + " | ".join(cells) + " |")
    print("\n| design | estimand | refused: default | refused: paper |\n| --- | --- | --- | --- |")
    for name in homes:
        for key, share in report["refused"][name].items():
            if share is not None and share >= 0.005:
                print(f"| {name} | {key} | {_text(share)} | {_text(report['refused_paper'][name][key])} |")


if __name__ == "__main__":
    main()
