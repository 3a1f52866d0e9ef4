"""Options of the sub-commands that bootstrap, and the lists that they take."""

from __future__ import annotations

import click

from handoff.bootstrap import DEFAULT, DRAWS
from handoff.errors import UsageError

interval = click.option(
    "--interval",
    type=click.Choice(["default", "rescaled", "paper"]),
    default="default",
    show_default=True,
    help=f"Kind of interval; the default is {DEFAULT}, the paper's is the ordinary percentile one.",
)
draws = click.option(
    "--draws", type=click.IntRange(100, 10_000_000), default=DRAWS, show_default=True, help="Bootstrap draws."
)
seed = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draws.")
level = click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
order = click.option(
    "--order", metavar="NAMES", help="Checkpoints from weakest to strongest, with commas: the direction of contrasts."
)


def names(text: str | None) -> list[str] | None:
    """``"base,sft"`` -> two names.  Raises :class:`~handoff.errors.UsageError` for an empty or a repeated one."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",")]
    if not all(found) or len(set(found)) != len(found):
        raise UsageError(f"write names with commas, each once (got {text!r})")
    return found


def whole_numbers(option: str, text: str | None) -> list[int] | None:
    """``"8,16"`` -> two numbers.  Raises :class:`~handoff.errors.UsageError` for anything else."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UsageError(f"write {option} as whole numbers with commas (got {text!r})")
    return [int(part) for part in parts]


def assigned(option: str, pairs: tuple[str, ...]) -> dict[str, float]:
    """``("sft=0.13",)`` -> rates by name.  Raises :class:`~handoff.errors.UsageError` for anything else."""
    found: dict[str, float] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            rate = float(value)
        except ValueError:
            equals = ""
            rate = 0.0
        if not equals or not name or not 0 < rate < 1:
            raise UsageError(f"write {option} NAME=RATE with a rate between 0 and 1 (got {pair!r})")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = rate
    return found
