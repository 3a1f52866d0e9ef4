"""The first turns of a few tasks, played before a run to see how its prompts grow."""

from __future__ import annotations

from collections.abc import Sequence

from handoff.environment import Environment, Planner
from handoff.policies.policy import Request, Turn
from handoff.records import Task
from handoff.seeds import SeedSchedule

#: Tasks that are looked at, and actions in each.
TASKS, ACTIONS = 2, 4


def openings(environment: Environment, tasks: Sequence[Task], run_seed: int) -> list[Request]:
    """The state of each of the first tasks after a few actions: along the environment's plan, or else by the first
    admissible ones.

    An environment that fails shows nothing here: the run will say what is wrong with it.
    """
    requests = []
    for task in tasks[:TASKS]:
        try:
            requests.append(_opening(environment, task, SeedSchedule(run_seed).reset(task.id, 0)))
        except (Exception, SystemExit):
            return []
    return requests


def _opening(environment: Environment, task: Task, seed: int) -> Request:
    reset = environment.reset(task, seed)
    plan = list(environment.plan())[:ACTIONS] if isinstance(environment, Planner) else []
    history: list[Turn] = []
    record = reset
    for position in range(ACTIONS):
        if record.done or record.won or not record.admissible:
            break
        action = plan[position] if position < len(plan) else record.admissible[0]
        record = environment.step(action)
        history.append(Turn(action, record))
    return Request(task, 0, reset, tuple(history), ACTIONS - len(history) + 1)
