"""What the manifest says of a language model, as a structure: each part present, of its type, and in its range.

No file that the manifest names is read.  The checkpoints that ship are known here, so a ``builtin:`` model has their
digests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from handoff.auditing import known
from handoff.auditing.engines import engine_problems
from handoff.auditing.known import key_problems
from handoff.errors import UsageError
from handoff.policies import builtin
from handoff.policies.form import Limits, is_digest
from handoff.policies.language import checkpoints
from handoff.policies.language.actions import FORMATS
from handoff.policies.language.clock import READER, iso
from handoff.policies.language.fingerprint import KINDS, NOTHING, Fingerprint
from handoff.policies.language.options import ModelOptions
from handoff.policies.language.prompts import BUILTIN, FORMS, own_source
from handoff.policies.language.texts import TEXTS
from handoff.policies.specs import Spec
from handoff.settings import settings

#: Kinds whose engine is the toolkit's own: where it is constrained it scores whole replies, and no filter is behind it.
_SCORING = ("hf", "builtin")
#: Entries of an engine whose least is the tokens of prompt and reply together, by the kind of the policy.
_CONTEXTS: Mapping[str, tuple[str, ...]] = {
    "hf": ("context",),
    "builtin": ("context",),
    "openai": ("max_model_len", "context"),
}
#: What the source of a template has whose prompts are conversations.
_CONVERSATION = re.compile(r"block\s+first\b")
#: The highest temperature that most servers take.
_USUAL_TEMPERATURE = 2

_TYPES: Mapping[str, tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int,),
    "max_new_tokens": (int,),
    "max_prompt_tokens": (int,),
    "stop": (list,),
    "constrain": (bool,),
    "token_limit_field": (str,),
}


def model_problems(spec: Spec, facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the description of a language model of the toolkit's own kinds, as clauses."""
    kind = spec.kind
    yield from key_problems("its description", facts, known.KEYS_BY_KIND[kind], known.MORE_MODEL_KEYS)
    yield from structure_problems(facts)
    yield from _observed_problems(kind, facts)
    yield from _prompt_facts_problems(kind, facts)
    shipped = shipped_checkpoint(facts.get("checkpoint")) if kind == "builtin" else None
    yield from engine_problems(kind, facts, None if shipped is None else shipped.context())
    if kind == "openai":
        if not isinstance(facts.get("model"), str) or spec.argument != f"#{facts.get('model')}":
            yield f"its spec is {spec.text!r:.80}, but its model is {facts.get('model')!r:.80}"
    else:
        yield from _checkpoint_problems(spec, facts)


