"""The checks of the adapter conformance suite, in the order in which they are run."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import attrs

from handoff import frontier, stochastic
from handoff.canonical import canonical
from handoff.conformance_child import ask_child
from handoff.conformance_subject import (
    Episode,
    Skipped,
    Subject,
    compare,
    differs,
    fail,
    over,
    play,
    reason,
    record_faults,
)
from handoff.environment import Certified, DistanceOracle, Environment, FrontierOracle, Planner, Snapshots
from handoff.errors import HandoffError
from handoff.records import Certificate, Record, Task, from_json, to_json
from handoff.stochastic import Stochastic

#: Action texts that no adapter may choke on: a policy is a language model, and its text reaches ``step`` as it is.
ODD_ACTIONS = ("", " ", "no such action", "go\nto\tnowhere", "\x00", "漢字 \ud800", "{6*7} %s \\", "x" * 5000)


@attrs.frozen
class Check:
    """``run`` returns what was seen when all is well; ``needs`` names checks without which it makes no sense."""

    name: str
    title: str
    run: Callable[[Subject], str]
    needs: tuple[str, ...] = ()


CHECKS: list[Check] = []


def _check(name: str, title: str, *needs: str) -> Callable[[Callable[[Subject], str]], Callable[[Subject], str]]:
    def register(run: Callable[[Subject], str]) -> Callable[[Subject], str]:
        CHECKS.append(Check(name, title, run, needs))
        return run

    return register


def absolute_paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and os.path.isabs(value) and os.path.exists(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from absolute_paths(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from absolute_paths(item)


@_check("create", "The adapter can be made, described and closed")
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
    told = first.describe()
    try:
        identity = canonical(dict(told))
    except (TypeError, ValueError) as error:
        fail(f"describe() is not JSON-safe ({reason(error)})", "return only strings, numbers, lists and dicts")
    if canonical(dict(second.describe())) != identity:
        fail("describe() differs between two instances", "describe versions and digests, not this instance")
    for path in absolute_paths(told):
        fail(f"describe() names a path of this machine: {path}", "describe data by its digest, not by where it lies")
    second.close()
    second.close()
    return f"describe() has {len(told)} entries"


@_check("splits", "Splits are named, and an unknown one is refused", "create")
def _splits(subject: Subject) -> str:
    splits = subject.cls.splits
    if not isinstance(splits, tuple) or not splits or not all(isinstance(s, str) and s for s in splits):
        fail(f"`splits` is {splits!r:.80}", "set the class attribute `splits` to a tuple of names, the default first")
    if len(set(splits)) != len(splits):
        fail(f"`splits` repeats a name: {splits}", "name every split once")
    unknown = "no-such-split"
    advice = f"raise handoff.errors.UsageError for a split that is not one of {', '.join(splits)}"
    try:
        found = subject.make().tasks(unknown)
    except HandoffError:
        return ", ".join(splits)
    except Exception as error:
        fail(f"tasks({unknown!r}) raised {reason(error)}", advice)
    fail(f"tasks({unknown!r}) returned {len(found)} tasks", advice)


@_check("tasks", "Every split has tasks, with unique ids, in a stable order", "splits")
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
            told = first.describe(tasks[: subject.settings.tasks])
            canonical(dict(told))
            for path in absolute_paths(told):
                fail(f"describe(tasks) names a path of this machine: {path}", "describe data by its digest")
        counts.append(f"{split}: {len(tasks)} of {len({task.type for task in tasks})} types")
    return "; ".join(counts)


@_check("records", "Every record is complete and JSON-safe", "tasks")
def _records(subject: Subject) -> str:
    count = 0
    for episode in subject.episodes():
        for position, record in enumerate(episode.records):
            faults = record_faults(record)
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


@_check("admissible", "Every admissible action can be taken", "records")
def _admissible(subject: Subject) -> str:
    tried = 0
    for episode in subject.walks():
        choices = episode.records[0].admissible
        # Every action costs a reset, which may be slow: some, spread over the list.
        for action in choices[:: max(1, len(choices) // 4)]:
            subject.shared.reset(episode.task, episode.seed)
            try:
                faults = record_faults(subject.shared.step(action))
            except Exception as error:
                fail(f"step({action!r}) raised {reason(error)}", "list only actions that step() takes")
            if faults:
                fail(f"step({action!r}) gave an unusable record: {'; '.join(faults)}", "return a complete Record")
            tried += 1
    return f"{tried} actions at reset"


@_check("determinism", "Two resets and the same actions give the same records", "records")
def _determinism(subject: Subject) -> str:
    for episode in subject.episodes():
        compare(
            episode,
            play(subject.shared, episode.task, episode.seed, episode.actions),
            "second time on the same instance",
            "let reset() set every part of the state, and draw only from a generator seeded by reset(task, seed)",
        )
    return f"{len(subject.episodes())} episodes"


@_check("replay", "A fresh instance replays a recorded episode exactly", "records")
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


@_check("reuse", "An instance in the middle of another task starts afresh", "records")
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


@_check("seeds", "Every seed from 0 to 2**63 - 1 is taken", "records")
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


@_check("interleaving", "Two instances played in turn do not touch each other", "records")
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


@_check("processes", "A new process with another hash seed gives the same tasks and records", "records")
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


@_check("inadmissible", "An action that is not admissible is a step like any other", "records")
def _inadmissible(subject: Subject) -> str:
    episode = subject.walks()[0]
    runs: list[list[Record]] = []
    advice = "let step() take any text: answer with the unchanged state and a remark in the observation"
    for _ in range(2):
        environment = subject.make()
        records = [environment.reset(episode.task, episode.seed)]
        for action in ODD_ACTIONS:
            if action in records[-1].admissible:
                continue
            try:
                records.append(environment.step(action))
            except Exception as error:
                fail(f"step({action!r:.40}) raised {reason(error)}", advice)
            faults = record_faults(records[-1])
            if faults:
                fail(f"step({action!r:.40}) gave an unusable record: {'; '.join(faults)}", advice)
            if records[-1].won:
                fail(f"step({action!r:.40}) won, though it is not admissible", advice)
        runs.append(records)
        environment.close()
    for position, pair in enumerate(zip(*runs, strict=True)):
        found = differs(*pair)
        if found:
            fail(f"odd action {position} is answered differently the second time: {found}", advice)
    return f"{len(runs[0]) - 1} odd texts, among them an empty one and one that UTF-8 has no form for"


@_check("terminal", "After its end an episode neither fails nor haunts the next one", "records")
def _terminal(subject: Subject) -> str:
    ended = [episode for episode in subject.episodes() if over(episode.records[-1])]
    if not ended:
        raise Skipped("no episode came to its end: give the adapter a plan(), or raise --steps")
    for episode in ended:
        environment = subject.make()
        play(environment, episode.task, episode.seed, episode.actions)
        for action in (episode.actions[-1], episode.records[0].admissible[0]):
            try:
                faults = record_faults(environment.step(action))
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


@_check("bad-task", "A task that cannot be loaded is refused in one sentence", "records")
def _bad_task(subject: Subject) -> str:
    task = Task(id="0" * 64, name="no-such-task", type="none", split=subject.split, source="no/such/task")
    advice = "raise handoff.errors.DataError that names the task and says what is wrong with it"
    environment, episode = subject.make(), subject.walks()[0]
    try:
        environment.reset(task, episode.seed)
    except HandoffError as error:
        told = str(error)
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
    return f"{told:.120}"


@_check("snapshots", "A restored snapshot goes on as the episode did", "records")
def _snapshots(subject: Subject) -> str:
    if not isinstance(subject.shared, Snapshots):
        raise Skipped("the adapter has no snapshot() and restore(); states are cloned by reset and replay")
    environment, restored = subject.shared, 0
    advice = (
        "put all that decides later records into the snapshot, the random state included, and copy nothing by reference"
    )
    for episode in subject.episodes():
        taken: list[Hashable] = []
        environment.reset(episode.task, episode.seed)
        taken.append(_snapshot(environment))
        for action in episode.actions:
            environment.step(action)
            taken.append(_snapshot(environment))
        for position in reversed(range(len(taken))):
            records = [environment.restore(taken[position])]
            if environment.snapshot() != taken[position]:
                fail("the snapshot of a restored state differs from the snapshot it was restored from", advice)
            records += [environment.step(action) for action in episode.actions[position:]]
            rest = Episode(episode.task, episode.seed, episode.actions[position:], episode.records[position:])
            compare(rest, records, f"restored after {position} actions", advice)
            restored += 1
    merged = sum(_equal_snapshots(subject, episode) for episode in subject.walks())
    return f"{restored} states restored and played on; {merged} pairs of paths to one snapshot compared"


def _snapshot(environment: Snapshots) -> Hashable:
    first, second = environment.snapshot(), environment.snapshot()
    advice = "return an immutable value, for instance a tuple of numbers and strings"
    try:
        same = hash(first) == hash(second) and first == second
    except TypeError as error:
        fail(f"a snapshot is not hashable ({reason(error)})", advice)
    if not same:
        fail("two snapshots of one state are not equal", advice)
    return first


def _equal_snapshots(subject: Subject, episode: Episode, states: int = 40, pairs: int = 3) -> int:
    """Two paths to one snapshot must have one future: reach both by reset and replay, and compare what follows."""
    environment = subject.shared
    assert isinstance(environment, Snapshots)
    record = environment.reset(episode.task, episode.seed)
    reached: dict[Hashable, tuple[str, ...]] = {environment.snapshot(): ()}
    queue = [(environment.snapshot(), record)]
    compared = 0
    for state, shown in queue:
        for action in () if over(shown) else shown.admissible[:12]:
            environment.restore(state)
            after = environment.step(action)
            path, found = (*reached[state], action), environment.snapshot()
            if found not in reached:
                if len(reached) < states:
                    reached[found] = path
                    queue.append((found, after))
                continue
            if compared == pairs:
                return compared
            compared += 1
            known = reached[found]
            for following in after.admissible[:3]:
                # The records of the two states themselves may tell how each was reached; what follows may not.
                one = play(environment, episode.task, episode.seed, (*path, following))[-1]
                other = play(environment, episode.task, episode.seed, (*known, following))[-1]
                unlike = differs(one, other)
                if unlike:
                    fail(
                        f"the paths {path} and {known} lead to equal snapshots, but {following!r} has different "
                        f"records from them: {unlike}",
                        "put what distinguishes the two states into the snapshot",
                    )
            environment.reset(episode.task, episode.seed)
    return compared


@_check("planner", "A plan leads to success", "records")
def _planner(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Planner):
        raise Skipped("the adapter has no plan(); the `expert` and `noisy` policies need one")
    found, asked = 0, 0
    for episode in subject.walks():
        for position in sorted({0, len(episode.actions) // 2}):
            if over(episode.records[position]):
                continue
            play(environment, episode.task, episode.seed, episode.actions[:position])
            plan = environment.plan()
            asked += 1
            if not isinstance(plan, tuple) or not all(isinstance(action, str) for action in plan):
                fail(f"plan() returned {plan!r:.80}", "return a tuple of actions, empty if none is known")
            again = environment.plan()
            if plan != again:
                fail("plan() differs when it is asked twice", "make the plan a function of the state alone")
            if not plan:
                continue
            found += 1
            if isinstance(environment, Stochastic):
                # A plan is one way that chance may take: it is only asked to be possible.
                shown = episode.records[position]
                if plan[0] not in shown.admissible:
                    fail(f"the plan starts with {plan[0]!r}, which is not admissible", "plan over admissible actions")
                continue
            shown = episode.records[position]
            for number, action in enumerate(plan, 1):
                if action not in shown.admissible:
                    fail(f"action {number} of the plan, {action!r}, is not admissible", "plan over admissible actions")
                shown = environment.step(action)
                if shown.won != (number == len(plan)):
                    fail(
                        f"task {episode.task.name}, after {position} actions: the plan of {len(plan)} actions "
                        f"{'wins at' if shown.won else 'has not won after'} action {number}",
                        "return actions that win exactly at the last one",
                    )
    if not found:
        raise Skipped(f"plan() knew none from {asked} states")
    return f"{found} plans from {asked} states"


@_check("frontier", "Every way to search the frontier gives the same certificate", "records")
def _frontier(subject: Subject) -> str:
    environment = subject.shared
    drawn = isinstance(environment, Stochastic)
    if not isinstance(environment, (FrontierOracle, Snapshots)):
        raise Skipped("the adapter has neither certify() nor snapshots: reset and replay is the only way")
    replays, sequences = subject.settings.replays, subject.settings.sequences
    states = members = 0
    counts = {"certify()": 0, "snapshots": 0, "outcomes": 0, "reset and replay": 0}
    for episode, position in _checkpoints(subject):
        states += 1
        prefix, shown = episode.actions[:position], episode.records[position]
        for depth in range(1, subject.settings.depth + 1):
            where = f"task {episode.task.name}, after {position} actions, depth {depth}"
            cost = len(shown.admissible) ** depth
            found: dict[str, Certificate] = {}
            if isinstance(environment, FrontierOracle):
                play(environment, episode.task, episode.seed, prefix)
                found["certify()"] = environment.certify(depth)
                if not isinstance(found["certify()"], Certificate):
                    fail(f"certify({depth}) returned a {type(found['certify()']).__name__}", "return a Certificate")
                _claims(environment, episode, position, found["certify()"], where)
            if cost <= sequences and isinstance(environment, Snapshots):
                sequences -= cost
                play(environment, episode.task, episode.seed, prefix)
                if drawn:
                    found["outcomes"] = stochastic.search_outcomes(environment, shown, depth)
                else:
                    found["snapshots"] = frontier.search_here(environment, shown, depth)
            if cost <= replays and not drawn:
                replays -= cost
                found["reset and replay"] = frontier.search(environment, episode.task, episode.seed, prefix, depth)
            for way in found:
                counts[way] += 1
            _agree(found, where)
            members += any(certificate.member for certificate in found.values())
    if not states:
        raise Skipped("every walk ended at once")
    told = ", ".join(f"{count} by {way}" for way, count in counts.items() if count)
    return f"{states} states, {members} times on a frontier; certificates: {told}"


def _agree(found: Mapping[str, Certificate], where: str) -> None:
    """All ways must give equal certificates; reset and replay, the last one, is right by definition."""
    ways = list(found)
    for way in ways[:-1]:
        for field in attrs.fields_dict(Certificate):
            ours, theirs = getattr(found[way], field), getattr(found[ways[-1]], field)
            if ours != theirs:
                fail(
                    f"{where}: {field} is {ours!r:.120} by {way} and {theirs!r:.120} by {ways[-1]}",
                    "count every action sequence of every completed level, list all bridges in admissible order, and "
                    "stop after the first level with a win; or a restored snapshot is not the state it was taken of",
                )


def _checkpoints(subject: Subject) -> Iterator[tuple[Episode, int]]:
    """States for the oracle: where the walks start and stop, and on the way of the plans 3, 2 and 1 before success."""
    # The plans' states first: there the answers are not empty, and plain searches may run out.
    walks = subject.walks()
    for episode in [*subject.episodes()[len(walks) :], *walks]:
        last = len(episode.actions)
        positions = {0, last} if episode in walks else {last - 3, last - 2, last - 1}
        for position in sorted(p for p in positions if p >= 0):
            if not over(episode.records[position]):
                yield episode, position


def _claims(environment: Environment, episode: Episode, position: int, found: Certificate, where: str) -> None:
    """What a certificate says of itself: consistent counts, and a path that wins exactly at its end."""
    shown = episode.records[position]
    advice = "see the definition of Certificate in handoff.records"
    if found.member != (found.distance == found.depth):
        fail(f"{where}: member is {found.member} and distance {found.distance}", advice)
    if found.distance is None:
        if found.path or found.bridges:
            fail(f"{where}: there is a path or a bridge though no win was found", advice)
        return
    if len(found.path) != found.distance or found.path[:1] != found.bridges[:1] or found.distance > found.depth:
        fail(f"{where}: path {found.path}, bridges {found.bridges} and distance {found.distance} disagree", advice)
    if not set(found.bridges) <= set(shown.admissible):
        fail(f"{where}: a bridge is not admissible: {found.bridges}", advice)
    if found.tried[:1] != (len(shown.admissible),):
        fail(f"{where}: {found.tried[:1]} first actions tried of {len(shown.admissible)} admissible", advice)
    if isinstance(environment, Stochastic):
        return
    records = play(environment, episode.task, episode.seed, (*episode.actions[:position], *found.path))
    won = [record.won for record in records[position + 1 :]]
    if won != [False] * (found.distance - 1) + [True]:
        fail(f"{where}: the path {found.path} does not win exactly at its end", advice)


@_check("distance", "Distances agree with the certificates, with the steps and with the plans", "records")
def _distance(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, DistanceOracle):
        raise Skipped("the adapter has no distance(); it is found by searching")
    far, known = 10_000, 0
    advice = "return the least number of actions that can succeed, None if it is more than the limit or there is none"
    for episode in subject.episodes():
        found = list[int | None]()
        record = environment.reset(episode.task, episode.seed)
        for position in range(len(episode.records)):
            where = f"task {episode.task.name}, after {position} actions"
            moves = environment.distance(far)
            found.append(moves)
            if record.won != (moves == 0):
                fail(f"{where}: distance {moves} though won is {record.won}", advice)
            if moves and (environment.distance(moves), environment.distance(moves - 1)) != (moves, None):
                fail(f"{where}: the distance is {moves} and distance(limit) does not keep to its limit", advice)
            before = found[position - 1] if position else None
            if before is not None and moves is not None and moves < before - 1:
                fail(f"{where}: one action took the distance from {before} to {moves}", advice)
            if position < len(episode.actions):
                record = environment.step(episode.actions[position])
        if record.won and not isinstance(environment, Stochastic):
            for position, moves in enumerate(found):
                left = len(episode.actions) - position
                if moves is None or moves > left:
                    fail(f"task {episode.task.name}: {left} actions won from where the distance was {moves}", advice)
        known += sum(moves is not None for moves in found)
    if not isinstance(environment, FrontierOracle):
        return f"{known} distances"
    compared = 0
    for episode, position in _checkpoints(subject):
        play(environment, episode.task, episode.seed, episode.actions[:position])
        for depth in range(1, subject.settings.depth + 1):
            moves, certified = environment.distance(depth), environment.certify(depth).distance
            if moves != certified:
                fail(
                    f"task {episode.task.name}, after {position} actions: distance({depth}) is {moves} and certify() "
                    f"says {certified}",
                    advice,
                )
            compared += 1
    return f"{known} distances, {compared} compared with certificates"


@_check("outcomes", "The outcomes of an action are all that may happen, with their probabilities", "records")
def _outcomes(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Stochastic):
        raise Skipped("the adapter has no outcomes(): its steps are not drawn")
    if not isinstance(environment, Snapshots):
        fail("outcomes() is there without snapshot() and restore()", "outcomes are snapshots: add both")
    checked = 0
    for episode in subject.walks():
        environment.reset(episode.task, episode.seed)
        for action in episode.actions:
            outcomes = environment.outcomes(action)
            if environment.outcomes(action) != outcomes:
                fail(f"outcomes({action!r}) differs when it is asked twice", "outcomes() must draw nothing")
            total = sum(probability for probability, _ in outcomes)
            if abs(total - 1) > 1e-9 or any(probability <= 0 for probability, _ in outcomes):
                fail(f"the probabilities of outcomes({action!r}) sum to {total}", "list possible outcomes only, once")
            environment.step(action)
            if environment.snapshot() not in [state for _, state in outcomes]:
                fail(
                    f"step({action!r}) led to a state that outcomes() does not list", "list everything that may happen"
                )
            checked += 1
    return f"{checked} steps"


@_check("reference", "The reference implementation shows the same records", "records")
def _reference(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Certified):
        raise Skipped("the adapter is its own reference")
    reference = subject.cls(**environment.reference_options())
    try:
        for episode in subject.episodes():
            compare(
                episode,
                play(reference, episode.task, episode.seed, episode.actions),
                "in the reference implementation",
                "mend the fast implementation: the reference is right by definition",
            )
    finally:
        reference.close()
    return f"{len(subject.episodes())} episodes"
