"""One check of the adapter conformance suite, and the decorator that lists it."""

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


def check(
    checks: list[Check], name: str, title: str, *needs: str
) -> Callable[[Callable[[Subject], str]], Callable[[Subject], str]]:
    """Adds the decorated function to ``checks``."""

    def register(run: Callable[[Subject], str]) -> Callable[[Subject], str]:
        checks.append(Check(name, title, run, needs))
        return run

    return register
