"""The conformance suite as pytest cases.

An adapter's own tests need four lines::

    import pytest
    from handoff.testing import conformance_cases
    from my_package import MyEnvironment

    @pytest.mark.parametrize("case", conformance_cases(MyEnvironment))
    def test_the_adapter_keeps_its_contract(case):
        case()

Every check is one case, named after it.  pytest itself is not imported here, so this works under
``unittest`` as well.
"""

from __future__ import annotations

import atexit
import unittest
from collections.abc import Mapping
from typing import Any

from handoff.conformance.checks import Check
from handoff.conformance.subject import Settings, Subject
from handoff.conformance.suite import CHECKS, FAILED, PASSED, SKIPPED, Result, run_check
from handoff.environment import Environment


class Case:
    """One check of one adapter.  Calling it raises ``AssertionError`` with what was seen and what to do, or
    ``unittest.SkipTest`` with the reason, which pytest reports as a skip."""

    def __init__(self, check: Check, subject: Subject) -> None:
        self.check = check
        self.subject = subject
        self.__name__ = check.name  # what pytest makes the case's id of
        self.__doc__ = check.title

    def result(self) -> Result:
        """The outcome, once the checks that this one needs have passed."""
        earlier: dict[str, Result] = {}
        by_name = {check.name: check for check in CHECKS}
        for name in _needed(self.check, by_name):
            earlier[name] = run_check(by_name[name], self.subject, earlier)
        return run_check(self.check, self.subject, earlier)

    def __call__(self) -> None:
        result = self.result()
        if result.status == FAILED:
            raise AssertionError(f"{result.title}: {result.detail}\n  what to do: {result.advice}")
        if result.status == SKIPPED:
            raise unittest.SkipTest(result.detail)
        assert result.status == PASSED


def _needed(check: Check, by_name: Mapping[str, Check]) -> list[str]:
    order: list[str] = []
    for name in check.needs:
        order += [other for other in (*_needed(by_name[name], by_name), name) if other not in order]
    return order


def conformance_cases(
    environment: type[Environment],
    options: Mapping[str, Any] | None = None,
    *,
    settings: Settings | None = None,
    name: str | None = None,
) -> list[Case]:
    """The suite's checks of the adapter class ``environment``, made with keyword ``options``.

    The cases share instances and episodes, so the whole list costs little more than its dearest case.  Raises
    :class:`~handoff.errors.UsageError` for a split that the adapter does not have.
    """
    subject = Subject(environment, options, settings or Settings(), name)
    atexit.register(subject.close)
    return [Case(check, subject) for check in CHECKS]


__all__ = ["Case", "Settings", "conformance_cases"]
