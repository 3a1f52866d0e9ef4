"""Seven labels of non-arrival, each from a trajectory that is one, and shares of steps counted by hand."""

from __future__ import annotations

import random

import pytest

from handoff.errors import UsageError
from handoff.protocols.frontier.failures import (
    LABELS,
    Failures,
    failures,
    label,
    share_gap,
    state_of,
    steps_of,
    target_progress,
)
from handoff.protocols.frontier.records import Trajectory
from handoff.records import Certificate, Decision, Record, Step

CHECK = Certificate(2, False, None, (1, 1))
TASK = "You are in the middle of a room.\n\nYour task is to: put a clean mug in cabinet."


def record(observation: str, *admissible: str) -> Record:
    return Record(observation, admissible, 0.0, False, False)


def trajectory(
    moves: list[tuple[str | None, Record]],
    reset: Record,
    outcome: str = "budget",
    reacher: str = "sft",
    task: str = "t",
) -> Trajectory:
    taken = tuple(
        Step(Decision(action or "?", action, "parsed" if action else "no_action", 0, ""), after, CHECK)
        for action, after in moves
    )
    return Trajectory(task, 0, reacher, 0, reset, CHECK, taken, 0 if outcome == "arrived" else None, outcome)


# A household where observations answer the last action: three places, the state being what can be done there.
HALL = record(TASK, "go to desk 1", "go to shelf 1", "look")
AT_DESK = record("You arrive at desk 1.", "go to shelf 1", "look", "take mug 1 from desk 1", "take pen 1 from desk 1")
AT_SHELF = record("You arrive at shelf 1.", "go to desk 1", "look", "open box 1")
HOLDING = record("You pick up the mug 1 from the desk 1.", "go to shelf 1", "look", "put mug 1 in/on desk 1")
HOLDING_PEN = record("You pick up the pen 1.", "go to shelf 1", "look", "put pen 1 in/on desk 1")


def answer(state: Record, text: str = "Nothing happens.") -> Record:
    return record(text, *state.admissible)


def new_place(n: int) -> Record:
    return record(f"You arrive at shelf {n}.", f"go to shelf {n + 1}", "look")


def wandering(steps: int) -> list[tuple[str | None, Record]]:
    return [(f"go to shelf {n + 1}" if n else "go to shelf 1", new_place(n + 1)) for n in range(steps)]


#: Shows that observations answer actions in this run: one text, two lists.
ANSWERS = trajectory([("look", answer(AT_DESK)), ("look", answer(AT_SHELF))], HALL)
STATE = state_of([ANSWERS])

EXAMPLES = {
    "format_collapse": trajectory([(None, answer(HALL))] * 3 + [("look", answer(HALL))] * 3, HALL),
    "inadmissible": trajectory([("fly", answer(HALL))] * 2 + [(None, answer(HALL)), ("look", answer(HALL))], HALL),
    "ended": trajectory([("go to desk 1", AT_DESK)], HALL, outcome="terminal"),
    "loop": trajectory([("go to desk 1", AT_DESK), ("look", answer(AT_DESK)), ("look", answer(AT_DESK))], HALL),
    "missed_subgoal": trajectory(
        [("go to desk 1", AT_DESK), ("take mug 1 from desk 1", HOLDING), ("go to shelf 1", new_place(9))], HALL
    ),
    "never_took_target": trajectory(
        [("go to desk 1", AT_DESK), ("take pen 1 from desk 1", HOLDING_PEN), ("go to shelf 1", new_place(9))], HALL
    ),
    "wander": trajectory(wandering(3), HALL),
}


@pytest.mark.parametrize("name", LABELS)
def test_each_label_has_a_trajectory_that_only_it_describes(name: str) -> None:
    assert label(EXAMPLES[name], STATE) == name


def test_there_are_seven_labels() -> None:
    assert len(LABELS) == len(set(LABELS)) == 7 == len(EXAMPLES)


@pytest.mark.parametrize("seed", range(30))
def test_any_trajectory_has_exactly_one_label(seed: int) -> None:
    rng = random.Random(seed)
    places = [HALL, AT_DESK, AT_SHELF, HOLDING, answer(HALL), new_place(3)]
    actions = [None, "look", "fly", "go to desk 1", "take mug 1 from desk 1"]
    many = [
        trajectory([(rng.choice(actions), rng.choice(places)) for _ in range(rng.randrange(12))], HALL,
                   rng.choice(["budget", "terminal", "won"]), rng.choice(["sft", "rl"]))
        for _ in range(20)
    ]  # fmt: skip
    found = failures(many)
    assert sum(sum(one.labels.values()) for one in found.values()) == 20
    assert all(set(one.labels) == set(LABELS) for one in found.values())


