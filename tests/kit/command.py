"""The command line as tests call it: in a new process or in this one."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result

from handoff.cli import group


def handoff(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, with the text of both outputs."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 600, **options}
    return subprocess.run(_command(*arguments), text=True, **options)


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a new process, with pipes for the text of both outputs."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(_command(*arguments), text=True, **options)


def hear_the_terminal() -> None:
    """Undo what a parent in the background, or ``nohup``, hands down: signals that are ignored.

    For ``preexec_fn``: a child that tests send these signals to must not ignore them.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def handoff_without(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process where the import of ``module`` fails."""
    script = f"import sys; sys.modules[{module!r}] = None; from handoff.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def invoke(*arguments: object, **options: Any) -> Result:
    """Run the command in this process.  A refusal is the exception of the result."""
    return CliRunner().invoke(group, [str(argument) for argument in arguments], **options)


def output_of(*arguments: object, **options: Any) -> str:
    """Run the command in this process, which must succeed; the text of standard output."""
    result = invoke(*arguments, **options)
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result.stdout


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "handoff", *map(str, arguments)]
