"""What all language-model policies share: request -> prompt -> generated text -> decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from handoff.errors import DataError, UsageError
from handoff.policies.language.actions import Parsed, Reply
from handoff.policies.language.chat import in_words
from handoff.policies.language.clock import iso
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import Prompt, Template
from handoff.policies.language.tokens import TokenIds
from handoff.policies.policy import Request
from handoff.records import Decision, Generation

#: Finish reasons of engines and servers in the toolkit's terms: the model or a stop string ended the reply, a limit of
#: tokens, a call of a tool, a content filter.
FINISH_TERMS: Mapping[str, str] = {
    "stop": "stop",  # these four: OpenAI, vLLM, SGLang, llama.cpp, Ollama, LM Studio, OpenRouter
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "eos": "stop",
    "eos_token": "stop",  # TGI
    "stop_token": "stop",
    "stop_sequence": "stop",  # TGI; Anthropic's models behind gateways
    "end_turn": "stop",  # Anthropic's
    "max_tokens": "length",  # Anthropic's
    "model_length": "length",  # Mistral's
    "model_context_window_exceeded": "length",  # Anthropic's
    "repetition": "length",  # vLLM: cut where it began to repeat itself
    "function_call": "tool_calls",  # OpenAI's older models
    "tool_use": "tool_calls",  # Anthropic's
    "refusal": "content_filter",  # Anthropic's
}
#: Finish reasons in records: earlier versions kept the server's word.
FINISHES = frozenset(FINISH_TERMS)

#: Finish reasons of an engine that failed: aborted, or cut off on the way.  There is no reply then.
FAILED = (None, "", "abort", "error")

#: Characters of a version, a device or a name in the description of an engine.
MOST_WORDS = 1000

#: The remark on a reply whose limit was cut to the room in the context.
CLAMPED = "clamped"

#: The remark on a reply that was chosen by its score.
SCORED = "scored"


@attrs.frozen
class Output:
    """What an engine generated."""

    text: str
    #: A value of ``FINISH_TERMS``.
    finish: str
    #: The stop string that ended it, if one did.
    stop: str | None = None
    #: Generated token ids with a final end token, where they are known.
    ids: TokenIds | None = None
    #: The number of generated tokens, where the ids are not known.
    tokens: int | None = None
    #: Thinking that a server gave apart from the text.
    reasoning: str | None = None
    #: The model's refusal, where a server gave it apart from the text.
    refusal: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the model declined to answer, or a filter took its reply: no part of its text is an action then."""
        return self.refusal is not None or self.finish == "content_filter"


@attrs.frozen
class Input:
    """A rendered prompt and its tokens."""

    prompt: Prompt
    #: Token ids, where they are known.
    ids: TokenIds | None = None
    #: Their number, where the ids are not known.
    tokens: int | None = None


