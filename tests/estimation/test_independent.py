"""Everything that is estimated of a table, once more: loops over rows, written from the definitions of the papers.

Nothing of the toolkit is used but the table that is examined and the tasks that each bootstrap draw took.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
import pytest
from kit.bootstrap_draws import counts_of
from scipy import stats

from handoff.estimation.bootstrap import Estimate, estimate
from handoff.estimation.estimands import Estimand, standard
from handoff.estimation.method import Intervals
from handoff.estimation.resampling import plan_of
from handoff.estimation.table import Table

NAMES = ("a", "b")
DRAWS = 120


def random_table(seed: int) -> Table:
    """Two reachers and two or three solvers on types of two to five tasks, with any rates."""
    rng = np.random.default_rng([414, seed])
    sizes = rng.integers(2, 6, size=rng.integers(1, 5))
    types = tuple(f"g{g}" for g, size in enumerate(sizes) for _ in range(size))
    solvers = NAMES if seed % 3 else (*NAMES, "c")
    tasks, slots = len(types), int(rng.integers(1, 5))
    level_WT = rng.beta(0.8, 0.8, (2, tasks))[..., None] if seed % 5 else np.full((2, tasks, 1), 0.95)
    arrived_WTS = rng.random((2, tasks, slots)) < level_WT
    solved = rng.random((2, 1, tasks, slots)) if seed % 2 else rng.random((2, len(solvers), tasks, slots))
    won_WRTS = (solved < rng.uniform(0.2, 1.0, (1, len(solvers), 1, 1))) & arrived_WTS[:, None]
    bridge_WRTS = (won_WRTS | (rng.random(won_WRTS.shape) < 0.3)) & arrived_WTS[:, None]
    arrival_WTS = np.where(arrived_WTS, rng.integers(1, 20, arrived_WTS.shape), -1)
    return Table(
        NAMES, solvers, tuple(f"t{t:02d}" for t in range(tasks)), types, tuple(range(slots)), arrived_WTS, won_WRTS,
        bridge_WRTS, arrival_WTS, np.where(arrived_WTS, arrival_WTS, 20), 20,
    )  # fmt: skip


class Rows:
    """The rows of a table, each with the weight of its task; ``more`` adds to a numerator's count."""

    def __init__(self, table: Table, weight_T: np.ndarray, type: str | None, more: object = None) -> None:
        self.table, self.more, self.asked = table, more, []
        self.weight_T = np.array([w if type in (None, stratum) else 0.0
                                  for w, stratum in zip(weight_T, table.strata, strict=True)])  # fmt: skip

    def share(self, name: object, above_TS: list[np.ndarray], below_TS: list[np.ndarray]) -> float:
        above = sum(float(self.weight_T @ one.sum(axis=1)) for one in above_TS)
        below = sum(float(self.weight_T @ one.sum(axis=1)) for one in below_TS)
        self.asked.append(name)
        return (above + (name == self.more)) / below if below > 0 else math.nan

    def arrived(self, w: str) -> np.ndarray:
        return self.table.arrived_WTS[NAMES.index(w)]

    def won(self, w: str, r: str) -> np.ndarray:
        return self.table.won_WRTS[NAMES.index(w), self.table.solvers.index(r)]

    def bridged(self, w: str, r: str) -> np.ndarray:
        return self.table.bridge_WRTS[NAMES.index(w), self.table.solvers.index(r)]

    @property
    def all(self) -> np.ndarray:
        return np.ones_like(self.arrived("a"))

    # Section 1 of the definitions, one by one.

    def reach(self, w: str) -> float:
        return self.share(("arrived", w), [self.arrived(w)], [self.all])

    def endpoint(self, w: str, r: str) -> float:
        return self.share(("won", w, r), [self.won(w, r)], [self.all])

    def solve(self, w: str, r: str) -> float:
        return self.share(("won", w, r), [self.won(w, r)], [self.arrived(w)])

    def pooled(self, what: str, r: str, given: str = "arrived") -> float:
        one = {
            "won": self.won,
            "bridged": self.bridged,
            "finished": lambda w, r: self.won(w, r) & self.bridged(w, r),
        }[what]
        below = [self.arrived(w) if given == "arrived" else self.bridged(w, r) for w in NAMES]
        return self.share((what, r), [one(w, r) for w in NAMES], below)

    def only(self, winner: str, loser: str) -> float:
        above = [self.won(w, winner) & ~self.won(w, loser) for w in NAMES]
        return self.share(("only", winner, loser), above, [self.arrived(w) for w in NAMES])

    def within(self, w: str, steps: int) -> float:
        arrival_TS = self.table.arrival_WTS[NAMES.index(w)]
        return self.share(("within", w, steps), [(arrival_TS >= 0) & (arrival_TS <= steps)], [self.all])

    def actions(self, w: str) -> float:
        return self.share(("actions", w), [self.table.actions_WTS[NAMES.index(w)]], [self.all])

    def effect(self, w: str, c: str, d: str) -> float:
        return self.solve(w, d) - self.solve(w, c)

    def gain(self, w: str, c: str, d: str) -> float:
        return self.endpoint(w, d) - self.endpoint(w, c)

    def value(self, one: Estimand) -> float:
        have = dict(one.arguments)
        a, b, c, d = (have.get(key) for key in "abcd")
        w, r = have.get("reacher"), have.get("solver")
        formulas: dict[str, Callable[[], float]] = {
            "reach": lambda: self.reach(w),
            "solve": lambda: self.solve(w, r),
            "endpoint": lambda: self.endpoint(w, r),
            "mean_actions": lambda: self.actions(w),
            "reach_within": lambda: self.within(w, have["steps"]),
            "completion": lambda: self.pooled("won", r),
            "bridge": lambda: self.pooled("bridged", r),
            "finish": lambda: self.pooled("finished", r, "bridged"),
            "won_only": lambda: self.only(have["winner"], have["loser"]),
            "reach_gap": lambda: self.reach(b) - self.reach(a),
            "reach_within_gap": lambda: self.within(b, have["b_steps"]) - self.within(a, have["a_steps"]),
            "completion_gap": lambda: self.pooled("won", b) - self.pooled("won", a),
            "bridge_gap": lambda: self.pooled("bridged", b) - self.pooled("bridged", a),
            "finish_gap": lambda: self.pooled("finished", b, "bridged") - self.pooled("finished", a, "bridged"),
            "solver_effect": lambda: self.effect(w, a, b),
            "endpoint_effect": lambda: self.gain(w, a, b),
            "reacher_effect": lambda: self.endpoint(b, r) - self.endpoint(a, r),
            "endpoint_gain": lambda: self.endpoint(b, b) - self.endpoint(a, a),
            "interaction": lambda: self.gain(b, c, d) - self.gain(a, c, d),
            "survivor_interaction": lambda: self.effect(b, c, d) - self.effect(a, c, d),
            "survivor_minus_interaction": lambda: (
                self.effect(b, c, d) - self.effect(a, c, d) - self.gain(b, c, d) + self.gain(a, c, d)
            ),
            "arrival_term": lambda: (self.reach(b) - self.reach(a)) * self.effect(b, c, d),
            "state_term": lambda: self.reach(a) * (self.effect(b, c, d) - self.effect(a, c, d)),
        }
        return formulas[one.name]()


