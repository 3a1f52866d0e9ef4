"""Where templates are rendered that others wrote: a sandbox without files, without luck, and with a bound.

A template may come from a hub, and no template may keep a run waiting.  A time limit would make the outcome depend on
the machine, so work is counted instead: each turn of a loop, each call, and the size of each value made on the way.
Beyond :data:`MOST_STEPS` rendering fails, by the same step everywhere.  The clock that a template reads is a variable
(:mod:`handoff.policies.language.clock`).
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from handoff.policies.language.clock import READER

#: Steps of one rendering: about two seconds.  A prompt of an agent takes some thousand.
MOST_STEPS = 5_000_000
#: Characters that count as one step.
_PER_STEP = 32
#: A greater number as an argument, such as a width, would make a text of that length.
_MOST_NUMBER = 1_000_000
#: Widths in a format that are that long, or come from elsewhere.
_WIDTH = re.compile(r"\d{6,}|%[^a-zA-Z%]*\*|:[^{}]*\{")
#: Steps of a call.
_CALL = 4


class Endless(jinja2.TemplateRuntimeError):
    """Rendering takes more steps than a prompt can need."""

    def __init__(self) -> None:
        super().__init__(f"rendering does not end within {MOST_STEPS:,} steps")


def reads_clock(source: str) -> bool:
    """Whether the template ``source`` can read the clock."""
    if READER not in source:
        return False
    try:
        return READER in find_undeclared_variables(_parser().parse(source))
    except jinja2.TemplateError:
        return False  # rendering says what is wrong


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment whose templates are bounded and have no random filters."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=_output, **options)
        self._spent = threading.local()
        del self.globals["lipsum"]
        self.filters["random"] = _refuse_luck
        self.filters = {name: self._counted_filter(filter) for name, filter in self.filters.items()}

    def bounded(self, source: str) -> jinja2.Template:
        """The template ``source``, of which :meth:`begin` begins each rendering."""
        self.begin()
        code = self.compile(_Bounding().visit(self.parse(source)))
        return self.template_class.from_code(self, code, self.make_globals(None), None)

    def begin(self) -> None:
        """Begin to count the steps of a rendering in this thread."""
        self._spent.steps = 0

    def spend(self, steps: int) -> None:
        self._spent.steps = getattr(self._spent, "steps", 0) + steps
        if self._spent.steps > MOST_STEPS:
            raise Endless

    def each(self, items: Iterable[Any], steps: int) -> Iterator[Any]:
        """``items``, of which each costs ``steps``."""
        for item in items:
            self.spend(steps)
            yield item

    def joined(self, *values: Any) -> str:
        """The operator ``~``."""
        texts = [str(value) for value in values]
        self.spend(sum(map(_weight, texts)))
        return "".join(texts)

    def call(__self, __context: Any, __obj: Any, *arguments: Any, **named: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        if isinstance(__obj, LoopContext):  # a loop that calls itself
            arguments = (__self.each(arguments[0], 1), *arguments[1:])
        elif isinstance(owner, str):
            __self._require_small([*arguments, *named.values()])
            if __obj.__name__ in ("replace", "join", "translate") and arguments:
                __self.spend(len(owner) * _length(arguments[-1]) // _PER_STEP)
        value = super().call(__context, __obj, *arguments, **named)
        __self.spend(_CALL + _weight(value))
        return value

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None and _WIDTH.search(value.__self__):
            raise Endless
        return wrapped

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and (abs(right) > 64 or _weight(left) > 1):
            raise Endless
        if operator == "*":
            sizes = [_length(value) if hasattr(value, "__len__") else abs(value) for value in (left, right)]
            if hasattr(left, "__len__") or hasattr(right, "__len__"):
                self.spend(int(sizes[0] * sizes[1]))
        if operator == "%" and isinstance(left, str) and _WIDTH.search(left):
            raise Endless
        self.spend(1 + _weight(left) + _weight(right))
        return super().call_binop(context, operator, left, right)

    def _counted_filter(self, filter: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(filter)
        def counted(*arguments: Any, **named: Any) -> Any:
            self._require_small([*arguments[1:], *named.values()])
            self.spend(_CALL + sum(map(_weight, arguments)))
            value = filter(*arguments, **named)
            self.spend(_weight(value))
            return value

        return counted

    @staticmethod
    def _require_small(values: Iterable[Any]) -> None:
        if any(isinstance(value, int) and abs(value) > _MOST_NUMBER for value in values):
            raise Endless


@functools.cache
def _parser() -> Sandbox:
    return Sandbox(extensions=CHAT_EXTENSIONS)


class _Generation(Extension):
    """The tag ``generation``, by which chat templates mark replies for a trainer: rendered as if it were absent."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 has it

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


#: What a chat template may use beyond plain templates.
CHAT_EXTENSIONS = (_Generation, "jinja2.ext.loopcontrols")


class _Bounding(NodeTransformer):
    """Puts a count into every loop and every ``~``."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        static = sum(len(one.data) for one in node.find_all(nodes.TemplateData))
        steps = nodes.Const(1 + static // _PER_STEP)
        node.iter = _call("each", [node.iter, steps], node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:
        self.generic_visit(node)
        return _call("joined", node.nodes, node.lineno)


def _call(method: str, arguments: list[Any], line: int) -> nodes.Call:
    """A call of the environment's ``method``."""
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None, lineno=line)


@jinja2.pass_context
def _output(context: Any, value: Any) -> str:
    """What an expression prints."""
    text = str(value)
    context.environment.spend(1 + _weight(text))
    return text


def _refuse_luck(*_: Any) -> Any:
    raise jinja2.TemplateRuntimeError("the filter 'random' makes another prompt each time; leave it out")


def _weight(value: Any) -> int:
    """Steps that a value costs."""
    if isinstance(value, str):
        return len(value) // _PER_STEP
    if isinstance(value, int):
        return value.bit_length() // _PER_STEP
    return len(value) if isinstance(value, list | tuple | range | dict) else 0


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:
        return 0
