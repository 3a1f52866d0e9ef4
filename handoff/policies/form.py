"""What a decision may hold: one rule for a policy that makes it, and for an audit that reads it back.

:func:`form_problems` needs the decision alone.  :class:`Limits` are what a language model's description promises of its
tokens: how many, at which places, and with which remarks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import attrs

from handoff.policies.language.model import CLAMPED, FINISHES, SCORED
from handoff.policies.language.options import MOST
from handoff.records import ACTING, STATUSES, Decision, Generation

#: Characters of a text: more than any reply has.
MOST_TEXT = 2**24

#: How a reply of the toolkit's own engines ends.
_ENGINE_FINISHES = ("stop", "length")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(value: Any) -> bool:
    """Whether ``value`` is a sha256 in hexadecimal."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def form_problems(decision: Decision, flags: Collection[str] | None = None) -> Iterator[str]:
    """What is wrong with the form of a decision, as clauses without a subject.

    ``flags`` are those that its policy can write (``None``: any).
    """
    if decision.status not in STATUSES:
        yield f"has the unknown status {decision.status!r:.80}"
    elif (decision.action is not None) != (decision.status in ACTING):
        yield f"is called {decision.status!r:.40}, with the action {decision.action!r:.80}"
    if not _is_text(decision.text):
        yield "has a text that is none, or too long"
    if decision.action is not None and not (_is_text(decision.action) and decision.action.strip()):
        yield "has an action without words"
    if not _is_count(decision.seed, 2**63 - 1):
        yield f"has the seed {decision.seed!r:.40}"
    if not is_digest(decision.input_digest):
        yield f"has the input digest {decision.input_digest!r:.80}, which is none"
    yield from _flag_problems(decision.flags, flags)
    if decision.prompt_digest is not None and not is_digest(decision.prompt_digest):
        yield f"has the prompt digest {decision.prompt_digest!r:.80}, which is none"
    if decision.prompt_tokens is not None and not _is_count(decision.prompt_tokens):
        yield f"has {decision.prompt_tokens!r:.40} prompt tokens"
    if decision.generation is not None:
        yield from _generation_problems(decision.generation)


def _flag_problems(flags: Any, known: Collection[str] | None) -> Iterator[str]:
    if not isinstance(flags, tuple) or not all(isinstance(flag, str) for flag in flags):
        yield "has flags that are no words"
        return
    if len(set(flags)) != len(flags):
        yield f"has a flag twice: {', '.join(flags):.80}"
    unknown = [] if known is None else sorted(set(flags) - set(known))
    if unknown:
        yield f"has the flag {unknown[0]!r:.80}, which its policy never writes"


def _generation_problems(generation: Generation) -> Iterator[str]:
    if not is_digest(generation.rendered):
        yield f"has the rendered prompt's digest {generation.rendered!r:.80}, which is none"
    if generation.digest is not None and not is_digest(generation.digest):
        yield f"has the digest {generation.digest!r:.80} of its tokens, which is none"
    if generation.finish is not None and generation.finish not in FINISHES:
        yield f"has the unknown finish reason {generation.finish!r:.80}"
    texts = {"stop string": generation.stop, "thinking": generation.reasoning, "refusal": generation.refusal}
    for name, text in texts.items():
        if text is not None and not _is_text(text):
            yield f"has a {name} that is no text, or too long"
    if generation.tokens is not None and not _is_count(generation.tokens):
        yield f"has {generation.tokens!r:.40} generated tokens"
    if generation.max_tokens is not None and not (_is_count(generation.max_tokens) and generation.max_tokens):
        yield f"has the limit of {generation.max_tokens!r:.40} generated tokens"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_TEXT


def _is_count(value: Any, most: int = MOST) -> bool:
    return type(value) is int and 0 <= value <= most