def _observed_problems(kind: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with what was observed of the model, where the description has it."""
    served = {"fingerprint", "answers_as"} & set(facts)
    if kind != "openai" and served:
        yield f"it is behind no server, yet it has {', '.join(sorted(served))}"
    elif "fingerprint" in facts:
        fingerprint = Fingerprint.from_json(facts["fingerprint"])
        replies = [reply for reply in fingerprint.replies if reply is not None]
        fine = fingerprint.of in (*KINDS, NOTHING.of) and all(map(is_digest, replies))
        if not fine or fingerprint.to_json() != facts["fingerprint"]:
            yield "its fingerprint is none"
    name = facts.get("answers_as", "")
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or ("answers_as" in facts and name in ("", facts.get("model")))
    ):
        yield f"it is stated to answer as {name!r:.80}"
    prompt = facts.get("prompt")
    times = [part["now"] for part in (facts, prompt) if isinstance(part, dict) and "now" in part]
    if len(times) > 1 or not all(map(_is_time, times)):
        yield f"its prompts are stated to show the time {' and '.join(map(repr, times)):.80}"
    if "rewrites" in facts and not _is_rewriting(facts["rewrites"]):
        yield f"its chat template is stated to rewrite {facts['rewrites']!r:.80}"
    if "texts" in facts and (kind not in _SCORING or facts["texts"] != TEXTS):
        yield f"its texts are stated as {facts['texts']!r:.40}"


def _prompt_facts_problems(kind: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """What no model of this ``kind`` has: a clock and a chat template behind its prompts, a field of a request.

    No shipped checkpoint has a chat template.  One of another checkpoint or of a server is not known here.
    """
    prompt, sampling = ({} if not isinstance(facts.get(key), dict) else facts[key] for key in ("prompt", "sampling"))
    chat = prompt.get("form") == "chat"
    if chat and kind == "builtin":
        yield "its prompts are stated to go through a chat template, which its checkpoint does not have"
    unknown, source = chat and kind != "builtin", str(prompt.get("source"))
    if "rewrites" in facts and not (unknown and prompt.get("history") != 0 and _CONVERSATION.search(source)):
        yield "its chat template is stated to rewrite earlier replies, but its prompts show none as messages"
    if ("now" in facts or "now" in prompt) and not unknown and READER not in source:
        yield "its prompts are stated to show the time, which its template does not read"
    field = sampling.get("token_limit_field")
    if field is not None and (kind != "openai" or field == ModelOptions().token_limit_field):
        yield f"its sampling has the token_limit_field {field!r:.40}, which no run of its kind states"


def _is_time(now: Any) -> bool:
    """Whether ``now`` is a time in the form that manifests state."""
    try:
        return isinstance(now, str) and iso(now) == now
    except UsageError:
        return False


def _is_rewriting(parts: Any) -> bool:
    """Whether ``parts`` tells, by part, which earlier replies a chat template rewrites."""
    return (
        isinstance(parts, dict)
        and bool(parts)
        and all(
            isinstance(replies, list) and replies and all(type(reply) is int and reply > 0 for reply in replies)
            for replies in parts.values()
        )
    )


def _dialect_problems(actions: Mapping[str, Any], prompt: Any) -> Iterator[str]:
    """How tools are called, which the action rule and the prompt state in the same way, or not at all."""
    stated = {repr(part["tools"]) for part in (actions, prompt) if isinstance(part, dict) and "tools" in part}
    both = all("tools" in part for part in (actions, prompt) if isinstance(part, dict))
    if stated and (stated != {"'native'"} or not both):
        yield "its action rule and its prompt state different ways of calling tools"


def structure_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with prompt, action rule and sampling, which every language model has."""
    sampling, prompt, actions = (facts.get(key) for key in ("sampling", "prompt", "actions"))
    yield from _sampling_problems(sampling)
    if not isinstance(actions, dict):
        yield "its action rule is no object"
    else:
        yield from key_problems("its action rule", actions, known.ACTION_KEYS, known.MORE_ACTION_KEYS)
        yield from _dialect_problems(actions, prompt)
        if actions.get("format") not in FORMATS or type(actions.get("strict")) is not bool:
            yield f"its action rule is {actions!r:.120}"
    if not isinstance(prompt, dict):
        yield "its prompt is no object"
        return
    yield from key_problems("its prompt", prompt, known.PROMPT_KEYS, known.MORE_PROMPT_KEYS)
    name, source, system = (prompt.get(key) for key in ("template", "source", "system"))
    ranges = {one.field: one for one in settings(ModelOptions)}
    fine = (
        isinstance(name, str)
        and isinstance(source, str)
        and prompt.get("form") in FORMS
        and ranges["history"].problem(prompt.get("history")) is None
        and (system is None or isinstance(system, str))
    )
    if not fine:
        yield "its prompt has a part of another type, or out of its range"
    elif name in BUILTIN and source != own_source(name):
        yield f"its template is called {name}, as one of the toolkit's is, but has another source"
    if isinstance(actions, dict) and prompt.get("format") != actions.get("format"):
        yield f"its prompt asks for {prompt.get('format')!r:.40}, but its action rule is {actions.get('format')!r:.40}"
    constrained = isinstance(sampling, dict) and sampling.get("constrain") is True
    if constrained and actions != {"format": "choice", "strict": True}:
        yield "its reply is constrained to an action, but its action rule is another one"


def _sampling_problems(sampling: Any) -> Iterator[str]:
    if not isinstance(sampling, dict):
        yield "its sampling is no object"
        return
    yield from key_problems("its sampling", sampling, known.SAMPLING_KEYS, known.MORE_SAMPLING_KEYS)
    ranges = {one.field: one for one in settings(ModelOptions)}
    for key, kinds in _TYPES.items():
        if key not in sampling:
            continue
        value = sampling[key]
        if type(value) not in kinds or (key == "stop" and not all(isinstance(text, str) for text in value)):
            yield f"its sampling has {key} {value!r:.40}"
        elif (problem := ranges[key].problem(tuple(value) if key == "stop" else value)) is not None:
            yield f"its sampling's {key} {problem}"
    if sampling.get("top_p") == 0:
        yield "its sampling's top_p must be above 0"


def _checkpoint_problems(spec: Spec, facts: Mapping[str, Any]) -> Iterator[str]:
    name, revision, digests = facts.get("checkpoint"), facts.get("revision"), facts.get("digests")
    if not isinstance(name, str) or not (revision is None or isinstance(revision, str)):
        yield f"its checkpoint is {name!r:.80} at {revision!r:.40}"
    elif spec.argument != (f"{name}@{revision}" if revision else name):
        yield f"its spec is {spec.text!r:.80}, but its checkpoint is {name!r:.80} at {revision!r:.40}"
    if spec.kind == "builtin" and revision is not None:
        yield f"it ships with the toolkit, yet it has the revision {revision!r:.40}"
    if not isinstance(digests, dict) or not all(is_digest(value) for value in digests.values()):
        yield "the digests of its checkpoint are none"
        return
    yield from key_problems("its checkpoint's digests", digests, known.DIGEST_KEYS)
    if spec.kind == "builtin" and isinstance(name, str):
        shipped = shipped_checkpoint(name)
        if shipped is None:
            yield f"no checkpoint that ships is named {name!r:.80}"
            return
        for key in sorted(shipped.digests):
            if digests.get(key) != shipped.digests[key]:
                yield f"the digest of its {key} is not that of the checkpoint {name} that ships"


def oddities(facts: Mapping[str, Any]) -> Iterator[str]:
    """What can be true of a language model and is worth a question, as clauses."""
    sampling: Any = facts.get("sampling")
    if any(_sampling_problems(sampling)):
        return
    temperature = sampling["temperature"]
    if temperature > _USUAL_TEMPERATURE:
        yield f"its temperature {temperature:g} is above {_USUAL_TEMPERATURE}; replies do not show what it was"


def shipped_checkpoint(name: Any) -> checkpoints.Checkpoint | None:
    """The checkpoint called ``name`` that ships; ``None`` if none does."""
    return _shipped(name) if isinstance(name, str) and name in builtin.names() else None


@cache
def _shipped(name: str) -> checkpoints.Checkpoint:
    return checkpoints.find(str(builtin.folder() / name))


def limits_of(facts: Mapping[str, Any]) -> Limits | None:
    """What a language model's description promises of its decisions; ``None`` if it is no valid one."""
    if any(_sampling_problems(facts.get("sampling"))):
        return None
    kind, sampling, engine = facts.get("kind"), facts["sampling"], facts.get("engine")
    places = [engine.get(key) for key in _CONTEXTS.get(str(kind), ())] if isinstance(engine, dict) else []
    return Limits(
        max_new_tokens=sampling["max_new_tokens"],
        max_prompt_tokens=sampling["max_prompt_tokens"],
        ids=facts.get("tokens") == "ids",
        scored=kind in _SCORING and sampling["constrain"],
        context=min((place for place in places if type(place) is int), default=None),
        filtered=kind not in _SCORING,
        stop=tuple(sampling["stop"]) if facts.get("tokens") == "ids" else None,
    )
