"""The command line: parses, calls, prints; no logic.

One file per sub-command, imported when it is used.  An adapter's package may add commands of its own by the entry point
group ``handoff.commands``.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Any

import click
from click.shell_completion import shell_complete

from handoff import __version__, signals
from handoff.cli import streams
from handoff.errors import HandoffError, Interrupted, UsageError
from handoff.text import reason

#: Sub-command -> its line in ``handoff --help``.  The module ``handoff.cli.NAME`` defines a click command of that name.
COMMANDS = {
    "run": "Run a handoff study: reachers, clones, solvers.",
    "rollout": "Roll policies out, many times per task.",
    "audit": "Check everything about a run again.",
    "report": "Print the tables of a run with intervals, or write its page.",
    "compare": "Put two runs side by side.",
    "export": "Write the records of a run as tables that other tools read.",
    "estimate": "Print every estimand of a table with its interval.",
    "transport": "Predict the interaction from another split.",
    "score": "Score replies that were made elsewhere, offline.",
    "plan": "Find how many tasks and seeds a study needs.",
    "tax": "Print pass@k and the sharpening tax of a pair of policies, or of many.",
    "check": "Check that an environment keeps the adapter contract.",
    "doctor": "Measure how deterministic a policy is.",
    "envs": "List the installed environments.",
}
#: Entry point group of plug-ins' own commands.
PLUGINS = "handoff.commands"


class _Lazy(click.Group):
    """Loads a command's module when the command is named.  ``handoff --help`` loads none of the toolkit's own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted({*_commands(), *_protocols()} - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command = getattr(import_module(f"handoff.cli.{cmd_name}"), cmd_name)
            assert isinstance(command, click.Command)
            return command
        if cmd_name in _commands():
            return _plugin_command(cmd_name)
        if cmd_name in _protocols():
            from handoff.cli.study_command import study_command
            from handoff.guard.failures import contained
            from handoff.protocols.registry import load_protocol

            protocol = load_protocol(cmd_name)
            with contained(UsageError, f"the options of protocol {cmd_name!r}: reading them"):
                return study_command(protocol)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._line(ctx, name)) for name in self.list_commands(ctx)])

    def _line(self, ctx: click.Context, name: str) -> str:
        if name in COMMANDS:
            return COMMANDS[name]
        if name in _protocols():
            return f"Run the protocol {name!r} of an installed package."
        try:
            command = self.get_command(ctx, name)
        except HandoffError as error:  # a broken plug-in must not take the help along
            return f"({error})"
        return command.get_short_help_str(limit=100) if command is not None else ""

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


def _plugin_command(name: str) -> click.Command:
    """The command of an installed package.  Raises :class:`~handoff.errors.UsageError` if the package is broken."""
    try:
        loaded = _commands()[name].load()
    except BaseException as error:
        if signals.from_user(error):
            raise
        raise UsageError(f"the command {name!r} cannot be loaded: {reason(error)}") from error
    if not isinstance(loaded, click.Command):
        raise UsageError(f"the command {name!r} cannot be loaded: it is no click command")
    return loaded


def _commands() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=PLUGINS)}


def _protocols() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group="handoff.protocols")}


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
    """Run the command line and exit.  Whatever can go wrong but for a defect of the toolkit is one sentence and an exit
    code: that of a :class:`~handoff.errors.HandoffError`, 2 for what the system refuses, 3 for a signal, and what a
    shell shows for a tool whose reader went away (``| head``)."""
    streams.prepare()
    code = _guarded(lambda: _invoke(sys.argv[1:] if arguments is None else list(arguments)))
    code = _guarded(sys.stdout.flush) or code
    sys.exit(code)


def _refused(error: OSError) -> str:
    """The sentence about an error of the system that no command expected."""
    from handoff.files import cause

    if error.filename == streams.OUTPUT:
        return f"cannot write the output: {cause(error)}"
    where = "the system refuses a part of this" if error.filename is None else f"cannot use {error.filename}"
    return f"{where}: {cause(error)}"


#: What the dynamic linker, and a module in C, say where memory is short.
_NO_ROOM = ("failed to map segment", "annot allocate memory", "error return without exception set")
#: Bytes that numpy and scipy take of a limited address space.  With less, their OpenBLAS may try for ever, deaf to
#: signals.
_ROOM = 160 * 2**20
#: Of click 8.2 on.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


def _invoke(arguments: list[str]) -> None:
    completing = os.environ.get("_HANDOFF_COMPLETE")
    if completing:
        sys.exit(shell_complete(group, {}, "handoff", "_HANDOFF_COMPLETE", completing))
    with group.make_context("handoff", arguments) as context:
        _require_place_and_room()
        try:
            group.invoke(context)
        except SystemExit as error:
            name = context.invoked_subcommand
            if name not in COMMANDS and name in _commands():  # a package may end its own command so
                raise
            raise Interrupted(f"code of a plug-in ended the program ({reason(error)})") from error


def _require_place_and_room() -> None:
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the working folder was removed; change to another one") from error
    if "scipy" in sys.modules or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    try:
        mmap.mmap(-1, _ROOM, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except OSError as error:
        raise UsageError(
            f"too little memory may be used: the libraries need {_ROOM // 2**20} MiB more; raise the limit (ulimit -v)"
        ) from error


def _guarded(work: Callable[[], object]) -> int:
    """Do ``work``; the exit code that it ends in."""
    try:
        work()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except _HELP as error:  # its text is all of the help
        with contextlib.suppress(OSError):
            error.show()
        return int(error.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        advice = "" if context is None else f" (see `{context.command_path} --help`)"
        streams.complain(f"{error.format_message().rstrip('.')}{advice}")
        return error.exit_code
    except HandoffError as error:
        streams.complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        streams.complain(signals.reason())
        return signals.EXIT_CODE
    except BrokenPipeError:
        streams.abandon()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.filename == streams.OUTPUT:
            streams.abandon()
        streams.complain(_refused(error))
        return HandoffError.exit_code
    except MemoryError:
        streams.complain("out of memory: ask for less at once")
        return HandoffError.exit_code
    except (ImportError, SystemError) as error:
        if not any(words in str(error) for words in _NO_ROOM):
            raise
        streams.complain(
            f"a library cannot be loaded ({error}): raise the limit on memory (ulimit -v), or install the toolkit "
            "where programs may run"
        )
        return HandoffError.exit_code
    return 0
