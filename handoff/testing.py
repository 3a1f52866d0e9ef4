"""The conformance suite as pytest cases.

An adapter's own tests need four lines::

    import pytest
    from handoff.testing import conformance_cases
    from my_package import MyEnvironment

    @pytest.mark.parametrize("case", conformance_cases(MyEnvironment))
    def test_the_adapter_keeps_its_contract(case):
        case()

Each case has the name of its check.  This module does not import pytest, so ``unittest`` can call the cases.
"""

from __future__ import annotations

import atexit
import unittest
from collections.abc import Mapping
from typing import Any

from handoff.conformance.checks import ContractCheck
from handoff.conformance.subject import Settings, Subject
from handoff.conformance.suite import CHECKS, FAILED, PASSED, SKIPPED, Result, run_check
from handoff.environment import Environment


class Case:
    """One check of one adapter.  A call raises ``AssertionError`` with the fault and the advice, or
    ``unittest.SkipTest`` with the reason."""

    def __init__(self, check: ContractCheck, subject: Subject) -> None:
        self.check = check
        self.subject = subject
        self.__name__ = check.name  # pytest makes the case's id from it
        self.__doc__ = check.title

    def result(self) -> Result:
        """Run the checks that this one needs, then this one."""
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


def _needed(check: ContractCheck, by_name: Mapping[str, ContractCheck]) -> list[str]:
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

    The cases share instances and episodes, so the whole list costs little more than its slowest case.  Raises
    :class:`~handoff.errors.UsageError` for a split that the adapter does not have.
    """
    subject = Subject(environment, options, settings or Settings(), name)
    atexit.register(subject.close)
    return [Case(check, subject) for check in CHECKS]


__all__ = ["Case", "Settings", "conformance_cases"]
