"""The checks of the adapter conformance suite, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from handoff.conformance.subject import (
    Subject,
)


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
