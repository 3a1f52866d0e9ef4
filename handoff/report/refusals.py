"""Decisions that the model or a content filter refused, counted apart in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from handoff.report.format import plural
from handoff.runs.run import RecordedDecision


@attrs.frozen
class Refusals:
    """Refused decisions of one policy, in all of its turns."""

    policy: str
    refused: int
    decisions: int

    def sentence(self) -> str:
        return (
            f"{self.policy} or a content filter refused {self.refused:,} of {plural(self.decisions, 'decision')}: "
            "such a step is spent without an action."
        )


def refusals(decisions: Iterable[RecordedDecision]) -> tuple[Refusals, ...]:
    """The refusals of each policy that has any, in order of appearance."""
    total, refused = Counter[str](), Counter[str]()
    for one in decisions:
        total[one.policy] += 1
        refused[one.policy] += one.decision.status == "refused"
    return tuple(Refusals(name, refused[name], total[name]) for name in total if refused[name])
