"""Numbers on the command line: every one has a range, and none is NaN or infinite.

A limit stands where a larger number can only be a slip, or would fill the memory; the sentence says what is possible.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:  # generic from click 8.2 on
    _Type = click.ParamType


class _Number(_Type):
    """From ``least`` to ``most``; with ``open`` neither of the two is possible."""

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


class Whole(_Number):
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


class Real(_Number):
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


class OrWord(Whole):
    """A whole number, or a word, which is kept as it is."""

    def __init__(self, least: int, most: int, word: str) -> None:
        super().__init__(least, most)
        self.word = word
        self.name = f"whole number, or {word}"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"N|{self.word}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == self.word else super().convert(value, param, ctx)


SEED = Whole(0, 2**63 - 1)
#: Tasks, slots, rollouts, actions: a plan's size is bounded as a whole (:func:`handoff.runs.identity.require_size`).
COUNT = Whole(1, 1_000_000)
COUNT_OR_ALL = OrWord(1, 1_000_000, "all")
#: A search to such a depth is out of reach long before.
DEPTH = Whole(1, 100)
WORKERS = Whole(0, 1024)
DRAWS = Whole(100, 1_000_000)
LEVEL = Real(0, 1, open=True)
RATE = Real(0, 1, open=True)
TOKENS = Whole(1, 10_000_000)
