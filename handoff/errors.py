"""Errors named by the boundary that was crossed.

Every error that a user can cause or must act on is a :class:`HandoffError` whose text is one sentence with the
cause and the next step.  The command line prints that sentence and exits with :attr:`HandoffError.exit_code`;
anything else that escapes is a defect of the toolkit.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

DISTRIBUTION = "checkpoint-handoff"


#: Characters of a sentence, and those of its end among them.
_MOST, _END = 2000, 500


def brief(sentence: str) -> str:
    """``sentence``, without the middle of one that is very long.

    It may quote a folder, a server or an adapter, whose texts have any length.  Its cause comes first, and the way out
    last.
    """
    left_out = len(sentence) - _MOST
    if left_out <= 0:
        return sentence
    return f"{sentence[: _MOST - _END]} ... ({left_out:,} characters are left out) ... {sentence[-_END:]}"


class HandoffError(Exception):
    """Base class; ``exit_code`` is what the command line exits with."""

    exit_code = 2

    def __str__(self) -> str:
        return brief(super().__str__())


class UsageError(HandoffError, ValueError):
    """The request itself is wrong: an unknown name, a bad option, inconsistent arguments."""


class MissingExtra(UsageError):
    """A library that an extra of the toolkit brings cannot be imported."""

    def __init__(self, library: str, extra: str, reason: object, who: str = "this") -> None:
        """``who`` needs the ``library`` of ``extra``; ``reason`` is why the import failed."""
        self.library, self.extra, self.reason = library, extra, reason
        super().__init__(f"{who} needs {library} ({reason}); install it: {install_command(extra)}")

    def of(self, who: str) -> MissingExtra:
        """The same, of somebody who is known by name."""
        return MissingExtra(self.library, self.extra, self.reason, who)


def install_command(extra: str, root: Path | None = None) -> str:
    """The command that installs the libraries of ``extra``, for a shell.

    From a source tree (in the folder ``root``) it installs the tree with the extra.  An installed toolkit names the
    libraries themselves, as its metadata lists them: it is on no index.
    """
    root = Path(__file__).resolve().parent.parent if root is None else root
    if (root / "pyproject.toml").is_file() and (root / "envs" / "alfworld").is_dir():
        place = "." if root == Path.cwd() else str(root)
        return f"pip install -e {shlex.quote(f'{place}[{extra}]')}"
    from importlib import metadata

    try:
        listed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        listed = []
    stated = (requirement.partition(";") for requirement in listed)
    of_extra = re.compile(rf"""extra == ["']{re.escape(extra)}["']""")
    libraries = [name.strip() for name, _, marker in stated if of_extra.search(marker)]
    return shlex.join(["pip", "install", *(libraries or [f"{DISTRIBUTION}[{extra}]"])])


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
