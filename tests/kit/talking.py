"""A tiny environment whose state is a conversation, for tests of recorded-history handoff.

A task asks for the sum of numbers behind names.  The tool ``Number`` tells one number.  The answer is text; with the
class :class:`Sums` a formatter turns it into ``{"sum": ...}``, with :class:`PlainSums` it is scored as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from handoff.environment import Environment
from handoff.errors import DataError, UsageError
from handoff.messages.history import added
from handoff.messages.replies import as_text, problem_of, read_reply, tool_of
from handoff.records import AnswerVerdict, Message, NamedCheck, Record, Task

NUMBERS = {"ash": 2, "birch": 3, "cedar": 5, "elm": 7}
TOOL = tool_of(
    "Number",
    "Tell the number behind a name.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
SUMS = {"two": ("ash", "elm"), "three": ("ash", "birch", "cedar"), "pair": ("birch", "elm"), "one": ("cedar",)}


class PlainSums(Environment):
    name: ClassVar[str] = "plain-sums"
    last_request: ClassVar[str] = "Answer now."

    def tasks(self, split: str) -> Sequence[Task]:
        if split != "default":
            raise UsageError(f"no split is called {split!r}")
        return [Task(id=f"sum-{name}", name=name, type=f"of-{len(SUMS[name]) % 2}", split=split) for name in SUMS]

    def reset(self, task: Task, seed: int) -> Record:
        if task.name not in SUMS:
            raise DataError(f"there is no task {task.name}")
        self._names, self._asked, self._answer = SUMS[task.name], 0, None
        text = f"What is the sum of {' and '.join(self._names)}?"
        self._list = [Message("user", text)]
        return Record(text, (), 0.0, False, False, messages=tuple(self._list), tools=(TOOL,))

    def step(self, action: str) -> Record:
        record = self._after(action)
        self._list += [Message("assistant", action), *added(record)] if action else []
        return record

    def _after(self, action: str) -> Record:
        if self._answer is not None:
            return Record("", (), 0.0, True, False)
        reply = read_reply(action)
        record = Record("", (), 0.0, False, False, problem="it holds neither a call nor an answer")
        if reply.calls:
            problem = problem_of(reply.calls[0], (TOOL,))
            if not problem and reply.calls[0].arguments["name"] not in NUMBERS:
                problem = "no number has this name"
            told = problem or str(NUMBERS[reply.calls[0].arguments["name"]])
            self._asked += not problem
            record = Record(told, (), 0.0, False, False, problem=problem)
        elif reply.answer is not None:
            self._answer = reply.answer
            won = self.score_text(reply.answer, self._names)
            record = Record("", (), float(won), True, won)
        return record

    def messages(self) -> Sequence[Message]:
        return list(self._list)

    def answer(self) -> Any:
        return self._answer

    @staticmethod
    def score_text(answer: object, names: Sequence[str]) -> bool:
        return answer == str(sum(NUMBERS[name] for name in names))

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        right = self.score_text(answer, SUMS[task.name])
        digits = isinstance(answer, str) and answer.isdigit()
        return AnswerVerdict(right, (NamedCheck("is_number", digits), NamedCheck("is_sum", right if digits else None)))

    def plan(self) -> tuple[str, ...]:
        if self._answer is not None:
            return ()
        calls = [as_text("", [("Number", {"name": name})]) for name in self._names[self._asked :]]
        total = sum(NUMBERS[name] for name in self._names)
        return (*calls, f"<think>I add them.</think><answer>{total}</answer>")


class Sums(PlainSums):
    name: ClassVar[str] = "sums"

    def formatting(self, task: Task, answer: str) -> Sequence[Message]:
        if not answer:
            return ()
        return [Message("system", "Write the number as JSON."), Message("user", answer)]

    def read_formatted(self, reply: str) -> Any:
        try:
            value = json.loads(reply)
        except (ValueError, RecursionError):
            return None
        return value["sum"] if isinstance(value, dict) and isinstance(value.get("sum"), str) else str(value)


class RaisesAtBadCalls(PlainSums):
    def _after(self, action: str) -> Record:
        for call in read_reply(action).calls:
            NUMBERS[call.arguments["name"]]
        return super()._after(action)


class StartsWithoutAUser(PlainSums):
    def reset(self, task: Task, seed: int) -> Record:
        record = super().reset(task, seed)
        self._list = [Message("system", "Add.")]
        return attrs.evolve(record, messages=tuple(self._list))


class ScoresByTheEpisode(PlainSums):
    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        self._scored = getattr(self, "_scored", 0) + 1
        return AnswerVerdict(False, (), (str(self._scored),))


class FallsOverOddAnswers(PlainSums):
    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        return AnswerVerdict(int(answer) == 9)


class PassesWithAFailedCheck(PlainSums):
    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        verdict = super().score(task, answer)
        return attrs.evolve(verdict, passed=True)


class AsksInTheLastMessage(Sums):
    def formatting(self, task: Task, answer: str) -> Sequence[Message]:
        return [Message("user", f"Write as JSON: {answer}")]


class FallsOverOddReplies(Sums):
    def read_formatted(self, reply: str) -> Any:
        return json.loads(reply)["sum"]


class NamesATwice(PlainSums):
    def reset(self, task: Task, seed: int) -> Record:
        return attrs.evolve(super().reset(task, seed), tools=(TOOL, TOOL))


class Forgetful(PlainSums):
    """Its message list is not what its records say, from the second reply on."""

    name: ClassVar[str] = "forgetful"

    def messages(self) -> Sequence[Message]:
        return self._list[:-1] if len(self._list) > 4 else list(self._list)


def install(folder: Path) -> Path:
    """Make the environments known to every process that has ``folder`` on its path; returns the folder."""
    info = folder / "talking-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: talking\nVersion: 1.0\n")
    lines = [f"{cls.name} = kit.talking:{cls.__name__}" for cls in (PlainSums, Sums, Forgetful)]
    (info / "entry_points.txt").write_text("\n".join(["[handoff.environments]", *lines, ""]))
    return folder


#: The check that finds the fault of each.
BROKEN = {
    RaisesAtBadCalls: "records",
    StartsWithoutAUser: "messages",
    Forgetful: "messages",
    NamesATwice: "messages",
    ScoresByTheEpisode: "scored",
    FallsOverOddAnswers: "scored",
    PassesWithAFailedCheck: "scored",
    AsksInTheLastMessage: "formatted",
    FallsOverOddReplies: "formatted",
}
