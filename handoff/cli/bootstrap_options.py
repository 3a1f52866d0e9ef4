"""Options of the sub-commands that bootstrap, and the lists that they take."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from handoff.cli.settings import options_of
from handoff.errors import UsageError
from handoff.estimation.method import Intervals

F = TypeVar("F", bound=Callable[..., Any])

budgets_option = click.option(
    "--budgets", metavar="LIST", help="Reacher budgets.  [default: 8,16,48 as far as observed]"
)
order_option = click.option(
    "--order", metavar="NAMES", help="Checkpoints from weakest to strongest, with commas: the direction of contrasts."
)


more_option = click.option(
    "--more", is_flag=True,
    help="Of a handoff study: also intervals that hold together, ladders, ratios, bounds, and more orders.",
)  # fmt: skip


def of_a_report(function: F) -> F:
    """Adds ``--budgets``, ``--order`` and the options of intervals.

    The command gets them as one :class:`handoff.report.report.Options` ``chosen``.
    """

    @functools.wraps(function)
    def wrapped(
        *arguments: Any, intervals: dict[str, Any], order: str | None, budgets: str | None, **values: Any
    ) -> Any:
        from handoff.report.report import Options

        chosen = Options(Intervals(**intervals), names(order), whole_numbers("--budgets", budgets))
        return function(*arguments, chosen=chosen, **values)

    command: Any = budgets_option(order_option(options_of(Intervals)(wrapped)))
    return command  # type: ignore[no-any-return]


def names(text: str | None) -> list[str] | None:
    """``"base,sft"`` -> two names.  Raises :class:`~handoff.errors.UsageError` for an empty or a repeated one."""
    if text is None:
        return None
    listed = [part.strip() for part in text.split(",")]
    if not all(listed) or len(set(listed)) != len(listed):
        raise UsageError(f"write names with commas, each once (got {text!r})")
    return listed


def whole_numbers(option: str, text: str | None, most: int = 1_000_000) -> list[int] | None:
    """``"8,16"`` -> two numbers from 1 to ``most``.  Raises :class:`~handoff.errors.UsageError` for anything else."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"write {option} as whole numbers with commas (got {text!r:.60})")
    if not all(1 <= int(part[:1000]) <= most for part in parts):
        raise UsageError(f"write {option} as numbers from 1 to {most:,} (got {text!r:.60})")
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
