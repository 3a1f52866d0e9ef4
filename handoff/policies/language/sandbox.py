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
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from handoff.policies.language.clock import READER

#: Steps of one rendering: about two seconds.  A prompt of an agent takes some thousand.
MOST_STEPS = 5_000_000
#: Characters that count as one step.
_PER_STEP = 32
#: A greater number as an argument, such as a width, would make a text of that length.
_MOST_NUMBER = 1_000_000
#: A field of a format has no greater width.
_MOST_WIDTH = 999
#: Widths in a format that are greater, or come from elsewhere.
_WIDTH = re.compile(r"\d{4,}|%[^a-zA-Z%]*\*|:[^{}]*\{")
#: Filters and methods of a text that can repeat an argument for every character of it.
_REPEATING = frozenset({"expandtabs", "indent", "join", "replace", "translate", "wordwrap"})
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
        self.filters = {name: self._counted_filter(name, filter) for name, filter in self.filters.items()}

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
        return "".join([_text_of(self.sized(value)) for value in values])

    def sized(self, value: Any) -> Any:
        """``value``, whose size costs steps: what compares, hashes or prints it looks at all of it.

        A list that holds another one twice is small in memory and large to everybody who looks.
        """
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self.spend(1 + _weight(one))
            if isinstance(one, dict):
                waiting.extend(one)
                waiting.extend(one.values())
            elif isinstance(one, list | tuple | set | frozenset):
                waiting.extend(one)
        return value

    def getitem(self, obj: Any, argument: Any) -> Any:
        return super().getitem(obj, self.sized(argument))

    def call(__self, __context: Any, __obj: Any, *arguments: Any, **named: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        for argument in (*arguments, *named.values()):
            __self.sized(argument)
        if isinstance(__obj, LoopContext):  # a loop that calls itself
            arguments = (__self.each(arguments[0], 1), *arguments[1:])
        elif isinstance(owner, str):
            __self._require_small([*arguments, *named.values()])
            __self._spend_repeats(__obj.__name__, owner, [*arguments, *named.values()])
        value = super().call(__context, __obj, *arguments, **named)
        __self.spend(_CALL + _weight(value))
        return value

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        inner, text = wrapped, value.__self__

        def bounded(*arguments: Any, **named: Any) -> str:
            self._spend_fields(text, text.count("{"), [*arguments, *named.values()])
            return inner(*arguments, **named)

        return functools.wraps(wrapped)(bounded)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and (abs(right) > 64 or _weight(left) > 1):
            raise Endless
        if operator == "*":
            sizes = [_length(value) if hasattr(value, "__len__") else abs(value) for value in (left, right)]
            if hasattr(left, "__len__") or hasattr(right, "__len__"):
                self.spend(int(sizes[0] * sizes[1]))
        self.sized(left)
        self.sized(right)
        if operator == "%" and isinstance(left, str):
            self._spend_fields(left, left.count("%"), [right])
        return super().call_binop(context, operator, left, right)

    def _spend_fields(self, text: str, fields: int, values: list[Any]) -> None:
        """Spend what a format with so many ``fields`` can make of ``values``."""
        if _WIDTH.search(text):
            raise Endless
        widest = max((_characters(value) for value in values), default=0)
        self.spend(fields * (widest + _MOST_WIDTH * bool(re.search(r"\d{2,}", text))) // _PER_STEP)

    def _spend_repeats(self, name: str, first: Any, rest: list[Any]) -> None:
        """Spend what the filter or method ``name`` can make of ``first`` by repeating one of ``rest``."""
        if name in _REPEATING:
            longest = max((value if isinstance(value, int) else _characters(value) for value in rest), default=0)
            self.spend(_characters(first) * longest // _PER_STEP)

    def _counted_filter(self, name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(filter)
        def counted(*arguments: Any, **named: Any) -> Any:
            self._require_small([*arguments[1:], *named.values()])
            self.spend(_CALL)
            for argument in (*arguments, *named.values()):
                self.sized(argument)
            values = [one for one in arguments if not isinstance(one, jinja2.Environment | Context | EvalContext)]
            first, rest = (values[0] if values else ""), [*values[1:], *named.values()]
            if name == "format":
                self._spend_fields(str(first), str(first).count("%"), rest)
            self._spend_repeats(name, first, rest)
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


#: Tests that look at the whole of both values.
_COMPARING = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "eq", "equalto", "ne", "lt", "lessthan", "le", "gt", "greaterthan", "ge", "in"}
)


class _Bounding(NodeTransformer):
    """Puts a count into every loop, every ``~``, every comparison and every key of a dictionary."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        static = sum(len(one.data) for one in node.find_all(nodes.TemplateData))
        steps = nodes.Const(1 + static // _PER_STEP)
        node.iter = _call("each", [node.iter, steps], node.lineno)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _call("sized", [node.expr], node.lineno)
        for operand in node.ops:
            operand.expr = _call("sized", [operand.expr], node.lineno)
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:
        self.generic_visit(node)
        if node.name in _COMPARING:
            node.node = _call("sized", [node.node], node.lineno)
            node.args = [_call("sized", [argument], node.lineno) for argument in node.args or ()]
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:
        self.generic_visit(node)
        node.key = _call("sized", [node.key], node.lineno)
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
    return _text_of(context.environment.sized(value))


def _text_of(value: Any) -> str:
    text = str(value)
    if not isinstance(value, str) and " at 0x" in text:  # such as a generator: its address is another each time
        raise jinja2.TemplateRuntimeError(f"a {type(value).__name__} is no text; turn it into one (| list, | join)")
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


def _characters(value: Any) -> int:
    """Characters that a value can have as a text, of its own level; :meth:`Sandbox.sized` has counted the rest."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(one) for one in value.values()) if _flat(value.values()) else MOST_STEPS
    if isinstance(value, list | tuple | set | frozenset):
        return sum(_characters(one) for one in value) if _flat(value) else MOST_STEPS
    return 32


def _flat(values: Iterable[Any]) -> bool:
    return not any(isinstance(value, list | tuple | set | frozenset | dict) for value in values)


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:
        return 0
