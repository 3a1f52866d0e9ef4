"""FrozenLake: common random numbers, the frontier over possible outcomes, exact values against value iteration."""

from __future__ import annotations

from collections import Counter, deque
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from handoff import frontier
from handoff.envs.frozenlake import FrozenLakeEnvironment
from handoff.envs.frozenlake.lake import MOVES, Lake
from handoff.envs.frozenlake.lakes import SPLITS, TYPES, catalogue, draw
from handoff.errors import DataError, UsageError
from handoff.records import Task
from handoff.testing import conformance_cases


@pytest.mark.parametrize("case", conformance_cases(FrozenLakeEnvironment))
def test_the_adapter_keeps_its_contract(case):
    case()


# A second implementation: a transition array in floating point, its directions round the clock as in gymnasium.

CLOCK = ["left", "down", "right", "up"]
DELTA = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}


def transition_array(rows):
    """P[a, s, s'] of the slippery lake, from its rows: 0.8 ahead, 0.1 for each neighbour on the clock of directions.

    Holes and the goal lead to themselves.
    """
    n = len(rows)
    p = np.zeros((4, n * n, n * n))
    for s in range(n * n):
        r, c = divmod(s, n)
        for a in range(4):
            if rows[r][c] in "HG":
                p[a, s, s] = 1
                continue
            for b, probability in ((a, 0.8), ((a - 1) % 4, 0.1), ((a + 1) % 4, 0.1)):
                dr, dc = DELTA[CLOCK[b]]
                rr, cc = min(max(r + dr, 0), n - 1), min(max(c + dc, 0), n - 1)
                p[a, s, rr * n + cc] += probability
    return p


def value_iteration(rows, horizon=None, tolerance=1e-14):
    p = transition_array(rows)
    goal = np.array([cell == "G" for row in rows for cell in row], dtype=float)
    v = goal.copy()
    sweeps = 0
    while horizon is None or sweeps < horizon:
        after = np.maximum(goal, (p @ v).max(axis=0))
        sweeps += 1
        if horizon is None and np.abs(after - v).max() < tolerance:
            return after
        v = after
    return v


def lakes(count):
    return [draw("for-tests", attempt) for attempt in range(count)]


def test_values_without_a_limit_equal_value_iteration_on_60_lakes():
    for lake in lakes(60):
        ours = np.array([float(value) for value in lake.values])
        np.testing.assert_allclose(ours, value_iteration(lake.rows), atol=1e-10)


def test_values_within_a_number_of_moves_equal_value_iteration_on_40_lakes():
    for lake in lakes(40):
        for horizon in (0, 1, 2, 5, 20):
            ours = np.array([float(value) for value in lake.horizon_values(horizon)])
            np.testing.assert_allclose(ours, value_iteration(lake.rows, horizon), atol=1e-12)


def test_values_worked_out_by_hand():
    # One move from the goal straight ahead: 8/10.  Two along an edge within two moves: right twice wins with
    # 8/10 x 8/10; a first slip up leaves the place unchanged and a first slip down is no nearer, so that is all.
    lake = Lake(("SFG", "FFF", "FFF"))
    assert lake.horizon_values(1)[1] == Fraction(8, 10)
    assert lake.horizon_values(2)[0] == Fraction(64, 100)
    # Between two holes, next to the goal: right wins with 8/10 and slips into a hole otherwise.
    trap = Lake(("HHF", "SGF", "HHF"))
    assert trap.values[3] == Fraction(8, 10)
    # A corridor of one row would slip against its edges: here up and down stay, so it succeeds in the end for certain.
    ring = Lake(("SG", "FF"))
    assert ring.values[0] == 1


def test_distances_equal_a_breadth_first_search_over_the_transition_array():
    for lake in lakes(200):
        edges = transition_array(lake.rows).max(axis=0) > 0
        goal = lake.cells.index("G")
        distances, queue = {goal: 0}, deque([goal])
        while queue:
            cell = queue.popleft()
            for earlier in np.flatnonzero(edges[:, cell]):
                if earlier not in distances and lake.cells[earlier] not in "HG":
                    distances[int(earlier)] = distances[cell] + 1
                    queue.append(int(earlier))
        assert dict(lake.distances) == distances


def test_outcomes_equal_the_transition_array():
    for lake in lakes(30):
        p = transition_array(lake.rows)
        for cell in range(16):
            if not lake.ended(cell):
                for a, word in enumerate(CLOCK):
                    row = np.zeros(16)
                    for after, probability in lake.outcomes(cell, word).items():
                        row[after] = float(probability)
                    np.testing.assert_allclose(row, p[a, cell], atol=1e-15)


def test_drawn_steps_follow_0_8_and_0_1_and_0_1():
    environment = FrozenLakeEnvironment()
    # A start away from the edges, so that the three outcomes differ.
    task, lake = next(
        (task, lake)
        for task, lake in catalogue()["train"].values()
        if len(lake.outcomes(lake.start, "up")) == 3 and not any(map(lake.ended, lake.outcomes(lake.start, "up")))
    )
    counts = Counter()
    for seed in range(4000):
        environment.reset(task, seed)
        environment.step("up")
        counts[environment.snapshot()[0]] += 1
    expected = {cell: 4000 * float(p) for cell, p in lake.outcomes(lake.start, "up").items()}
    assert set(counts) == set(expected)
    chi = stats.chisquare([counts[cell] for cell in expected], list(expected.values()))
    assert chi.pvalue > 0.001


