"""A library's desk: a tool environment for handoff in one file.

A reader asks about books.  Two tools look things up: ``FindBook`` tells the shelf number of a title, ``ShelfInfo`` the
floor of a shelf and how many books stand on it.  The answer is a number.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from handoff import Environment, Record, Task
from handoff.canonical import digest
from handoff.errors import DataError, UsageError
from handoff.messages.history import added
from handoff.messages.replies import as_text, problem_of, read_reply, tool_of
from handoff.records import AnswerVerdict, Message, NamedCheck

# title -> shelf
BOOKS = {"Tides": 4, "Lanterns": 9, "The Salt Road": 4, "Winter Maps": 17, "Bees of the North": 9, "Glass Rivers": 23}
# shelf -> (floor, books on it)
SHELVES = {4: (1, 120), 9: (1, 85), 17: (2, 240), 23: (3, 60)}

# What may be called: a name, what it does, and the JSON Schema of its arguments.
TOOLS = (
    tool_of(
        "FindBook",
        "Tell the number of the shelf on which a book stands.",
        {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
    ),
    tool_of(
        "ShelfInfo",
        "Tell the floor of a shelf and how many books stand on it.",
        {"type": "object", "properties": {"shelf": {"type": "integer"}}, "required": ["shelf"]},
    ),
)
CONTRACT = (
    "You work at the desk of a library. Look things up with the tools. Answer with one number in <answer></answer>."
)


class DeskEnvironment(Environment):
    """A library's desk: two look-up tools, and questions whose answer is a number."""

    name: ClassVar[str] = "desk"

    def tasks(self, split: str) -> Sequence[Task]:
        if split != "default":
            raise UsageError(f"the desk has no split {split!r} (it has default)")
        return [_task(kind, title) for kind in ("floor", "books") for title in BOOKS]

    def reset(self, task: Task, seed: int) -> Record:
        if task not in self.tasks("default"):
            raise DataError(f"task {task.name!r} is no question at this desk")
        self._kind, self._title = task.source.split("/")
        self._answer: str | None = None
        self._known: list[str] = []
        question = "On which floor is" if self._kind == "floor" else "How many books stand on the shelf of"
        text = f"{question} {self._title!r}?"
        self._messages = [Message("system", CONTRACT), Message("user", text)]
        return Record(text, (), 0.0, False, False, messages=tuple(self._messages), tools=TOOLS)

    def step(self, action: str) -> Record:
        """Take a whole reply.  The record holds what comes after it, and says why a reply was no valid one."""
        record = self._after(action)
        if action:
            self._messages += [Message("assistant", action), *added(record)]
        return record

    def _after(self, reply: str) -> Record:
        if self._answer is not None:
            return Record("", (), 0.0, True, False)
        read = read_reply(reply)
        if read.calls:
            # One call per reply; a bad one is answered, never raised.
            problem = problem_of(read.calls[0], TOOLS)
            told = f"Error: {problem}." if problem else self._look_up(read.calls[0].name, read.calls[0].arguments)
            return Record(told, (), 0.0, False, False, problem=problem)
        if read.answer is None:
            return Record("", (), 0.0, False, False, problem="the reply holds neither a call nor an answer")
        self._answer = read.answer
        won = read.answer == str(_right(self._kind, self._title))
        return Record("", (), float(won), True, won)

    def _look_up(self, tool: str, arguments: Mapping[str, Any]) -> str:
        self._known.append(tool)
        if tool == "FindBook":
            shelf = BOOKS.get(arguments["title"])
            return "There is no such book." if shelf is None else f"It stands on shelf {shelf}."
        floor, books = SHELVES.get(arguments["shelf"], (None, None))
        return "There is no such shelf." if floor is None else f"It is on floor {floor} and holds {books} books."

    # The ability Messages: the whole list, which must be what the records say.
    def messages(self) -> Sequence[Message]:
        return list(self._messages)

    # The ability Scored: what the episode has come to, and a score that depends on its arguments alone.
    def answer(self) -> str | None:
        return self._answer

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        number = isinstance(answer, str) and answer.strip().isdigit()
        right = number and int(answer) == _right(*task.source.split("/")) if task.source else False
        return AnswerVerdict(bool(right), (NamedCheck("is_number", number), NamedCheck("is_right", bool(right))))

    # The ability Planner: replies that lead to success.  The policies gold and noisy-gold use them.
    def plan(self) -> tuple[str, ...]:
        if self._answer is not None:
            return ()
        calls = [("FindBook", {"title": self._title}), ("ShelfInfo", {"shelf": BOOKS[self._title]})]
        owed = [call for call in calls if call[0] not in self._known]
        return (*(as_text("", [call]) for call in owed), f"<answer>{_right(self._kind, self._title)}</answer>")


def _task(kind: str, title: str) -> Task:
    return Task(digest(["desk", kind, title]), f"{kind} of {title}", kind, "default", source=f"{kind}/{title}")


def _right(kind: str, title: str) -> int:
    floor, books = SHELVES[BOOKS[title]]
    return floor if kind == "floor" else books
