"""The audit of policies: what the manifest says of each follows from its spec, and what each is recorded to have
decided is what such a policy writes.

A scripted policy says its action and nothing else.  A language model's text yields its action by the rule that the
manifest states; this is also what holds the text of an episode's last decision, which no later input repeats.  No
policy decides anything here, and no file that a manifest names is read.

The kinds of other packages have no rule for decisions.  Their descriptions are those of a policy made from the spec,
where the package is installed and the policy can be made; else a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handoff.auditing.checks import Audit, Check
from handoff.errors import HandoffError
from handoff.policies import kinds
from handoff.policies.language.actions import ActionRule, Reply
from handoff.policies.specs import Spec
from handoff.records import Decision
from handoff.runs.run import Run

CLAIM = "every policy is what its spec says, and its decisions are what such a policy writes"


def check_policies(audit: Audit, run: Run) -> None:
    """Add the check ``policies`` to ``audit``.

    A text is held against its action where the records tell the admissible actions; else where the episode is replayed.
    """
    check = audit.check("policies", CLAIM)
    for name, facts in run.described.items():
        _check_description(check, name, facts)
    for one in run.decisions():
        check.collect(one.cell, decision_problems(run.described.get(one.policy), one.decision, one.admissible))


def decision_problems(facts: Any, decision: Decision, admissible: Sequence[str] | None) -> Iterator[str]:
    """What is wrong with a decision of the policy described by ``facts``; ``admissible`` are the actions of the state
    that it was shown, if they are known."""
    if not isinstance(facts, dict):
        return
    if facts.get("kind") in kinds.SCRIPTED:
        if decision.text != (decision.action or ""):
            yield f"a policy without a model wrote {decision.text!r:.80} and did {decision.action!r:.80}"
        if (decision.action is None) != (decision.status == "empty"):
            yield f"a policy without a model has the status {decision.status!r} with the action {decision.action!r:.80}"
        if decision.generation is not None or decision.prompt_digest is not None or decision.prompt_tokens is not None:
            yield "a policy without a model has a prompt or generated tokens"
        return
    if "prompt" not in facts:
        return
    generation = decision.generation
    if generation is None:
        yield "a language model's decision has no record of its generation"
        return
    ids = facts.get("tokens") == "ids"
    if ids and (decision.prompt_digest is None or decision.prompt_tokens is None):
        yield "it has no prompt token ids, though the policy is stated to record them"
    if not ids and decision.prompt_digest is not None:
        yield "it has the digest of prompt token ids, though the policy is stated to have none"
    if decision.status == "context_overflow":
        if decision.text or decision.action is not None:
            yield "its prompt did not fit, yet it has a text or an action"
    elif decision.status == "refused" or generation.is_refusal:
        if decision.status != "refused" or not generation.is_refusal or decision.action is not None:
            yield f"it ended by {generation.finish!r}, yet its status is {decision.status!r}"
    elif admissible is not None:
        yield from _text_problems(facts, decision, admissible)


def _text_problems(facts: Mapping[str, Any], decision: Decision, admissible: Sequence[str]) -> Iterator[str]:
    """What is wrong with the action, by the rule in ``facts``."""
    generation, stated = decision.generation, facts.get("actions")
    assert generation is not None
    if not isinstance(stated, dict) or set(stated) != {"format", "strict"} or type(stated["strict"]) is not bool:
        yield "the manifest states no rule from its text to its action"
        return
    try:
        rule = ActionRule(str(stated["format"]), stated["strict"])
    except HandoffError as error:
        yield str(error)
        return
    reply = Reply(decision.text, generation.finish or "stop", generation.stop, generation.reasoning)
    parsed = rule.parse(reply, admissible)
    if (parsed.action, parsed.status) != (decision.action, decision.status):
        yield (
            f"its text comes to {parsed.action!r:.80} ({parsed.status}), but {decision.action!r:.80} "
            f"({decision.status}) is recorded"
        )
    elif not set(parsed.flags) <= set(decision.flags):
        yield f"its text has the flags {', '.join(parsed.flags)}, recorded are {', '.join(decision.flags) or 'none'}"


def _check_description(check: Check, name: str, facts: Any) -> None:
    """Whether a policy's description follows from its spec, as far as that can be said without its files."""
    text = facts.get("spec") if isinstance(facts, dict) else None
    if not isinstance(text, str):
        check.require(False, f"policy {name}: it is described without a spec")
        return
    spec = Spec.parse(text)
    try:
        kind = kinds.find(spec.kind)
        fault = kind.fault(kind, spec, facts)
    except HandoffError as error:
        if spec.kind in kinds.BUILTIN:
            check.require(False, f"policy {name}: {error}")
        else:
            check.notes.append(f"policy {name}: its description was not held against its spec here: {error}")
        return
    check.require(fault is None, f"policy {name}: {fault}")
