"""Checks of the abilities of tool environments: messages, open actions, scored answers, formatted answers, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handoff.canonical import canonical
from handoff.conformance.checks import ContractCheck, check
from handoff.conformance.subject import REPLIES, Skipped, Subject, fail, over
from handoff.environment import Environment, Formatted, Messages, RowScorer, Scored
from handoff.errors import DataError
from handoff.messages.history import conversation
from handoff.messages.replies import as_text, schema_of
from handoff.records import BLANK, ROLES, AnswerVerdict, Message, Record, Task, fills, to_json
from handoff.text import reason

#: In the order in which they are run.
CHECKS: list[ContractCheck] = []

#: Answers of every shape, which no score may fall over.
ODD_ANSWERS: tuple[Any, ...] = (
    None, "", "no", 0, -1.5, True, [], {}, [[]], [None], [{}], {"a": None}, [["x"]], [[["f(x)"]]], "x" * 5000,
    {"plan": [{"day": "one"}]}, ["__import__('os')"],
)  # fmt: skip
#: Replies of a formatter of every shape.
ODD_REPLIES = ("", "no", "{", "[]", "{}", "null", "[1, NaN]", "```json\n[\n```", "[" * 3000, "x" * 5000, "\x00 漢字")


def passes(environment: Environment, task: Task) -> bool:
    """Whether what the episode came to passes the environment's own score, without a model as formatter."""
    if not isinstance(environment, Scored):
        return False
    answer = environment.answer()
    if isinstance(environment, Formatted) and isinstance(answer, str):
        answer = environment.read_formatted(answer)
    return environment.score(task, answer).passed


@check(CHECKS, "open-actions", "Every open action has one blank, and can be filled", "records")
def _open_actions(subject: Subject) -> str:
    tried = 0
    for episode in subject.episodes():
        for record in episode.records:
            for pattern in record.open_actions:
                if pattern.count(BLANK) != 1:
                    fail(f"the open action {pattern!r:.60} has not one {BLANK}", f"write {BLANK} once, where text goes")
        for pattern in episode.records[0].open_actions:
            filled = pattern.replace(BLANK, "two words")
            assert fills(filled, pattern)
            subject.shared.reset(episode.task, episode.seed)
            faults = subject.faults(subject.shared.step(filled))
            if faults:
                fail(f"step({filled!r:.60}) gave an unusable record: {'; '.join(faults)}", "return a complete Record")
            tried += 1
    if not tried:
        raise Skipped("no record has open actions")
    return f"{tried} filled at reset"


def _replies(subject: Subject, task: Task, seed: int) -> list[str]:
    """Replies of an episode: odd ones, calls of the task's tools with odd arguments, then those of the plan."""
    environment = subject.shared
    tools = environment.reset(task, seed).tools
    replies = list(REPLIES)
    for tool in tools[:4]:
        names = list(schema_of(tool).get("properties", {}))
        odd: list[dict[str, Any]] = [{}, dict.fromkeys(names), dict.fromkeys(names, "x")]
        replies += [as_text("", [(tool.name, arguments)]) for arguments in (*odd, {"no_such_argument": 1})]
    return replies


@check(CHECKS, "messages", "The message list is what the records say, after every reply", "records")
def _messages(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Messages):
        raise Skipped("the adapter has no messages(): its state is not a conversation")
    count = 0
    for episode in subject.walks():
        reset = environment.reset(episode.task, episode.seed)
        _first(reset, episode.task)
        turns: list[tuple[str, Record]] = []
        replies = _replies(subject, episode.task, episode.seed)
        environment.reset(episode.task, episode.seed)
        for reply in replies:
            record = _step(environment, reply)
            turns.append((reply, record))
            _require_list(environment, reset, turns, episode.task)
            count += 1
            if over(record):
                break
        count += _follow(environment, episode.task, episode.seed)
    return f"{count} replies, good and bad"


def _first(reset: Record, task: Task) -> None:
    """The record of the reset: messages, the last of them the user's, and tools with schemas."""
    if not reset.messages or reset.messages[-1].role != "user":
        fail(
            f"task {task.name}: the record of the reset does not end with a message of the user",
            "give reset() the messages before the first reply: Record(..., messages=(Message('user', ...),))",
        )
    odd = [message.role for message in reset.messages if message.role not in ROLES]
    if odd:
        fail(f"task {task.name}: a message has the role {odd[0]!r:.40}", f"roles are {', '.join(ROLES)}")
    names = [tool.name for tool in reset.tools]
    if len(set(names)) != len(names) or not all(names):
        fail(f"task {task.name}: the tools are called {', '.join(names)}", "name every tool once")
    for tool in reset.tools:
        try:
            schema: Any = schema_of(tool)
        except ValueError as error:
            fail(
                f"the parameters of {tool.name} are not JSON ({error})",
                "make tools by handoff.messages.replies.tool_of",
            )
        if not isinstance(schema, dict) or schema.get("type") != "object":
            fail(f"the parameters of {tool.name} are no JSON Schema of an object", "write {'type': 'object', ...}")


