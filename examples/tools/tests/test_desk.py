import pytest
from handoff_desk import BOOKS, SHELVES, DeskEnvironment

from handoff.testing import conformance_cases


@pytest.mark.parametrize("case", conformance_cases(DeskEnvironment))
def test_the_adapter_keeps_its_contract(case):
    case()


def test_every_question_is_answered_by_its_plan():
    environment = DeskEnvironment()
    tasks = environment.tasks("default")
    assert len(tasks) == 2 * len(BOOKS)
    for task in tasks:
        environment.reset(task, 0)
        for reply in environment.plan():
            record = environment.step(reply)
        assert record.won, task.name
        floor, books = SHELVES[BOOKS[task.source.split("/")[1]]]
        assert environment.answer() == str(floor if task.type == "floor" else books)
