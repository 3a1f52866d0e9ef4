"""The formatter's calls: one per query and answer, whoever shares it.

A call is known by the digest of its messages.  Its seed follows from the digest alone, so that it does not matter
which row asks first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from handoff.canonical import digest
from handoff.policies.policy import Request
from handoff.protocols.recorded.records import Continuation, Formatting
from handoff.protocols.recorded.turns import messages_json
from handoff.records import Message, Record, Task
from handoff.seeds import SeedSchedule

FORMAT = "format"


@attrs.frozen
class FormatterCall:
    """One call of the formatter."""

    digest: str
    messages: tuple[Message, ...]
    #: The task of a row that needs it.
    task: Task

    @classmethod
    def of(cls, messages: Sequence[Message], task: Task) -> FormatterCall:
        return cls(digest(messages_json(messages)), tuple(messages), task)

    def request(self, run_seed: int, attempt: int) -> Request:
        """The request of the formatter; ``attempt`` is 0, or 1 for the repair of an empty reply."""
        task = Task(self.digest, FORMAT, FORMAT, FORMAT)
        reset = Record(self.messages[-1].content, (), 0.0, False, False, messages=self.messages)
        return Request(task, SeedSchedule(run_seed).decision(self.digest, 0, FORMAT, attempt), reset, (), 1)


def answer_of(end: Continuation, formatted: Formatting | None, repair: Formatting | None) -> Any:
    """What is scored: the formatted answer, that of the repair where the first reply was empty, or the answer itself
    where the environment scores that."""
    if formatted is None:
        return end.answer
    return repair.answer if repair is not None and repair.call is not None else formatted.answer


def answer_digest(answer: Any) -> str:
    """Digest of an answer that is scored."""
    return digest(answer)