def _step(environment: Environment, reply: str) -> Record:
    try:
        return environment.step(reply)
    except DataError as error:  # such as a look-up that the data do not cover
        raise Skipped(f"step({reply!r:.60}) needs data that are not there: {error}") from error
    except Exception as error:
        fail(
            f"step({reply!r:.80}) raised {reason(error)}",
            "answer a bad call with a message to the model (handoff.messages.replies.problem_of), and never raise",
        )


def _require_list(environment: Messages, reset: Record, turns: Sequence[tuple[str, Record]], task: Task) -> None:
    expected, listed = conversation(reset, turns), tuple(environment.messages())
    if not all(isinstance(message, Message) for message in listed):
        fail(f"task {task.name}: messages() holds other things than messages", "return handoff.records.Message objects")
    if canonical([to_json(one) for one in expected]) != canonical([to_json(one) for one in listed]):
        fail(
            f"task {task.name}, after {len(turns)} replies: messages() has {len(listed)} messages and is not what the "
            f"records say, which is {len(expected)}",
            "append the whole reply, then handoff.messages.history.added(record), and nothing else",
        )


def _follow(environment: Any, task: Task, seed: int) -> int:
    """Follow the plan, if there is one, and compare the lists on the way."""
    if not hasattr(environment, "plan"):
        return 0
    reset = environment.reset(task, seed)
    turns: list[tuple[str, Record]] = []
    for reply in environment.plan():
        turns.append((reply, _step(environment, reply)))
        _require_list(environment, reset, turns, task)
    return len(turns)


@check(CHECKS, "scored", "A score depends on task and answer alone, and none falls over an odd answer", "records")
def _scored(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Scored):
        raise Skipped("the adapter has no answer() and score()")
    tried = 0
    for episode in subject.walks():
        fresh: Any = subject.make()
        for answer in ODD_ANSWERS:
            verdicts = []
            for one in (environment, fresh, environment):
                try:
                    verdict = one.score(episode.task, answer)
                except Exception as error:
                    fail(
                        f"score() of the answer {answer!r:.60} raised {reason(error)}",
                        "an answer is untrusted: one that cannot be read is one that does not pass",
                    )
                if not isinstance(verdict, AnswerVerdict):
                    fail(f"score() returned a {type(verdict).__name__}", "return handoff.records.AnswerVerdict")
                verdicts.append(canonical(to_json(verdict)))
                if verdict.passed and any(check.passed is False for check in verdict.checks):
                    fail(f"the answer {answer!r:.60} passes, though a check does not", "a pass fails no check")
            if len(set(verdicts)) != 1:
                fail(
                    f"score() of the answer {answer!r:.60} differs from instance to instance, or the second time",
                    "let score() depend on its arguments alone",
                )
            tried += 1
        fresh.close()
    return f"{tried} odd answers"


@check(
    CHECKS, "formatted", "The formatter's last message is the answer alone, and no reply of it falls over", "records"
)
def _formatted(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Formatted):
        raise Skipped("the adapter has no formatting() and read_formatted(): answers are scored as they are")
    task = subject.tasks()[0]
    messages = tuple(environment.formatting(task, "This is the answer."))
    if not messages or messages[-1] != Message("user", "This is the answer."):
        fail(
            "the last message of formatting() is not the answer alone",
            "put what is asked for into a system message, and the answer, unchanged, into the last one of the user",
        )
    for reply in ODD_REPLIES:
        try:
            canonical({"value": environment.read_formatted(reply)})
        except Exception as error:
            fail(
                f"read_formatted({reply!r:.40}) raised {reason(error)}, or is not JSON-safe",
                "return None for a reply that cannot be read",
            )
    return f"{len(ODD_REPLIES)} odd replies"


@check(CHECKS, "rows", "A row that cannot be read is refused in one sentence", "records")
def _rows(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, RowScorer):
        raise Skipped("the adapter has no score_row()")
    for row in ({}, {"id": None}, {"id": 1, "plan": 2}):
        try:
            environment.score_row(row)
        except DataError:
            continue
        except Exception as error:
            fail(f"score_row({row}) raised {reason(error)}", "raise handoff.errors.DataError that says what is wrong")
        fail(f"score_row({row}) scored a row that names no task", "raise handoff.errors.DataError")
    return "3 rows refused"
