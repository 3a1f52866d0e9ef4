"""Exhaustive search for the frontier F_D over any environment (section 3.1 of the paper).

F_D is the set of non-terminal states from which no path of fewer than D admissible actions succeeds and at least one
path of exactly D does.  The search goes level by level over *action sequences*, in admissible order; a level is always
completed and the first level with a win is the last.  Successors that ended (won or not) are not expanded.

A node is reached by :class:`~handoff.environment.Snapshots` where the adapter has them, else by reset + replay, which
is always right.  Both give the same certificate.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from handoff.environment import DistanceOracle, Environment, FrontierOracle, Snapshots, Stochastic
from handoff.errors import MissingExtra, UsageError
from handoff.records import Certificate, Record, Task

if TYPE_CHECKING:
    import networkx as nx


class Steppable(Protocol):
    """A state machine with exact clones, such as an engine's episode."""

    def snapshot(self) -> Hashable: ...

    def restore(self, snapshot: Any) -> Record: ...

    def step(self, action: str) -> Record: ...


class _Walker(Protocol):
    """Tries one action sequence after another from a fixed state."""

    def root(self) -> Record: ...

    def record_after(self, path: tuple[str, ...]) -> Record: ...


class _ReplayWalker:
    def __init__(self, environment: Environment, task: Task, seed: int, prefix: Sequence[str]) -> None:
        self._environment, self._task, self._seed, self._prefix = environment, task, seed, tuple(prefix)

    def root(self) -> Record:
        return self.record_after(())

    def record_after(self, path: tuple[str, ...]) -> Record:
        record = self._environment.reset(self._task, self._seed)
        for action in (*self._prefix, *path):
            if action:
                record = self._environment.step(action)
        return record


class _SnapshotWalker:
    """Keeps the snapshot of every node on the level before, so that each sequence costs one restore and one step."""

    def __init__(self, environment: Environment, root: Record) -> None:
        assert isinstance(environment, Snapshots)
        self._environment, self._snapshots = environment, environment
        self._root = root
        self._nodes: dict[tuple[str, ...], Hashable] = {(): environment.snapshot()}
        self._level = 0

    def root(self) -> Record:
        return self._root

    def record_after(self, path: tuple[str, ...]) -> Record:
        if len(path) > self._level + 1:  # the nodes two levels up are done with
            self._nodes = {node: shot for node, shot in self._nodes.items() if len(node) == len(path) - 1}
            self._level = len(path) - 1
        self._snapshots.restore(self._nodes[path[:-1]])
        record = self._environment.step(path[-1])
        self._nodes[path] = self._snapshots.snapshot()
        return record


def _search(walker: _Walker, depth: int) -> Certificate:
    if depth < 1:
        raise UsageError(f"the depth of a frontier is at least 1, not {depth}")
    root = walker.root()
    if root.won or root.done:
        return Certificate(depth, member=False, distance=0 if root.won else None, tried=())
    tried: list[int] = []
    nodes: list[tuple[tuple[str, ...], Record]] = [((), root)]
    for level in range(1, depth + 1):
        successors = []
        wins = []
        count = 0
        for path, record in nodes:
            for action in record.admissible:
                count += 1
                longer = (*path, action)
                after = walker.record_after(longer)
                if after.won:
                    wins.append(longer)
                elif not after.done:
                    successors.append((longer, after))
        tried.append(count)
        if wins:
            firsts = tuple(dict.fromkeys(path[0] for path in wins))
            return Certificate(depth, level == depth, level, tuple(tried), bridges=firsts, path=wins[0])
        nodes = successors
    return Certificate(depth, member=False, distance=None, tried=tuple(tried))


def search(environment: Environment, task: Task, seed: int, prefix: Sequence[str], depth: int) -> Certificate:
    """The certificate of the state after ``prefix``, by reset + replay alone.

    Leaves the environment at that state.  Costs one reset and a replay of the whole path per action tried.
    """
    walker = _ReplayWalker(environment, task, seed, prefix)
    certificate = _search(walker, depth)
    walker.root()
    return certificate


def search_here(environment: Environment, record: Record, depth: int) -> Certificate:
    """The certificate of the environment's current state (whose record is ``record``), by snapshots.

    Leaves the environment at that state.  Raises ``TypeError`` if the adapter has no snapshots.
    """
    if not isinstance(environment, Snapshots):
        raise TypeError(f"environment {environment.name!r} has no snapshots")
    here = environment.snapshot()
    try:
        return _search(_SnapshotWalker(environment, record), depth)
    finally:
        environment.restore(here)


def certify(
    environment: Environment, task: Task, seed: int, prefix: Sequence[str], record: Record, depth: int
) -> Certificate:
    """The certificate of the current state, by the adapter's fastest way: its oracle, snapshots, or reset + replay.

    All three give equal certificates.  The environment's state does not change.
    """
    if isinstance(environment, FrontierOracle):
        return environment.certify(depth)
    if isinstance(environment, Stochastic):
        return search_outcomes(environment, record, depth)
    if isinstance(environment, Snapshots):
        return search_here(environment, record, depth)
    return search(environment, task, seed, prefix, depth)


