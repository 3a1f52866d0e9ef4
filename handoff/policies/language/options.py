"""What can be set about a language-model policy: sampling, prompt, action rule, engine.

The defaults are the paper's where it states them: temperature 0.4, top-p 1, 512 new tokens, 4,096 prompt tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from handoff.errors import UsageError
from handoff.policies.language.actions import FORMATS, Rule
from handoff.policies.language.prompts import FORMS

if TYPE_CHECKING:
    from handoff.policies.language.prompts import Template


#: The bound below which vLLM, too, takes the likeliest token.
GREEDY = 1e-5

#: What no number of tokens, requests, seconds or degrees can be meant to exceed.
MOST = 10_000_000


def is_greedy(temperature: float) -> bool:
    """Whether sampling at ``temperature`` means taking the likeliest token."""
    return temperature < GREEDY


def _at_least(least: float) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
        if not least <= value <= MOST:
            raise UsageError(
                f"{attribute.name.replace('_', ' ')} must be at least {least:g} and at most {MOST:,}, not {value!r:.30}"
            )

    return check


def _share(instance: Any, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 < value <= 1:
        raise UsageError(f"{attribute.name.replace('_', ' ')} must be above 0 and at most 1, not {value!r}")


def _one_of(*choices: str) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
        if value not in choices:
            raise UsageError(f"{attribute.name.replace('_', ' ')} is one of {', '.join(choices)}, not {value!r}")

    return check


@attrs.frozen
class ModelOptions:
    """Options of one policy.

    Sampling: ``temperature`` (0: the likeliest token), ``top_p``, ``top_k`` (0: all), ``max_new_tokens``,
    ``max_prompt_tokens`` (a longer prompt is the outcome ``context_overflow``), ``stop`` strings.

    Prompt and action: ``template`` (a built-in name or a file), ``prompt_form``, ``history``, ``system``,
    ``action_format``, ``strict``; ``constrain`` lets the model choose among the admissible commands only.

    Engine: ``dtype``, ``device``, ``context`` (tokens of prompt and reply together; 0: the model's own), ``rows``
    (transformers: rows of every batch, the same always, so that no result depends on the batch) and ``engine``
    (further arguments of the vLLM engine).

    Server: ``concurrency`` (requests at once), ``timeout`` (seconds for one answer), ``patience`` (seconds without any
    answer after which the server counts as gone) and ``api_key_env`` (the environment variable that holds the key;
    a key itself is never an option).
    """

    temperature: float = attrs.field(default=0.4, validator=_at_least(0))
    top_p: float = attrs.field(default=1.0, validator=_share)
    top_k: int = attrs.field(default=0, validator=_at_least(0))
    max_new_tokens: int = attrs.field(default=512, validator=_at_least(1))
    max_prompt_tokens: int = attrs.field(default=4096, validator=_at_least(1))
    stop: tuple[str, ...] = ()
    template: str = "default"
    prompt_form: str = attrs.field(default="chat", validator=_one_of(*FORMS))
    history: int | None = 10
    system: str | None = None
    action_format: str = attrs.field(default="tagged", validator=_one_of(*FORMATS))
    strict: bool = False
    constrain: bool = False
    dtype: str = attrs.field(default="auto", validator=_one_of("auto", "float32", "bfloat16", "float16"))
    device: str = "auto"
    context: int = attrs.field(default=0, validator=_at_least(0))
    rows: int = attrs.field(default=16, validator=_at_least(1))
    engine: Mapping[str, Any] = attrs.Factory(dict)
    concurrency: int = attrs.field(default=64, validator=_at_least(1))
    timeout: float = attrs.field(default=600.0, validator=_at_least(0.001))
    patience: float = attrs.field(default=120.0, validator=_at_least(0))
    api_key_env: str = "OPENAI_API_KEY"

    def __attrs_post_init__(self) -> None:
        if self.constrain and self.action_format not in ("choice", "tagged"):
            raise UsageError(
                f"a constrained reply is one admissible command and nothing else, so its action format is choice, "
                f"not {self.action_format}; with --free the model writes what it likes"
            )

    def make_rule(self) -> Rule:
        return Rule("choice", strict=True) if self.constrain else Rule(self.action_format, self.strict)

    def make_template(self) -> Template:
        """Raises :class:`~handoff.errors.UsageError` or :class:`~handoff.errors.DataError` if it cannot be used."""
        from handoff.policies.language.prompts import Template  # it imports this package

        return Template.named(
            self.template,
            form=self.prompt_form,
            history=self.history,
            system=self.system,
            format=self.make_rule().format,
        )

    def sampling(self) -> dict[str, Any]:
        """The part that the sampled tokens depend on."""
        return {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_new_tokens": self.max_new_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
            "stop": list(self.stop),
            "constrain": self.constrain,
        }

    def room(self, prompt_tokens: int, context: int | None) -> int | None:
        """How many tokens may be generated after a prompt of ``prompt_tokens``: ``max_new_tokens``, or less where the
        model's ``context`` has less room; ``None`` if the prompt is too long to be answered."""
        if prompt_tokens > self.max_prompt_tokens:
            return None
        if context is None:
            return self.max_new_tokens
        left = context - prompt_tokens
        return min(self.max_new_tokens, left) if left >= 1 else None
