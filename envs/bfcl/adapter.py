"""The BFCL adapter: the user's turns, up to 20 rounds of calls in each, and the checker at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from handoff.canonical import digest
from handoff.environment import Environment
from handoff.envs.bfcl.calls import BenchmarkCall, NotACall, bound, call_of, parse_call
from handoff.envs.bfcl.checker import check
from handoff.envs.bfcl.engine import Instances
from handoff.envs.bfcl.package import benchmark
from handoff.envs.bfcl.rounds import NO_CALL, as_rounds
from handoff.envs.bfcl.rows import score_row
from handoff.envs.bfcl.schemas import parameters, tools
from handoff.errors import DataError, UsageError
from handoff.messages.history import added
from handoff.messages.replies import as_text, problem_of, read_reply
from handoff.records import AnswerVerdict, Message, NamedCheck, Record, Task

SPLIT = "multi_turn_base"
#: Rounds of calls that a turn of the user may have.
ROUNDS = 20
#: What a reply without a call says.
DONE = "Done."
CONTRACT = (
    "Do what the user asks by calling tools. Several calls may stand in one reply. When the request is done, or cannot "
    "be done, say so in words, without a call: then the user speaks again."
)


class BfclEnvironment(Environment):
    """BFCL multi_turn_base: 200 tasks of several user turns, tools with state, the benchmark's own checker."""

    name: ClassVar[str] = "bfcl"
    splits: ClassVar[tuple[str, ...]] = (SPLIT,)

    def __init__(self, rounds: int = ROUNDS) -> None:
        if type(rounds) is not int or not 1 <= rounds <= 1000:
            raise UsageError(f"bfcl takes rounds from 1 to 1000, not {rounds!r:.40}")
        self._rounds = rounds
        self._id = ""
        self._instances: Instances | None = None
        self._messages: list[Message] = []
        #: Per turn of the user so far, a list of rounds, each a list of calls.
        self._turns: list[list[list[str]]] = []
        self._done = False

    def tasks(self, split: str) -> Sequence[Task]:
        if split != SPLIT:
            raise UsageError(f"bfcl has no split {split!r:.40} (it has {SPLIT})")
        return [_task(id) for id in benchmark().entries]

    def reset(self, task: Task, seed: int) -> Record:
        self._id = _entry_of(task)
        self._instances = Instances(self._entry)
        self._turns, self._done = [[]], False
        users, offered = _users(self._entry["question"][0]), tools(self._id)
        first = (Message("system", CONTRACT), *users)
        self._messages = list(first)
        return Record(_joined(users), (), 0.0, False, False, messages=first, tools=offered, state=self._state())

    @property
    def _entry(self) -> Mapping[str, Any]:
        return benchmark().entries[self._id]

    def step(self, action: str) -> Record:
        record = self._after(action)
        self._messages += [Message("assistant", action), *added(record)]
        return record

    def _after(self, action: str) -> Record:
        if self._done or self._instances is None:
            return Record("", (), 0.0, True, False, problem="the episode has ended")
        calls = read_reply(action).calls
        if not calls:
            return self._next_turn()
        results, problems, made = [], [], []
        for call in calls:
            problem = problem_of(call, tools(self._id), types=False)  # as the benchmark, which checks none
            written: BenchmarkCall | None = None
            if not problem:
                try:
                    written = call_of(call.name, call.arguments)
                except NotACall as error:
                    problem = str(error)
            if written is None:
                problems.append(problem)
                results.append(Message("tool", f"Error: {problem}.", call.name))
                made.append(NO_CALL)  # a call was made, for a checker that fails turns without any
                continue
            made.append(written.text())
            results.append(Message("tool", self._instances.execute(written), call.name))
        self._turns[-1].append(made)
        done = len(self._turns[-1]) >= self._rounds
        return self._record(tuple(results), done, problem="; ".join(dict.fromkeys(problems)))

    def _next_turn(self) -> Record:
        """The user speaks again, or the episode ends."""
        questions = self._entry["question"]
        if len(self._turns) == len(questions):
            return self._record((), True)
        following = _users(questions[len(self._turns)])
        self._turns.append([])
        return self._record(following, False)

    def _record(self, messages: tuple[Message, ...], done: bool, problem: str = "") -> Record:
        self._done = done
        won = done and self.score(_task(self._id), self.answer()).passed
        return Record(
            _joined(messages), (), float(won), done, won, messages=messages, problem=problem, state=self._state()
        )

    def _state(self) -> str:
        """Digest of the calls so far and of every attribute of the API classes."""
        return digest([self._turns, {} if self._instances is None else self._instances.state()])

    def describe(self, tasks: Sequence[Task] = ()) -> Mapping[str, Any]:
        data = benchmark()
        return {"rules": 1, "package": f"bfcl-eval {data.version}", "rounds": self._rounds, "files": dict(data.digests)}

    def messages(self) -> Sequence[Message]:
        return list(self._messages)

    # Scored

    def answer(self) -> list[list[list[str]]]:
        """The calls per turn, by round."""
        return [[list(calls) for calls in turn] for turn in self._turns]

    def score(self, task: Task, answer: Any) -> AnswerVerdict:
        """The checker's verdict on ``answer``: calls per turn, by round.  The checks are the turns."""
        id = _entry_of(task)
        result = check(id, as_rounds(id, answer) if isinstance(answer, list) else [])
        count = len(benchmark().answers[id])
        checks = [
            NamedCheck(f"turn_{number + 1}", _of_turn(result.valid, result.turn, number)) for number in range(count)
        ]
        return AnswerVerdict(result.valid, tuple(checks), (result.error,) if result.error else ())

    # Rows

    def score_row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return score_row(row)

    # Planner

    def plan(self) -> tuple[str, ...]:
        """The gold calls of this turn in one reply, then one without a call; of the later turns likewise.

        Empty where the calls so far are not the gold ones: whether that can still pass is not known.
        """
        if self._done or self._instances is None:
            return ()
        gold = [[_arguments(self._id, text) for text in calls] for calls in benchmark().answers[self._id]]
        texts = [[call_of(*call).text() for call in calls] for calls in gold]
        made = [[call for calls in turn for call in calls] for turn in self._turns]
        present = len(made) - 1
        if made[:present] != texts[:present] or made[present] not in ([], texts[present]):
            return ()
        replies = []
        for number in range(present, len(gold)):
            begun = number == present and bool(made[present])
            if gold[number] and not begun:
                replies.append(as_text("", gold[number]))
            replies.append(DONE)
        return tuple(replies)


def _task(id: str) -> Task:
    entry = benchmark().entries[id]
    return Task(
        id=digest({"environment": "bfcl", "entry": dict(entry), "answer": benchmark().answers[id]}),
        name=id,
        type=str(entry["path"][0]).partition(".")[0],
        split=SPLIT,
        source=id,
    )


def _entry_of(task: Task) -> str:
    """The entry's id.  Raises :class:`~handoff.errors.DataError` if it is none of the installed data."""
    if task.name not in benchmark().entries or _task(task.name).id != task.id:
        raise DataError(f"task {task.name!r:.60} is not one of the installed bfcl-eval {benchmark().version}")
    return task.name


def _users(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(str(one["role"]), str(one["content"])) for one in messages)


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.content for message in messages)


def _arguments(id: str, text: str) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of a gold call."""
    call = parse_call(text)
    return call.name, bound(call, parameters(id).get(call.name, ()))


def _of_turn(valid: bool, failed: int | None, number: int) -> bool | None:
    """Whether a turn passed; ``None``: it was not checked."""
    if valid or (failed is not None and number < failed):
        return True
    return False if number == failed else None
