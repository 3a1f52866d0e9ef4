"""The command ``handoff``.  Signals are handled before anything else is imported."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading


def main() -> None:
    """Run the command line (:func:`handoff.cli.main`)."""
    # Each thread of its pool takes memory; where there is too little it tries for ever.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from handoff import signals

        signals.install()
        from handoff.cli import main as run
    except KeyboardInterrupt:  # before the signals are handled
        os.write(2, b"handoff: stopped by the user\n")
        os._exit(3)
    try:
        run()
    except SystemExit as ended:
        signals.ending()
        _leave(ended)
        raise
    finally:
        signals.ending()


def _leave(ended: SystemExit) -> None:
    """End the process at once if threads of a plug-in would keep it for ever.  They get a second in all."""
    import threading
    import time

    deadline = time.monotonic() + 1.0
    kept = [one for one in threading.enumerate() if one is not threading.main_thread() and not one.daemon]
    for thread in kept:
        thread.join(max(0.0, deadline - time.monotonic()))
    alive = [thread for thread in kept if thread.is_alive()]
    if not alive:
        return
    from handoff.cli.streams import complain

    others = f" (and {len(alive) - 1} more)" if len(alive) > 1 else ""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream was closed, or its reader went away
        complain(
            f"the work is done; the thread {alive[0].name!r:.80}{_origin(alive[0])}{others} still runs and is ended"
        )
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    os._exit(ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1)


def _origin(thread: threading.Thread) -> str:
    """The file whose code ``thread`` began with, in words."""
    import threading

    frame, file = sys._current_frames().get(thread.ident or 0), ""
    while frame is not None and frame.f_code.co_filename != threading.__file__:
        file, frame = frame.f_code.co_filename, frame.f_back
    return f" of a plug-in ({file})" if file else " of a plug-in"


if __name__ == "__main__":
    main()
