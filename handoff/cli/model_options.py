"""Options of language models on the command line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from handoff.cli import numbers
from handoff.policies.language.actions import FORMATS
from handoff.policies.language.prompts import FORMS

F = TypeVar("F", bound=Callable[..., Any])


def _history(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and value != "all" and not (value.isascii() and value.isdigit() and len(value) < 10):
        raise click.BadParameter("write a number of turns, or all")
    return value


_OPTIONS = {
    "temperature": click.option(
        "--temperature", type=numbers.Real(0, 1000), help="Sampling temperature; 0: greedy.  [default: 0.4]"
    ),
    "top_p": click.option("--top-p", type=numbers.Real(0, 1), help="Nucleus sampling.  [default: 1]"),
    "top_k": click.option(
        "--top-k", type=numbers.Whole(0, 10_000_000), help="Sample among this many tokens; 0: all.  [default: 0]"
    ),
    "max_new_tokens": click.option("--max-new-tokens", type=numbers.TOKENS, help="Tokens of a reply.  [default: 512]"),
    "max_prompt_tokens": click.option(
        "--max-prompt-tokens", type=numbers.TOKENS, help="A longer prompt is a context overflow.  [default: 4096]"
    ),
    "stop": click.option("--stop", multiple=True, metavar="TEXT", help="Ends a reply; repeats."),
    "template": click.option(
        "--template", metavar="FILE", help="Jinja2 file, or default, turns, alfworld-compact.  [default: default]"
    ),
    "prompt_form": click.option("--prompt-form", type=click.Choice(FORMS), help="[default: chat]"),
    "history": click.option("--history", metavar="N|all", callback=_history, help="Turns shown.  [default: 10]"),
    "system": click.option("--system", metavar="TEXT", help="System prompt in place of the template's own."),
    "action_format": click.option(
        "--action-format", type=click.Choice(FORMATS), help="How replies hold an action.  [default: tagged]"
    ),
    "strict": click.option("--strict/--lenient", default=None, help="Whether text beside the action is an error."),
    "constrain": click.option(
        "--constrain/--free", default=None, help="Let the model choose among the admissible commands only."
    ),
    "dtype": click.option("--dtype", metavar="NAME", help="auto, float32, bfloat16 or float16.  [default: auto]"),
    "device": click.option("--device", metavar="NAME", help="hf: where the model runs.  [default: a GPU if there is]"),
    "context": click.option(
        "--context", type=numbers.Whole(0, 10_000_000), help="Tokens of prompt and reply.  [default: the model's own]"
    ),
    "rows": click.option("--rows", type=numbers.Whole(1, 65_536), help="hf: rows of every batch.  [default: 16]"),
    "concurrency": click.option(
        "--concurrency", type=numbers.Whole(1, 65_536), help="Requests at once, per server.  [default: 64]"
    ),
    "timeout": click.option(
        "--timeout", type=numbers.Real(0.001, 1_000_000), help="Seconds for one answer of a server.  [default: 600]"
    ),
    "patience": click.option(
        "--patience",
        type=numbers.Real(0, 1_000_000),
        help="Seconds of a server's silence that end the run.  [default: 120]",
    ),
    "api_key_env": click.option(
        "--api-key-env", metavar="NAME", help="Environment variable with the API key.  [default: OPENAI_API_KEY]"
    ),
}


def model_options(function: F) -> F:
    """Adds the options; the command gets those that were given as one dictionary ``model``."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _OPTIONS}
        given = {name: value for name, value in given.items() if value is not None and value != ()}
        if "history" in given:
            given["history"] = None if given["history"] == "all" else int(given["history"])
        return function(*arguments, model=given, **values)

    command: Any = wrapped
    for option in reversed(_OPTIONS.values()):
        command = option(command)
    return command  # type: ignore[no-any-return]
