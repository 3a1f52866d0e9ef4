"""History to prompt: templates are data.

A template is Jinja2, run in a sandbox without access to files or other templates.  It is one of

* a plain template: its whole text is the one user message;
* blocks ``user`` and (optional) ``system``: one user message that shows the history itself;
* a block ``system`` (and optional ``native``), or a plain template, for an environment whose state is a list of
  messages: the system prompt, which the messages follow in the policy's dialect
  (:mod:`handoff.policies.language.dialects`);
* blocks ``first``, ``turn`` and (optional) ``system``: a conversation.  ``first`` shows the reset, each reply of the
  model is an assistant message as it was, and ``turn`` shows what came of it.  Each block sees its own turn only, so
  that a conversation is appended to and never rendered differently: a server's prefix cache stays good.

A block's text is sent unchanged (one newline at the end of the file is not part of it).

Variables: ``task`` (``name``, ``type``, ``split``), ``reset`` (the first observation), ``observation`` (the current
one), ``admissible`` (list of actions), ``history`` (the window: each with ``number``, ``before``, ``action``,
``reply``, ``observation``; ``action`` is empty where a step was spent without one), ``skipped`` (turns before the
window), ``step`` (actions taken), ``remaining`` (actions left, this one included), ``format`` (how to answer),
``turn`` (in the block of that name), ``tools`` (each with ``name``, ``description``, ``schema``), ``instructions``
(the environment's own system messages) and the function ``strftime_now(format)``, whose clock stands still at the
time of the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from handoff import files
from handoff.canonical import canonical, digest
from handoff.errors import DataError, UsageError
from handoff.policies.language.clock import READER, iso, present, reader
from handoff.policies.language.dialects import as_native, as_text, instructions
from handoff.policies.policy import Request, Turn
from handoff.records import Message, Record, Task, Tool

#: The toolkit's own templates.
BUILTIN = ("default", "turns", "alfworld-compact", "tools")

#: Forms of a prompt: messages for a chat template, or plain text.
FORMS = ("chat", "text")


@attrs.frozen
class Prompt:
    """A rendered prompt: messages as (role, content), to be put through the model's chat template in the form
    ``chat`` and joined by newlines in the form ``text``."""

    form: str
    messages: tuple[tuple[str, str], ...]
    #: The time that a chat template is told; no part of the digest.
    now: str = ""
    #: JSON of ``messages`` and ``tools`` of a request by a server's own interface for tools; empty: there is none.
    native: str = ""

    @property
    def text(self) -> str:
        """The prompt in the form ``text``."""
        return "\n".join(content for _, content in self.messages)

    def chat(self) -> list[dict[str, str]]:
        """The prompt in the form ``chat``, as servers and chat templates take it."""
        return [{"role": role, "content": content} for role, content in self.messages]

    def chat_json(self) -> bytes:
        """JSON of :meth:`chat`."""
        entries = [f'{{"role":"{role}","content":{text}}}' for role, text in self._as_json]
        return f"[{','.join(entries)}]".encode()

    @property
    def characters(self) -> int:
        """How long it is, without what a chat template adds."""
        if self.native:
            return len(self.native)
        return sum(len(content) for _, content in self.messages)

    def digest(self) -> str:
        """Digest of the rendered prompt, before any tokenizer."""
        if self.native:
            return hashlib.sha256(self.native.encode()).hexdigest()
        if self.form == "text":
            return digest({"text": self.text})
        # The canonical JSON of {"messages": [[role, content], ...]}.
        entries = [f'["{role}",{text}]' for role, text in self._as_json]
        return hashlib.sha256(f'{{"messages":[{",".join(entries)}]}}'.encode()).hexdigest()

    @cached_property
    def _as_json(self) -> tuple[tuple[str, str], ...]:
        """The messages with their contents as canonical JSON, which two callers need of every long prompt."""
        return tuple((role, canonical(content).decode()) for role, content in self.messages)


@attrs.frozen(slots=False)
class Template:
    """A template with its options."""

    #: For people; only the source counts.
    name: str
    source: str = attrs.field(repr=False)
    form: str = "chat"
    #: Past turns in the prompt; ``None``: all.
    history: int | None = 10
    #: Replaces the template's own system prompt; empty: none.
    system: str | None = None
    #: How to answer, for the template to say.
    format: str = "tagged"
    #: The time that the clock shows, in ISO form.
    now: str = attrs.field(factory=present, eq=False)
    #: How a conversation is shown: one of ``DIALECTS``.
    dialect: str = "text"

    def __attrs_post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"no prompt form is named {self.form!r} (known: {', '.join(FORMS)})")
        if self.history is not None and self.history < 0:
            raise UsageError(f"the history window is 0 turns or more, not {self.history}")
        # An unknown variable is found before a run finds it.
        self.render(_CONVERSATION_SAMPLE if self.is_of_tools else _SAMPLE)

    @classmethod
    def named(cls, name: str, **options: Any) -> Template:
        """The built-in template ``name``, or the one in the file ``name``.

        Raises :class:`~handoff.errors.UsageError` if there is no such file and
        :class:`~handoff.errors.DataError` if it is not a template.
        """
        if name in BUILTIN:
            return cls(name, own_source(name), **options)
        path = Path(name).expanduser()
        try:
            source = files.read_text(path, f"template {name}: the file")
        except OSError as error:
            known = ", ".join(BUILTIN)
            raise UsageError(
                f"template {name}: cannot read the file: {files.cause(error)} (built in: {known})"
            ) from error
        if path.name in BUILTIN and source != own_source(path.name):
            raise UsageError(f"template {name}: the toolkit's own template {path.name} has this name; rename the file")
        return cls(path.name, source, **options)

    def to_json(self) -> dict[str, Any]:
        """JSON-safe: everything that the rendered prompts depend on."""
        return {
            "template": self.name,
            "source": self.source,
            "form": self.form,
            "history": self.history,
            "system": self.system,
            "format": self.format,
            **({} if self.dialect == "text" else {"tools": self.dialect}),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Template:
        """The template that :meth:`to_json` described.  Raises :class:`~handoff.errors.DataError`."""
        try:
            fields = (form["source"], form["form"], form["history"], form["system"], form["format"])
            now = iso(form["now"]) if "now" in form else present()
            return cls(str(form["template"]), *fields, now, form.get("tools", "text"))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"not the description of a prompt template: {error}") from error

    def render(self, request: Request) -> Prompt:
        """The prompt for ``request``.  Raises :class:`~handoff.errors.DataError` if the template fails."""
        common = {
            "task": {"name": request.task.name, "type": request.task.type, "split": request.task.split},
            "reset": request.reset.observation,
            "format": self.format,
            READER: reader(self.now),
            "tools": [_shown(tool) for tool in request.reset.tools],
            "instructions": instructions(request.reset.messages),
        }
        if request.is_conversation:
            return self._messages(request, common)
        if self.is_of_tools:
            raise DataError(f"template {self.name}: it shows conversations with tools, which this environment has not")
        steps = len(request.history)
        window = _turns(request, 0 if self.history is None else max(0, steps - self.history))
        now = {
            "observation": request.record.observation,
            "admissible": _offered(request.record),
            "history": window,
            "skipped": steps - len(window),
            "step": steps,
            "remaining": request.remaining,
        }
        names = set(self._compiled.blocks)
        messages: list[tuple[str, str]] = []
        system = self.system
        if system is None and "system" in names:
            system = self._block("system", common)
        if system:
            messages.append(("system", system))
        if "first" in names:
            messages.extend(self._conversation(request, common, window))
        elif "user" in names:
            messages.append(("user", self._block("user", {**common, **now})))
        else:
            messages.append(("user", self._rendered(lambda: self._compiled.render({**common, **now}))))
        return Prompt(self.form, tuple(messages), self.now)

    def _conversation(
        self, request: Request, common: Mapping[str, Any], window: Sequence[Mapping[str, Any]]
    ) -> list[tuple[str, str]]:
        # ``first`` and each ``turn`` are rendered from that moment alone.
        first = {**common, "observation": request.reset.observation, "admissible": _offered(request.reset)}
        messages = [("user", self._block("first", {**first, "step": 0}))]
        for turn in window:
            position = turn["number"] - 1
            record = request.history[position].record
            messages.append(("assistant", turn["reply"] or turn["action"]))
            context = {
                **common,
                "turn": turn,
                "observation": record.observation,
                "admissible": _offered(record),
                "step": position + 1,
            }
            messages.append(("user", self._block("turn", context)))
        return messages

    def _messages(self, request: Request, common: Mapping[str, Any]) -> Prompt:
        """The prompt for an environment whose state is a list of messages."""
        names, messages = set(self._compiled.blocks), request.messages()
        if names and not self.is_of_tools:
            raise DataError(f"template {self.name}: it cannot show a conversation with tools; take --template tools")
        block = "native" if self.dialect == "native" and "native" in names else "system"
        system = self.system
        if system is None and names:
            system = self._block(block, common)
        elif system is None:
            system = str(self._rendered(lambda: self._compiled.render(common)))
        if self.dialect == "native":
            form = as_native(system, messages, request.reset.tools)
            return Prompt("chat", (), self.now, canonical(form).decode())
        first = [("system", system)] if system else []
        return Prompt(self.form, (*first, *as_text(messages)), self.now)

    @property
    def is_of_tools(self) -> bool:
        """Whether it is a system prompt alone, for conversations."""
        names = set(self._compiled.blocks)
        return bool(names) and names <= {"system", "native"}

    @cached_property
    def reads_clock(self) -> bool:
        """Whether prompts can depend on the time."""
        from handoff.policies.language.sandbox import reads_clock

        return reads_clock(self.source)

    @property
    def is_conversation(self) -> bool:
        """Whether prompts show earlier replies as messages of their own."""
        return self.form == "chat" and (self.is_of_tools or (self.history != 0 and "first" in self._compiled.blocks))

    @cached_property
    def _compiled(self) -> Any:
        import jinja2

        from handoff.policies.language.sandbox import Sandbox

        # The toolkit's own templates need no sandbox, and are rendered three times faster without.
        if self.source in _own_sources():
            plain = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
            compiled = self._guard(lambda: plain.from_string(self.source))
        else:
            sandbox = Sandbox(undefined=jinja2.StrictUndefined)
            compiled = self._guard(lambda: sandbox.bounded(self.source))
        names = set(compiled.blocks)
        of_tools = {"system"} <= names <= {"system", "native"}
        if names and not (
            of_tools or {"user"} <= names <= {"system", "user"} or {"first", "turn"} <= names <= _CONVERSATION
        ):
            raise DataError(
                f"template {self.name}: its blocks are {', '.join(sorted(names))}; write user (and system), "
                "or first and turn (and system), or system (and native) for conversations, or no block at all"
            )
        return compiled

    def _block(self, name: str, variables: Mapping[str, Any]) -> str:
        compiled = self._compiled
        return str(self._rendered(lambda: "".join(compiled.blocks[name](compiled.new_context(dict(variables))))))

    def _rendered(self, act: Any) -> Any:
        begin = getattr(self._compiled.environment, "begin", None)
        if begin is not None:
            begin()
        return self._guard(act)

    def _guard(self, act: Any) -> Any:
        import jinja2

        try:
            value = act()
            if isinstance(value, str):
                value.encode()  # an escape in a template can make half a character, which nothing can send
            return value
        except jinja2.TemplateSyntaxError as error:
            raise DataError(f"template {self.name}, line {error.lineno}: {error.message}") from error
        except (
            jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError,
            MemoryError, SyntaxError,
        ) as error:  # fmt: skip
            raise DataError(f"template {self.name}: {type(error).__name__}: {error}") from error


_CONVERSATION = {"system", "first", "turn"}


def _offered(record: Record) -> list[str]:
    """The actions that a template lists: the admissible ones, then the open ones."""
    return [*record.admissible, *record.open_actions]


def _shown(tool: Tool) -> dict[str, str]:
    return {"name": tool.name, "description": tool.description, "schema": tool.parameters}


@cache
def own_source(name: str) -> str:
    """The source of the toolkit's own template ``name``."""
    return (resources.files("handoff") / "templates" / f"{name}.jinja").read_text("utf-8")


def _own_sources() -> set[str]:
    return {own_source(name) for name in BUILTIN}


def _turns(request: Request, first: int) -> list[dict[str, Any]]:
    """The turns from number ``first`` (counted from 0) on."""
    before = request.history[first - 1].record.observation if first else request.reset.observation
    turns = []
    for number, turn in enumerate(request.history[first:], start=first + 1):
        turns.append(
            {
                "number": number,
                "before": before,
                "action": turn.action,
                "reply": turn.reply,
                "observation": turn.record.observation,
            }
        )
        before = turn.record.observation
    return turns


_RECORD = Record("You are in a room. Your task is to: look around.", ("look", "go north"), 0.0, False, False)
_SAMPLE = Request(
    task=Task("0" * 64, "sample", "sample", "sample"),
    seed=0,
    reset=_RECORD,
    history=(Turn("look", _RECORD, "look"),),
    remaining=1,
)
_CONVERSATION_SAMPLE = Request(
    task=Task("0" * 64, "sample", "sample", "sample"),
    seed=0,
    reset=Record(
        "Look around.",
        (),
        0.0,
        False,
        False,
        messages=(Message("user", "Look around."),),
        tools=(Tool("Look", "", "{}"),),
    ),
    history=(),
    remaining=1,
)
