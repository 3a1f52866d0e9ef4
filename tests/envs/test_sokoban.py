"""Sokoban: the rules, the boards, and exact distances against a search written apart."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path

import pytest

from handoff import frontier
from handoff.envs.seeded_tasks import symmetries
from handoff.envs.sokoban import SokobanEnvironment
from handoff.envs.sokoban.board import Board
from handoff.envs.sokoban.boards import SPLITS, TYPES, catalogue, draw
from handoff.errors import DataError, UsageError
from handoff.records import Task
from handoff.testing import conformance_cases

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("case", conformance_cases(SokobanEnvironment))
def test_the_adapter_keeps_its_contract(case):
    case()


# A second implementation, from the text of a board alone: rows and columns, no cell numbers, forward search.

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def independent_move(grid, player, box, word):
    """The position after a move in a grid of characters; the same position if the move is not possible."""
    dr, dc = STEPS[word]
    ahead = (player[0] + dr, player[1] + dc)
    if grid[ahead[0]][ahead[1]] == "#":
        return player, box
    if ahead == box:
        beyond = (box[0] + dr, box[1] + dc)
        if grid[beyond[0]][beyond[1]] == "#":
            return player, box
        return ahead, beyond
    return ahead, box


def find(rows, symbols):
    return next((r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell in symbols)


def independent_distance(rows):
    """Least number of moves to success by forward breadth-first search; ``None`` if there is no way."""
    player, box, target = find(rows, "@+"), find(rows, "$*"), find(rows, ".*+")
    queue, seen = deque([(player, box, 0)]), {(player, box)}
    while queue:
        player, box, moves = queue.popleft()
        if box == target:
            return moves
        for word in STEPS:
            after = independent_move(rows, player, box, word)
            if after not in seen:
                seen.add(after)
                queue.append((*after, moves + 1))
    return None


def drawn_boards(count):
    """Boards as they are drawn, solvable or not: not only those that the task sets keep."""
    boards = (draw("for-tests", attempt) for attempt in itertools.count())
    return list(itertools.islice((board for board in boards if board is not None), count))


def test_distances_equal_an_independent_search_on_200_boards_solvable_or_not():
    boards = drawn_boards(200)
    distances = [board.distances.get(board.start) for board in boards]
    assert distances == [independent_distance(board.rows()) for board in boards]
    # The comparison covers both kinds, and long ways too.
    assert 20 < sum(distance is None for distance in distances) < 180
    assert max(distance for distance in distances if distance is not None) > 8


def test_distances_of_every_state_on_the_way_equal_the_independent_search():
    for board in drawn_boards(12):
        for state, distance in board.distances.items():
            assert independent_distance(board.rows(state)) == distance


def test_records_equal_the_independent_rules_along_walks_that_bump_and_push():
    environment = SokobanEnvironment()
    pushes = bumps = 0
    for number, task in enumerate(environment.tasks("train")[::6]):
        rows = environment.reset(task, 0).observation.splitlines()[-6:]
        player, box, target = find(rows, "@+"), find(rows, "$*"), find(rows, ".*+")
        for step in range(30):
            word = list(STEPS)[(7 * step + 3 * number + step * step // 5) % 4]
            after = independent_move(rows, player, box, word)
            pushes, bumps = pushes + (after[1] != box), bumps + (after == (player, box))
            player, box = after
            record = environment.step(word)
            rows = record.observation.splitlines()[-6:]
            assert (find(rows, "@+"), find(rows, "$*"), find(rows, ".*+")) == (player, box, target)
            assert record.won == record.done == (box == target)
            possible = [w for w in STEPS if independent_move(rows, player, box, w) != (player, box)]
            assert record.admissible == (() if record.won else tuple(possible))
            if record.won:
                break
    assert pushes > 10
    assert bumps > 20


def test_a_known_board_reads_and_plays_as_worked_out_by_hand():
    # The player walks round the box to its right (up, right, right, down), then pushes it left onto the target.
    board = Board.parse(["######", "#----#", "#.$--#", "#@---#", "######", "######"])
    assert board.rows() == ["######", "#----#", "#.$--#", "#@---#", "######", "######"]
    # down one row the way is shorter: right, right, up, then left pushes: four moves
    assert board.distances[board.start] == 4
    state = board.start
    for word in ("right", "right", "up", "left"):
        state = dict(board.successors(state))[word]
    assert board.rows(state) == ["######", "#----#", "#*@--#", "#----#", "######", "######"]
    assert board.won(state)


def test_a_box_in_a_corner_off_the_target_has_no_distance():
    board = Board.parse(["######", "#$--.#", "#@---#", "#----#", "#----#", "######"])
    assert board.start not in board.distances


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["######"] * 5, "has 6 rows of 6 cells"),
        (["######", "#@$.-#", "#----#", "#----#", "#----#", "#-####"], "walled in on all four sides"),
        (["######", "#@$--#", "#----#", "#----#", "#----#", "######"], "has one target, not 0"),
        (["######", "#@$.$#", "#----#", "#----#", "#----#", "######"], "has one box, not 2"),
        (["######", "#@$.x#", "#----#", "#----#", "#----#", "######"], "'x' is not a cell"),
    ],
)
def test_a_malformed_board_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        Board.parse(rows)


def test_the_sets_have_the_stated_sizes_types_and_distances():
    for split, each in SPLITS.items():
        tasks = catalogue()[split]
        assert Counter(task.type for task, _ in tasks.values()) == dict.fromkeys(TYPES, each)
        for task, board in tasks.values():
            assert independent_distance(board.rows()) in TYPES[task.type]


def test_no_board_is_another_one_turned_or_mirrored_in_any_split():
    boards = [board.rows() for boards in catalogue().values() for _, board in boards.values()]
    forms = [frozenset(symmetries(rows)) for rows in boards]
    assert len(set(forms)) == len(boards) == 240
    assert all(tuple(rows) in form for rows, form in zip(boards, forms, strict=True))


def test_the_boards_do_not_depend_on_the_hash_seed():
    script = "from handoff.envs.sokoban import SokobanEnvironment as E; print(E().describe()['boards_sha256'])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        ).stdout.strip()
        for hash_seed in ("0", "12345")
    }
    assert outputs == {SokobanEnvironment().describe()["boards_sha256"]}


def test_certificates_equal_the_plain_search_by_replay_for_depths_1_to_4():
    environment = SokobanEnvironment()
    members = expected = 0
    for task in environment.tasks("test")[::5]:
        environment.reset(task, 0)
        plan = environment.plan()
        expected += min(4, len(plan))  # a shortest plan passes distance 1, 2, 3 and 4 once, if it starts that far away
        for position in range(max(0, len(plan) - 5), len(plan)):
            for depth in (1, 2, 3, 4):
                environment.reset(task, 0)
                for action in plan[:position]:
                    environment.step(action)
                ours = environment.certify(depth)
                assert ours == frontier.search(environment, task, 0, plan[:position], depth)
                members += ours.member
    assert members == expected


def test_a_plan_is_as_short_as_the_independent_distance_and_the_first_in_the_order_of_moves():
    environment = SokobanEnvironment()
    for task in environment.tasks("test")[::4]:
        record = environment.reset(task, 0)
        plan = environment.plan()
        assert len(plan) == independent_distance(record.observation.splitlines()[-6:]) == environment.distance()
        if len(plan) <= 5:
            environment.reset(task, 0)
            assert frontier.search(environment, task, 0, (), len(plan)).path == plan


def test_an_unsolvable_state_has_no_plan_and_no_distance():
    environment = SokobanEnvironment()
    for task in environment.tasks("train"):
        environment.reset(task, 0)
        stuck = next((s for s in _reachable(environment) if s is not None), None)
        if stuck is None:
            continue
        environment.restore(stuck)
        assert environment.plan() == ()
        assert environment.distance() is None
        certificate = environment.certify(3)
        assert (certificate.member, certificate.distance, certificate.path) == (False, None, ())
        return
    pytest.fail("no board has a dead end")


def _reachable(environment):
    queue, seen = deque([environment.snapshot()]), {environment.snapshot()}
    while queue:
        state = queue.popleft()
        record = environment.restore(state)
        if independent_distance(record.observation.splitlines()[-6:]) is None:
            yield state
        for action in record.admissible:
            environment.restore(state)
            environment.step(action)
            if environment.snapshot() not in seen:
                seen.add(environment.snapshot())
                queue.append(environment.snapshot())


def test_unknown_splits_and_tasks_are_refused():
    environment = SokobanEnvironment()
    with pytest.raises(UsageError, match="has no split 'valid'"):
        environment.tasks("valid")
    with pytest.raises(DataError, match="'other' of split 'test' is not one of sokoban's boards"):
        environment.reset(Task("00", "other", "short", "test"), 0)


def test_a_task_is_found_by_its_id_whatever_its_source_says():
    environment = SokobanEnvironment()
    task = environment.tasks("test")[7]
    moved = Task(task.id, task.name, task.type, task.split, source="")
    assert environment.reset(moved, 0) == environment.reset(task, 0)
