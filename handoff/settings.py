"""One statement of each setting: its name, default, range and help.

A configuration class states its settings in the metadata of its fields (:func:`setting`).  The command line makes its
options from them, a study file its keys, and the class checks its own values by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from handoff.errors import UsageError

_KEY = "handoff.setting"


@attrs.frozen
class Setting:
    """One setting of a configuration class."""

    #: Name of the field.
    field: str
    #: Name of the command line's option and of the study file's key, with underscores.
    name: str
    #: Type of one value: int, float, str, bool or dict.
    kind: type
    help: str
    #: Heading under which ``--help`` lists the option.
    group: str
    default: Any = None
    #: What ``--help`` states as the default, where that is not the default's own text ("": nothing).
    shown: str | None = None
    #: Bounds of a number, both inclusive unless ``open``.
    least: float | None = None
    most: float | None = None
    open: bool = False
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    #: Letter of a short option.
    short: str | None = None
    #: A word that stands for ``None``, such as "all".
    word: str | None = None
    #: Whether the value is a tuple, given by repeating the option.
    repeats: bool = False
    #: Singular of a repeated option's name.
    singular: str | None = None
    #: For a bool: the option that means false.
    negative: str | None = None
    #: Whether the command line and a study file have it.
    on_command_line: bool = True
    in_file: bool = True

    def problem(self, value: Any) -> str | None:
        """What is wrong with ``value``, to be put after the setting's name, or ``None``."""
        if value is None:
            return None
        if self.choices is not None and value not in self.choices:
            return f"is one of {', '.join(self.choices)}, not {value!r:.60}"
        if self.kind in (int, float) and not self.repeats:
            if type(value) is not int and (self.kind is int or type(value) is not float):
                return f"must be a {'whole ' if self.kind is int else ''}number, not {value!r:.60}"
            if not self._inside(value):
                return f"must be {self.range() or 'finite'}, not {value!r:.30}"
        if self.kind is bool and type(value) is not bool:
            return f"is true or false, not {value!r:.60}"
        return None

    def _inside(self, value: float) -> bool:
        if type(value) is float and not math.isfinite(value):
            return False
        low = -math.inf if self.least is None else self.least
        high = math.inf if self.most is None else self.most
        return low < value < high if self.open else low <= value <= high

    def range(self) -> str:
        """The bounds in words."""
        above, below = ("more than", "less than") if self.open else ("at least", "at most")
        ends = [(above, self.least), (below, self.most)]
        return " and ".join(f"{word} {_number(end)}" for word, end in ends if end is not None)


def setting(
    help: str,
    *,
    kind: type,
    default: Any = attrs.NOTHING,
    name: str | None = None,
    group: str = "study",
    validator: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    converter: Callable[[Any], Any] | None = None,
    **stated: Any,
) -> Any:
    """A field of an attrs class that is a setting.  ``stated`` are further fields of :class:`Setting`.

    The class refuses a value outside the range or the choices, with :class:`~handoff.errors.UsageError`; ``validator``
    adds checks of its own.
    """
    metadata = {_KEY: {"name": name, "kind": kind, "help": help, "group": group, **stated}}
    checks = [_check, *(validator if isinstance(validator, Sequence) else (validator,))]
    return attrs.field(default=default, metadata=metadata, validator=checks, converter=converter)


def settings(cls: type) -> tuple[Setting, ...]:
    """The settings of a configuration class, in the order of its fields."""
    return tuple(_of(field) for field in attrs.fields(cls) if _KEY in field.metadata)


def require(name: str, value: object, kind: type = float, **bounds: Any) -> None:
    """Raise :class:`~handoff.errors.UsageError` unless ``value`` is a finite number of ``kind`` within ``bounds``
    (``least``, ``most`` and ``open`` as of :class:`Setting`).  A scalar of NumPy counts as Python's own."""
    stated = Setting(name, name, kind, "", "", **bounds)
    if type(value).__module__ == "numpy":
        value = getattr(value, "tolist", lambda: value)()
    problem = stated.problem(value) if value is not None else "must be a number, not None"
    if problem is not None:
        raise UsageError(f"{name} {problem}")


def _of(field: attrs.Attribute[Any]) -> Setting:
    stated = dict(field.metadata[_KEY])
    name = stated.pop("name") or field.name
    default = None if field.default is attrs.NOTHING or isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]
    return Setting(field=field.name, name=name, default=default, **stated)


def _check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    stated = _of(field)
    problem = stated.problem(value)
    if problem is not None:
        raise UsageError(f"{stated.name.replace('_', ' ')} {problem}")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
