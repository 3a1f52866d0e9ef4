"""One check of the adapter conformance suite, and the decorator that lists it."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from handoff.conformance.subject import Subject


@attrs.frozen
class ContractCheck:
    """One requirement of the contract."""

    name: str
    #: The requirement, in a few words.
    title: str
    #: Returns a summary, or raises ``Failed`` or ``Skipped``.
    run: Callable[[Subject], str]
    #: Names of the checks that must pass first.
    needs: tuple[str, ...] = ()


def check(
    checks: list[ContractCheck], name: str, title: str, *needs: str
) -> Callable[[Callable[[Subject], str]], Callable[[Subject], str]]:
    """Add the decorated function to ``checks``."""

    def register(run: Callable[[Subject], str]) -> Callable[[Subject], str]:
        checks.append(ContractCheck(name, title, run, needs))
        return run

    return register
