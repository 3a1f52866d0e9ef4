"""The command that runs a protocol, made from the protocol's own settings.

``handoff run`` and ``handoff rollout`` are such commands, and so is the command of every protocol that a plug-in
brings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from handoff.cli import options
from handoff.cli.settings import Command, Option, options_of
from handoff.episodes.start import Where
from handoff.errors import UsageError
from handoff.policies.language.options import OF_CONVERSATIONS, ModelOptions
from handoff.protocols.protocol import Protocol
from handoff.runs.launch import Prepared

#: A plan does not wait for a server that may come back.
_IMPATIENT = {"patience": 3.0, "timeout": 10.0}


@attrs.frozen
class CommandLine:
    """The part of a command line that all protocols share."""

    environment: str | None
    file: Path | None
    #: Policies as ``NAME=SPEC``.
    bindings: tuple[str, ...]
    #: Names that have every role.
    cross: str | None
    environment_options: Mapping[str, Any]
    model_options: Mapping[str, Any]
    where: Where
    out: Path | None
    #: Where the plan is registered.
    register: Path | None
    dry_run: bool
    quiet: bool
    as_json: bool


def study_command(
    protocol: Protocol[Any, Any], name: str | None = None, help: str | None = None, examples: str = ""
) -> click.Command:
    """The click command ``name`` that runs ``protocol``; ``examples`` are lines for the end of its help."""

    def run(
        environment: str | None,
        file: Path | None,
        bindings: tuple[str, ...],
        data: str | None,
        engine: str | None,
        trust_games: bool,
        flights: str | None,
        evaluator: str | None,
        closed_world: bool,
        pairs: tuple[str, ...],
        model_options: Mapping[str, Any],
        where: Mapping[str, Any],
        out: Path | None,
        register: Path | None,
        dry_run: bool,
        quiet: bool,
        as_json: bool,
        cross: str | None = None,
        **stated: Mapping[str, Any],
    ) -> None:
        named = {"data": data, "engine": engine, "trust_games": trust_games, "flights": flights}
        places = options.env_options(pairs, **named, evaluator=evaluator, closed_world=closed_world)
        request = CommandLine(
            environment,
            file,
            bindings,
            cross,
            places,
            model_options,
            Where(**where),
            out,
            register,
            dry_run,
            quiet,
            as_json,
        )
        carry_out(protocol, request, {key: value for values in stated.values() for key, value in values.items()})

    command: Any = run
    shared = [
        click.argument("environment", required=False),
        click.option(
            "--config", "file", cls=Option, group="study", type=options.PATH,
            help="A study as a TOML file; options override it.",
        ),
        click.option(
            "-p", "--policy", "bindings", cls=Option, group="policies", multiple=True, metavar="NAME=SPEC",
            help="Bind a policy's name; repeats.",
        ),
        *(options_of(cls) for cls in (protocol.config, *protocol.more_settings)),
        *options.environment_options,
        options_of(ModelOptions),
        options_of(Where),
        click.option(
            "--out", cls=Option, group="output", type=options.PATH,
            help="Run folder.  [default: runs/ENVIRONMENT-DIGEST]",
        ),
        click.option(
            "--register", cls=Option, group="output", type=options.PATH, metavar="FILE",
            help="Write the plan's digest there before the first episode, to be published.",
        ),
        click.option("--dry-run", cls=Option, group="output", is_flag=True, help="Show the plan and stop."),
        options.quiet,
        options.as_json,
    ]  # fmt: skip
    if len(protocol.roles) > 1:
        roles = " and as ".join(role.rstrip("s") for role in protocol.roles)
        cross = click.option(
            "--cross", cls=Option, group="policies", metavar="NAME,NAME", help=f"Every one of these as {roles}."
        )
        shared.insert(3, cross)
    for option in reversed(shared):
        command = option(command)
    epilog = f"\b\nExamples:\n{examples.strip(chr(10))}" if examples else None
    text = help or (protocol.__doc__ or "").strip()
    made = click.command(name or protocol.name, cls=Command, help=text, epilog=epilog)(command)
    flags = [flag for parameter in made.params for flag in (*parameter.opts, *parameter.secondary_opts)]
    twice = next((flag for flag in flags if flags.count(flag) > 1), None)
    if twice is not None:
        raise UsageError(f"the protocol {protocol.name!r} has a setting whose option {twice} is taken; rename it there")
    return made


def carry_out(protocol: Protocol[Any, Any], request: CommandLine, stated: Mapping[str, Any]) -> None:
    """Prepare the run, show its plan, run it and show its result.  ``stated`` are settings by field name."""
    from handoff import progress
    from handoff.cli.output import console
    from handoff.environment import Messages
    from handoff.errors import Interrupted
    from handoff.guard.adapter import load
    from handoff.guard.host_state import working_folder
    from handoff.policies.bindings import bind, resolve
    from handoff.protocols import study_file
    from handoff.report.terminal import line as show_line
    from handoff.report.terminal import say
    from handoff.runs.register import register
    from handoff.text import shell_word

    here = working_folder()  # an adapter may change it
    file = study_file.EMPTY if request.file is None else study_file.load(request.file, protocol)
    environment = request.environment or file.environment
    if environment is None:
        raise UsageError("name an environment, or a file that does (--config); `handoff envs` lists them")
    bound = {**file.bindings, **bind(request.bindings)}
    values = {**file.study, **_roles(protocol, request, stated, file.roles, bound), **stated}
    adapter = load(environment)
    values.setdefault("split", adapter.splits[0])
    bound |= protocol.bindings(values)
    config = protocol.configure(values)
    specs = resolve(protocol.policies(config), bound, adapter.policies)
    model_options = {**(_IMPATIENT if request.dry_run else {}), **request.model_options}
    defaults = OF_CONVERSATIONS if issubclass(adapter, Messages) else {}
    models = study_file.model_options(specs, file, model_options, defaults)
    environment_options = {**file.environment_options, **request.environment_options}
    try:
        timeout = request.where.step_timeout
        prepared = protocol.prepare(environment, environment_options, config, specs, models, step_timeout=timeout)
    except Interrupted as error:
        if not request.dry_run:
            raise
        raise UsageError(f"there is no plan without the server: {error}; start it, then type the same again") from error
    if request.file is not None:
        prepared.remarks = {"config": file.remark()}
    folder = prepared.default_folder if request.out is None else request.out
    report = protocol.report()
    remarks = console(stderr=True, quiet=request.quiet)
    plan = console() if request.dry_run and not request.as_json else remarks
    for line in report.plan_lines(prepared.identity, folder):
        show_line(plan, line)
    for name, fit in prepared.fits.items():
        show_line(plan, f"policy {name}: {fit.sentence()}", style="" if fit.fits else "yellow")
    for caution in prepared.cautions:
        show_line(plan, caution, style="yellow")
    if request.register is not None:
        register(here / request.register, prepared.identity, len(prepared.plan), here / folder)
        show_line(plan, f"registered plan: {shell_word(request.register)} (digest {prepared.plan_digest[:12]}...)")
    if request.dry_run:
        if request.as_json:
            click.echo(json.dumps(_plan(prepared, folder), indent=2))
        return
    for remark in prepared.run(here / folder, request.where, progress.for_console(remarks, request.quiet)):
        say(remarks, remark, style="yellow")
    run = attrs.evolve(protocol.read(here / folder), folder=folder)  # commands name it as the user did
    if request.as_json:
        click.echo(json.dumps({"folder": str(folder), **protocol.summary(run)}, indent=2))
    else:
        report.show_result(console(), run)
        click.echo()
        for name, text in {"run folder": shell_word(folder), **report.next_commands(run)}.items():
            click.echo(f"{name + ':':<11} {text}")


def _plan(prepared: Prepared, folder: Path) -> dict[str, Any]:
    """The plan as JSON."""
    form = {"folder": str(folder), "digest": prepared.digest, **prepared.identity}
    if prepared.fits:
        form["fits"] = {name: fit.to_json() for name, fit in prepared.fits.items()}
    if prepared.cautions:
        form["cautions"] = list(prepared.cautions)
    return form


def _roles(
    protocol: Protocol[Any, Any],
    request: CommandLine,
    stated: Mapping[str, Any],
    in_file: Mapping[str, tuple[str, ...]],
    bound: Mapping[str, str],
) -> dict[str, tuple[str, ...]]:
    """Names of policies by role, where they do not come from an option per role."""
    if request.cross is not None:
        if any(role in stated for role in protocol.roles):
            flags = " and ".join(f"--{role.rstrip('s')}" for role in protocol.roles)
            raise UsageError(f"give either --cross, or {flags}")
        names = tuple(name.strip() for name in request.cross.split(",") if name.strip())
        return dict.fromkeys(protocol.roles, names)
    if len(protocol.roles) == 1:
        (role,) = protocol.roles
        return {role: in_file.get(role) or tuple(bound)}
    if any(role in stated for role in protocol.roles):
        return {role: () for role in protocol.roles if role not in stated}
    return {role: in_file.get(role, ()) for role in protocol.roles}
