"""Options that several sub-commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from handoff.cli.settings import Option
from handoff.errors import UsageError


class _Path(click.Path):
    """A path; an empty one, which Python takes for the folder where one is, is a slip (an unset variable)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


PATH = _Path(path_type=Path)


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
        "--trust-games", cls=Option, group="study", is_flag=True,
        help="Load games whose grammar is not known (it is run as code).",
    ),
    env_option,
)  # fmt: skip
as_json = click.option(
    "--json", "as_json", cls=Option, group="output", is_flag=True, help="Print one JSON object instead of tables."
)
quiet = click.option("-q", "--quiet", cls=Option, group="output", is_flag=True, help="Show no progress.")


def default_workers() -> int:
    """One environment worker per usable core."""
    from handoff.episodes.start import usable_cores

    return usable_cores()
