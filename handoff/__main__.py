"""The command ``handoff``.  Signals are handled before anything else is imported."""

from __future__ import annotations

import os
import sys


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
        _leave(ended)
        raise
    finally:
        signals.ending()


def _leave(ended: SystemExit) -> None:
    """End the process at once if a thread of a plug-in would keep it for ever."""
    import threading

    mine = threading.main_thread()
    kept = [thread for thread in threading.enumerate() if thread is not mine and not thread.daemon]
    for thread in kept:
        thread.join(1.0)
    if not any(thread.is_alive() for thread in kept):
        return
    try:
        sys.stderr.write("handoff: the work is done; a thread of a plug-in still runs and is ended\n")
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # the reader went away
        pass
    os._exit(ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1)


if __name__ == "__main__":
    main()
