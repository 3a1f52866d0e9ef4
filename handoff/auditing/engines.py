"""What a manifest says of a language model's engine: each fact has its type and bounds, and some follow from the kind.

Versions, types, devices and the words of a server are free within these bounds: nobody can ask for them again
(docs/audit.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handoff.auditing import known
from handoff.policies.language import guarantees
from handoff.policies.language.model import MOST_WORDS
from handoff.policies.language.options import MOST, ModelOptions
from handoff.settings import settings

#: Whether a model's decisions have token ids, as a description says it.
TOKENS = ("ids", "rendered prompt only")

#: More places than any configuration of a model states.
_MOST_PLACES = 2**40
_SETTINGS = {one.field: one for one in settings(ModelOptions)}

Rule = Callable[[Any], bool]


def _words(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_WORDS


def _word_or_none(value: Any) -> bool:
    return value is None or _words(value)


def _count(most: int) -> Rule:
    return lambda value: value is None or (type(value) is int and 1 <= value <= most)


def _one_of(*values: Any) -> Rule:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


_TRANSFORMERS: Mapping[str, Rule] = {
    "name": _one_of("transformers"),
    "torch": _words,
    "transformers": _words,
    "dtype": _one_of(*(_SETTINGS["dtype"].choices or ())[1:]),  # the first one leaves the choice to the engine
    "device": _words,
    "rows": lambda value: value is not None and _SETTINGS["rows"].problem(value) is None,
    "attention": _one_of("eager"),
    "context": _count(_MOST_PLACES),
}
#: The rule for each fact of an engine, by the kind of the policy.  Further ones of vLLM's own engine are its arguments.
_RULES: Mapping[str, Mapping[str, Rule]] = {
    "hf": _TRANSFORMERS,
    "builtin": _TRANSFORMERS,
    "openai": {
        "name": _one_of(None, "vllm"),
        "version": _word_or_none,
        "max_model_len": _count(MOST),
        "root": _word_or_none,
        "context": _count(MOST),
    },
    "vllm": {"name": _one_of("vllm"), "version": _words, "device": _words},
}
_GUARANTEES: Mapping[str, str] = {"hf": guarantees.ROWS, "builtin": guarantees.ROWS, "vllm": guarantees.BATCHES}


def engine_problems(kind: str, facts: Mapping[str, Any], places: int | None = None) -> Iterator[str]:
    """What is wrong with engine, tokens and guarantee of a model of this ``kind``, as clauses.

    ``places`` are those of a checkpoint that ships, for the tokens of prompt and reply together.
    """
    engine, tokens = facts.get("engine"), facts.get("tokens")
    if tokens not in (TOKENS if kind == "openai" else TOKENS[:1]):
        yield f"its tokens are stated as {tokens!r:.40}"
    expected = _GUARANTEES.get(kind, guarantees.SERVER if tokens == "ids" else guarantees.UNKNOWN_SERVER)
    if facts.get("guarantee") != expected:
        yield f"its guarantee is stated as {facts.get('guarantee')!r:.40}, but its kind promises {expected!r}"
    if not isinstance(engine, dict):
        yield f"its engine is stated as {engine!r:.40}"
        return
    if kind in known.ENGINE_KEYS:
        yield from known.key_problems("its engine", engine, known.ENGINE_KEYS[kind], known.MORE_ENGINE_KEYS)
    for key, rule in _RULES.get(kind, {}).items():
        if key in engine and not rule(engine[key]):
            yield f"its engine has {key} {engine[key]!r:.40}"
    if kind == "openai":
        if (engine.get("name") == "vllm") != (tokens == "ids"):
            yield "its engine and its tokens contradict each other"
        if (engine.get("name") is None) != (engine.get("version") is None):
            yield f"its engine is {engine.get('name')!r:.40}, with the version {engine.get('version')!r:.40}"
    context = engine.get("context")
    if places is not None and not (type(context) is int and context <= places):
        yield f"its engine has context {context!r:.40}, but the checkpoint that ships has {places} places"
