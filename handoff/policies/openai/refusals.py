"""What a server says in place of an answer, and what that means for the decision.

Servers agree on little: an error comes with a status of 4xx or 5xx or 200, as an object, a list or a text.  It is
judged by its type and code first, and by precise phrases where it has none.  A phrase is one that a server prints
together with its limit; a text that only resembles one means nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs

#: Statuses of a server that may answer later.
LATER = frozenset({408, 409, 425, 429})
#: Errors of servers (5xx) that another try does not change: not implemented, HTTP version not supported.
_FOR_GOOD = frozenset({501, 505})


class Verdict(StrEnum):
    """What an error means."""

    #: The prompt does not fit into the model's context.
    OVERFLOW = "overflow"
    #: A content filter stopped the prompt.
    FILTERED = "filtered"
    #: The server asks for fewer requests, or smaller ones, per minute.
    SLOW_DOWN = "slow down"
    #: The server failed.
    FAILED = "failed"
    #: The account behind the key has no credit.
    UNPAID = "unpaid"
    #: The key is missing, or not accepted.
    KEY = "key"
    #: The server understood the request and does not carry it out.
    REFUSED = "refused"


@attrs.frozen
class Complaint:
    """An error as a server stated it."""

    #: Of the answer, or the code within an answer of status 200.
    status: int
    message: str
    #: Types and codes in lower case, letters only.
    names: frozenset[str] = frozenset()
    #: The field of the request that the server does not take.
    field: str | None = None
    #: The context length that the error states.
    context: int | None = None

    @property
    def verdict(self) -> Verdict:
        names, message = self.names, self.message
        if self.status == 402 or names & _UNPAID:
            return Verdict.UNPAID
        if self.status == 429 or names & _SLOW or (self.status not in (401, 403) and _SLOW_PHRASE.search(message)):
            return Verdict.SLOW_DOWN
        if names & _OVERFLOW or (self.status not in _NEVER_OVERFLOW and _OVERFLOW_PHRASE.search(message)):
            return Verdict.OVERFLOW
        if names & _FILTERED or (self.status == 403 and _FILTERED_PHRASE.search(message)):
            return Verdict.FILTERED
        if self.status in (401, 403):
            return Verdict.KEY
        if is_passing(self.status) or names & _FAILED:
            return Verdict.FAILED
        return Verdict.REFUSED

    def __str__(self) -> str:
        return f"HTTP {self.status}: {self.message}"


def is_passing(status: int) -> bool:
    """Whether a server that answers with ``status`` may give a good answer later."""
    return status in LATER or (500 <= status <= 599 and status not in _FOR_GOOD)


def read(status: int, form: Any, raw: str) -> Complaint:
    """The error in a JSON answer; ``raw`` stands for one without a text."""
    return _read(status, form, _brief(raw) or "(empty)", depth=0)


def _read(status: int, form: Any, raw: str, depth: int) -> Complaint:
    error = form.get("error", form) if isinstance(form, dict) else form
    holder = error if isinstance(error, dict) else {}
    inner = _inner(error, depth)
    if inner is not None:  # an error that is passed on by a gateway says more than the gateway
        complaint = _read(status, inner, raw, depth + 1)
        return attrs.evolve(complaint, names=complaint.names | _names(form, holder))
    message = next(_messages(form, error), raw)
    code = holder.get("code")
    if status == 200 and type(code) is int and 400 <= code <= 599:
        status = code
    context = holder.get("n_ctx")
    return Complaint(
        status=status,
        message=_brief(message) or raw,
        names=_names(form, holder),
        field=_field(form, holder, message),
        context=context if type(context) is int else None,
    )


def _inner(error: Any, depth: int) -> Any:
    """The error that ``error`` quotes as JSON text: as its whole text, or as what a provider behind a gateway said."""
    texts = [error]
    if isinstance(error, dict):
        metadata = error.get("metadata")
        texts = [error.get("message"), metadata.get("raw") if isinstance(metadata, dict) else None]
    for text in texts:
        if depth < 3 and isinstance(text, str) and text.lstrip().startswith("{"):
            try:
                form = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(form, dict) and next(_messages(form, form.get("error", form)), None):
                return form
    return None


def _messages(form: Any, error: Any) -> Iterator[str]:
    """Texts of an error, the one for people first.  What a validation error quotes of the request is none."""
    if isinstance(error, str):
        yield error
    if not isinstance(error, dict):
        return
    for key in ("message", "detail", "msg"):
        value = error.get(key)
        if isinstance(value, str) and value.strip():
            yield value
        elif isinstance(value, list):  # validation errors of FastAPI
            lines = [_validation(entry) for entry in value[:3] if isinstance(entry, dict)]
            if any(lines):
                yield "; ".join(filter(None, lines))


def _validation(entry: dict[str, Any]) -> str:
    place = entry.get("loc")
    where = ".".join(str(part) for part in place if part != "body") if isinstance(place, list) else ""
    message = entry.get("msg")
    return f"{where}: {message}".removeprefix(": ") if isinstance(message, str) else ""


def _names(form: Any, holder: dict[str, Any]) -> frozenset[str]:
    inner = holder.get("innererror")
    metadata = holder.get("metadata")
    stated = [holder.get("type"), holder.get("code"), form.get("error_type") if isinstance(form, dict) else None]
    stated += [inner.get("code")] if isinstance(inner, dict) else []
    stated += ["flagged_input"] if isinstance(metadata, dict) and "flagged_input" in metadata else []
    return frozenset(re.sub("[^a-z]", "", name.lower()) for name in stated if isinstance(name, str)) - {""}


_FIELD_PHRASE = re.compile(
    r"(?:unsupported|unknown|unrecognized|unexpected) (?:parameter|field|argument|request argument supplied)s?:?"
    r" ['\"`]?([a-z_]+)",
    re.IGNORECASE,
)


def _field(form: Any, holder: dict[str, Any], message: str) -> str | None:
    """The field of the request that the server does not take, with any value."""
    match = _FIELD_PHRASE.search(message)
    if match:
        return match.group(1)
    stated = holder.get("param")
    if isinstance(stated, str) and _names(form, holder) & _UNSUPPORTED:
        return stated
    details = form.get("detail") if isinstance(form, dict) else None
    for entry in details if isinstance(details, list) else []:
        place = entry.get("loc") if isinstance(entry, dict) and entry.get("type") == "extra_forbidden" else None
        if isinstance(place, list) and place:
            return str(place[-1])
    return None


def _brief(text: str) -> str:
    return " ".join(text.split())[:300]


# Types and codes of errors, in lower case and letters only.
_UNPAID = {"insufficientquota", "insufficientcredits", "billinghardlimitreached", "insufficientbalance"}
_SLOW = {"ratelimitexceeded", "ratelimiterror", "ratelimitreached", "throttlingerror", "toomanyrequests"}
_OVERFLOW = {
    "contextlengthexceeded",  # OpenAI and many after it
    "exceedcontextsizeerror",  # llama.cpp
    "contextwindowexceedederror",  # LiteLLM
    "modelcontextwindowexceeded",
}
_FILTERED = {"contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation", "flaggedinput"}
_UNSUPPORTED = {"unsupportedparameter", "unknownparameter", "unrecognizedparameter"}
_FAILED = {
    "servererror", "internalservererror", "internalerror", "apierror", "unavailableerror", "serviceunavailable",
    "serviceunavailableerror", "overloaded", "overloadederror", "engineoverloaded", "timeout", "timeouterror",
    "generation", "incompletegeneration",  # TGI
}  # fmt: skip

#: Statuses that speak of the key, of the address or of the rate, whatever their text quotes.
_NEVER_OVERFLOW = frozenset({401, 403, 404, 408, 429})
_SLOW_PHRASE = re.compile(
    r"\b(?:tokens|requests|messages) per (?:second|sec|minute|min|hour|day)\b|(?-i:\b[RT]P[SMHD]\b)|\brate.?limit",
    re.IGNORECASE,
)
_FILTERED_PHRASE = re.compile(r"requires moderation|input was flagged|content (?:management )?policy", re.IGNORECASE)
#: Each states a limit or a number of tokens.
_OVERFLOW_PHRASE = re.compile(
    "|".join(
        (
            r"maximum context length (?:is|of) [\d,]+",  # OpenAI, vLLM, SGLang, OpenRouter
            r"longer than the (?:maximum model|model's context) length",  # vLLM, SGLang
            r"exceeds? the (?:available|configured) context size",  # llama.cpp
            r"`inputs` must have less than [\d,]+ tokens",  # TGI
            r"`inputs` tokens \+ `max_new_tokens` must be <= [\d,]+",  # TGI
            r"tokens to keep from the initial prompt is greater than the context length",  # LM Studio
            r"keep the first [\d,]+ tokens when context the overflows",  # LM Studio
            r"cannot truncate prompt with n_keep \([\d,]+\) >= n_ctx",  # LM Studio
            r"prompt too long; exceeded (?:max )?context length",  # Ollama
            r"(?:input|prompt) (?:length )?exceeds (?:the |maximum )?context length",  # Ollama
            r"prompt is too long: [\d,]+ tokens > [\d,]+",  # Anthropic's models behind gateways
            r"input token count \([\d,]+\) exceeds the maximum number of tokens allowed",  # Google's
            r"maximum prompt length is [\d,]+ but the request contains [\d,]+ tokens",  # xAI's
            r"too large for model with [\d,]+ maximum context length",  # Mistral's
        )
    ),
    re.IGNORECASE,
)
