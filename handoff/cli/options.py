"""Options that several sub-commands share."""

from __future__ import annotations

import json
from typing import Any

import click

from handoff.cli.settings import Option
from handoff.errors import UsageError
from handoff.plugin import PATH, as_json, quiet

__all__ = ["PATH", "as_json", "env_option", "env_options", "environment_options", "quiet"]


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


env_option = click.option(
    "--env-option", "pairs", cls=Option, group="study", multiple=True, metavar="NAME=VALUE",
    help="Option for the environment; repeats.",
)  # fmt: skip
#: Options of an environment, from the first in ``--help`` to the last.
environment_options = (
    click.option(
        "--data", cls=Option, group="study", metavar="PATH",
        help="Where the environment's tasks lie.  [default: the environment's own]",
    ),
    click.option(
        "--engine", cls=Option, group="study", metavar="NAME", help="The environment's engine, where it has several."
    ),
    click.option(
        "--flights", cls=Option, group="study", metavar="FILE", help="travelplanner: its flight table, elsewhere."
    ),
    click.option(
        "--evaluator", cls=Option, group="study", metavar="NAME",
        help="travelplanner: agent-star or official.  [default: agent-star]",
    ),
    click.option(
        "--closed-world", cls=Option, group="study", is_flag=True,
        help="travelplanner: a leg that the flight table does not know has no flight.",
    ),
    click.option(
        "--trust-games", cls=Option, group="study", is_flag=True,
        help="Load games whose grammar is not known (it is run as code).",
    ),
    env_option,
)  # fmt: skip