@attrs.frozen
class Limits:
    """What a language model's description promises of every decision's tokens."""

    max_new_tokens: int
    max_prompt_tokens: int
    #: Whether token ids of prompt and reply are recorded.
    ids: bool
    #: Whether a reply may be scored as a whole: it is an admissible action then, however many tokens that has.
    scored: bool = False
    #: Tokens of prompt and reply together, where that is known exactly.
    context: int | None = None
    #: Whether a server is in between, which may filter, refuse, and give thinking and calls apart from the text.
    filtered: bool = True
    #: The strings that may end a reply, where the engine has no others.
    stop: Collection[str] | None = None

    def problems(self, decision: Decision) -> Iterator[str]:
        """What is wrong with the counts of a decision that has a generation, as clauses without a subject."""
        generation = decision.generation
        assert generation is not None
        if decision.status == "context_overflow":
            yield from self._overflow_problems(decision, generation)
            return
        prompt, limit, tokens = decision.prompt_tokens, generation.max_tokens, generation.tokens
        if prompt is not None and prompt > self.max_prompt_tokens:
            yield f"has {prompt} prompt tokens, beyond the limit of {self.max_prompt_tokens}"
        if generation.finish is None:
            yield "has no finish reason, though its model was asked"
        if not self.filtered:
            yield from self._engine_problems(decision, generation)
        if self.ids and decision.text and tokens == 0:
            yield f"has a text of {len(decision.text)} characters without a token"
        replied = decision.status != "refused" or decision.text  # a filter may have stopped the prompt
        if self.ids and replied and (tokens is None or generation.digest is None):
            yield "has no token ids of its reply, though the policy is stated to record them"
        if not self.ids and generation.digest is not None:
            yield "has the digest of its reply's token ids, though the policy is stated to have none"
        if limit is None or limit > self.max_new_tokens:
            yield f"was to have at most {limit} new tokens, where {self.max_new_tokens} are stated"
            return
        if (CLAMPED in decision.flags) != (limit < self.max_new_tokens):
            flags = ", ".join(decision.flags) or "none"
            yield f"was to have {limit} of {self.max_new_tokens} new tokens, but its flags are {flags}"
        if self.ids and self.context is not None and prompt is not None and limit != self._room(prompt):
            yield f"was to have at most {limit} new tokens, where {self._room(prompt)} fit after {prompt}"
        if tokens is not None and tokens > limit and not (self.scored and SCORED in decision.flags):
            yield f"has {tokens} new tokens, beyond its limit of {limit}"
        if self.stop is not None and generation.stop is not None and generation.stop not in self.stop:
            yield f"was ended by {generation.stop!r:.80}, which is no stop string of its policy"

    def _engine_problems(self, decision: Decision, generation: Generation) -> Iterator[str]:
        """What only a server's reply can have, or an engine that counts otherwise."""
        if generation.finish not in (None, *_ENGINE_FINISHES):
            yield f"ended by {generation.finish!r:.80}, which its engine never says"
        if decision.status == "refused" or generation.refusal is not None:
            yield "is a refusal, which only a server gives"
        if generation.reasoning is not None:
            yield "has thinking apart from its text, which only a server gives"
        if "tool_call" in decision.flags:
            yield "has the flag tool_call, which only a server's reply has"
        scored = SCORED in decision.flags
        if generation.finish == "length" and (scored or generation.tokens != generation.max_tokens):
            yield f"ended by its limit of {generation.max_tokens} tokens, but has {generation.tokens}"

    def _overflow_problems(self, decision: Decision, generation: Generation) -> Iterator[str]:
        made = (generation.finish, generation.stop, generation.tokens, generation.digest, generation.max_tokens)
        if any(value is not None for value in (*made, generation.reasoning, generation.refusal)) or decision.flags:
            yield "is called a context overflow, yet something was generated"
        prompt = decision.prompt_tokens
        fits = prompt is not None and prompt <= self.max_prompt_tokens
        if fits and self.ids and prompt is not None and self.context is not None and self._room(prompt) >= 1:
            yield f"is called a context overflow, yet its {prompt} prompt tokens fit"
        if fits and not self.ids:
            yield f"is called a context overflow, yet its {prompt} prompt tokens are within the limit"

    def _room(self, prompt: int) -> int:
        assert self.context is not None
        return min(self.max_new_tokens, self.context - prompt)
