"""Policies without a model: ``random``, ``expert``, ``noisy:EPS``, ``tempered:T[:HABIT]`` and ``actions:FILE``.

Their behaviour is known, so that a protocol, a certificate or an estimand can be tested on them.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError, UsageError
from handoff.policies.policy import Policy, Request, scripted
from handoff.records import Decision
from handoff.seeds import derive

#: Remarks on a decision: it was drawn at random; the environment knew no plan.
NOISE, NO_PLAN = "noise", "no_plan"


def _uniform(generator: random.Random, choices: Sequence[str]) -> str | None:
    # Only ``random()`` is promised to give equal numbers on every Python.
    return choices[int(generator.random() * len(choices))] if choices else None


class Random(Policy):
    """A uniformly random admissible action."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [
            scripted(request, _uniform(random.Random(request.seed), request.record.admissible)) for request in requests
        ]

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "random"}


class Noisy(Policy):
    """With probability ``epsilon`` a uniformly random admissible action, else the first action of the environment's
    plan.  ``Noisy(0)`` is the expert: it re-plans wherever it is.  Without a plan its decision is empty."""

    needs_plan = True

    def __init__(self, epsilon: float) -> None:
        if not 0 <= epsilon <= 1:
            raise UsageError(f"noisy:EPS takes a probability between 0 and 1, not {epsilon:g}")
        self.epsilon = epsilon

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        generator = random.Random(request.seed)
        if generator.random() < self.epsilon:
            return scripted(request, _uniform(generator, request.record.admissible), (NOISE,))
        if not request.plan:
            return scripted(request, None, (NO_PLAN,))
        return scripted(request, request.plan[0])

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "expert"} if self.epsilon == 0 else {"kind": "noisy", "epsilon": self.epsilon}


def is_temperature(value: float) -> bool:
    """Whether a :class:`Tempered` policy can decide at this temperature."""
    return 0 < value < math.inf


class Tempered(Policy):
    """Draws an admissible action a with probability proportional to exp(u(a) / T).

    The utility u(a) is 1 for the first action of the environment's plan and 0 for others, plus a *habit* of the action
    in the state that the record shows, between 0 and ``habit``.  A habit is fixed: a hash of record and action, the
    same in every episode and for every policy.  Without habits heat only does harm.  With ``habit`` above 1 some
    actions have more utility than the plan's: the cold policy repeats a mistake, and heat ends it, as with a model that
    is sure of something wrong.

    The utility uses the plan's first action and not the distance after every action, which in a stochastic environment
    would be a look into the future.
    """

    needs_plan = True
    temperature: float

    def __init__(self, temperature: float, habit: float = 0.0) -> None:
        if not (is_temperature(temperature) and 0 <= habit < math.inf):
            raise UsageError(
                f"tempered:T[:HABIT] takes a temperature above 0 and a habit of 0 or more, "
                f"not {temperature:g} and {habit:g}"
            )
        self.temperature, self.habit = temperature, habit

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        actions = request.record.admissible
        if not actions:
            return scripted(request, None)
        utilities = self._utilities(request)
        highest, temperature = max(utilities), request.tempered(self.temperature)
        weights = [math.exp((utility - highest) / temperature) for utility in utilities]
        place = random.Random(request.seed).random() * sum(weights)
        chosen = next((a for a, reached in zip(actions, accumulate(weights), strict=True) if place < reached), None)
        return scripted(request, chosen or actions[-1], () if request.plan else (NO_PLAN,))

    def _utilities(self, request: Request) -> list[float]:
        record = request.record
        planned = request.plan[0] if request.plan else None
        habits = [0.0] * len(record.admissible)
        if self.habit:
            state = record.digest()
            habits = [self.habit * derive("habit", state, action) / 2**63 for action in record.admissible]
        return [(action == planned) + habit for action, habit in zip(record.admissible, habits, strict=True)]

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "tempered", "temperature": self.temperature, "habit": self.habit}


class Actions(Policy):
    """Actions from a file, by their position in the episode.

    The file is text with one action per line, for every task, or a JSON object from a task's id or name to a list of
    actions.  Position 0 is the first action after reset, whoever takes it; after the last one decisions are empty.
    """

    def __init__(self, path: str) -> None:
        try:
            raw = files.read_input(Path(path))
        except OSError as error:
            raise UsageError(f"actions:{path}: cannot read the file: {files.cause(error)}") from error
        text = files.text_of(raw, f"actions:{path}: the file")
        self._digest = hashlib.sha256(raw).hexdigest()
        self._by_task: dict[str, list[str]] | None = None
        self._lines: list[str] = []
        if text.lstrip().startswith("{"):
            try:
                table = parse(text)
            except ValueError as error:
                raise DataError(f"actions:{path}: not valid JSON: {error}") from error
            for key, actions in table.items():
                if not (isinstance(actions, list) and all(isinstance(action, str) for action in actions)):
                    raise DataError(f"actions:{path}: the entry of {key!r} is not a list of actions")
            self._by_task = table
        else:
            self._lines = [line.strip() for line in text.splitlines() if line.strip()]

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        actions = self._lines
        if self._by_task is not None:
            actions = self._by_task.get(request.task.id, self._by_task.get(request.task.name, []))
        position = len(request.history)
        return scripted(request, actions[position] if position < len(actions) else None)

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "actions", "sha256": self._digest}
