"""Options of a language-model policy: sampling, prompt, action rule, engine, server.

Defaults are the paper's where it states them: temperature 0.4, top-p 1, 512 new tokens, 4,096 prompt tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from handoff.errors import UsageError
from handoff.policies.language.actions import FORMATS, ActionRule
from handoff.policies.language.clock import iso
from handoff.policies.language.dialects import DIALECTS
from handoff.policies.language.prompts import BUILTIN, FORMS
from handoff.settings import setting

#: The bound below which vLLM, too, takes the likeliest token.
GREEDY = 1e-5

#: Defaults where the environment's state is a conversation with tools: the paper's (appendix B).
OF_CONVERSATIONS: Mapping[str, Any] = {
    "template": "tools", "temperature": 0.6, "top_p": 0.95, "max_new_tokens": 8192, "max_prompt_tokens": 32_768,
    "history": None,
}  # fmt: skip

#: More tokens than any model has places for.
MOST = 10_000_000


def is_greedy(temperature: float) -> bool:
    """Whether sampling at ``temperature`` means taking the likeliest token."""
    return temperature < GREEDY


def _above_zero(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if not value > 0:
        raise UsageError(f"{attribute.name.replace('_', ' ')} must be above 0 and at most 1, not {value!r}")


_option = partial(setting, group="models")
_tokens = partial(_option, kind=int, least=1, most=MOST)
_lanes = partial(_option, kind=int, least=1, most=65_536)


def _also(default: str, name: str) -> str:
    """What ``--help`` states: the default, and the one of conversations."""
    value = OF_CONVERSATIONS[name]
    return f"{default}; in a conversation with tools {'all' if value is None else value}"


_seconds = partial(_option, kind=float, most=1_000_000)


@attrs.frozen
class ModelOptions:
    """Options of one policy."""

    temperature: float = _option(
        "Sampling temperature; 0: greedy.",
        kind=float,
        default=0.4,
        least=0,
        most=1000,
        shown=_also("0.4", "temperature"),
    )
    top_p: float = _option(
        "Nucleus sampling.", kind=float, default=1.0, least=0, most=1, validator=_above_zero, shown=_also("1", "top_p")
    )
    top_k: int = _option("Sample among this many tokens; 0: all.", kind=int, default=0, least=0, most=MOST)
    max_new_tokens: int = _tokens("Tokens of a reply.", default=512, shown=_also("512", "max_new_tokens"))
    max_prompt_tokens: int = _tokens(
        "A longer prompt is a context overflow.", default=4096, shown=_also("4096", "max_prompt_tokens")
    )
    stop: tuple[str, ...] = _option("Ends a reply.", kind=str, default=(), repeats=True, metavar="TEXT")
    template: str = _option(
        f"Jinja2 file, or {', '.join(BUILTIN)}.",
        kind=str,
        default="default",
        metavar="FILE",
        shown=_also("default", "template"),
    )
    prompt_form: str = _option(
        "Messages for the chat template, or plain text.", kind=str, default="chat", choices=FORMS
    )
    #: ``None``: all turns.
    history: int | None = _option(
        "Turns shown.", kind=int, default=10, least=0, most=999_999_999, word="all", shown=_also("10", "history")
    )
    #: ``None``: the template's own; empty: no system prompt.
    system: str | None = _option(
        "System prompt in place of the template's own.", kind=str, default=None, metavar="TEXT"
    )
    #: ``None``: the start of the run.
    now: str | None = _option(
        "The time that templates are told, in ISO form.",
        kind=str,
        default=None,
        metavar="TIME",
        shown="the start of the run",
        converter=lambda text: None if text is None else iso(text),
    )
    action_format: str = _option("How replies hold an action.", kind=str, default="tagged", choices=FORMATS)
    tools: str = _option(
        "How tools are called: in the text, or by the server's own interface (openai: only).",
        kind=str,
        default="text",
        choices=DIALECTS,
    )
    strict: bool = _option("Whether text beside the action is an error.", kind=bool, default=False, negative="lenient")
    constrain: bool = _option(
        "Let the model choose among the admissible actions only.", kind=bool, default=False, negative="free"
    )
    dtype: str = _option(
        "Type of weights and activations.", kind=str, default="auto", choices=("auto", "float32", "bfloat16", "float16")
    )
    device: str = _option(
        "hf: where the model runs.", kind=str, default="auto", shown="a GPU if there is one", metavar="NAME"
    )
    #: 0: as many as the model has places for.
    context: int = _option(
        "Tokens of prompt and reply.", kind=int, default=0, least=0, most=MOST, shown="the model's own"
    )
    #: Constant, so that no result depends on the batch.
    rows: int = _lanes("hf: rows of every batch.", default=16)
    engine: Mapping[str, Any] = _option(
        "Further arguments of the vLLM engine.", kind=dict, default=attrs.Factory(dict), on_command_line=False
    )
    concurrency: int = _lanes("Requests at once, per server.", default=64)
    timeout: float = _seconds("Seconds for one answer of a server.", default=600.0, least=0.001)
    patience: float = _seconds(
        "Seconds without a good answer after which a server counts as gone.", default=120.0, least=0
    )
    token_limit_field: str = _option(
        "Field of a chat request that limits the reply, for a model that refuses max_tokens.",
        kind=str,
        default="max_tokens",
        choices=("max_tokens", "max_completion_tokens"),
    )
    #: A key itself is never an option.
    api_key_env: str = _option(
        "Environment variable with the API key.", kind=str, default="OPENAI_API_KEY", metavar="NAME"
    )

    def __attrs_post_init__(self) -> None:
        if self.constrain and self.action_format not in ("choice", "tagged"):
            raise UsageError(
                f"a constrained reply is one admissible action and nothing else, so its action format is choice, "
                f"not {self.action_format}; with --free the model writes what it likes"
            )

        if self.constrain and self.tools == "native":
            raise UsageError(
                "a constrained reply is one admissible action, and calls no tool: leave out --tools native"
            )

    def action_rule(self) -> ActionRule:
        """The rule from a reply to its action."""
        if self.constrain:
            return ActionRule("choice", strict=True)
        return ActionRule(self.action_format, self.strict, self.tools == "native")

    def sampling(self) -> dict[str, Any]:
        """The options that the sampled tokens depend on."""
        form = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_new_tokens": self.max_new_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
            "stop": list(self.stop),
            "constrain": self.constrain,
        }
        if self.token_limit_field != "max_tokens":  # no part of the form while it was the only field
            form["token_limit_field"] = self.token_limit_field
        return form

    def room(self, prompt_tokens: int, context: int | None) -> int | None:
        """How many tokens may be generated after a prompt of ``prompt_tokens``: ``max_new_tokens``, or less where the
        model's ``context`` has less room; ``None`` if the prompt is too long to be answered."""
        if prompt_tokens > self.max_prompt_tokens:
            return None
        if context is None:
            return self.max_new_tokens
        left = context - prompt_tokens
        return min(self.max_new_tokens, left) if left >= 1 else None
