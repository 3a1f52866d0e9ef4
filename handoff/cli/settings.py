"""Options of the command line, made from the settings of configuration classes (:mod:`handoff.settings`).

``--help`` lists them under headings: study, policies, models, execution, output.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from handoff.cli import numbers
from handoff.settings import Setting, settings

F = TypeVar("F", bound=Callable[..., Any])

GROUPS = ("study", "policies", "models", "intervals", "execution", "output")


class Option(click.Option):
    """An option with the heading that ``--help`` lists it under."""

    def __init__(self, *arguments: Any, group: str = "output", **stated: Any) -> None:
        self.group = group
        super().__init__(*arguments, **stated)


class Command(click.Command):
    """A command whose ``--help`` lists options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                listed.setdefault(getattr(parameter, "group", "output"), []).append(record)
        for group in sorted(listed, key=lambda name: GROUPS.index(name) if name in GROUPS else len(GROUPS)):
            heading = group.capitalize() if len(listed) > 1 else "Options"
            with formatter.section(heading):
                formatter.write_dl(listed[group])


def options_of(cls: type, leave_out: Sequence[str] = ()) -> Callable[[F], F]:
    """Adds an option per setting of ``cls``.

    The command gets the values on the command line as one dictionary by field name, under the class's name
    (``ModelOptions``: ``model_options``).
    """
    stated = [one for one in settings(cls) if one.on_command_line and one.field not in leave_out]

    def add(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **values: Any) -> Any:
            values_by_field = {}
            for one in stated:
                value = values.pop(_parameter(cls, one))
                if value is not None and value != ():
                    values_by_field[one.field] = None if one.word is not None and value == one.word else value
            return function(*arguments, **{_name(cls): values_by_field}, **values)

        command: Any = wrapped
        for one in reversed(stated):
            command = _option(cls, one)(command)
        return command  # type: ignore[no-any-return]

    return add


def _name(cls: type) -> str:
    """The class's name as a parameter's."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


def _parameter(cls: type, stated: Setting) -> str:
    return f"{_name(cls)}_{stated.field}"


def _option(cls: type, stated: Setting) -> Callable[[F], F]:
    flag = "--" + (stated.singular or stated.name).replace("_", "-")
    if stated.kind is bool:
        flag += f"/--{stated.negative}" if stated.negative else ""
    kind: dict[str, Any] = {}
    if stated.kind is bool:
        kind = {"is_flag": True, "default": None}
    elif stated.choices is not None:
        kind = {"type": click.Choice(stated.choices)}
    elif stated.kind in (int, float):
        kind = {"type": _number(stated)}
    flags = [flag] if stated.short is None else [f"-{stated.short}", flag]
    return click.option(
        *flags,
        _parameter(cls, stated),
        cls=Option,
        group=stated.group,
        multiple=stated.repeats,
        metavar=stated.metavar,
        help=_help(stated),
        **kind,
    )


def _number(stated: Setting) -> Any:
    if stated.kind is float:
        least = stated.least if stated.least is not None else float("-inf")
        most = stated.most if stated.most is not None else float("inf")
        return numbers.Real(least, most, open=stated.open)
    least = stated.least if stated.least is not None else -(2**63)
    most = stated.most if stated.most is not None else 2**63 - 1
    if stated.word is not None:
        return numbers.OrWord(int(least), int(most), stated.word)
    return numbers.Whole(int(least), int(most))


def _help(stated: Setting) -> str:
    parts = [stated.help]
    if stated.repeats:
        parts[0] = f"{stated.help.rstrip('.')}; repeats."
    default = stated.shown
    if default is None and stated.kind is not bool and not stated.repeats:
        if stated.default is not None:
            default = f"{stated.default:g}" if isinstance(stated.default, float) else str(stated.default)
        elif stated.word is not None:
            default = stated.word
    if default:
        parts.append(f" [default: {default}]")
    return " ".join(part for part in parts if part)
