"""Totals of the exhaustive search for the frontier: how many action sequences a run's certificates tried.

"Reach or Solve? Deep Diving into Agentic RL Gains with Checkpoint Handoffs" prints them of the accepted states (3,227
first and 89,511 second actions over 115 states).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import attrs

from handoff.protocols.frontier.records import Trajectory
from handoff.protocols.frontier.study import Study
from handoff.records import Certificate


@attrs.frozen
class Searched:
    """The search from some states."""

    states: int
    #: Sequences tried, by their length: 1, 2, ...
    tried: tuple[int, ...]

    @property
    def words(self) -> str:
        """``115 states: 3,227 first actions, 89,511 second actions``."""
        names = ("first", "second", "third", "fourth", "fifth")
        parts = [
            f"{count:,} {names[place] if place < len(names) else f'{place + 1}th'} action{'' if count == 1 else 's'}"
            for place, count in enumerate(self.tried)
        ]
        return f"{self.states:,} state{'' if self.states == 1 else 's'}: {', '.join(parts) or 'nothing tried'}"


@attrs.frozen
class SearchTotals:
    """The searches of a run, as far as it has got."""

    #: From the states where reachers arrived.
    accepted: Searched
    #: From every state that was checked.
    checked: Searched


def certificates(trajectory: Trajectory) -> Iterator[tuple[int, Certificate]]:
    """Every certificate of a trajectory, with the number of actions before it."""
    yield 0, trajectory.reset_check
    for position, step in enumerate(trajectory.steps, start=1):
        if step.check is not None:
            yield position, step.check


def search_totals(study: Study) -> SearchTotals:
    """The totals over all sealed trajectories."""
    trajectories = study.trajectories.values()
    return SearchTotals(
        _searched(one.certificate() for one in trajectories if one.arrived),
        _searched(check for one in trajectories for _, check in certificates(one)),
    )


def _searched(checks: Iterable[Certificate]) -> Searched:
    states, totals = 0, tuple[int, ...]()
    for check in checks:
        states += 1
        totals = tuple(a + b for a, b in zip_longest(totals, check.tried, fillvalue=0))
    return Searched(states, totals)
