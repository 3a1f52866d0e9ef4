"""The command ``handoff``.  Signals are handled before anything else is imported."""

from __future__ import annotations


def main() -> None:
    """Run the command line (:func:`handoff.cli.main`)."""
    try:
        from handoff import signals

        signals.install()
        from handoff.cli import main as run
    except KeyboardInterrupt:  # before the signals are handled
        import os

        os.write(2, b"handoff: stopped by the user\n")
        os._exit(3)
    try:
        run()
    finally:
        signals.ending()


if __name__ == "__main__":
    main()
