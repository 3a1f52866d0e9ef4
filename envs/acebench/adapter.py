"""The ACEBench adapter: tasks of one decision, in which a reply is a list of calls or a fixed phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.envs.acebench.checker import passes
from handoff.envs.acebench.data import LANGUAGES, AceTask, load
from handoff.envs.acebench.prompts import gold_reply, messages
from handoff.errors import DataError, UsageError
from handoff.messages.history import added
from handoff.records import AnswerVerdict, Message, NamedCheck, Record, Task


class AceBenchEnvironment(Environment):
    """ACEBench: 750 tasks of one reply per language, checked by the benchmark's rules; the agent tasks are not here."""

    name: ClassVar[str] = "acebench"
    splits: ClassVar[tuple[str, ...]] = LANGUAGES

    def __init__(self, data: str | None = None) -> None:
        """``data`` is a folder in the official layout; without one a small invented set ships."""
        shipped = str(resources.files("handoff.artifacts") / "acebench")
        self._data, self._shipped = load(shipped if data is None else data), data is None
        self._task: AceTask | None = None
        self._messages: list[Message] = []
        self._reply: str | None = None

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in self._data.tasks:
            known = ", ".join(self._data.tasks)
            raise UsageError(f"acebench has no split {split!r:.40} here (it has {known}); --data names another folder")
        return [_task(split, one) for one in self._data.tasks[split].values()]

    def reset(self, task: Task, seed: int) -> Record:
        self._task = self._find(task)
        self._messages, self._reply = list(messages(self._task)), None
        first = tuple(self._messages)
        return Record(first[-1].content, (), 0.0, False, False, messages=first)

    def _find(self, task: Task) -> AceTask:
        """The task of the data.  Raises :class:`~handoff.errors.DataError` if it is none of them."""
        found = self._data.tasks.get(task.split, {}).get(task.name.partition("/")[2])
        if found is None or _task(task.split, found).id != task.id:
            raise DataError(f"task {task.name!r:.60} is none of this folder's")
        return found

    def step(self, action: str) -> Record:
        if self._task is None or self._reply is not None:
            return Record("", (), 0.0, True, False, problem="the episode has ended")
        self._reply = action
        won = self._passes(self._task, action)
        record = Record("", (), float(won), True, won)
        if action:
            self._messages += [Message("assistant", action), *added(record)]
        return record

    @staticmethod
    def _passes(task: AceTask, reply: str) -> bool:
        return passes(task.category, task.functions, task.gold, reply)

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        return {"rules": 1, "set": "invented" if self._shipped else "given", "files": dict(self._data.digests)}

    def messages(self) -> Sequence[Message]:
        return list(self._messages)

    def answer(self) -> str | None:
        return self._reply

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        passed = isinstance(answer, str) and self._passes(self._find(task), answer)
        return AnswerVerdict(passed, (NamedCheck("passed", passed),))

    def plan(self) -> tuple[str, ...]:
        """The gold reply, where it passes by the benchmark's own rules."""
        if self._task is None or self._reply is not None:
            return ()
        reply = gold_reply(self._task)
        return (reply,) if self._passes(self._task, reply) else ()

    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row ``{"id", "lang", "output"}`` with ``passed`` filled in; other fields stay."""
        language, id, output = row.get("lang", "en"), row.get("id"), row.get("output")
        task = self._data.tasks.get(str(language), {}).get(str(id))
        if task is None:
            raise DataError(f"there is no task {id!r:.60} of the language {language!r:.20} in this folder")
        if not isinstance(output, str):
            raise DataError(f"its output is {output!r:.40}, not a text")
        return {**row, "passed": self._passes(task, output)}


def _task(language: str, task: AceTask) -> Task:
    content = {"question": task.question, "functions": [dict(one) for one in task.functions], "gold": task.gold}
    return Task(
        id=digest({"environment": "acebench", "language": language, "id": task.id, **content}),
        name=f"{language}/{task.id}",
        type=task.category,
        split=language,
        source=task.id,
    )
