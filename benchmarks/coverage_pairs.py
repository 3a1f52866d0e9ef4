"""How often the intervals of many pairs cover the truth: means, crossover, lost then solved, routing.

    python benchmarks/coverage_pairs.py [--quick]

Every study is simulated anew: tasks of a benchmark differ in difficulty, alike for all pairs; bases differ in strength;
post-training sets a part of the tasks, different per pair, to always or never solved, so that pass@1 rises.  16
rollouts per task.  The truth is that of a large population.  The last line is JSON: per design, for each number the
percentage of studies in which its 95% interval covers the truth, and of those in which it is refused; and the worst.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from handoff.passk.counts import Counts
from handoff.passk.crossing import mean_curves
from handoff.passk.estimators import TaxEstimate
from handoff.passk.pairs import Pair
from handoff.passk.recovery import lost_then_solved
from handoff.passk.routing import routed_coverage
from handoff.passk.tax import calibrated_scalability, scalability

K = 16
Rates = np.ndarray
#: Bases, post-trained policies of each, and tasks.
MEANS = ((3, 1, 50), (4, 1, 50), (12, 1, 20), (12, 1, 50), (12, 2, 50), (40, 1, 100), (1, 4, 50), (2, 1, 50))
TASKS = (20, 50, 200)


class World:
    """One population of tasks and checkpoints."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def tasks(self, count: int) -> Rates:
        return self.rng.normal(size=count)

    def base(self, difficulty_T: Rates, strength: float | None = None) -> Rates:
        strength = self.rng.normal(-0.8, 0.7) if strength is None else strength
        own_T = 0.8 * self.rng.normal(size=len(difficulty_T))
        return 1 / (1 + np.exp(-(strength + 1.5 * difficulty_T + own_T)))

    def post(self, base_T: Rates, share: float | None = None) -> Rates:
        share = self.rng.beta(4, 4) if share is None else share
        sharpened_T = (self.rng.random(len(base_T)) < np.minimum(2.5 * base_T, 1)).astype(float)
        return np.where(self.rng.random(len(base_T)) < share, sharpened_T, base_T)

    def counts(self, name: str, rates_T: Rates) -> Counts:
        return Counts.of(name, [(str(i), K, int(c)) for i, c in enumerate(self.rng.binomial(K, rates_T))])


def curve(rates_T: Rates) -> Rates:
    return (1 - (1 - rates_T[:, None]) ** np.arange(1, K + 1)).mean(axis=0)


def numbers(base_K: Rates, post_K: Rates) -> list[float]:
    """Tax_A, Tax_S, coverage lost, efficiency gained, and the difference of the curves."""
    raw = float(scalability(base_K - post_K)[-1])
    before, after = calibrated_scalability(base_K), calibrated_scalability(post_K)
    assert before is not None
    assert after is not None
    return [raw, before - after, base_K[-1] - post_K[-1], post_K[0] - base_K[0], *(base_K - post_K)]


class Tally:
    def __init__(self) -> None:
        self.covered: dict[str, list[bool]] = defaultdict(list)
        self.refused: dict[str, int] = defaultdict(int)

    def add(self, name: str, estimate: TaxEstimate, truth: float) -> None:
        if estimate.low is None or estimate.high is None:
            self.refused[name] += 1
        else:
            self.covered[name].append(bool(estimate.low <= truth <= estimate.high))

    def row(self) -> dict[str, list[float]]:
        """Per number, covered and refused in percent."""
        return {
            name: [
                round(100 * float(np.mean(covered)), 1),
                round(100 * self.refused[name] / (len(covered) + self.refused[name]), 1),
            ]
            for name, covered in self.covered.items()
        }


def means(bases: int, posts: int, tasks: int, studies: int) -> dict[str, list[float]]:
    world, tally = World(1), Tally()
    # With one base, or two, the pairs stay: their truth is over tasks (and, of one base, over its policies).
    fixed = bases < 3
    strengths = [-0.8, -0.2][:bases] if fixed else [None]
    shares = [0.5] if bases == 2 else [None]
    difficulty = world.tasks(4000)
    each = []
    for strength in strengths * (1 if fixed else 1500):
        base_T = world.base(difficulty, strength)
        for share in shares * (300 if fixed else 1):
            each.append(numbers(curve(base_T), curve(world.post(base_T, share))))
    truth = np.mean(each, axis=0)
    ahead = np.flatnonzero(truth[4:] > 0)
    at = int(ahead[0]) + 1 if len(ahead) else None
    for _ in range(studies):
        difficulty, pairs = world.tasks(tasks), []
        for b in range(bases):
            base_T = world.base(difficulty, strengths[b] if fixed else None)
            base = world.counts(f"base {b}", base_T)
            pairs += [Pair(base, world.counts(f"post {b} {p}", world.post(base_T, shares[0]))) for p in range(posts)]
        found = mean_curves(pairs)
        for name, true in zip(("tax_a", "tax_s", "coverage_lost", "efficiency_gained"), truth, strict=False):
            tally.add(name, getattr(found, name), float(true))
        beyond = K + 1
        low, high = (beyond if end is None else end for end in (found.crossing.low, found.crossing.high))
        tally.covered["crossing"].append(low <= (beyond if at is None else at) <= high)
    return tally.row()


def tasks_alone(tasks: int, studies: int) -> dict[str, list[float]]:
    world, tally = World(2), Tally()

    def three(count: int) -> list[Rates]:
        base_T = world.base(world.tasks(count), -0.8)
        return [base_T, world.post(base_T, 0.7), world.post(base_T, 0.3)]

    many = three(200_000)
    solves = [1 - (1 - rates) ** K for rates in many]
    lost = [float((solves[0] * (1 - x)).mean()) for x in solves[1:]]
    both = [float((solves[0] * (1 - x) * y).mean()) for x, y in (solves[1:], solves[:0:-1])]
    share = [b / a for a, b in zip(lost, both, strict=True)]
    routed = routed_coverage(
        *(world.counts(name, rates[:20_000]) for name, rates in zip("bx", many, strict=False)), K, 4
    )
    for _ in range(studies):
        base, x, y = (world.counts(name, rates) for name, rates in zip("bxy", three(tasks), strict=True))
        for place, row in enumerate(lost_then_solved([Pair(base, x), Pair(base, y)])):
            tally.add("share solved", row.share, share[place])
            tally.add("less the other direction", row.difference, share[place] - share[1 - place])
        found = routed_coverage(base, x, K, 4, pilots=20)
        for name in ("tax", "over_base", "over_post", "over_random"):
            true = getattr(routed, name).point
            tally.add(f"routing {name}", getattr(found, name), true)
    return tally.row()


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    studies = 100 if quick else 1000
    designs: dict[str, dict[str, list[float]]] = {}
    for bases, posts, tasks in MEANS:
        name = f"{bases} bases, {posts} policies of each, {tasks} tasks"
        designs[name] = means(bases, posts, tasks, studies)
        print(name, designs[name], flush=True)
    for tasks in TASKS:
        name = f"one base, two policies, {tasks} tasks"
        designs[name] = tasks_alone(tasks, studies)
        print(name, designs[name], flush=True)
    every = [(cover, name, key) for name, row in designs.items() for key, (cover, _) in row.items()]
    refused = max(refusal for row in designs.values() for _, refusal in row.values())
    print(json.dumps({"studies": studies, "worst": min(every), "most_refused": refused, "designs": designs}))


if __name__ == "__main__":
    main()
