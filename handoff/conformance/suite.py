"""The adapter conformance suite.

One invariant: each check becomes a result, and no exception of an adapter leaves this module.  A check is *failed* if
it finds a fault or if the adapter raises; the result says which fault and how to mend it.  A check is *skipped*, with
the reason, if it does not apply.

The suite plays short episodes, so it can show that an adapter is wrong and cannot prove that it is right.  It plays
each episode again on the same instance, on a fresh one, on one in the middle of another task, on two instances in
turn, and in a new process with another hash seed.  It compares canonical JSON.  ``handoff check`` prints the report;
:mod:`handoff.testing` gives the same checks to pytest.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from handoff import registry as adapters
from handoff import signals
from handoff.conformance import abilities as ability_checks
from handoff.conformance import contract, conversations, determinism
from handoff.conformance.checks import ContractCheck
from handoff.conformance.subject import Failed, Settings, Skipped, Subject
from handoff.environment import Environment
from handoff.errors import EnvironmentFault, HandoffError, UsageError
from handoff.guard.adapter import opened
from handoff.guard.host_state import kept
from handoff.guard.watch import Monitor, TimedOut
from handoff.registry import abilities, load
from handoff.text import printable, reason

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

#: All checks, in the order in which they are run.
CHECKS: tuple[ContractCheck, ...] = (
    *contract.CHECKS, *determinism.CHECKS, *ability_checks.CHECKS, *conversations.CHECKS,
)  # fmt: skip


@attrs.frozen
class Result:
    """The outcome of one check."""

    #: Name of the check.
    check: str
    title: str
    #: Passed, failed or skipped.
    status: str
    #: A summary, the fault, or the reason for the skip.
    detail: str
    #: How to mend a failure.
    advice: str | None = None


@attrs.frozen
class ConformanceReport:
    """All results for one adapter, in the order of the suite."""

    environment: str
    implementation: str
    abilities: tuple[str, ...]
    settings: Settings
    results: tuple[Result, ...]

    def count(self, status: str) -> int:
        return sum(result.status == status for result in self.results)

    @property
    def conforms(self) -> bool:
        """No check failed and at least one passed."""
        return self.count(FAILED) == 0 and self.count(PASSED) > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "environment": self.environment,
            "implementation": self.implementation,
            "abilities": list(self.abilities),
            "settings": attrs.asdict(self.settings),
            "conforms": self.conforms,
            **{status: self.count(status) for status in (PASSED, FAILED, SKIPPED)},
            "results": [attrs.asdict(result) for result in self.results],
        }


# Running --------------------------------------------------------------------------------------------------------------


def run_check(check: ContractCheck, subject: Subject, earlier: Mapping[str, Result] | None = None) -> Result:
    """The outcome of one check.  ``earlier`` holds the results of the checks before it."""
    for needed in check.needs:
        if earlier and needed in earlier and earlier[needed].status != PASSED:
            return Result(check.name, check.title, SKIPPED, f"needs {needed!r}, which did not pass")
    try:
        return Result(check.name, check.title, PASSED, printable(check.run(subject)))
    except Failed as error:
        return Result(check.name, check.title, FAILED, printable(error.detail), error.advice)
    except Skipped as error:
        return Result(check.name, check.title, SKIPPED, printable(str(error)))
    except HandoffError as error:
        detail = printable(str(error))
        return Result(check.name, check.title, FAILED, detail, "do what the message says, then check again")
    except TimedOut as error:
        place = _place(error, subject)
        detail = f"a call had not returned after {subject.timeout:g} s (--step-timeout){place}"
        return Result(check.name, check.title, FAILED, detail, "look for a wait that never ends")
    except BaseException as error:
        if signals.from_user(error):
            raise
        return Result(check.name, check.title, FAILED, f"{reason(error)}{_place(error, subject)}", _UNEXPECTED)


_UNEXPECTED = "mend the adapter so that this does not raise; a HandoffError is for what the user must act on"


def _place(error: BaseException, subject: Subject) -> str:
    """File name and line in the adapter's package where the exception was raised."""
    module = sys.modules.get(subject.cls.__module__)
    folder = os.path.dirname(getattr(module, "__file__", None) or "")
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if folder and name.startswith(folder + os.sep):
            place = f" (in {os.path.basename(name)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def check_class(
    cls: type[Environment],
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    name: str | None = None,
    timeout: float | None = None,
) -> ConformanceReport:
    """Run the whole suite on an adapter class.

    ``name`` is the name of its entry point (default: the name that the class gives).  A call that takes longer than
    ``timeout`` seconds fails its check.  Raises :class:`~handoff.errors.UsageError` for a split that the class does not
    have, and nothing else.
    """
    settings = settings or Settings()
    subject = Subject(cls, options, settings, name, timeout)
    results: dict[str, Result] = {}
    before, printed = _Host.now(), io.StringIO()
    try:
        with kept(), Monitor([subject.watch]), contextlib.redirect_stdout(printed):
            for check in CHECKS:
                results[check.name] = run_check(check, subject, results)
            subject.close()
            output_kept = sys.stdout is printed
            after = _Host.now()
    finally:
        subject.close()
    results[_HOST[0]] = _host(before, after, printed.getvalue(), output_kept)
    return ConformanceReport(
        subject.name, f"{cls.__module__}:{cls.__qualname__}", _abilities(cls), settings, tuple(results.values())
    )


