"""Policies that break off in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from handoff.errors import Interrupted
from handoff.policies import Policy


def interrupt(policies: Iterable[Policy], after: int) -> None:
    """Make the policies raise Interrupted as soon as more than ``after`` decisions are asked of all together."""
    count = 0

    def failing(decide: Callable[..., Any]) -> Callable[..., Any]:
        def decide_or_fail(requests: Any) -> Any:
            nonlocal count
            count += len(requests)
            if count > after:
                raise Interrupted("the model server went away")
            return decide(requests)

        return decide_or_fail

    for policy in policies:
        policy.decide = failing(policy.decide)  # type: ignore[method-assign]
