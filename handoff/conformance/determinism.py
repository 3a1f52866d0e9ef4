"""Checks that equal seeds and actions give equal records, whatever happened before."""

from __future__ import annotations

from handoff.canonical import canonical
from handoff.conformance.checks import ContractCheck, check
from handoff.conformance.child import ask_child
from handoff.conformance.subject import (
    Skipped,
    Subject,
    compare,
    differs,
    fail,
    play,
)
from handoff.records import Record, from_json, to_json
from handoff.text import reason

#: In the order in which they are run.
CHECKS: list[ContractCheck] = []


@check(CHECKS, "determinism", "Two resets and the same actions give the same records", "records")
def _determinism(subject: Subject) -> str:
    for episode in subject.episodes():
        compare(
            episode,
            play(subject.shared, episode.task, episode.seed, episode.actions),
            "second time on the same instance",
            "let reset() set every part of the state, and draw only from a generator seeded by reset(task, seed)",
        )
    return f"{len(subject.episodes())} episodes"


@check(CHECKS, "replay", "A fresh instance replays a recorded episode exactly", "records")
def _replay(subject: Subject) -> str:
    for episode in subject.episodes():
        fresh = subject.make()
        compare(
            episode,
            play(fresh, episode.task, episode.seed, episode.actions),
            "replayed in a fresh instance",
            "keep nothing that decides records outside the instance, nor from before its reset",
        )
        fresh.close()
    return f"{sum(len(e.records) for e in subject.episodes())} records equal"


@check(CHECKS, "reuse", "An instance in the middle of another task starts afresh", "records")
def _reuse(subject: Subject) -> str:
    walks = subject.walks()
    if len(walks) < 2:
        raise Skipped("one task only: raise --tasks, if the split has more")
    environment = subject.make()
    for before, after in zip(walks, walks[1:] + walks[:1], strict=True):
        play(environment, before.task, before.seed, before.actions[: max(1, len(before.actions) // 2)])
        compare(
            after,
            play(environment, after.task, after.seed, after.actions),
            f"on an instance left in the middle of task {before.task.name}",
            "let reset() forget the task before: something of it is still there",
        )
    return f"{len(walks)} changes of task"


@check(CHECKS, "seeds", "Every seed from 0 to 2**63 - 1 is taken", "records")
def _seeds(subject: Subject) -> str:
    episode = subject.walks()[0]
    differ = False
    for seed in (0, 1, 2**63 - 1):
        try:
            records = play(subject.shared, episode.task, seed, episode.actions)
        except Exception as error:
            fail(f"an episode with seed {seed} raised {reason(error)}", "take any int from 0 to 2**63 - 1 as a seed")
        differ = differ or any(differs(a, b) for a, b in zip(episode.records, records, strict=True))
    return "records depend on the seed" if differ else "records do not depend on the seed"


@check(CHECKS, "interleaving", "Two instances played in turn do not touch each other", "records")
def _interleaving(subject: Subject) -> str:
    walks = subject.walks()
    pairs = [(walks[0], walks[0])] + ([(walks[0], walks[1])] if len(walks) > 1 else [])
    advice = "keep all state in the instance: these two share some (a module global, a class attribute, a library)"
    for left, right in pairs:
        first, second = subject.make(), subject.make()
        seen: tuple[list[Record], list[Record]] = ([], [])
        seen[0].append(first.reset(left.task, left.seed))
        seen[1].append(second.reset(right.task, right.seed))
        for position in range(max(len(left.actions), len(right.actions))):
            for environment, episode, records in ((first, left, seen[0]), (second, right, seen[1])):
                if position < len(episode.actions):
                    records.append(environment.step(episode.actions[position]))
        compare(left, seen[0], "beside another instance", advice)
        compare(right, seen[1], "beside another instance", advice)
        first.close()
        second.close()
    return f"{len(pairs)} pairs of episodes"


@check(CHECKS, "processes", "A new process with another hash seed gives the same tasks and records", "records")
def _processes(subject: Subject) -> str:
    if subject.cls.__module__ == "__main__":
        raise Skipped("the class is defined in the main script, which another process cannot import")
    answer = ask_child(subject)
    ours = [to_json(task) for task in subject.shared.tasks(subject.split)]
    if canonical(answer["tasks"]) != canonical(ours):
        fail(
            f"another process lists other tasks in split {subject.split!r}: {len(answer['tasks'])} against {len(ours)}",
            "do not let ids or order depend on hash(), on set order, or on the order of a folder's files",
        )
    for episode, records in zip(subject.episodes(), answer["episodes"], strict=True):
        compare(
            episode,
            [from_json(Record, record) for record in records],
            "in a new process with another PYTHONHASHSEED",
            "do not let records depend on hash(), on the order of a set, on time, or on the process",
        )
    return f"{len(ours)} tasks, {len(subject.episodes())} episodes"
