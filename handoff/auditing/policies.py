"""The audit of policies: what the manifest says of each follows from its spec, and what each is recorded to have
decided agrees with it.

A scripted policy says its action and nothing else.  A language model's text yields its action by the rule that the
manifest states; this is also what holds the text of an episode's last decision, which no later input repeats.  Its
counts of tokens are within the limits that the manifest states.  No policy decides anything here, and no file that a
manifest names is read: who made a model's decisions, an audit cannot know.

The kinds of other packages have no rule for decisions.  Their descriptions are those of a policy made from the spec,
where the package is installed and the policy can be made; else a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from handoff.auditing.checks import Audit, Check
from handoff.auditing.descriptions import limits_of, model_problems, oddities
from handoff.errors import HandoffError
from handoff.policies import kinds
from handoff.policies.form import Limits, form_problems
from handoff.policies.language.actions import ActionRule, Reply
from handoff.policies.language.model import CLAMPED, SCORED
from handoff.policies.specs import Spec
from handoff.records import Decision
from handoff.runs.run import Run

CLAIM = "every description follows from its spec, and every decision's parts agree with one another and with it"


def check_policies(audit: Audit, run: Run) -> None:
    """Add the check ``policies`` to ``audit``.

    A text is held against its action where the records tell the admissible actions; else where the episode is replayed.
    """
    check = audit.check("policies", CLAIM)
    for name, facts in run.described.items():
        _check_description(check, name, facts)
    rules = rules_of(run)
    for one in run.decisions():
        check.collect(one.cell, rules[one.policy].problems(one.decision, one.admissible))
    for name in run.described:
        check.failures.extend(f"policy {name}: {problem}" for problem in rules[name].window_problems())


def rules_of(run: Run) -> dict[str, DecisionRules]:
    """The rules for the decisions of each policy, by name."""
    return {name: DecisionRules.of(facts) for name, facts in run.described.items()}


@attrs.define
class DecisionRules:
    """What a policy's description says of its decisions."""

    #: A built-in kind without a model.
    scripted: bool = False
    #: A language model.
    model: bool = False
    #: Remarks that it can write; ``None``: any.
    flags: frozenset[str] | None = None
    #: ``None``: its description has none that can be read.
    limits: Limits | None = None
    #: From a text to its action; ``None``: the description states none, for the reason ``no_action``.
    action: ActionRule | None = None
    no_action: str = ""
    #: The most prompt tokens that were answered, and the fewest that were too many.
    _answered: int | None = None
    _refused: int | None = None

    @classmethod
    def of(cls, facts: Any) -> DecisionRules:
        """The rules in a policy's description, which may be anything."""
        if not isinstance(facts, dict):
            return cls()
        kind = facts.get("kind")
        known = kinds.BUILTIN.get(kind) if isinstance(kind, str) else None
        flags = None if known is None else known.flags
        if known is not None and not known.is_language_model:
            return cls(scripted=True, flags=flags)
        if "prompt" not in facts:
            return cls(flags=flags)
        rules = cls(model=True, flags=flags, limits=limits_of(facts))
        stated = facts.get("actions")
        keys = {"format", "strict"}
        if not isinstance(stated, dict) or set(stated) - {"tools"} != keys or type(stated["strict"]) is not bool:
            rules.no_action = "the manifest states no rule from its text to its action"
        else:
            try:
                rules.action = ActionRule(str(stated["format"]), stated["strict"], stated.get("tools") == "native")
            except HandoffError as error:
                rules.no_action = str(error)
        return rules

    def problems(self, decision: Decision, admissible: Sequence[str] | None) -> Iterator[str]:
        """What is wrong with a decision; ``admissible`` are the actions of the state that it was shown, if they are
        known."""
        for problem in form_problems(decision, self.flags):
            yield f"a decision {problem}"
        if self.scripted:
            yield from _script_problems(decision)
        elif self.model:
            yield from self._model_problems(decision, admissible)

    def replayed_problems(self, decision: Decision, admissible: Sequence[str]) -> Iterator[str]:
        """The part of :meth:`problems` that needs the actions of a replayed state; the rest was looked at before."""
        if self.scripted:
            yield from _script_problems(decision)
            return
        generation = decision.generation
        if not self.model or generation is None or generation.is_refusal:
            return
        if decision.status not in ("context_overflow", "refused"):
            yield from self._text_problems(decision, admissible)

    def window_problems(self) -> Iterator[str]:
        """What is wrong with all decisions so far: one length of the prompt parts those that fit from those that do
        not."""
        if self._answered is not None and self._refused is not None and self._refused <= self._answered:
            yield f"a prompt of {self._answered} tokens was answered, and one of {self._refused} did not fit"

    def _model_problems(self, decision: Decision, admissible: Sequence[str] | None) -> Iterator[str]:
        generation = decision.generation
        if generation is None:
            yield "a language model's decision has no record of its generation"
            return
        ids = self.limits is not None and self.limits.ids
        if ids and (decision.prompt_digest is None or decision.prompt_tokens is None):
            yield "it has no prompt token ids, though the policy is stated to record them"
        if not ids and self.limits is not None and decision.prompt_digest is not None:
            yield "it has the digest of prompt token ids, though the policy is stated to have none"
        if self.limits is not None:
            for problem in self.limits.problems(decision):
                yield f"a decision {problem}"
        overflow = decision.status == "context_overflow"
        if ids and decision.prompt_tokens is not None:
            self._note_length(decision.prompt_tokens, overflow)
        if overflow:
            if decision.text or decision.action is not None:
                yield "its prompt did not fit, yet it has a text or an action"
        elif decision.status == "refused" or generation.is_refusal:
            if decision.status != "refused" or not generation.is_refusal:
                yield f"its reply ended by {generation.finish!r}, yet it is called {decision.status!r}"
        elif admissible is not None:
            yield from self._text_problems(decision, admissible)

    def _note_length(self, tokens: int, overflow: bool) -> None:
        if overflow:
            self._refused = tokens if self._refused is None else min(tokens, self._refused)
        else:
            self._answered = tokens if self._answered is None else max(tokens, self._answered)

    def _text_problems(self, decision: Decision, admissible: Sequence[str]) -> Iterator[str]:
        """What is wrong with the action and the remarks, by the stated rule."""
        generation = decision.generation
        assert generation is not None
        if self.action is None:
            yield self.no_action
            return
        reply = Reply(decision.text, generation.finish or "stop", generation.stop, generation.reasoning)
        parsed = self.action.parse(reply, admissible)
        if (parsed.action, parsed.status) != (decision.action, decision.status):
            yield (
                f"its text comes to {parsed.action!r:.80} ({parsed.status}), but {decision.action!r:.80} "
                f"({decision.status}) is recorded"
            )
        elif not set(parsed.flags) <= set(decision.flags):
            yield (
                f"its text has the flags {', '.join(parsed.flags)}, recorded are {', '.join(decision.flags) or 'none'}"
            )
        else:
            yield from self._remark_problems(decision.status, {*decision.flags} - {*parsed.flags, CLAMPED}, admissible)

    def _remark_problems(self, status: str, flags: set[str], admissible: Sequence[str]) -> Iterator[str]:
        """What is wrong with the remarks that are not the text's."""
        limits = self.limits
        if limits is None:
            return
        if limits.scored and admissible and SCORED not in flags:
            yield "its reply was not chosen by a score, though the policy is stated to score every action"
        if limits.scored and admissible and status != "parsed":
            yield f"it is called {status!r:.40}, though the policy is stated to score every action"
        # A call that a server took out of the text is written back into it.
        more = sorted(flags - {"tool_call"} - ({SCORED} if limits.scored else set()))
        if more:
            yield f"it has the flags {', '.join(more)}, which its text does not have"


def _script_problems(decision: Decision) -> Iterator[str]:
    """What is wrong with a decision of a policy without a model."""
    if decision.text != (decision.action or ""):
        yield f"a policy without a model wrote {decision.text!r:.80} and did {decision.action!r:.80}"
    if (decision.action is None) != (decision.status == "empty"):
        yield f"a policy without a model has the status {decision.status!r} with the action {decision.action!r:.80}"
    if decision.generation is not None or decision.prompt_digest is not None or decision.prompt_tokens is not None:
        yield "a policy without a model has a prompt or generated tokens"


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
    problems = [] if fault is None else [fault]
    if fault is None and spec.kind in kinds.BUILTIN and kind.is_language_model:
        problems += model_problems(spec, facts)
        check.notes.extend(f"policy {name}: {oddity}" for oddity in oddities(facts))
    check.collect(f"policy {name}", problems)
