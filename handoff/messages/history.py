"""The message list of an episode, from its records alone.

The record of the reset holds the messages before the first reply.  Each reply follows as the assistant's message, whole
and unchanged, then what the environment added.  A decision without a reply adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from handoff.records import Message, Record


def conversation(reset: Record, turns: Iterable[tuple[str, Record]]) -> tuple[Message, ...]:
    """The messages of an episode after ``turns``, pairs of reply and record."""
    messages = list(reset.messages)
    for reply, record in turns:
        if reply:
            messages.append(Message("assistant", reply))
            messages += added(record)
    return tuple(messages)


def added(record: Record) -> tuple[Message, ...]:
    """What the environment added to the conversation after a reply."""
    if record.messages or not record.observation:
        return record.messages
    return (Message("tool", record.observation),)