def test_steps_are_counted_as_defined() -> None:
    moves: list[tuple[str | None, Record]] = [
        ("go to desk 1", AT_DESK),  # a new state
        ("look", answer(AT_DESK)),  # unchanged, so revisited
        ("look", answer(AT_DESK, "You see a mug 1.")),  # repeats the action, unchanged
        ("go to shelf 1", AT_SHELF),  # new
        ("go to desk 1", AT_DESK),  # an earlier state, changed
        (None, answer(AT_DESK)),  # unusable, unchanged
        (None, answer(AT_DESK)),  # unusable repeats nothing
        ("fly", answer(AT_DESK)),  # inadmissible
    ]
    counts = steps_of(trajectory(moves, HALL), STATE)
    assert (counts.total, counts.unusable, counts.inadmissible) == (8, 2, 1)
    assert (counts.repeats, counts.revisits, counts.unchanged, counts.distinct) == (1, 6, 5, 4)


def test_the_state_is_the_observation_where_it_always_comes_with_the_same_actions() -> None:
    boards = [record(text, "up", "down") for text in ("#.@", "#@.", "@..")]
    run = trajectory([("up", boards[1]), ("down", boards[2])], boards[0])
    state = state_of([run])
    assert len({state(board) for board in boards}) == 3
    assert steps_of(run, state).revisits == 0


def test_the_state_is_the_list_of_actions_where_observations_answer_the_last_one() -> None:
    assert STATE(AT_DESK) == STATE(answer(AT_DESK)) != STATE(AT_SHELF)


def test_one_observation_in_two_tasks_does_not_make_it_an_answer() -> None:
    start = record("start", "up")
    elsewhere = record("start", "down")
    state = state_of([trajectory([], start, task="t"), trajectory([], elsewhere, task="u")])
    assert state(start) == state(elsewhere)


def test_progress_counts_only_the_object_that_the_task_names_and_only_actions_that_were_offered() -> None:
    assert target_progress(EXAMPLES["missed_subgoal"]) == "taken"
    assert target_progress(EXAMPLES["never_took_target"]) == "offered"
    assert target_progress(EXAMPLES["wander"]) is None
    wished = trajectory([("take mug 1 from desk 1", answer(HALL))], HALL)
    assert target_progress(wished) is None


def test_an_arrival_has_no_failure_label() -> None:
    with pytest.raises(UsageError, match="there is no failure"):
        label(trajectory([], HALL, outcome="arrived"), STATE)


def test_shares_are_over_all_steps_of_the_non_arrivals_of_each_reacher() -> None:
    looping = trajectory([("look", answer(HALL))] * 4, HALL, reacher="sft")
    longer = trajectory(wandering(6), HALL, reacher="sft")
    arrived = trajectory([], HALL, outcome="arrived", reacher="rl")
    found = failures([ANSWERS, looping, longer, arrived])
    sft = found["sft"]
    assert (sft.trajectories, sft.steps) == (3, 12)
    # ANSWERS: look, look: 1 repeat; looping: 3 repeats; longer: none.
    assert sft.repeats == 4 / 12
    # ANSWERS: desk and shelf are new; looping: all four unchanged; longer: none.
    assert sft.revisits == 4 / 12
    assert sft.unchanged == 4 / 12
    assert sft.median_distinct == 1.0  # 1, 1, 6
    rl = found["rl"]
    assert (rl.trajectories, rl.steps, rl.repeats, rl.median_distinct, rl.share("loop")) == (0, 0, None, None, None)


def counted(reacher: str, **labels: int) -> Failures:
    every = {name: labels.get(name, 0) for name in LABELS}
    return Failures(reacher, sum(labels.values()), every, 0, None, None, None, None)


def test_the_papers_loop_gap_and_its_interval_come_out_of_its_counts() -> None:
    sft = counted("sft", loop=102, missed_subgoal=2)
    rl = counted("rl", loop=18, wander=2, never_took_target=1)
    gap = share_gap(sft, rl)
    assert gap.point is not None
    assert gap.low is not None
    assert gap.high is not None
    assert f"{100 * gap.point:.1f}" == "-12.4"
    assert 100 * gap.low == pytest.approx(-28.6, abs=0.3)
    assert 100 * gap.high == pytest.approx(1.0, abs=0.3)


def test_a_gap_without_non_arrivals_is_null_with_its_reason() -> None:
    gap = share_gap(counted("sft", loop=3), counted("rl"))
    assert (gap.point, gap.low, gap.reason) == (None, None, "rl has no non-arrivals")
