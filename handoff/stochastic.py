"""Environments whose steps are draws: what *clone* and *frontier* mean there.

A stochastic adapter draws from the seed that ``reset`` was given and from the number of steps taken since, and from
nothing else.  Whoever plays the same (task, seed slot) therefore meets the same draws at the same step: common random
numbers, so that a clone at the handoff goes on with the reacher's own luck and two solvers are compared under one.

The frontier F_D must not depend on luck, though: under one seed's draws a state may be unable to win that wins with
probability 0.9.  Where steps are draws, a state is in F_D when it is non-terminal and D is the least number of
admissible actions that succeed *with positive probability*.  :func:`search` finds it over an adapter's outcomes, with
the same counts as :func:`handoff.frontier.search`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

from handoff.environment import Environment, Snapshots
from handoff.errors import UsageError
from handoff.records import Certificate, Record, Task


@runtime_checkable
class Stochastic(Protocol):
    """Its steps are draws, and it can list them.

    ``outcomes(action)`` are the states that the current one may become, as pairs (probability, snapshot) with positive
    probabilities that sum to 1, each state once.  Listing draws nothing.  The adapter must have
    :class:`~handoff.environment.Snapshots`, with the random state inside.
    """

    def outcomes(self, action: str) -> tuple[tuple[float, Hashable], ...]: ...


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
                        shown = environment.restore(outcome)
                        if shown.won:
                            winning.add(action)
                        elif not shown.done:
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