def _abilities(cls: type[Environment]) -> tuple[str, ...]:
    """The abilities of an adapter class; none where asking for them fails, which the check ``create`` tells of."""
    with contextlib.suppress(Exception, SystemExit):
        return abilities(cls)
    return ()


def check_environment(
    name: str,
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    timeout: float | None = None,
) -> ConformanceReport:
    """Run the whole suite on the installed adapter ``name``.

    ``timeout`` is that of :func:`check_class`.  An installed adapter that cannot be loaded gets a report with that one
    failure.  Raises :class:`~handoff.errors.UsageError` if no adapter has this name, or if it lacks an option or the
    split.
    """
    settings = settings or Settings()
    points = adapters.registered()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            cls = load(name)
    except UsageError as error:
        if name not in points:
            raise
        failed = Result("load", "The plug-in can be loaded", FAILED, str(error), "mend the package, then check again")
        return ConformanceReport(name, points[name].value, (), settings, (failed,))
    if options:
        # An unknown option is the caller's mistake; what else fails is for the suite to tell.
        with kept(), contextlib.suppress(EnvironmentFault), opened(name, options, timeout):
            pass
    return check_class(cls, options, settings, name, timeout)


# This check compares the host before the whole suite with the host after it.
_HOST = ("host", "The adapter leaves its host alone: arguments, folder, variables, output, global random state")


@attrs.frozen
class _Host:
    argv: tuple[str, ...]
    folder: str
    variables: Mapping[str, str]
    python_random: str
    numpy_random: str

    @classmethod
    def now(cls) -> _Host:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = np.random.get_state(legacy=False)
        return cls(tuple(sys.argv), os.getcwd(), dict(os.environ), repr(random.getstate()), repr(state))


def _host(before: _Host, after: _Host, printed: str, output_kept: bool) -> Result:
    texts = {
        "argv": "sys.argv was changed",
        "folder": "the working folder was changed",
        "python_random": "Python's global random state was used",
        "numpy_random": "NumPy's global random state was used",
    }
    faults = [text for name, text in texts.items() if getattr(before, name) != getattr(after, name)]
    names = {*before.variables, *after.variables}
    changed = sorted(name for name in names if before.variables.get(name) != after.variables.get(name))
    if changed:
        faults.append(f"environment variables were changed: {', '.join(changed)}")
    if not output_kept:
        faults.append("sys.stdout was replaced")
    if printed.strip():
        faults.append(f"it printed {printed.strip().splitlines()[0]!r:.80}")
    if not faults:
        return Result(*_HOST, PASSED, "nothing was touched")
    return Result(*_HOST, FAILED, "; ".join(faults), "restore what a library changes; own your generator")
