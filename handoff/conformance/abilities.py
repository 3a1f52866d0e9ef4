"""Checks of optional abilities: snapshots, planner, frontier, distance, outcomes, reference."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

import attrs

from handoff import frontier
from handoff.conformance.checks import ContractCheck, check
from handoff.conformance.conversations import passes
from handoff.conformance.subject import (
    PlayedEpisode,
    Skipped,
    Subject,
    compare,
    differs,
    fail,
    over,
    play,
)
from handoff.environment import Certified, DistanceOracle, Environment, FrontierOracle, Planner, Snapshots, Stochastic
from handoff.records import Certificate
from handoff.text import reason

#: In the order in which they are run.
CHECKS: list[ContractCheck] = []


@check(CHECKS, "snapshots", "A restored snapshot goes on as the episode did", "records")
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
            rest = PlayedEpisode(episode.task, episode.seed, episode.actions[position:], episode.records[position:])
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


def _equal_snapshots(subject: Subject, episode: PlayedEpisode, states: int = 40, pairs: int = 3) -> int:
    """Compare the futures of paths that lead to one snapshot, each path reached by reset and replay."""
    environment = subject.shared
    assert isinstance(environment, Snapshots)
    record = environment.reset(episode.task, episode.seed)
    reached: dict[Hashable, tuple[str, ...]] = {environment.snapshot(): ()}
    queue = [(environment.snapshot(), record)]
    compared = 0
    for state, current in queue:
        for action in () if over(current) else current.admissible[:12]:
            environment.restore(state)
            after = environment.step(action)
            path, snapshot = (*reached[state], action), environment.snapshot()
            if snapshot not in reached:
                if len(reached) < states:
                    reached[snapshot] = path
                    queue.append((snapshot, after))
                continue
            if compared == pairs:
                return compared
            compared += 1
            other_path = reached[snapshot]
            for following in after.admissible[:3]:
                # The records of the two states may say how each was reached; later records may not.
                one = play(environment, episode.task, episode.seed, (*path, following))[-1]
                other = play(environment, episode.task, episode.seed, (*other_path, following))[-1]
                unequal = differs(one, other)
                if unequal:
                    fail(
                        f"the paths {path} and {other_path} lead to equal snapshots, but {following!r} has different "
                        f"records from them: {unequal}",
                        "put what distinguishes the two states into the snapshot",
                    )
            environment.reset(episode.task, episode.seed)
    return compared


@check(CHECKS, "planner", "A plan leads to success", "records")
def _planner(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, Planner):
        raise Skipped("the adapter has no plan(); the `expert` and `noisy` policies need one")
    plans = states = 0
    for episode in subject.walks():
        for position in sorted({0, len(episode.actions) // 2}):
            if over(episode.records[position]):
                continue
            play(environment, episode.task, episode.seed, episode.actions[:position])
            plan = environment.plan()
            states += 1
            if not isinstance(plan, tuple) or not all(isinstance(action, str) for action in plan):
                fail(f"plan() returned {plan!r:.80}", "return a tuple of actions, empty if none is known")
            again = environment.plan()
            if plan != again:
                fail("plan() differs when it is asked twice", "make the plan a function of the state alone")
            if not plan:
                continue
            plans += 1
            if isinstance(environment, Stochastic):
                # Chance may defeat a plan, so its first action need only be possible.
                record = episode.records[position]
                if plan[0] not in record.admissible:
                    fail(f"the plan starts with {plan[0]!r}, which is not admissible", "plan over admissible actions")
                continue
            record = episode.records[position]
            for number, action in enumerate(plan, 1):
                if action not in record.offer(free=subject.talks):
                    fail(f"action {number} of the plan, {action!r}, is not admissible", "plan over admissible actions")
                record = environment.step(action)
                won = record.won or (record.done and passes(environment, episode.task))
                if won != (number == len(plan)):
                    fail(
                        f"task {episode.task.name}, after {position} actions: the plan of {len(plan)} actions "
                        f"{'wins at' if won else 'has not won after'} action {number}",
                        "return actions that win exactly at the last one",
                    )
    if not plans:
        raise Skipped(f"plan() knew none from {states} states")
    return f"{plans} plans from {states} states"


@check(CHECKS, "frontier", "Every way to search the frontier gives the same certificate", "records")
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
        prefix, record = episode.actions[:position], episode.records[position]
        for depth in range(1, subject.settings.depth + 1):
            where = f"task {episode.task.name}, after {position} actions, depth {depth}"
            cost = len(record.admissible) ** depth
            certificates: dict[str, Certificate] = {}
            if isinstance(environment, FrontierOracle):
                play(environment, episode.task, episode.seed, prefix)
                certificates["certify()"] = environment.certify(depth)
                if not isinstance(certificates["certify()"], Certificate):
                    fail(
                        f"certify({depth}) returned a {type(certificates['certify()']).__name__}",
                        "return a Certificate",
                    )
                _claims(environment, episode, position, certificates["certify()"], where)
            if cost <= sequences and isinstance(environment, Snapshots):
                sequences -= cost
                play(environment, episode.task, episode.seed, prefix)
                if drawn:
                    certificates["outcomes"] = frontier.search_outcomes(environment, record, depth)
                else:
                    certificates["snapshots"] = frontier.search_here(environment, record, depth)
            if cost <= replays and not drawn:
                replays -= cost
                certificates["reset and replay"] = frontier.search(
                    environment, episode.task, episode.seed, prefix, depth
                )
            for way in certificates:
                counts[way] += 1
            _agree(certificates, where)
            members += any(certificate.member for certificate in certificates.values())
    if not states:
        raise Skipped("every walk ended at once")
    ways = ", ".join(f"{count} by {way}" for way, count in counts.items() if count)
    return f"{states} states, {members} times on a frontier; certificates: {ways}"


def _agree(certificates: Mapping[str, Certificate], where: str) -> None:
    """All ways must give equal certificates.  The last way, reset and replay, is right by definition."""
    ways = list(certificates)
    for way in ways[:-1]:
        for field in attrs.fields_dict(Certificate):
            ours, theirs = getattr(certificates[way], field), getattr(certificates[ways[-1]], field)
            if ours != theirs:
                fail(
                    f"{where}: {field} is {ours!r:.120} by {way} and {theirs!r:.120} by {ways[-1]}",
                    "count every action sequence of every completed level, list all bridges in admissible order, and "
                    "stop after the first level with a win; or restore the state that the snapshot was taken of",
                )


def _checkpoints(subject: Subject) -> Iterator[tuple[PlayedEpisode, int]]:
    """States for the oracle: start and end of each walk, and 3, 2 and 1 actions before the success of each plan."""
    # The plans' states come first: their answers are not empty, and the plain searches have a limit in all.
    walks = subject.walks()
    for episode in [*subject.episodes()[len(walks) :], *walks]:
        last = len(episode.actions)
        positions = {0, last} if episode in walks else {last - 3, last - 2, last - 1}
        for position in sorted(p for p in positions if p >= 0):
            if not over(episode.records[position]):
                yield episode, position


def _claims(environment: Environment, episode: PlayedEpisode, position: int, stated: Certificate, where: str) -> None:
    """A certificate must have consistent counts and a path that wins exactly at its end."""
    record = episode.records[position]
    advice = "see the definition of Certificate in handoff.records"
    if stated.member != (stated.distance == stated.depth):
        fail(f"{where}: member is {stated.member} and distance {stated.distance}", advice)
    if stated.distance is None:
        if stated.path or stated.bridges:
            fail(f"{where}: there is a path or a bridge though no win was found", advice)
        return
    if len(stated.path) != stated.distance or stated.path[:1] != stated.bridges[:1] or stated.distance > stated.depth:
        fail(
            f"{where}: path {stated.path}, bridges {stated.bridges} and distance {stated.distance} disagree",
            advice,
        )
    if not set(stated.bridges) <= set(record.admissible):
        fail(f"{where}: a bridge is not admissible: {stated.bridges}", advice)
    if stated.tried[:1] != (len(record.admissible),):
        fail(f"{where}: {stated.tried[:1]} first actions tried of {len(record.admissible)} admissible", advice)
    if isinstance(environment, Stochastic):
        return
    records = play(environment, episode.task, episode.seed, (*episode.actions[:position], *stated.path))
    won = [record.won for record in records[position + 1 :]]
    if won != [False] * (stated.distance - 1) + [True]:
        fail(f"{where}: the path {stated.path} does not win exactly at its end", advice)


@check(CHECKS, "distance", "Distances agree with the certificates, with the steps and with the plans", "records")
def _distance(subject: Subject) -> str:
    environment = subject.shared
    if not isinstance(environment, DistanceOracle):
        raise Skipped("the adapter has no distance(); it is found by a search")
    far, known = 10_000, 0
    advice = "return the least number of actions that can succeed, None if it is more than the limit or there is none"
    for episode in subject.episodes():
        distances = list[int | None]()
        record = environment.reset(episode.task, episode.seed)
        for position in range(len(episode.records)):
            where = f"task {episode.task.name}, after {position} actions"
            moves = environment.distance(far)
            distances.append(moves)
            if record.won != (moves == 0):
                fail(f"{where}: distance {moves} though won is {record.won}", advice)
            if moves and (environment.distance(moves), environment.distance(moves - 1)) != (moves, None):
                fail(f"{where}: the distance is {moves} and distance(limit) does not keep to its limit", advice)
            before = distances[position - 1] if position else None
            if before is not None and moves is not None and moves < before - 1:
                fail(f"{where}: one action took the distance from {before} to {moves}", advice)
            if position < len(episode.actions):
                record = environment.step(episode.actions[position])
        if record.won and not isinstance(environment, Stochastic):
            for position, moves in enumerate(distances):
                left = len(episode.actions) - position
                if moves is None or moves > left:
                    fail(f"task {episode.task.name}: {left} actions won from where the distance was {moves}", advice)
        known += sum(moves is not None for moves in distances)
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


@check(CHECKS, "outcomes", "The outcomes of an action are all that may happen, with their probabilities", "records")
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


def _same_plans(environment: Environment, reference: Environment, episode: PlayedEpisode) -> None:
    """An audit lets planning policies decide again by the plans of the reference."""
    if not isinstance(environment, Planner):
        return
    plans = []
    for one in (environment, reference):
        one.reset(episode.task, episode.seed)
        plans.append(one.plan() if isinstance(one, Planner) else ())
    if plans[0] != plans[1]:
        fail(
            f"the plan after reset of task {episode.task.name} is {plans[0]!r:.120} here and {plans[1]!r:.120} in the "
            "reference implementation",
            "give both the same plans: an audit lets expert and noisy decide again by those of the reference",
        )


@check(CHECKS, "reference", "The reference implementation shows the same records", "records")
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
            _same_plans(environment, reference, episode)
    finally:
        reference.close()
    return f"{len(subject.episodes())} episodes"
