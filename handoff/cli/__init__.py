"""The command line: parses, calls, prints; no logic.

One file per sub-command, imported when it is used.  An adapter's package may add commands of its own by the entry point
group ``handoff.commands``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module, metadata

import click

from handoff import __version__
from handoff.errors import HandoffError
from handoff.names import printable

#: Sub-command -> module that defines a click command of that name.
COMMANDS = {
    "run": "handoff.cli.run",
    "rollout": "handoff.cli.rollout",
    "audit": "handoff.cli.audit",
    "report": "handoff.cli.report",
    "compare": "handoff.cli.compare",
    "export": "handoff.cli.export",
    "estimate": "handoff.cli.estimate",
    "transport": "handoff.cli.transport",
    "plan": "handoff.cli.plan",
    "tax": "handoff.cli.tax",
    "check": "handoff.cli.check",
    "doctor": "handoff.cli.doctor",
    "envs": "handoff.cli.envs",
}
PLUGINS = "handoff.commands"


class _Lazy(click.Group):
    """Loads a sub-command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(point.name for point in metadata.entry_points(group=PLUGINS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
            assert isinstance(command, click.Command)
            return command
        for point in metadata.entry_points(group=PLUGINS):
            if point.name == cmd_name:
                loaded = point.load()
                return loaded if isinstance(loaded, click.Command) else None
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if near and "Did you mean" not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error
            raise


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Examples:
  handoff run alfworld -p rl=expert -p sft=noisy:0.3 --cross sft,rl
  handoff audit runs/alfworld-0123456789
  handoff report runs/alfworld-0123456789""",
)
@click.version_option(__version__, prog_name="handoff")
def group() -> None:
    """Where does an agent checkpoint's gain come from: reaching useful states, or acting from them?

    One checkpoint (the reacher) acts until the environment verifies that the state is exactly D actions from success;
    that state is cloned, and every solver checkpoint goes on from the same clone.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.  A :class:`~handoff.errors.HandoffError` becomes one sentence and its exit code."""
    try:
        group.main(args=None if arguments is None else list(arguments), prog_name="handoff", standalone_mode=True)
    except HandoffError as error:
        click.echo(f"handoff: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): not an error of ours, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
