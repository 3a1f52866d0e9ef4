"""Options that several sub-commands share."""

from __future__ import annotations

import json
from typing import Any

import click

from handoff.cli import numbers
from handoff.errors import UsageError
from handoff.plugin import PATH, as_json, quiet

__all__ = ["PATH", "as_json", "env_option", "env_options", "quiet", "ray", "workers"]


def env_options(pairs: tuple[str, ...], **named: Any) -> dict[str, Any]:
    """Options for an environment from ``NAME=VALUE`` pairs (a value that is JSON is read as such) and from options of
    the command line that were given (``None`` and ``False``: not given)."""
    options = {key: value for key, value in named.items() if value is not None and value is not False}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"write --env-option NAME=VALUE (got {pair!r})")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


workers = click.option(
    "--workers",
    type=numbers.WORKERS,
    default=None,
    help="Environment processes; 0 for none but this one.  [default: one per core]",
)
ray = click.option(
    "--ray", metavar="ADDRESS", help="Environments on the Ray cluster there (auto: the one that is found), not here."
)
env_option = click.option(
    "--env-option", "pairs", multiple=True, metavar="NAME=VALUE", help="Option for the environment; repeats."
)
