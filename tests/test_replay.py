"""Clone by replay, and what a mismatch says."""

from __future__ import annotations

import attrs
import pytest
from kit.toy import Corridor

from handoff.errors import ReplayMismatch, UsageError
from handoff.records import Record
from handoff.replay import difference, replay


def recorded(actions: list[str]) -> list[Record]:
    environment = Corridor()
    task = environment.tasks("default")[0]
    return [environment.reset(task, 0), *(environment.step(action) for action in actions)]


def test_equal_records_replay_and_the_environment_stands_at_the_end() -> None:
    environment = Corridor()
    actions = ["right", "wait", "right"]
    replay(environment, environment.tasks("default")[0], 0, actions, recorded(actions))
    assert environment.position == 2


def test_a_step_spent_without_an_action_repeats_the_record_and_does_not_touch_the_environment() -> None:
    environment = Corridor()
    shown = recorded(["right"])
    replay(environment, environment.tasks("default")[0], 0, ["right", ""], [*shown, shown[-1]])
    assert environment.position == 1


@pytest.mark.parametrize(
    ("step", "change", "message"),
    [
        (0, {"observation": "elsewhere"}, r"start-0: after reset, field 'observation' was recorded as 'elsewhere'"),
        (2, {"score": 1.0}, r"start-0: after action 2, field 'score' was recorded as 1.0 and replayed as 0.0"),
        (1, {"admissible": ("right",)}, r"after action 1, field 'admissible' was recorded as \['right'\]"),
        (2, {"won": True}, r"after action 2, field 'won' was recorded as True and replayed as False"),
    ],
)
def test_a_mismatch_names_task_step_field_and_both_values(step: int, change: dict, message: str) -> None:
    environment = Corridor()
    records = recorded(["right", "wait"])
    records[step] = attrs.evolve(records[step], **change)
    with pytest.raises(ReplayMismatch, match=message):
        replay(environment, environment.tasks("default")[0], 0, ["right", "wait"], records)


def test_the_order_of_admissible_actions_is_part_of_equality() -> None:
    one = Record("x", ("a", "b"), 0.0, False, False)
    other = Record("x", ("b", "a"), 0.0, False, False)
    assert difference(one, other) == ("admissible", ["a", "b"], ["b", "a"])


def test_a_wrong_number_of_records_is_refused() -> None:
    environment = Corridor()
    with pytest.raises(UsageError, match="need 2 records, not 1"):
        replay(environment, environment.tasks("default")[0], 0, ["right"], recorded([]))
