"""Why a reacher did not arrive: seven labels by rules on the sequence of actions and records.

A label is a description, not a mechanism.  The rules (``docs/failures.md`` explains them) are tried in order and the
first that holds gives the label, so labels are mutually exclusive, and the last one holds always, so they are
exhaustive.  They read nothing but the records: any finished run can be labelled again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import attrs
import numpy as np

from handoff.errors import UsageError
from handoff.estimation.method import Intervals
from handoff.protocols.frontier.records import Trajectory
from handoff.records import Record

#: The labels in the order in which their rules are tried.
LABELS = (
    "format_collapse",
    "inadmissible",
    "ended",
    "loop",
    "missed_subgoal",
    "never_took_target",
    "wander",
)
#: At least this share of the steps makes a rule on shares hold.
HALF = 0.5

State = Callable[[Record], Hashable]


@attrs.frozen
class Steps:
    """Counts over the steps of one trajectory.

    ``unusable`` steps came to no action, of which the model or a content filter ``refused`` some, and ``inadmissible``
    ones to an action that was not offered.  ``repeats`` take
    the same action as the step before, ``revisits`` lead to a state that was seen before (the one at reset included),
    ``unchanged`` leave the state as it was, and ``distinct`` is the number of different actions.
    """

    total: int
    unusable: int
    refused: int
    inadmissible: int
    repeats: int
    revisits: int
    unchanged: int
    distinct: int


def state_of(trajectories: Iterable[Trajectory]) -> State:
    """What counts as the state behind a record, decided once for a whole run.

    An observation may show the state (a board) or only answer the last action ("Nothing happens.").  If, within one
    task, one observation comes with two different lists of admissible actions, it answers, and the state is taken to be
    the list with the score; otherwise the observation is the state.
    """
    offered: dict[tuple[str, str], tuple[str, ...]] = {}
    for trajectory in trajectories:
        for record in trajectory.records():
            key = (trajectory.task, record.observation)
            if offered.setdefault(key, record.admissible) != record.admissible:
                return lambda record: (record.admissible, record.score, record.done, record.won)
    return lambda record: (record.observation, record.score, record.done, record.won)


def steps_of(trajectory: Trajectory, state: State) -> Steps:
    """Step-level counts of ``trajectory``."""
    states = [state(record) for record in trajectory.records()]
    actions = [step.decision.action for step in trajectory.steps]
    seen = {states[0]} if states else set()
    revisits = 0
    for reached in states[1:]:
        revisits += reached in seen
        seen.add(reached)
    before = trajectory.records()
    return Steps(
        total=len(actions),
        unusable=sum(action is None for action in actions),
        refused=sum(step.decision.status == "refused" for step in trajectory.steps),
        inadmissible=sum(
            action is not None and action not in record.admissible
            for action, record in zip(actions, before[:-1], strict=True)
        ),
        repeats=sum(a is not None and a == b for a, b in pairwise(actions)),
        revisits=revisits,
        unchanged=sum(a == b for a, b in pairwise(states)),
        distinct=len({action for action in actions if action is not None}),
    )


_TAKE = re.compile(r"(?:take|pick up|get|grab) (?:the )?([a-z]+)\b", re.IGNORECASE)


def target_progress(trajectory: Trajectory) -> str | None:
    """How far the object that the task is about was got: "taken", "offered" (one could have taken it), or ``None``.

    The task is about a kind of object if the last line of the first observation (the task sentence) has its name as a
    word.  An environment without commands that take things gives ``None``.
    """
    lines = trajectory.reset.observation.strip().splitlines() or [""]
    words = set(re.findall(r"[a-z]+", lines[-1].lower()))

    def about(action: str) -> bool:
        match = _TAKE.match(action)
        return match is not None and match.group(1).lower() in words

    records = trajectory.records()
    for step, record in zip(trajectory.steps, records, strict=False):
        action = step.decision.action
        if action is not None and action in record.admissible and about(action):
            return "taken"
    return "offered" if any(about(action) for record in records for action in record.admissible) else None


def label(trajectory: Trajectory, state: State) -> str:
    """The label of a trajectory that did not arrive.  Raises :class:`~handoff.errors.UsageError` for one that did."""
    if trajectory.arrived:
        raise UsageError(f"the reacher arrived on task {trajectory.task}, seed {trajectory.slot}: there is no failure")
    counts = steps_of(trajectory, state)
    if counts.total and counts.unusable >= HALF * counts.total:
        return "format_collapse"
    if counts.total and counts.unusable + counts.inadmissible >= HALF * counts.total:
        return "inadmissible"
    if trajectory.outcome in ("won", "terminal"):
        return "ended"
    if counts.total and counts.revisits >= HALF * counts.total:
        return "loop"
    progress = target_progress(trajectory)
    if progress == "taken":
        return "missed_subgoal"
    return "never_took_target" if progress == "offered" else "wander"


@attrs.frozen
class Failures:
    """The non-arrivals of one reacher.

    ``labels`` counts all seven.  The shares are of all steps of these trajectories (``None`` without steps), and
    ``median_distinct`` is the median over trajectories of the number of different actions.  ``refused`` counts the
    steps that the model or a content filter refused (``None`` without any).
    """

    reacher: str
    trajectories: int
    labels: dict[str, int]
    steps: int
    repeats: float | None
    revisits: float | None
    unchanged: float | None
    median_distinct: float | None
    refused: int | None = attrs.field(default=None, metadata={"optional": True})

    def share(self, label: str) -> float | None:
        """The share of the non-arrivals with ``label``; ``None`` if there are no non-arrivals."""
        return self.labels[label] / self.trajectories if self.trajectories else None

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self, filter=lambda field, value: value is not None or not field.metadata.get("optional"))


def failures(trajectories: Sequence[Trajectory]) -> dict[str, Failures]:
    """Labels and step-level shares of the non-arrivals of each reacher, in order of appearance.

    The state is decided over all ``trajectories``, arrivals included, so give the run's whole.
    """
    state = state_of(trajectories)
    found: dict[str, Failures] = {}
    for reacher in dict.fromkeys(trajectory.reacher for trajectory in trajectories):
        lost = [t for t in trajectories if t.reacher == reacher and not t.arrived]
        labels = Counter(label(trajectory, state) for trajectory in lost)
        counts = [steps_of(trajectory, state) for trajectory in lost]
        total = sum(one.total for one in counts)

        def share(part: int, total: int = total) -> float | None:
            return part / total if total else None

        found[reacher] = Failures(
            reacher=reacher,
            trajectories=len(lost),
            labels={name: labels[name] for name in LABELS},
            steps=total,
            repeats=share(sum(one.repeats for one in counts)),
            revisits=share(sum(one.revisits for one in counts)),
            unchanged=share(sum(one.unchanged for one in counts)),
            median_distinct=float(median(one.distinct for one in counts)) if counts else None,
            refused=sum(one.refused for one in counts) or None,
        )
    return found


@attrs.frozen
class ShareGap:
    """Difference of a label's share between two reachers, with the paper's trajectory-level interval."""

    label: str
    point: float | None
    low: float | None
    high: float | None
    reason: str | None = None


def share_gap(first: Failures, second: Failures, label: str = "loop", intervals: Intervals = Intervals()) -> ShareGap:
    """``second``'s share of ``label`` minus ``first``'s.

    Each reacher's non-arrivals are resampled on their own, which is a binomial draw of the label's count: descriptive,
    since trajectories of one task are not independent.
    """
    if not first.trajectories or not second.trajectories:
        empty = first if not first.trajectories else second
        return ShareGap(label, None, None, None, f"{empty.reacher} has no non-arrivals")
    rng = np.random.default_rng(intervals.seed)
    n, m = first.trajectories, second.trajectories
    p, q = first.labels[label] / n, second.labels[label] / m
    gaps_B = rng.binomial(m, q, intervals.draws) / m - rng.binomial(n, p, intervals.draws) / n
    low, high = np.quantile(gaps_B, [(1 - intervals.level) / 2, (1 + intervals.level) / 2])
    return ShareGap(label, q - p, float(low), float(high))
