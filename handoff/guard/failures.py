"""Exceptions of foreign code in words."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from handoff import signals
from handoff.errors import HandoffError
from handoff.text import printable, reason


def failure(error: BaseException) -> str:
    """An exception as type, text, and the file and line where it was raised."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)
        where, trace = f" ({printable(file[:60])}, line {trace.tb_lineno})", trace.tb_next
    return f"{reason(error)}{where}"


@contextlib.contextmanager
def contained(fault: Callable[[str], HandoffError], words: str) -> Iterator[None]:
    """Raise ``fault`` with one sentence for anything that is raised here.

    An error of the toolkit's own passes, and so do Ctrl-C and the cancellation of the task that runs.
    """
    try:
        yield
    except HandoffError:
        raise
    except BaseException as error:
        if signals.from_user(error) or (isinstance(error, asyncio.CancelledError) and _cancelled()):
            raise
        raise fault(f"{words} raised {failure(error)}") from error


def _cancelled() -> bool:
    """Whether somebody cancels the task that runs."""
    with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return False
