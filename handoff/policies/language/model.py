"""What every language-model policy has in common: request -> prompt -> generated text -> decision."""

from __future__ import annotations

from typing import Any

import attrs

from handoff.errors import DataError
from handoff.policies.language.actions import Reply
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import Prompt, Template
from handoff.policies.language.tokens import TokenIds
from handoff.policies.policy import Request
from handoff.records import Decision, Generation

#: Reasons to have ended that mean that the engine failed: aborted, or cut off on the way.  There is no reply then.
FAILED = (None, "", "abort", "error")


@attrs.frozen
class Output:
    """What an engine generated.  ``ids`` are the generated token ids with a final end token, where they are known."""

    text: str
    finish: str
    stop: str | None = None
    ids: TokenIds | None = None
    tokens: int | None = None
    reasoning: str | None = None
    flags: tuple[str, ...] = ()


@attrs.frozen
class Input:
    """A rendered prompt, and its token ids or at least their number, where they are known."""

    prompt: Prompt
    ids: TokenIds | None = None
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
        )

    def render(self, request: Request) -> Prompt:
        return self.template.render(request)

    def decide(self, request: Request, given: Input, output: Output, max_tokens: int | None) -> Decision:
        """The decision that ``output`` comes to.

        Raises :class:`~handoff.errors.DataError` if it is no admissible command though the engine was to generate
        nothing else: that is the engine's failure, not the model's.
        """
        reply = Reply(output.text, output.finish, output.stop, output.reasoning)
        parsed = self.rule.parse(reply, request.record.admissible)
        if self.options.constrain and output.finish == "stop" and parsed.status != "parsed":
            raise DataError(
                f"the reply {output.text!r:.80} is no admissible command: the engine does not constrain this model; "
                "leave out --constrain, or use hf:, which scores every command"
            )
        flags = {*parsed.flags, *output.flags}
        if max_tokens is not None and max_tokens < self.options.max_new_tokens:
            flags.add("clamped")
        return self._decision(
            request,
            given,
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
        )

    def overflow(self, request: Request, given: Input) -> Decision:
        """The outcome of a prompt that does not fit: a spent step, for every policy by the same rule."""
        return self._decision(request, given, text="", action=None, status="context_overflow", flags=())

    def _decision(
        self,
        request: Request,
        given: Input,
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
            prompt_digest=None if given.ids is None else given.ids.digest(),
            prompt_tokens=given.tokens if given.ids is None else len(given.ids),
            generation=Generation(
                rendered=given.prompt.digest(),
                digest=None if ids is None else ids.digest(),
                **generation,
            ),
        )

    def describe(self) -> dict[str, Any]:
        """JSON-safe: prompt, action rule and sampling."""
        return {
            "prompt": self.template.to_json(),
            "actions": {"format": self.rule.format, "strict": self.rule.strict},
            "sampling": self.options.sampling(),
        }