def student(freedom: float) -> float:
    return float(stats.t.ppf(0.975, max(1.0, freedom)))


def strata_of(table: Table) -> list[list[int]]:
    """The tasks of each type; no type of these tables has a single one."""
    return [[t for t, type in enumerate(table.strata) if type == one] for one in sorted(set(table.strata))]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def default_interval(table: Table, one: Estimand, drawn: list[float]) -> tuple[float, float] | None:
    """The default interval as docs/statistics.md states it; ``None`` where it is refused."""
    everyone = np.ones(len(table.tasks))
    rows = Rows(table, everyone, one.type)
    point = rows.value(one)
    numerators = list(dict.fromkeys(rows.asked))
    variance = squares = fourths = 0.0
    design = tasks = varied = 0
    for stratum in strata_of(table):
        n = len(stratum)
        if one.type in (None, table.strata[stratum[0]]):
            design, tasks = design + n - 1, tasks + n
        values = []
        for out in stratum:
            weight_T = everyone.copy()
            weight_T[stratum] = n / (n - 1)
            weight_T[out] = 0
            values.append(Rows(table, weight_T, one.type).value(one))
        off = np.array(values) - np.mean(values)
        part = (n - 1) / n * float((off**2).sum())
        variance, squares = variance + part, squares + part**2 / (n + 1)
        varied += n - 1 if part > 1e-18 else 0
        fourths += ((n - 1) / n) ** 2 * float((off**4).sum())
    defined = variance > 1e-18
    own = float(design)
    if defined:
        kurtosis = float(tasks - 1)
        if tasks > 3:
            kurtosis = 2 * tasks / (tasks * fourths / variance**2 - (tasks - 3) / (tasks - 1))
            kurtosis = max(1.0, min(tasks - 1, kurtosis))
        own = min(kurtosis, max(1.0, min(varied, variance**2 / squares - 2)))
    if one.kind == "rate":
        # The second thing asked: how many tasks and trials the denominator has.
        below = denominators(table, one)
        if np.count_nonzero(below) < 2:
            return None
        trials, z = float(below.sum()), NormalDist().inv_cdf(0.975)
        share = (z / student(own)) ** 2
        if point in (0.0, 1.0):
            trials = share * float(np.count_nonzero(below))
        elif defined:
            trials = min(trials, share * point * (1 - point) / variance)
        centre = (point + z * z / 2 / trials) / (1 + z * z / trials)
        half = z / (1 + z * z / trials) * math.sqrt(point * (1 - point) / trials + z * z / 4 / trials**2)
        return max(0.0, centre - half), min(1.0, centre + half)
    if math.isnan(variance):
        return None
    floor = 0.0
    if one.kind == "contrast":
        floor = sum((Rows(table, everyone, one.type, more).value(one) - point) ** 2 for more in numerators) / 2
    extra = floor * (1.0 if defined else 1.5)
    total = (variance if defined else 0.0) + extra
    if total <= 1e-18:
        return None
    freedom = total**2 / ((variance**2 / own if defined else 0.0) + extra**2 / design)
    half = student(freedom) * math.sqrt(total)
    low, high = point - half, point + half
    kept = [value for value in drawn if not math.isnan(value)]
    if defined and design >= 10 and len(drawn) - len(kept) <= 0.01 * len(drawn):
        share = NormalDist().cdf(-student(own))
        wider = math.sqrt(total / variance)
        low = min(low, point + (percentile(kept, share) - point) * wider)
        high = max(high, point + (percentile(kept, 1 - share) - point) * wider)
    limit = {"interaction": 2, "survivor_interaction": 2, "survivor_minus_interaction": 4, "state_term": 2}
    budget = math.inf if table.budget is None else table.budget
    most = budget if one.kind == "mean" else limit.get(one.name, 1)
    return max(low, 0.0 if one.kind == "mean" else -most), min(high, most)


