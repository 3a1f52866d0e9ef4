"""The adapter conformance suite: does an environment keep the contract that everything else rests on?

One invariant: whatever an adapter does, it becomes a result.  A check that finds a fault, or that the adapter makes
raise, is *failed*, with what was seen and what to do about it; a check that has nothing to look at is *skipped*, with
the reason; nothing that an adapter raises leaves this module.

The suite plays short episodes, so it can show that an adapter is wrong and cannot prove that it is right.  It plays
every episode again on the same instance, on a fresh one, on one that was in the middle of another task, on two
instances in turn, and in a new process with another hash seed, and compares canonical JSON.  ``handoff check`` prints
it; :mod:`handoff.testing` gives the same checks to pytest.
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
from handoff.conformance import abilities as ability_checks
from handoff.conformance import contract, determinism
from handoff.conformance.checks import Check
from handoff.conformance.subject import Failed, Settings, Skipped, Subject, reason
from handoff.environment import Environment
from handoff.errors import HandoffError, UsageError
from handoff.registry import abilities, load

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

#: All checks, in the order in which they are run.
CHECKS: tuple[Check, ...] = (*contract.CHECKS, *determinism.CHECKS, *ability_checks.CHECKS)


@attrs.frozen
class Result:
    """One check's outcome: ``status`` is passed, failed or skipped; ``advice`` says what to do about a failure."""

    check: str
    title: str
    status: str
    detail: str
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


def run_check(check: Check, subject: Subject, earlier: Mapping[str, Result] | None = None) -> Result:
    """The outcome of one check; ``earlier`` are the results of those that it may need."""
    for needed in check.needs:
        if earlier and needed in earlier and earlier[needed].status != PASSED:
            return Result(check.name, check.title, SKIPPED, f"needs {needed!r}, which did not pass")
    try:
        return Result(check.name, check.title, PASSED, check.run(subject))
    except Failed as error:
        return Result(check.name, check.title, FAILED, error.detail, error.advice)
    except Skipped as error:
        return Result(check.name, check.title, SKIPPED, str(error))
    except HandoffError as error:
        return Result(check.name, check.title, FAILED, str(error), "do what the message says, then check again")
    except (Exception, SystemExit) as error:
        return Result(check.name, check.title, FAILED, f"{reason(error)}{_place(error, subject)}", _UNEXPECTED)


_UNEXPECTED = "mend the adapter so that this does not raise; a HandoffError is for what the user must act on"


def _place(error: BaseException, subject: Subject) -> str:
    """Where in the adapter's own package an exception came from, as file name and line."""
    module = sys.modules.get(subject.cls.__module__)
    folder = os.path.dirname(getattr(module, "__file__", None) or "")
    found, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if folder and name.startswith(folder + os.sep):
            found = f" (in {os.path.basename(name)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def check_class(
    cls: type[Environment],
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    name: str | None = None,
) -> ConformanceReport:
    """Run the whole suite on an adapter class.

    ``name`` is the name that its entry point gives it (default: the class's own).  Raises
    :class:`~handoff.errors.UsageError` for a split that the class does not have; whatever the adapter does is in the
    report.
    """
    settings = settings or Settings()
    subject = Subject(cls, options, settings, name)
    results: dict[str, Result] = {}
    before, printed = _Host.now(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            for check in CHECKS:
                results[check.name] = run_check(check, subject, results)
            subject.close()
            output_kept = sys.stdout is printed
    finally:
        subject.close()
    results[_HOST[0]] = _host(before, _Host.now(), printed.getvalue(), output_kept)
    return ConformanceReport(
        subject.name, f"{cls.__module__}:{cls.__qualname__}", abilities(cls), settings, tuple(results.values())
    )


def check_environment(
    name: str, options: Mapping[str, Any] | None = None, settings: Settings | None = None
) -> ConformanceReport:
    """Run the whole suite on the installed adapter ``name``.

    An adapter that is installed and cannot be loaded gets a report with that one failure.  Raises
    :class:`~handoff.errors.UsageError` if none has this name, if it does not take the given options, or if it lacks
    the split that is asked for.
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
        with contextlib.redirect_stdout(sys.stderr):
            adapters.create(name, options).close()  # an option that it does not take is the caller's mistake
    return check_class(cls, options, settings, name)


# The host is looked at around the whole suite, so this check only reads what the others left behind.
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
    told = {
        "argv": "sys.argv was changed",
        "folder": "the working folder was changed",
        "python_random": "Python's global random state was used",
        "numpy_random": "NumPy's global random state was used",
    }
    faults = [text for name, text in told.items() if getattr(before, name) != getattr(after, name)]
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
