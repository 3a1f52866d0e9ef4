"""The fields of a request for a reply: what is stated of sampling, and under which names.

Servers differ in the fields that they take.  What an option can change is in ``OPTIONS``, by which the sentence of a
server that refuses a field names the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handoff.policies.language.options import ModelOptions
from handoff.policies.openai.refusals import Complaint
from handoff.policies.policy import Request

#: Field that a server may refuse -> the option that leaves it out.
OPTIONS: Mapping[str, str] = {
    "max_tokens": "--token-limit-field max_completion_tokens",
    "max_completion_tokens": "--token-limit-field max_tokens",
}
#: Servers of several kinds take seeds of 32 bits only.
_SEED_BITS = 0x7FFFFFFF


def limit(options: ModelOptions, form: str, room: int) -> dict[str, Any]:
    """The limit of ``room`` new tokens.  Text completions have one name for it everywhere."""
    return {options.token_limit_field if form == "chat" else "max_tokens": room}


def sampling(options: ModelOptions, request: Request) -> dict[str, Any]:
    """How to sample, for a server of any kind."""
    body: dict[str, Any] = {
        "temperature": request.tempered(options.temperature),
        "top_p": options.top_p,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "seed": request.seed & _SEED_BITS,
    }
    if options.stop:
        body["stop"] = list(options.stop)
    return body


def all_sampling(options: ModelOptions, request: Request) -> dict[str, Any]:
    """How to sample, for vLLM: with the whole seed, and with every setting that vLLM would otherwise take from the
    checkpoint's generation_config.json."""
    body = {
        "return_token_ids": True,
        "skip_special_tokens": True,
        "top_k": options.top_k or -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        **sampling(options, request),
        "seed": request.seed,
    }
    if options.constrain:
        body["structured_outputs"] = {"choice": list(request.record.admissible)}
    return body


def with_advice(complaint: Complaint) -> str:
    """What the server says, and what to do about it where that is known."""
    option = OPTIONS.get(complaint.field or "")
    if option is None and "chat template" in complaint.message:
        option = "--prompt-form text"
    return str(complaint) if option is None else f"{str(complaint).rstrip('.')}; type {option}"