def test_a_replay_meets_the_same_slips_and_so_do_two_solvers_of_one_clone():
    environment, other = FrozenLakeEnvironment(), FrozenLakeEnvironment()
    differing = 0
    for seed in range(40):
        for task in environment.tasks("test")[::20]:
            prefix = ["left", "up", "right"]
            first = [environment.reset(task, seed)] + [environment.step(a) for a in prefix]
            second = [other.reset(task, seed)] + [other.step(a) for a in prefix]
            assert first == second
            if first[-1].done:
                continue
            # Another action at the same step meets the same draw: as intended, to the one side, or to the other.
            clone = environment.snapshot()
            lake = catalogue()["test"][task.id][1]
            kinds = []
            for word in MOVES:
                environment.restore(clone)
                environment.step(word)
                reached = environment.snapshot()[0]
                kinds.append(
                    {i for i, (_, d) in enumerate(lake.directions(word)) if lake.towards(clone[0], d) == reached}
                )
            assert set.intersection(*kinds)
            differing += 1
    assert differing > 30


def test_the_random_state_is_in_the_snapshot():
    environment = FrozenLakeEnvironment()
    task = environment.tasks("test")[0]
    for seed in range(20):
        environment.reset(task, seed)
        environment.step("up")
        state = environment.snapshot()
        onward = [environment.step("left"), environment.step("down")]
        environment.reset(task, seed + 1)
        environment.restore(state)
        assert [environment.step("left"), environment.step("down")] == onward
    first, second = environment.reset(task, 1), None
    one = environment.snapshot()
    second = environment.reset(task, 2)
    assert first == second  # it reads the same
    assert environment.snapshot() != one  # and has another future


def test_an_inadmissible_action_draws_nothing():
    environment = FrozenLakeEnvironment()
    task = environment.tasks("test")[0]
    environment.reset(task, 3)
    state = environment.snapshot()
    environment.step("jump")
    assert environment.snapshot() == state


def test_certificates_equal_the_plain_search_over_outcomes_for_depths_1_to_4():
    environment = FrozenLakeEnvironment()
    members = 0
    for number, task in enumerate(environment.tasks("test")[::4]):
        lake = catalogue()["test"][task.id][1]
        for cell in [c for c in range(16) if not lake.ended(c)][number % 3 :: 3]:
            record = environment.reset(task, 5)
            record = environment.restore((cell, 0, 5))
            for depth in (1, 2, 3, 4):
                ours = environment.certify(depth)
                assert ours == frontier.search_outcomes(environment, record, depth)
                members += ours.member
    assert members > 40


def test_membership_does_not_depend_on_the_draws():
    environment = FrozenLakeEnvironment()
    for task in environment.tasks("test")[::10]:
        certificates = set()
        for seed in range(10):
            environment.reset(task, seed)
            certificates.add(environment.certify(3))
        assert len(certificates) == 1


def test_a_certificate_worked_out_by_hand():
    # From the corner of this lake right, right may win, and so may any pair whose slips lead there: down and up slip to
    # the right with 0.1.  left slips up and down only: it never goes right.
    lake = Lake(("SFG", "FFF", "FFF"))
    environment = FrozenLakeEnvironment()
    environment._lake, environment._state = lake, (0, 0, 0)
    certificate = environment.certify(2)
    assert certificate.member
    assert certificate.distance == 2
    assert certificate.tried == (4, 16)
    assert certificate.bridges == ("up", "down", "right")
    assert certificate.path == ("up", "up")  # the first in the order of moves: two slips to the right
    assert environment.value(2) == Fraction(64, 100)


def test_the_sets_have_the_stated_sizes_types_and_distances():
    for split, each in SPLITS.items():
        lakes = catalogue()[split]
        assert Counter(task.type for task, _ in lakes.values()) == dict.fromkeys(TYPES, each)
        for task, lake in lakes.values():
            assert lake.distances[lake.start] in TYPES[task.type]
    assert len({id for lakes in catalogue().values() for id in lakes}) == 260


def test_the_expert_plan_follows_moves_that_are_possible_and_ends_at_the_goal():
    environment = FrozenLakeEnvironment()
    for task in environment.tasks("train")[::9]:
        environment.reset(task, 0)
        lake = catalogue()["train"][task.id][1]
        cells = {lake.start}
        plan = environment.plan()
        assert len(plan) >= lake.distances[lake.start]
        for word in plan:
            cells = {after for cell in cells if not lake.ended(cell) for after in lake.outcomes(cell, word)}
        assert lake.goal in cells


def test_the_expert_succeeds_about_as_often_as_the_exact_value_of_its_policy_says():
    environment = FrozenLakeEnvironment()
    rates, values = [], []
    for task in environment.tasks("test")[::6]:
        lake = catalogue()["test"][task.id][1]
        p = transition_array(lake.rows)
        rows = [p[CLOCK.index(lake.policy[c]), c] if c in lake.policy else p[0, c] for c in range(16)]
        v = np.array([cell == "G" for cell in lake.cells], dtype=float)
        for _ in range(60):
            v = np.array(rows) @ v
        won = 0
        for seed in range(150):
            record = environment.reset(task, seed)
            for _ in range(60):
                if record.done:
                    break
                record = environment.step(environment.plan()[0])
            won += record.won
        rates.append(won / 150)
        values.append(v[lake.start])
    # 10 tasks x 150 episodes: the standard error of the mean is at most 0.013.
    assert abs(np.mean(rates) - np.mean(values)) < 0.04


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("SF", "FFG"), "is a square of cells"),
        (("SX", "FG"), "'X' is not a cell of a lake"),
        (("SF", "FF"), "one start and one goal"),
    ],
)
def test_a_malformed_lake_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        Lake(rows)


def test_unknown_splits_and_tasks_are_refused():
    environment = FrozenLakeEnvironment()
    with pytest.raises(UsageError, match="has no split 'valid'"):
        environment.tasks("valid")
    with pytest.raises(DataError, match="is not one of frozenlake's maps"):
        environment.reset(Task("00", "other", "near", "test"), 0)