def denominators(table: Table, one: Estimand) -> np.ndarray:
    """Shape (T,): each task's part of a rate's denominator."""
    have = dict(one.arguments)
    here_T = np.array([one.type in (None, stratum) for stratum in table.strata])
    if one.name in ("reach", "endpoint", "reach_within"):
        return here_T * len(table.slots)
    if one.name == "solve":
        return here_T * table.arrived_WTS[NAMES.index(have["reacher"])].sum(axis=1)
    if one.name == "finish":
        return here_T * table.bridge_WRTS[:, table.solvers.index(have["solver"])].sum(axis=(0, 2))
    return here_T * table.arrived_WTS.sum(axis=(0, 2))


def some(table: Table, seed: int) -> Iterator[Estimand]:
    """Every name once, and more of them at random."""
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    for one in standard(table, budgets=[2, 8]):
        if one.name not in seen or rng.random() < 0.15:
            seen.add(one.name)
            yield one


def same(ours: Estimate, point: float, ends: tuple[float, float] | None) -> bool:
    if math.isnan(point):
        return ours.point is None
    if ours.point != pytest.approx(point, abs=1e-12):
        return False
    if ends is None or ours.low is None or ours.high is None:
        return ends is None and ours.low is None
    return (ours.low, ours.high) == pytest.approx(ends, abs=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_points_and_both_intervals_agree_with_loops_over_rows(seed: int) -> None:
    table = random_table(seed)
    asked = list(some(table, seed))
    wrong = []
    for method, takes in (("paper", 0), ("rescaled", 1)):
        made = estimate(table, asked, Intervals(method, DRAWS, seed)).estimates
        taken_BT = counts_of(plan_of(table.strata, method), DRAWS, seed).astype(float)
        for stratum in strata_of(table):
            taken_BT[:, stratum] *= len(stratum) / (len(stratum) - takes)
        for one, ours in zip(asked, made, strict=True):
            point = Rows(table, np.ones(len(table.tasks)), one.type).value(one)
            drawn = [Rows(table, weight_T, one.type).value(one) for weight_T in taken_BT]
            if method == "paper":
                kept = [value for value in drawn if not math.isnan(value)]
                enough = len(drawn) - len(kept) <= 0.01 * len(drawn)
                ends = (percentile(kept, 0.025), percentile(kept, 0.975)) if enough and kept else None
            else:
                ends = None if math.isnan(point) else default_interval(table, one, drawn)
            if not same(ours, point, ends):
                wrong.append((method, str(one), (point, ends), (ours.point, ours.low, ours.high)))
    assert wrong == []
