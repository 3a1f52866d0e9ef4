"""What a run folder, its manifest and a policy's description may hold: the lists of names, all in one place.

A key that no version of this form writes is a key that nobody looks at, so an audit names it.  A new fact in a manifest
comes with its name here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from handoff.policies.policy import OBSERVED
from handoff.runs.folder import JOURNAL, LOCK, MANIFEST, RECORDS, SEAL, TIMINGS

#: Files of a run, and what its reports and exports add.
FILES = frozenset({MANIFEST, RECORDS, JOURNAL, SEAL, TIMINGS, LOCK})
REPORTS = frozenset({"report.html", "report.json", "tax.html", "tax.json", "export"})
#: How the copy of a torn last line is called.
TORN = "torn-"

MANIFEST_KEYS = frozenset({"format", "identity", "digest", "host"})
IDENTITY_KEYS = frozenset({"handoff", "protocol", "environment", "tasks", "policies", "seeds"})
#: Keys of an identity where the fact exists.
MORE_IDENTITY_KEYS: frozenset[str] = frozenset()

#: Keys that the description of every language model has.
MODEL_KEYS = frozenset({"spec", "kind", "prompt", "actions", "sampling", "tokens", "engine", "guarantee"})
CHECKPOINT_KEYS = MODEL_KEYS | {"checkpoint", "revision", "digests"}
#: Keys of the description of a language model, by its kind.
KEYS_BY_KIND: Mapping[str, frozenset[str]] = {
    "openai": MODEL_KEYS | {"model"},
    "hf": CHECKPOINT_KEYS,
    "builtin": CHECKPOINT_KEYS,
    "vllm": CHECKPOINT_KEYS,
}
#: Keys of a language model's description where the fact exists.
MORE_MODEL_KEYS: frozenset[str] = OBSERVED

#: Keys of the engine of a language model, by its kind.  Those of vLLM's own engine are its arguments.
_TRANSFORMERS_KEYS = frozenset(
    {"name", "torch", "transformers", "dtype", "device", "rows", "attention", "context"}
)  # fmt: skip
ENGINE_KEYS: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"name", "version", "max_model_len", "root"}),
    "hf": _TRANSFORMERS_KEYS,
    "builtin": _TRANSFORMERS_KEYS,
}
#: Keys of an engine where the fact exists.
MORE_ENGINE_KEYS = frozenset({"context"})

PROMPT_KEYS = frozenset({"template", "source", "form", "history", "system", "format"})
ACTION_KEYS = frozenset({"format", "strict"})
SAMPLING_KEYS = frozenset({"temperature", "top_p", "top_k", "max_new_tokens", "max_prompt_tokens", "stop", "constrain"})
#: Keys of a model's prompt and sampling where the fact exists.
MORE_PROMPT_KEYS = frozenset({"now", "tools"})
MORE_ACTION_KEYS = frozenset({"tools"})
MORE_SAMPLING_KEYS = frozenset({"token_limit_field"})
#: Groups of a checkpoint's files.
DIGEST_KEYS = frozenset({"weights", "config", "tokenizer"})


def key_problems(
    what: str, form: Mapping[str, object], needed: Collection[str], more: Collection[str] = ()
) -> Iterator[str]:
    """Clauses on keys of ``form`` (a ``what``) that are missing, and on keys that are not known."""
    missing = sorted(set(needed) - set(form))
    unknown = sorted(set(form) - set(needed) - set(more))
    if missing:
        yield f"{what} is without {', '.join(missing)}"
    if unknown:
        yield f"{what} has {', '.join(map(repr, unknown)):.200}, which no run of this version writes"
