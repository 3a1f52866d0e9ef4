"""Policies without a model for environments whose actions are whole replies.

``gold`` is the environment's plan, ``noisy-gold:EPS`` the same with mistakes, ``calls:FILE`` has its replies from a
file, and ``plan`` repeats the last message: as a formatter it hands an answer on as it is.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handoff import files
from handoff.canonical import parse
from handoff.errors import DataError, UsageError
from handoff.policies.policy import Policy, Request, scripted
from handoff.policies.scripted import NO_PLAN, NOISE
from handoff.records import Decision

#: What a mistake says: neither a call nor an answer.
MISTAKE = "I do not know."


class NoisyGold(Policy):
    """The first reply of the environment's plan; with probability ``epsilon``, by the decision's seed,
    :data:`MISTAKE`.  ``NoisyGold(0)`` is ``gold``."""

    needs_plan = True

    def __init__(self, epsilon: float) -> None:
        if not 0 <= epsilon <= 1:
            raise UsageError(f"noisy-gold:EPS takes a probability between 0 and 1, not {epsilon:g}")
        self.epsilon = epsilon

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        if random.Random(request.seed).random() < self.epsilon:
            return scripted(request, MISTAKE, (NOISE,))
        return scripted(request, request.plan[0]) if request.plan else scripted(request, None, (NO_PLAN,))

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "gold"} if self.epsilon == 0 else {"kind": "noisy-gold", "epsilon": self.epsilon}


class Calls(Policy):
    """Replies from a file, by their position in the episode.

    The file is a JSON object from a task's name or id to a list of replies, or has one JSON object per line with
    ``task`` and ``replies``.  Position 0 is the first reply after reset, whoever gives it; after the last one
    decisions are empty.
    """

    def __init__(self, path: str) -> None:
        try:
            raw = files.read_input(Path(path))
        except OSError as error:
            raise UsageError(f"calls:{path}: cannot read the file: {files.cause(error)}") from error
        self._digest = hashlib.sha256(raw).hexdigest()
        self._replies = _table(files.text_of(raw, f"calls:{path}: the file"), f"calls:{path}")

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Decision:
        replies = self._replies.get(request.task.id, self._replies.get(request.task.name, []))
        position = len(request.history)
        return scripted(request, replies[position] if position < len(replies) else None)

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "calls", "sha256": self._digest}


class Repeat(Policy):
    """The content of the last message."""

    def decide(self, requests: Sequence[Request]) -> list[Decision]:
        if any(not request.is_conversation for request in requests):
            raise UsageError("the policy plan repeats the last message of a conversation; this environment has none")
        return [scripted(request, request.messages()[-1].content or None) for request in requests]

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "plan"}


def _table(text: str, where: str) -> dict[str, list[str]]:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    try:
        whole = parse(text)
    except ValueError as error:
        whole = None
        if len(lines) < 2:
            raise DataError(f"{where}: not valid JSON: {error}") from error
    if isinstance(whole, dict) and not {"task", "replies"} <= whole.keys():
        entries = list(whole.items())
    else:
        entries = [_entry(line, f"{where}, line {number}") for number, line in lines]
    table: dict[str, list[str]] = {}
    for task, replies in entries:
        if not (isinstance(replies, list) and all(isinstance(reply, str) for reply in replies)):
            raise DataError(f"{where}: the entry of {task!r:.60} is not a list of replies")
        if task in table:
            raise DataError(f"{where}: the task {task!r:.60} has two entries")
        table[str(task)] = replies
    return table


def _entry(line: str, where: str) -> tuple[str, Any]:
    try:
        form = parse(line)
        return str(form["task"]), form["replies"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f'{where}: write {{"task": ..., "replies": [...]}}') from error
