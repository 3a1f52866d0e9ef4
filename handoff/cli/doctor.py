"""``handoff doctor``: measure whether a policy's tokens depend on anything but its request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from handoff.cli import numbers, options
from handoff.cli.model_options import model_options


@click.command(
    epilog="""\b
Examples:
  handoff doctor -p rl=hf:./rl -p sft=hf:./sft
  handoff doctor -p rl=openai:http://127.0.0.1:8000/v1#rl --dtype float32 --keep before.json
  handoff doctor -p rl=openai:http://127.0.0.1:8000/v1#rl --compare before.json       # after a restart of the server

Exit code: 0 every decision was the same in every way of asking, 1 some were not, 2 the request was wrong, 3 a server
went away."""
)
@click.option("--config", "file", type=options.PATH, help="A study's TOML file: its policies, or -p's.")
@click.option("-p", "--policy", "bindings", multiple=True, metavar="NAME=SPEC", help="A policy to examine; repeats.")
@click.option(
    "--requests",
    "count",
    default=16,
    show_default=True,
    type=numbers.Whole(2, 10_000),
    help="How many requests to ask.",
)
@click.option("--keep", type=options.PATH, help="Write the answers to this file.")
@click.option("--compare", type=options.PATH, help="Compare the answers with such a file.")
@model_options
@options.as_json
def doctor(
    file: Path | None,
    bindings: tuple[str, ...],
    count: int,
    keep: Path | None,
    compare: Path | None,
    as_json: bool,
    model: dict[str, Any],
) -> None:
    """Ask each policy the same requests alone, in a batch, reordered and after a restart, and compare."""
    from handoff import policies
    from handoff.cli.output import console
    from handoff.errors import UsageError
    from handoff.policies import doctor as doctors
    from handoff.policies import specs as kinds
    from handoff.protocols import study_file as files
    from handoff.report import diagnosis as shown

    stated = files.EMPTY if file is None else files.load(file)
    bound = {**({} if bindings and file is not None else stated.bindings), **kinds.bind(bindings)}
    if not bound:
        raise UsageError("name a policy to examine: -p NAME=SPEC")
    if len(bound) > 1 and (keep or compare):
        raise UsageError("--keep and --compare are for one policy at a time")
    # Who examines a server does not wait for one that may come back.
    settings = files.model_options(bound, stated, {"patience": 10.0, **model})
    for name, spec in bound.items():
        if spec.partition(":")[0] in kinds.KINDS:
            raise UsageError(
                f"{name} is {spec}, which is no language model: doctor compares the tokens of "
                f"{', '.join(f'{kind}:' for kind in kinds.MODELS)} policies"
            )
    found = []
    for name, spec in bound.items():
        policy = kinds.make(spec, settings[name])
        restart = None if isinstance(policy, policies.Served) else lambda s=spec, n=name: kinds.make(s, settings[n])
        try:
            found.append(doctors.examine(name, policy, restart, count, keep, compare))
        finally:
            policy.close()
    if as_json:
        click.echo(json.dumps([diagnosis.to_json() for diagnosis in found], indent=2))
    else:
        for diagnosis in found:
            shown.show_diagnosis(console(), diagnosis)
    sys.exit(0 if all(diagnosis.passed for diagnosis in found) else 1)
