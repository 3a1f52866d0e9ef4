"""Numbers on the command line: every one has a range, and none is NaN or infinite.

The limits refuse slips of the keyboard and numbers that would fill the memory; the sentence says the limit.
"""

from __future__ import annotations

from typing import Any

import click

from handoff.plugin import COUNT, DEPTH, SEED, Real, Whole

__all__ = [
    "COUNT",
    "COUNT_OR_ALL",
    "DEPTH",
    "DRAWS",
    "LEVEL",
    "RATE",
    "SEED",
    "TOKENS",
    "WORKERS",
    "OrWord",
    "Real",
    "Whole",
]


class OrWord(Whole):
    """A whole number, or a word, which is kept."""

    def __init__(self, least: int, most: int, word: str) -> None:
        super().__init__(least, most)
        self.word = word
        self.name = f"whole number, or {word}"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"N|{self.word}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == self.word else super().convert(value, param, ctx)


COUNT_OR_ALL = OrWord(1, 1_000_000, "all")
WORKERS = Whole(0, 1024)
DRAWS = Whole(100, 1_000_000)
LEVEL = Real(0, 1, open=True)
RATE = Real(0, 1, open=True)
TOKENS = Whole(1, 10_000_000)
