"""What the command line says when it refuses a request."""

from __future__ import annotations

import pytest

from handoff.cli import main


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line on standard error with which the command ends in the exit ``code``."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    shown = capsys.readouterr().err
    assert caught.value.code == code, shown
    (line,) = shown.strip().splitlines()
    return line
