"""Exceptions of foreign code in words."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from handoff import signals
from handoff.errors import (
    DataError,
    EnvironmentFault,
    HandoffError,
    Interrupted,
    PolicyFault,
    ProtocolFault,
    ReplayMismatch,
    StoreError,
    TaskFault,
    UsageError,
)
from handoff.files import way_out
from handoff.text import class_name, printable, reason, said

#: The errors of the toolkit, the special ones first.
_KINDS = (
    TaskFault,
    UsageError,
    DataError,
    EnvironmentFault,
    PolicyFault,
    ProtocolFault,
    ReplayMismatch,
    StoreError,
    Interrupted,
)


def failure(error: BaseException) -> str:
    """An exception as type, text, and the file and line where it was raised."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)
        where, trace = f" ({printable(file[:60])}, line {trace.tb_lineno})", trace.tb_next
    return f"{reason(error)}{where}"


def sentence(error: HandoffError) -> str:
    """The text of an error that is a sentence already."""
    return said(error, 2000) or class_name(type(error))


def remedy(error: BaseException) -> str | None:
    """What to do about an error of the system; ``None`` where that is not known."""
    try:
        return way_out(error)
    except BaseException as another:
        if signals.from_user(another):
            raise
        return None


def stated(error: HandoffError) -> HandoffError:
    """``error`` if it is the toolkit's own and holds a text, else one of its kind with its text.

    Reading one of a plug-in's class, or one that holds an object, may run code of the plug-in.
    """
    kind = type(error)
    ours = kind.__module__ if type(kind) is type else ""
    if type(ours) is str and ours.startswith("handoff.") and all(type(part) is str for part in error.args):
        return error
    base = next((one for one in _KINDS if issubclass(kind, one)), HandoffError)
    return base(sentence(error))


@contextlib.contextmanager
def contained(fault: Callable[[str], HandoffError], words: str) -> Iterator[None]:
    """Raise ``fault`` with one sentence for anything that is raised here.

    An error of the toolkit's own passes, and so do Ctrl-C and the cancellation of the task that runs.
    """
    try:
        yield
    except HandoffError as error:
        same = stated(error)
        if same is error:
            raise
        raise same from error
    except BaseException as error:
        if signals.from_user(error) or (issubclass(type(error), asyncio.CancelledError) and _cancelled()):
            raise
        raise fault(f"{words} raised {failure(error)}") from error


def _cancelled() -> bool:
    """Whether somebody cancels the task that runs."""
    with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return False
