"""Parts for the commands of a plug-in: numbers with a range, paths, the shared options, the console, usable cores.

A plug-in adds a command by an entry point of the group ``handoff.commands``.  The commands of the toolkit use these
parts too, so an option reads the same everywhere.  This is the only module of the root that imports click.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

__all__ = [
    "COUNT",
    "DEPTH",
    "PATH",
    "SEED",
    "FilePath",
    "Number",
    "Real",
    "Whole",
    "as_json",
    "console",
    "quiet",
    "usable_cores",
]

if TYPE_CHECKING:
    from handoff.progress import Console

    _ParamType = click.ParamType[Any]
else:  # generic from click 8.2 on
    _ParamType = click.ParamType


class Number(_ParamType):
    """A finite number from ``least`` to ``most``; ``open`` excludes both."""

    def __init__(self, least: float, most: float, open: bool = False) -> None:
        self.least, self.most, self.open = least, most, open

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name.upper()

    def read(self, text: str) -> Any:
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            read = self.read(value.strip())
            if read is None:
                self.fail(f"{value!r:.60} is not a {self.name}", param, ctx)
            value = read
        if value < self.least or (self.open and value == self.least):
            least = f"more than {self.least:,}" if self.open else f"at least {self.least:,}"
            self.fail(f"{value!r:.60} is not in the range; ask for {least}", param, ctx)
        if value > self.most or (self.open and value == self.most):
            most = f"less than {self.most:,}" if self.open else f"at most {self.most:,}"
            self.fail(f"{value!r:.60} is not in the range; ask for {most}", param, ctx)
        return value


class Whole(Number):
    """A whole number."""

    name = "whole number"

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "N"

    def read(self, text: str) -> int | None:
        digits = text[1:] if text[:1] in ("+", "-") else text
        # Python refuses to read thousands of digits, with an error about itself.
        return int(text[:1000]) if digits.isascii() and digits.isdigit() else None


class Real(Number):
    """A finite number."""

    name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "X"

    def read(self, text: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) and text.isascii() else None


class FilePath(click.Path):
    """A path.  An empty one (from an unset variable, say), which Python reads as the current folder, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


def console(stderr: bool = False, quiet: bool = False) -> Console:
    """The console of every command.  Untrusted names and texts are data: no markup, no emoji codes."""
    from handoff.progress import plain_console  # rich loads only for a command that prints

    return plain_console(stderr, quiet)


PATH = FilePath(path_type=Path)
SEED = Whole(0, 2**63 - 1)
#: Tasks, slots, rollouts, actions: a plan's size is bounded as a whole (:func:`handoff.runs.identity.require_size`).
COUNT = Whole(1, 1_000_000)
#: A search to depth 100 is out of reach in any environment.
DEPTH = Whole(1, 100)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
quiet = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")


def usable_cores() -> int:
    """The number of cores that this process may use."""
    from handoff import children  # loads multiprocessing

    return children.usable_cores()