def distance(
    environment: Environment, task: Task, seed: int, prefix: Sequence[str], record: Record, limit: int
) -> int | None:
    """The least number of actions from the current state to success, if it is at most ``limit`` (0: won already).

    Takes the adapter's fastest way.  The environment's state does not change.
    """
    if record.won:
        return 0
    if isinstance(environment, DistanceOracle):
        return environment.distance(limit)
    return certify(environment, task, seed, prefix, record, limit).distance


def neighbourhood(
    environment: Environment | Steppable, record: Record, depth: int, limit: int = 100_000
) -> nx.MultiDiGraph:
    """The states within ``depth`` actions of the current one, as a graph.

    Nodes are numbered in the order of discovery (0 is the current state) with the attributes ``depth`` (least number
    of actions from the current state), ``won``, ``done``, ``record`` and ``distance`` (least number of actions to a win
    inside the graph, ``None`` if there is none); edges carry ``action``.  States are told apart by their snapshots, so
    the adapter must have them.  Ended states are not expanded.  Raises :class:`~handoff.errors.UsageError` for more
    than ``limit`` states, and without networkx.
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtra("networkx", "graph", error, "a graph of states") from error
    if not isinstance(environment, Snapshots):
        raise UsageError(f"environment {environment.name!r} has no snapshots; a graph of states needs them")
    here = environment.snapshot()
    graph = nx.MultiDiGraph()
    number: dict[Hashable, int] = {here: 0}
    graph.add_node(0, depth=0, won=record.won, done=record.done, record=record)
    layer: list[tuple[Hashable, Record]] = [(here, record)]
    try:
        for level in range(1, depth + 1):
            successors: list[tuple[Hashable, Record]] = []
            for state, before in layer:
                if before.done or before.won:
                    continue
                for action in before.admissible:
                    environment.restore(state)
                    after = environment.step(action)
                    successor = environment.snapshot()
                    if successor not in number:
                        number[successor] = len(number)
                        if len(number) > limit:
                            raise UsageError(f"more than {limit} states lie within {depth} actions; ask for fewer")
                        graph.add_node(number[successor], depth=level, won=after.won, done=after.done, record=after)
                        successors.append((successor, after))
                    graph.add_edge(number[state], number[successor], action=action)
            layer = successors
    finally:
        environment.restore(here)
    wins = [node for node, data in graph.nodes(data=True) if data["won"]]
    distances = nx.multi_source_dijkstra_path_length(graph.reverse(copy=False), wins, weight=None) if wins else {}
    for node, data in graph.nodes(data=True):
        distance = distances.get(node)
        data["distance"] = None if distance is None else int(distance)
    return graph


def search_outcomes(environment: Environment, record: Record, depth: int) -> Certificate:
    """The certificate of the current state, whose record is ``record``, over possible outcomes.

    Exhaustive over action sequences: ``tried[d]`` counts the sequences of length ``d + 1`` whose every action is
    admissible in some state that the actions before it may lead to without ending the episode.  A sequence wins if it
    may succeed.  Raises :class:`~handoff.errors.UsageError` if ``depth`` is less than 1 and ``TypeError`` if the
    adapter is not stochastic or has no snapshots.
    """
    if depth < 1:
        raise UsageError(f"the depth of a frontier is at least 1, not {depth}")
    if not isinstance(environment, Stochastic) or not isinstance(environment, Snapshots):
        raise TypeError(f"environment {environment.name!r} does not list outcomes and take snapshots")
    if record.won or record.done:
        return Certificate(depth, member=False, distance=0 if record.won else None, tried=())
    here = environment.snapshot()
    try:
        return _search_outcomes(environment, here, depth)
    finally:
        environment.restore(here)


def _search_outcomes(environment: Environment, here: Hashable, depth: int) -> Certificate:
    assert isinstance(environment, Stochastic)
    assert isinstance(environment, Snapshots)
    tried: list[int] = []
    # A node is an action sequence with the unfinished states that it may lead to, in the order in which they are found.
    nodes: list[tuple[tuple[str, ...], tuple[Hashable, ...]]] = [((), (here,))]
    for level in range(1, depth + 1):
        successors, wins, count = [], [], 0
        for path, states in nodes:
            reached: dict[str, dict[Hashable, None]] = {}
            winning = set()
            for state in states:
                for action in environment.restore(state).admissible:
                    onward = reached.setdefault(action, {})
                    environment.restore(state)
                    for _, outcome in environment.outcomes(action):
                        record = environment.restore(outcome)
                        if record.won:
                            winning.add(action)
                        elif not record.done:
                            onward[outcome] = None
                        environment.restore(state)
            for action, onward in reached.items():
                if action in winning:
                    wins.append((*path, action))
                if onward:
                    successors.append(((*path, action), tuple(onward)))
            count += len(reached)
        tried.append(count)
        if wins:
            firsts = tuple(dict.fromkeys(path[0] for path in wins))
            return Certificate(depth, level == depth, level, tuple(tried), bridges=firsts, path=wins[0])
        nodes = successors
    return Certificate(depth, member=False, distance=None, tried=tuple(tried))
