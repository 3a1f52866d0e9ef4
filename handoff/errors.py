"""Errors named by the boundary that was crossed.

Every error that a user can cause or must act on is a :class:`HandoffError` whose text is one sentence with the
cause and the next step.  The command line prints that sentence and exits with :attr:`HandoffError.exit_code`;
anything else that escapes is a defect of the toolkit.
"""

from __future__ import annotations


class HandoffError(Exception):
    """Base class; ``exit_code`` is what the command line exits with."""

    exit_code = 2


class UsageError(HandoffError, ValueError):
    """The request itself is wrong: an unknown name, a bad option, inconsistent arguments."""


class DataError(HandoffError, ValueError):
    """A file that was given is unusable: malformed, untrusted, or not what its name says."""


class EnvironmentFault(HandoffError, RuntimeError):
    """An environment broke its contract or could not go on (never: the policy acted badly)."""

    exit_code = 3


class TaskFault(EnvironmentFault, DataError):
    """An environment refused one of its own tasks: the task's data is missing or malformed."""


class PolicyFault(HandoffError, RuntimeError):
    """A policy broke its contract or could not go on (never: it acted badly)."""

    exit_code = 3


class ProtocolFault(HandoffError, RuntimeError):
    """A protocol of a plug-in broke its contract or could not go on."""

    exit_code = 3


class ReplayMismatch(HandoffError, AssertionError):
    """A replayed record differs from the recorded one; names task, step, field and both values."""

    exit_code = 3


class StoreError(HandoffError, RuntimeError):
    """The run folder cannot be read, written or continued."""


class Interrupted(HandoffError, RuntimeError):
    """Work ended before its plan did, through no fault of the request: a worker or a server went away.

    What is finished is kept; the same command goes on from there.
    """

    exit_code = 3
