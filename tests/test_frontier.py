"""The exhaustive frontier search, against arithmetic on a corridor (success at position 3; left, right, wait)."""

from __future__ import annotations

import pytest
from kit.toy import Corridor, Snapshotting

from handoff import frontier
from handoff.errors import UsageError
from handoff.records import Certificate


def certificates(start: int, prefix: list[str], depth: int) -> list[Certificate]:
    plain, cloning = Corridor(), Snapshotting()
    task = plain.tasks("default")[start]
    found = [frontier.search(plain, task, 0, prefix, depth)]
    record = cloning.reset(task, 0)
    for action in prefix:
        record = cloning.step(action)
    found.append(frontier.search_here(cloning, record, depth))
    found.append(frontier.certify(cloning, task, 0, prefix, record, depth))
    return found


def test_a_state_two_actions_away_is_on_the_frontier_of_depth_two_with_every_action_counted() -> None:
    # Position 1: 3 first actions (to 0, 2, 1); second actions 2 + 3 + 3; one path wins.
    expected = Certificate(2, True, 2, (3, 8), bridges=("right",), path=("right", "right"))
    assert certificates(1, [], 2) == [expected] * 3


def test_a_state_nearer_than_the_depth_is_not_on_its_frontier_and_the_search_stops_there() -> None:
    expected = Certificate(2, False, 1, (3,), bridges=("right",), path=("right",))
    assert certificates(2, [], 2) == [expected] * 3


def test_a_state_farther_than_the_depth_has_no_win_and_no_bridge() -> None:
    # Position 0: 2 first actions (to 1, 0); second actions 3 + 2.
    assert certificates(0, [], 2) == [Certificate(2, False, None, (2, 5))] * 3


def test_every_first_action_of_a_shortest_path_is_a_bridge_at_depth_three() -> None:
    # Position 1 with one action to waste is still 2 away, so at depth 3 the shortest path is the one of two.
    expected = Certificate(3, False, 2, (3, 8), bridges=("right",), path=("right", "right"))
    assert certificates(1, [], 3) == [expected] * 3
    # Position 0 is exactly 3 away: levels 2, 5, and 2+3 | 3+2... = from (1: 3 actions; 0: 2), counted below.
    # Level 2 leads to: right-left 0, right-right 2, right-wait 1, wait-right 1, wait-wait 0: 2 + 3 + 3 + 3 + 2 = 13.
    expected = Certificate(3, True, 3, (2, 5, 13), bridges=("right",), path=("right", "right", "right"))
    assert certificates(0, [], 3) == [expected] * 3


def test_the_state_after_a_prefix_is_searched_and_the_environment_is_left_there() -> None:
    assert [c.distance for c in certificates(0, ["right", "wait", "right"], 2)] == [1, 1, 1]
    environment = Corridor()
    frontier.search(environment, environment.tasks("default")[0], 0, ["right", "right"], 2)
    assert environment.position == 2
    cloning = Snapshotting()
    record = cloning.reset(cloning.tasks("default")[1], 0)
    frontier.search_here(cloning, record, 3)
    assert cloning.position == 1


def test_a_won_state_is_terminal_and_on_no_frontier() -> None:
    assert certificates(2, ["right"], 1) == [Certificate(1, False, 0, ())] * 3


def test_a_depth_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        certificates(0, [], 0)


def test_the_neighbourhood_graph_knows_each_states_distance_to_a_win() -> None:
    environment = Snapshotting()
    record = environment.reset(environment.tasks("default")[1], 0)
    graph = frontier.neighbourhood(environment, record, 2)
    by_position = {data["record"].observation[-1]: data for _, data in graph.nodes(data=True)}
    assert {position: data["distance"] for position, data in by_position.items()} == {"0": 3, "1": 2, "2": 1, "3": 0}
    assert {position: data["depth"] for position, data in by_position.items()} == {"0": 1, "1": 0, "2": 1, "3": 2}
    assert {data["action"] for _, _, data in graph.edges(data=True)} == {"left", "right", "wait"}
    assert environment.position == 1
    with pytest.raises(UsageError, match="more than 2 states"):
        frontier.neighbourhood(environment, record, 2, limit=2)
