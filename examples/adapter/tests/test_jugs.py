import pytest
from handoff_jugs import JugsEnvironment

from handoff.testing import conformance_cases


@pytest.mark.parametrize("case", conformance_cases(JugsEnvironment))
def test_the_adapter_keeps_its_contract(case):
    case()


@pytest.mark.parametrize("split", JugsEnvironment.splits)
def test_every_puzzle_can_be_solved_and_not_at_once(split):
    environment = JugsEnvironment()
    for task in environment.tasks(split):
        environment.reset(task, 0)
        assert len(environment.plan()) > 2, task.name


def test_the_classic_puzzle_takes_six_steps():
    environment = JugsEnvironment()
    environment.reset(environment.tasks("test")[0], 0)  # 4 litres with jugs of 3 and 5
    assert len(environment.plan()) == 6
