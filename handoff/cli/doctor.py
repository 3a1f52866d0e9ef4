"""``handoff doctor``: measure whether a policy's tokens depend on anything but its request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli import numbers, options
from handoff.cli.settings import Command, Option, options_of
from handoff.policies import ModelOptions


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  handoff doctor -p rl=hf:./rl -p sft=hf:./sft
  handoff doctor -p rl=openai:http://127.0.0.1:8000/v1#rl --dtype float32 --keep before.json
  handoff doctor -p rl=openai:http://127.0.0.1:8000/v1#rl --compare before.json       # after a restart of the server

Exit code: 0 every decision was the same in every way of asking, 1 some were not, 2 the request was wrong, 3 a server
went away.""",
)
@click.option(
    *("--config", "file"),
    cls=Option,
    group="policies",
    type=options.PATH,
    help="A study's TOML file: its policies, or -p's.",
)
@click.option(
    *("-p", "--policy", "bindings"),
    cls=Option,
    group="policies",
    multiple=True,
    metavar="NAME=SPEC",
    help="A policy to examine; repeats.",
)
@click.option(
    *("--requests", "count"),
    cls=Option,
    group="study",
    default=16,
    show_default=True,
    type=numbers.Whole(2, 10_000),
    help="How many requests to ask.",
)
@click.option("--keep", type=options.PATH, help="Write the answers to this file.")
@click.option("--compare", type=options.PATH, help="Compare the answers with such a file.")
@options_of(ModelOptions)
@options.as_json
def doctor(
    file: Path | None,
    bindings: tuple[str, ...],
    count: int,
    keep: Path | None,
    compare: Path | None,
    as_json: bool,
    model_options: dict[str, Any],
) -> None:
    """Ask each policy the same requests alone, in a batch, reordered and after a restart, and compare."""
    from handoff.cli.output import console
    from handoff.errors import UsageError
    from handoff.policies import Served, Spec, bind, kinds, make
    from handoff.policies.doctor import examine
    from handoff.policies.guard import close
    from handoff.protocols import study_file
    from handoff.report.checks import show_diagnosis

    stated = study_file.EMPTY if file is None else study_file.load(file)
    bound = {**({} if bindings and file is not None else stated.bindings), **bind(bindings)}
    if not bound:
        raise UsageError("name a policy to examine: -p NAME=SPEC")
    if len(bound) > 1 and (keep or compare):
        raise UsageError("--keep and --compare are for one policy at a time")
    # Fail fast: a diagnosis should not wait for a server to come back.
    settings = study_file.model_options(bound, stated, {"patience": 10.0, **model_options})
    for name, spec in bound.items():
        if Spec.parse(spec).kind in kinds.SCRIPTED:
            models = ", ".join(f"{kind}:" for kind in kinds.BUILTIN if kind not in kinds.SCRIPTED)
            raise UsageError(
                f"{name} is {spec}, which is no language model: doctor compares the tokens of {models} policies"
            )
    diagnoses = []
    for name, spec in bound.items():
        policy = make(spec, settings[name])
        restart = None if isinstance(policy, Served) else lambda spec=spec, name=name: make(spec, settings[name])
        try:
            diagnoses.append(examine(name, policy, restart, count, keep, compare))
        finally:
            close(policy, name)
    if as_json:
        click.echo(json.dumps([diagnosis.to_json() for diagnosis in diagnoses], indent=2))
    else:
        for diagnosis in diagnoses:
            show_diagnosis(console(), diagnosis)
    click.get_current_context().exit(0 if all(diagnosis.passed for diagnosis in diagnoses) else 1)