class Speaker:
    """Renders prompts and reads replies under fixed options."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        self.rule = options.action_rule()
        self.template = Template.named(
            options.template,
            form=options.prompt_form,
            history=options.history,
            system=options.system,
            format=self.rule.format,
            dialect=options.tools,
            **({} if options.now is None else {"now": options.now}),
        )
        #: Whether prompts can depend on the time: by this template, or by a chat template that a policy finds out.
        self.reads_clock = self.template.reads_clock
        #: What the chat template takes from earlier replies, by part (:func:`chat.rewritten`); ``None``: not known.
        self.rewritten: dict[str, list[int]] | None = None

    def set_time(self, now: str) -> None:
        """As :meth:`handoff.policies.policy.Policy.set_time`."""
        if self.options.now is None:
            self.template = attrs.evolve(self.template, now=now)

    def chat_facts(self) -> dict[str, Any]:
        """JSON-safe: what is known of the chat template; empty for prompts that need none."""
        if self.template.form != "chat":
            return {}
        unknown = "not known" if self.template.is_conversation else "not asked: these prompts show no earlier replies"
        words = unknown if self.rewritten is None else in_words(self.rewritten)
        return {"rewrites": self.rewritten, "in_words": words, "reads_clock": self.reads_clock}

    def resume_from(self, stated: Mapping[str, Any]) -> list[str]:
        """As :meth:`handoff.policies.policy.Policy.resume_from`: the time is that of the run's start."""
        described, now = self.describe(), stated.get("now")
        if "rewrites" in stated and stated["rewrites"] != described.get("rewrites"):
            raise UsageError("its chat template rewrites other parts of earlier replies than when the run was begun")
        if "now" in described and now is None:
            return ["begun by a version that did not state the time, it goes on with prompts that show the present one"]
        if "now" not in described and now is not None:
            raise UsageError(f"its prompts showed the time {now!r:.40} when the run was begun, and show none now")
        if now is not None:
            self.set_time(iso(now))
        return []

    def cautions(self) -> list[str]:
        """As :meth:`handoff.policies.policy.Policy.cautions`."""
        if not self.template.is_conversation or not self.rewritten:
            return []
        return [f"its chat template {in_words(self.rewritten)}"]

    def render(self, request: Request) -> Prompt:
        return self.template.render(request)

    def decide(self, request: Request, model_input: Input, output: Output, max_tokens: int | None) -> Decision:
        """The decision in ``output``.

        Raises :class:`~handoff.errors.DataError` if it is no admissible action though the engine was to generate
        nothing else: that is the engine's failure, not the model's.
        """
        if output.is_refused:
            parsed = Parsed(None, "refused")
        else:
            reply = Reply(output.text, output.finish, output.stop, output.reasoning)
            parsed = self.rule.parse(reply, request.offer)
        constrained = self.options.constrain and output.finish == "stop"
        if constrained and parsed.status not in ("parsed", "refused"):
            raise DataError(
                f"the reply {output.text!r:.80} is no admissible action: the engine does not constrain this model; "
                "leave out --constrain, or use hf:, which scores every action"
            )
        flags = {*parsed.flags, *output.flags, *self._flags(max_tokens)}
        return self._decision(
            request,
            model_input,
            text=output.text,
            action=parsed.action,
            status=parsed.status,
            flags=tuple(sorted(flags)),
            finish=output.finish,
            stop=output.stop,
            tokens=len(output.ids) if output.ids is not None else output.tokens,
            ids=output.ids,
            max_tokens=max_tokens,
            reasoning=output.reasoning,
            refusal=output.refusal,
        )

    def _flags(self, max_tokens: int | None) -> tuple[str, ...]:
        """Remarks on the limit of a reply."""
        return (CLAMPED,) if max_tokens is not None and max_tokens < self.options.max_new_tokens else ()

    def refuse(self, request: Request, model_input: Input, words: str, max_tokens: int) -> Decision:
        """The outcome of a prompt that a content filter stopped, with the filter's own ``words``: a spent step.

        ``max_tokens`` is the limit that was asked for."""
        return self._decision(
            request,
            model_input,
            text="",
            action=None,
            status="refused",
            flags=self._flags(max_tokens),
            finish="content_filter",
            max_tokens=max_tokens,
            refusal=words,
        )

    def overflow(self, request: Request, model_input: Input) -> Decision:
        """The outcome of a prompt that does not fit: a spent step, by the same rule for every policy."""
        return self._decision(request, model_input, text="", action=None, status="context_overflow", flags=())

    def _decision(
        self,
        request: Request,
        model_input: Input,
        *,
        text: str,
        action: str | None,
        status: str,
        flags: tuple[str, ...],
        ids: TokenIds | None = None,
        **generation: Any,
    ) -> Decision:
        return Decision(
            text=text,
            action=action,
            status=status,
            seed=request.seed,
            input_digest=request.input_digest(),
            flags=flags,
            prompt_digest=None if model_input.ids is None else model_input.ids.digest(),
            prompt_tokens=model_input.tokens if model_input.ids is None else len(model_input.ids),
            generation=Generation(
                rendered=model_input.prompt.digest(),
                digest=None if ids is None else ids.digest(),
                **generation,
            ),
        )

    def describe(self) -> dict[str, Any]:
        """JSON-safe: prompt, action rule and sampling; where there is such, the time that prompts show (a part of the
        prompt where the options pin it) and what a chat template rewrites."""
        prompt, observed = self.template.to_json(), dict[str, Any]()
        if self.reads_clock:
            (observed if self.options.now is None else prompt)["now"] = self.template.now
        if self.template.is_conversation and self.rewritten:
            observed["rewrites"] = self.rewritten
        return {
            **observed,
            "prompt": prompt,
            "actions": {
                "format": self.rule.format,
                "strict": self.rule.strict,
                **({"tools": "native"} if self.rule.native else {}),
            },
            "sampling": self.options.sampling(),
        }
