"""Checks of the contract's letter: creation, splits, tasks, records, actions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from handoff.canonical import canonical
from handoff.conformance.checks import ContractCheck, check
from handoff.conformance.subject import (
    Skipped,
    Subject,
    compare,
    differs,
    fail,
    over,
    play,
)
from handoff.errors import HandoffError
from handoff.records import Record, Task, from_json, to_json
from handoff.text import reason

#: In the order in which they are run.
CHECKS: list[ContractCheck] = []

#: Texts that ``step`` must accept: the text of a language model reaches it unchanged.
ODD_ACTIONS = ("", " ", "no such action", "go\nto\tnowhere", "\x00", "漢字 \ud800", "{6*7} %s \\", "x" * 5000)


def absolute_paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and os.path.isabs(value) and os.path.exists(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from absolute_paths(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from absolute_paths(item)


@check(CHECKS, "create", "The adapter can be made, described and closed")
def _create(subject: Subject) -> str:
    if getattr(subject.cls, "name", None) != subject.name:
        fail(
            f"the class calls itself {getattr(subject.cls, 'name', None)!r} and its entry point {subject.name!r}",
            "set the class attribute `name` to the entry point's name",
        )
    try:
        canonical(subject.options)
    except (TypeError, ValueError) as error:
        fail(f"its options are not JSON-safe ({reason(error)})", "take only options that JSON has a form for")
    first, second = subject.make(), subject.make()
    description = first.describe()
    try:
        identity = canonical(dict(description))
    except (TypeError, ValueError) as error:
        fail(f"describe() is not JSON-safe ({reason(error)})", "return only strings, numbers, lists and dicts")
    if canonical(dict(second.describe())) != identity:
        fail("describe() differs between two instances", "describe versions and digests, not this instance")
    for path in absolute_paths(description):
        fail(f"describe() names a path of this machine: {path}", "describe data by its digest, not by where it lies")
    second.close()
    second.close()
    return f"describe() has {len(description)} entries"


@check(CHECKS, "splits", "Splits are named, and an unknown one is refused", "create")
def _splits(subject: Subject) -> str:
    splits = subject.cls.splits
    if not isinstance(splits, tuple) or not splits or not all(isinstance(s, str) and s for s in splits):
        fail(f"`splits` is {splits!r:.80}", "set the class attribute `splits` to a tuple of names, the default first")
    if len(set(splits)) != len(splits):
        fail(f"`splits` repeats a name: {splits}", "name every split once")
    unknown = "no-such-split"
    advice = f"raise handoff.errors.UsageError for a split that is not one of {', '.join(splits)}"
    try:
        tasks = subject.make().tasks(unknown)
    except HandoffError:
        return ", ".join(splits)
    except Exception as error:
        fail(f"tasks({unknown!r}) raised {reason(error)}", advice)
    fail(f"tasks({unknown!r}) returned {len(tasks)} tasks", advice)


@check(CHECKS, "tasks", "Every split has tasks, with unique ids, in a stable order", "splits")
def _tasks(subject: Subject) -> str:
    counts, first = [], subject.shared
    second = subject.make()
    for split in subject.cls.splits:
        try:
            tasks = list(first.tasks(split))
        except HandoffError as error:
            if split == subject.split:
                raise
            counts.append(f"{split}: refused ({error!s:.80})")
            continue
        if not tasks:
            fail(f"split {split!r} has no tasks", "raise handoff.errors.DataError that says where the data was sought")
        for task in tasks:
            if not isinstance(task, Task):
                fail(f"split {split!r} holds a {type(task).__name__}", "return handoff.records.Task objects")
            if from_json(Task, to_json(task)) != task:
                fail(f"task {task.name} does not survive JSON", "use plain strings in every field")
            if not task.id or task.split != split:
                fail(
                    f"task {task.name!r} of split {split!r} has id {task.id!r} and split {task.split!r}",
                    "give every task the digest of its content as id, and the split that it was asked for",
                )
            if os.path.isabs(task.source):
                fail(f"task {task.name} has the absolute source {task.source}", "give the locator below the data root")
        ids = [task.id for task in tasks]
        if len(set(ids)) != len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            fail(f"two tasks of split {split!r} have the id {twice}", "make the id a digest of what the task is")
        if list(second.tasks(split)) != tasks:
            fail(f"split {split!r} is listed differently the second time", "sort the tasks by a fixed key")
        if split == subject.split:
            description = first.describe(tasks[: subject.settings.tasks])
            canonical(dict(description))
            for path in absolute_paths(description):
                fail(f"describe(tasks) names a path of this machine: {path}", "describe data by its digest")
        counts.append(f"{split}: {len(tasks)} of {len({task.type for task in tasks})} types")
    return "; ".join(counts)


@check(CHECKS, "records", "Every record is complete and JSON-safe", "tasks")
def _records(subject: Subject) -> str:
    count = 0
    for episode in subject.episodes():
        for position, record in enumerate(episode.records):
            faults = subject.faults(record)
            if faults:
                fail(
                    f"task {episode.task.name}, after {position} actions: the record is unusable: {'; '.join(faults)}",
                    "return Record(observation: str, admissible: tuple of str, score: float, done: bool, won: bool)",
                )
            count += 1
        if over(episode.records[0]):
            fail(
                f"task {episode.task.name} is over at reset",
                "leave tasks out that need no action, and return done=False, won=False at reset",
            )
    return f"{count} records of {len(subject.episodes())} episodes"


@check(CHECKS, "admissible", "Every admissible action can be taken", "records")
def _admissible(subject: Subject) -> str:
    tried = 0
    for episode in subject.walks():
        choices = subject.choices(episode.records[0])
        # Every action costs a reset, which may be slow: some, spread over the list.
        for action in choices[:: max(1, len(choices) // 4)]:
            subject.shared.reset(episode.task, episode.seed)
            try:
                faults = subject.faults(subject.shared.step(action))
            except Exception as error:
                fail(f"step({action!r}) raised {reason(error)}", "list only actions that step() takes")
            if faults:
                fail(f"step({action!r}) gave an unusable record: {'; '.join(faults)}", "return a complete Record")
            tried += 1
    return f"{tried} actions at reset"


@check(CHECKS, "inadmissible", "An action that is not admissible is a step like any other", "records")
def _inadmissible(subject: Subject) -> str:
    episode = subject.walks()[0]
    plays: list[list[Record]] = []
    advice = "let step() take any text: answer with the unchanged state and a remark in the observation"
    for _ in range(2):
        environment = subject.make()
        records = [environment.reset(episode.task, episode.seed)]
        for action in ODD_ACTIONS:
            if action in records[-1].offer():
                continue
            try:
                records.append(environment.step(action))
            except Exception as error:
                fail(f"step({action!r:.40}) raised {reason(error)}", advice)
            faults = subject.faults(records[-1])
            if faults:
                fail(f"step({action!r:.40}) gave an unusable record: {'; '.join(faults)}", advice)
            if records[-1].won:
                fail(f"step({action!r:.40}) won, though it is not admissible", advice)
        plays.append(records)
        environment.close()
    for position, pair in enumerate(zip(*plays, strict=True)):
        unequal = differs(*pair)
        if unequal:
            fail(f"odd action {position} is answered differently the second time: {unequal}", advice)
    return f"{len(plays[0]) - 1} odd texts, among them an empty one and one that UTF-8 has no form for"


@check(CHECKS, "terminal", "After its end an episode neither fails nor haunts the next one", "records")
def _terminal(subject: Subject) -> str:
    ended = [episode for episode in subject.episodes() if over(episode.records[-1])]
    if not ended:
        raise Skipped("no episode came to its end: give the adapter a plan(), or raise --steps")
    for episode in ended:
        environment = subject.make()
        play(environment, episode.task, episode.seed, episode.actions)
        for action in (episode.actions[-1], subject.choices(episode.records[0])[0]):
            try:
                faults = subject.faults(environment.step(action))
            except Exception as error:
                fail(f"step({action!r:.40}) after the end raised {reason(error)}", "answer with the last record")
            if faults:
                fail(f"step() after the end gave an unusable record: {'; '.join(faults)}", "return a complete Record")
        compare(
            episode,
            play(environment, episode.task, episode.seed, episode.actions),
            "after the end of an earlier episode",
            "let reset() forget that the episode before had ended",
        )
        environment.close()
    return f"{len(ended)} episodes played past their end, {sum(e.records[-1].won for e in ended)} of them won"


@check(CHECKS, "bad-task", "A task that cannot be loaded is refused in one sentence", "records")
def _bad_task(subject: Subject) -> str:
    task = Task(id="0" * 64, name="no-such-task", type="none", split=subject.split, source="no/such/task")
    advice = "raise handoff.errors.DataError that names the task and says what is wrong with it"
    environment, episode = subject.make(), subject.walks()[0]
    try:
        environment.reset(task, episode.seed)
    except HandoffError as error:
        refusal = str(error)
    except Exception as error:
        fail(f"reset() of a task that does not exist raised {reason(error)}", advice)
    else:
        fail("reset() of a task that does not exist started an episode", advice)
    compare(
        episode,
        play(environment, episode.task, episode.seed, episode.actions),
        "after a task that could not be loaded",
        "leave the instance usable when reset() refuses a task",
    )
    environment.close()
    return f"{refusal:.120}"
