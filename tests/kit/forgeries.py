"""Forgeries of honest runs, as data: what is changed, in which run, and why no audit finds it, if none can.

The edits are in :mod:`kit.forgery_edits`, the honest runs in :mod:`kit.forgery_runs`.  A forgery that no audit can find
names the item of ``docs/audit.md`` that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
from kit import forgery_edits as edits
from kit.forger import Forger, raw
from kit.forgery_edits import Edit
from kit.forgery_runs import NEED_TORCH

from handoff.episodes.start import Where
from handoff.errors import HandoffError
from handoff.protocols.audit import audit_run


@attrs.frozen
class Forgery:
    """One false run."""

    name: str
    #: The honest run that it is made from (a key of :data:`RUNS`).
    run: str
    edit: Edit = attrs.field(repr=False)
    #: The item of ``docs/audit.md`` (words of a heading or of a bullet) that says why no audit finds it.
    unknowable: str | None = None
    #: Words that a note of the audit has all the same.
    note: str = ""
    #: Whether episodes are replayed to find it.
    replay: bool = True

    @property
    def protocol(self) -> str:
        return "rollouts" if "rollouts" in self.run else "frontier"


@attrs.frozen
class Verdict:
    """What an audit says of a forged run."""

    passed: bool
    #: The words that name the place.
    place: tuple[str, ...]
    failures: list[str]
    notes: list[str]
    #: The first sentence that names the place, with the check's name.
    sentence: str | None


def verdict(forgery: Forgery, run: Path, folder: Path) -> Verdict:
    """Forge ``run`` in ``folder`` and audit it, with every episode replayed."""
    forger = Forger.read(run)
    place = forgery.edit(forger)
    words = tuple(word for word in ((place,) if isinstance(place, str) else place) if word)
    try:
        audit = audit_run(forger.write(folder), {}, Where(0), replay=forgery.replay)
    except HandoffError as error:  # not a run that this version reads
        return Verdict(
            False, words, [str(error)], [], str(error) if all(word in str(error) for word in words) else None
        )
    failures = [f"{check.name}: {text}" for check in audit.checks for text in check.failures]
    notes = [f"{check.name}: {text}" for check in audit.checks for text in check.notes]
    sentence = next((text for text in failures if all(word in text for word in words)), None)
    return Verdict(audit.passed, words, failures, notes, sentence)


# Words of the page, in the first column of "What it cannot know".
WHO = "who decided for a model"
WEIGHTS = "which weights a server had"
SAMPLING = "at which temperature a model sampled, and with which seed"
TOKENS = "token ids and their counts"
PART = "part of a bigger"
WORDS = "words of a model that no rule reads"
PACKAGE = "what a policy of another package did"
TEMPLATE = "prompts of another template"
ENGINE = "on which software and hardware a model ran"
CHAT = "what a chat template does"
HOST = "times, machine and paths"

JOURNAL = b'{"body":{},"digest":"0","key":["x"]}\n'

ANY = ("handoff", "rollouts")
MODELS = ("served", "served rollouts")


def _both(
    runs: Sequence[str], name: str, edit: Edit, unknowable: str | None = None, replay: bool = True
) -> list[Forgery]:
    return [Forgery(name, run, edit, unknowable, replay=replay) for run in runs]


def _facts(name: str, edit: Edit, unknowable: str | None = None) -> list[Forgery]:
    """Forgeries of what a manifest says of shipped checkpoints, which no replay is needed to find."""
    return _both(NEED_TORCH, name, edit, unknowable, replay=False)


FORGERIES: list[Forgery] = [
    # Ends, lengths and outcomes.
    *_both(ANY, "the last decision cut", edits.cut_last_decision),
    *_both(ANY, "no decision", edits.no_decision),
    *_both(ANY, "a decision appended", edits.appended_decision),
    *_both(ANY, "a win called lost", edits.won_is_lost),
    *_both(ANY, "a loss called won", edits.lost_is_won),
    *_both(ANY, "an episode ended early", edits.ended_early),
    Forgery("another outcome", "handoff", edits.other_outcome),
    Forgery("another outcome", "rollouts", edits.in_body(outcome="tired")),
    # Lines.
    *_both(ANY, "a false line first", edits.false_line(first=True)),
    *_both(ANY, "a false line last", edits.false_line(first=False)),
    *_both(ANY, "two lines exchanged", edits.lines_exchanged),
    *_both(ANY, "two episodes exchanged", edits.bodies_exchanged),
    *_both(ANY, "a record of an unlisted policy", edits.of_unlisted_policy),
    *_both(ANY, "a record left out", edits.missing_record),
    Forgery("a trajectory left out", "handoff", edits.trajectory_left_out),
    *_both(ANY, "a seal of more records", edits.sealed_with(records=10**6)),
    *_both(ANY, "a seal of true", edits.sealed_with(records=True)),
    *_both(ANY, "a key of the seal more", edits.sealed_with(place="seal", remark=1)),
    *_both(ANY, "a seal of another head", edits.sealed_with(head="0" * 64)),
    *_both(ANY, "a journal left over", edits.file("journal.jsonl", JOURNAL, "journal.jsonl")),
    *_both(ANY, "another machine", edits.in_manifest("", host={"options": {}, "platform": "a better one"}), HOST),
    *_both(ANY, "timings changed", edits.file("timings.json", b'{"reach":-1}\n', ""), HOST),
    # Who decided.
    *_both(ANY, "labels exchanged", edits.labels_exchanged),
    *_both(ANY, "specs exchanged", edits.specs_exchanged),
    *_both(ANY, "episodes invented", edits.invented),
    Forgery("reachers exchanged", "handoff", edits.reachers_exchanged),
    Forgery("a reacher's turn invented", "handoff", edits.reacher_invented),
    *_both(MODELS, "labels exchanged", edits.labels_exchanged, WHO),
    *_both(MODELS, "a model's answers invented", edits.other_words, WHO),
    *_both(ANY, "a script called an object", edits.object_for_script, PACKAGE),
    *_both(ANY, "a script called a shipped checkpoint", edits.script_for_builtin),
    Forgery("a script called a list of actions", "rollouts", edits.list_for_script),
    *_both(ANY, "a policy more", edits.more_policies),
    *_both(MODELS, "a model called a script", edits.model_for_script("a")),
    *_both(MODELS, "another model named", edits.other_model, WEIGHTS),
    Forgery("another noise", "handoff", edits.fact("a", "spec", value="noisy:0.4")),
    Forgery("another noise, described", "handoff", edits.described("a", "reacher a", spec="noisy:0.4", epsilon=0.4)),
    Forgery("another noise, described", "rollouts", edits.described("x", "policy x", spec="noisy:0.3", epsilon=0.3)),
    *_both(ANY, "fewer policies", edits.fewer_policies),
    *_both(ANY, "a policy renamed", edits.renamed_policy),
    # Plan, seeds and tasks.
    *_both(ANY, "another run seed", edits.other_run_seed),
    *_both(ANY, "another selection seed", edits.in_protocol("selection seed", selection_seed=7)),
    *_both(ANY, "another task", edits.other_task),
    *_both(ANY, "a task renamed", edits.renamed_task),
    *_both(ANY, "a task twice", edits.task_twice),
    *_both(ANY, "another type of task", edits.in_task("", type="easy")),
    *_both(ANY, "a source of a task", edits.in_task("states a place", source="../../etc/passwd")),
    *_both(ANY, "types named", edits.in_protocol("selection seed", types=["long"])),
    *_both(ANY, "another number of tasks", edits.in_protocol("tasks", tasks=3)),
    *_both(ANY, "another reset seed", edits.other_reset_seed),
    *_both(ANY, "another decision's seed", edits.other_decision_seed),
    Forgery("half the slots", "handoff", edits.fewer_slots, PART),
    Forgery("fewer rollouts", "rollouts", edits.fewer_rollouts, PART),
    Forgery("favourable tasks", "handoff", edits.favourable_tasks, PART, "is not the default seed 2029"),
    Forgery("favourable tasks", "rollouts", edits.favourable_tasks, PART, "is not the default seed 2029"),
    Forgery("a greater budget", "handoff", edits.in_protocol("budget", reach_budget=13)),
    Forgery("a smaller budget", "handoff", edits.in_protocol("budget", reach_budget=11)),
    Forgery("a greater budget", "rollouts", edits.in_protocol("of 13 actions", budget=13)),
    Forgery("a smaller budget", "rollouts", edits.in_protocol("of 11 actions", budget=11)),
    Forgery("a greater solver's budget", "handoff", edits.in_protocol("solver a", solve_budget=3)),
    Forgery("another depth", "handoff", edits.in_protocol("depth", depth=1)),
    Forgery("solvers in another order", "handoff", edits.solvers_reversed),
    Forgery("more slots", "handoff", edits.in_protocol("missing", slots=3)),
    Forgery("more rollouts", "rollouts", edits.in_protocol("missing", rollouts=4)),
    Forgery("slots beyond counting", "handoff", edits.in_protocol("the plan has 36000000", slots=1_000_000)),
    Forgery("rollouts beyond counting", "rollouts", edits.in_protocol("the plan has 12000000", rollouts=1_000_000)),
    # Forms.
    *_both(ANY, "no seal", edits.no_seal),
    *_both(ANY, "another format", edits.in_manifest("format", format=2)),
    *_both(ANY, "a key of the manifest more", edits.in_manifest("remark", remark=1)),
    *_both(ANY, "a key that contradicts its record", edits.other_key),
    *_both(ANY, "another split", edits.in_protocol("split", split="train")),
    *_both(ANY, "another environment named", edits.environment("environment", name="frozenlake")),
    *_both(ANY, "another version", edits.in_identity("9.9", handoff="9.9")),
    *_both(ANY, "a key of the identity more", edits.in_identity("remark", remark=1)),
    *_both(ANY, "a key of the protocol more", edits.in_protocol("remark", remark=1)),
    *_both(ANY, "a key of the environment more", edits.environment("remark", remark=1)),
    *_both(ANY, "a key of the seeds more", edits.more_seeds),
    *_both(ANY, "a key of a task more", edits.in_task("remark", remark=1)),
    *_both(ANY, "a key of a record more", edits.line(remark=1)),
    *_both(ANY, "a key of a decision more", edits.decision_line(remark=1)),
    *_both(ANY, "NaN for a seed", edits.line(reset_seed=raw("NaN"))),
    *_both(ANY, "1e400 for a seed", edits.line(reset_seed=raw("1e400"))),
    *_both(ANY, "true for a seed", edits.line(reset_seed=True)),
    *_both(ANY, "1.0 for a seed", edits.decision_line(seed=1.0)),
    *_both(ANY, "text for a seed", edits.line(reset_seed="1")),
    Forgery("another environment", "handoff", edits.environment("environment", version="99")),
    *_both(ANY, "another input digest", edits.other_input),
    # Decisions of scripted policies.
    *_both(ANY, "an unknown status", edits.in_decision(status="banana")),
    *_both(ANY, "an unknown flag", edits.in_decision(flags=["banana"])),
    *_both(ANY, "another text of a scripted policy", edits.in_decision(text="I thought about it")),
    *_both(ANY, "a prompt of a scripted policy", edits.in_decision(prompt_digest="0" * 64, prompt_tokens=3)),
    # Frontier.
    Forgery("an arrival dropped", "handoff", edits.arrival_dropped),
    Forgery("an arrival cut", "handoff", edits.arrival_cut),
    Forgery("an arrival invented", "handoff", edits.arrival_invented),
    Forgery("no member", "handoff", edits.in_check(member=False)),
    Forgery("another distance in a certificate", "handoff", edits.in_check(distance=1)),
    Forgery("another path", "handoff", edits.in_check(path=["dig", "dig"])),
    Forgery("fewer tries", "handoff", edits.fewer_tries),
    Forgery("more bridges", "handoff", edits.other_bridges),
    Forgery("another distance", "handoff", edits.other_distance),
    Forgery("another distance at reset", "handoff", edits.other_reset_distance),
    Forgery("distances to a greater limit", "handoff", edits.in_protocol("distance", distances=7)),
    Forgery("distances that nobody asked for", "handoff", edits.in_protocol("distance", distances=None)),
    Forgery("a bridge flipped", "handoff", edits.bridge_flipped),
    Forgery("another clone", "handoff", edits.in_clone(digest="0" * 64)),
    Forgery("a clone of more records", "handoff", edits.in_clone(records=99)),
    Forgery("another clone's input", "handoff", edits.in_clone(input_digest="0" * 64)),
    Forgery("another observation", "handoff", edits.in_record(observation="All is well.")),
    Forgery("another first observation", "handoff", edits.in_reset(observation="All is well.")),
    Forgery("another score", "handoff", edits.in_record(score=0.5)),
    Forgery("other admissible actions", "handoff", edits.in_record(admissible=["win"])),
    Forgery("domain's digest changed", "games", edits.environment("domain_sha256", domain_sha256=["0" * 64])),
    Forgery("no domain's digest", "games", edits.environment("domain_sha256", domain_sha256=[])),
    Forgery("the engine's version changed", "games", edits.environment("versions", "versions", alfworld="9")),
    Forgery("a loss called won", "games", edits.lost_is_won),
    Forgery("episodes invented", "games", edits.invented),
    Forgery("more bridges", "games", edits.other_bridges),
    # Rollouts.
    Forgery("another number of records", "rollouts", edits.in_body(records=99)),
    Forgery("another digest of records", "rollouts", edits.in_body(digest="0" * 64)),
    Forgery("a temperature", "rollouts", edits.temperature(0, 0.5)),
    Forgery("a negative rollout", "rollouts", edits.line(index=-1)),
    Forgery("a pilot called won", "pilot rollouts", edits.pilot_won),
    Forgery("a pilot's temperature", "pilot rollouts", edits.temperature(0, 3.0)),
    Forgery("a scored rollout's temperature", "pilot rollouts", edits.temperature(3, 1.0)),
    Forgery("a temperature left out", "pilot rollouts", edits.temperature(3, None)),
    Forgery("fewer pilots", "pilot rollouts", edits.ptgs("rollout 1", pilots=1)),
    Forgery("another tau", "pilot rollouts", edits.ptgs("at", tau=4.0)),
    Forgery("another target", "pilot rollouts", edits.ptgs("at", target=0.9)),
    Forgery("another reference", "pilot rollouts", edits.ptgs("pilots of x", references={"x": 1.0, "y": 2.0})),
    Forgery("no PTGS", "pilot rollouts", edits.in_protocol("temperature", ptgs=None)),
    Forgery("episodes invented", "pilot rollouts", edits.invented),
    Forgery("a temperature of zero", "pilot rollouts", edits.temperature(0, 0.0)),
    Forgery("a temperature below zero", "pilot rollouts", edits.temperature(0, -1e-9)),
    Forgery("an arrival beyond the steps", "handoff", edits.arrival(99)),
    Forgery("a negative arrival", "handoff", edits.arrival(-3)),
    Forgery("an arrival beyond counting", "handoff", edits.arrival(10**400)),
    Forgery("an arrival without steps", "handoff", edits.arrival(1, steps=[])),
    Forgery("groups without prompts", "handoff", edits.in_protocol("no prompts", prompt_groups=[["a"], ["b"]])),
    Forgery("an empty group of prompts", "served", edits.in_protocol("groups", prompt_groups=[["a"], ["c"], []])),
    Forgery("groups of nobody", "served", edits.in_protocol("groups", prompt_groups=[[], []])),
    *_both(ANY, "a policy that is none", edits.no_policy),
    *_both(MODELS, "a template that is a list", edits.fact("a", "prompt", "source", value=["nope"])),
    *_both(MODELS, "a template that is an object", edits.fact("a", "prompt", "source", value={})),
    # Language models.
    *_both(MODELS, "no sampling", edits.fact("a", "sampling", value={}, place="sampling")),
    *_both(MODELS, "another temperature", edits.fact("a", "sampling", "temperature", value=0.7), SAMPLING),
    *_both(MODELS, "a negative temperature", edits.fact("a", "sampling", "temperature", value=-1.0)),
    *_both(MODELS, "a share above one", edits.fact("a", "sampling", "top_p", value=5.0)),
    *_both(MODELS, "true for a temperature", edits.fact("a", "sampling", "temperature", value=True)),
    *_both(MODELS, "another template", edits.other_template, TEMPLATE),
    *_both(MODELS, "another template of the same name", edits.fact("a", "prompt", "source", value="{{ observation }}")),
    *_both(MODELS, "a template's name over another source", edits.fact("a", "prompt", "template", value="turns")),
    *_both(MODELS, "a window beyond counting", edits.fact("a", "prompt", "history", value=10**30)),
    *_both(MODELS, "an engine's version that is an object", edits.fact("a", "engine", "version", value={"x": 1})),
    *_both(MODELS, "another engine's version", edits.fact("a", "engine", "version", value="99.9"), ENGINE),
    *_both(MODELS, "a root that is a number", edits.fact("a", "engine", "root", value=5)),
    *_both(MODELS, "another root", edits.fact("a", "engine", "root", value="the/best"), ENGINE),
    *_both(MODELS, "a length that is a word", edits.fact("a", "engine", "max_model_len", value="many")),
    *_both(MODELS, "a better guarantee", edits.fact("a", "guarantee", value="bitwise")),
    *_both(MODELS, "another name for an answer", edits.fact("a", "answers_as", value="gpt-9"), WEIGHTS),
    *_both(MODELS, "replies said to be rewritten", edits.fact("a", "rewrites", value={"thinking": [1]})),
    *_both(MODELS, "replies of a conversation said to be rewritten", edits.other_conversation, CHAT),
    *_both(MODELS, "a temperature of 99", edits.fact("a", "sampling", "temperature", value=99), SAMPLING),
    *_both(MODELS, "prompts longer than their limit", edits.fact("a", "sampling", "max_prompt_tokens", value=3)),
    *_both(MODELS, "replies longer than their limit", edits.fact("a", "sampling", "max_new_tokens", value=1)),
    *_both(MODELS, "another form of prompt", edits.fact("a", "prompt", "history", value=1)),
    *_both(MODELS, "another rule of actions", edits.fact("a", "actions", "format", value="json")),
    *_both(MODELS, "a fact of a model more", edits.fact("a", "remark", value=1)),
    *_both(MODELS, "negative tokens", edits.in_generation(tokens=-5)),
    *_both(MODELS, "absurd tokens", edits.in_generation(tokens=999_999)),
    *_both(MODELS, "a limit above the limit", edits.in_generation(max_tokens=10**6)),
    *_both(MODELS, "a negative prompt", edits.in_decision(prompt_tokens=-5)),
    *_both(MODELS, "an absurd prompt", edits.in_decision(prompt_tokens=10**9)),
    *_both(MODELS, "a prompt digest that is none", edits.in_decision(prompt_digest="not a digest")),
    *_both(MODELS, "a digest of tokens that is none", edits.in_generation(digest="not a digest")),
    *_both(MODELS, "a digest of a prompt that is none", edits.in_generation(rendered="not a digest")),
    *_both(MODELS, "another rendered prompt", edits.in_generation(rendered="0" * 64)),
    *_both(MODELS, "an unknown finish", edits.in_generation(finish="banana")),
    *_both(MODELS, "a stop string that was not asked for", edits.in_generation(stop="banana")),
    *_both(MODELS, "an unknown status", edits.in_decision(status="banana")),
    *_both(MODELS, "an unknown flag", edits.in_decision(flags=["banana"])),
    *_both(MODELS, "an overflow of a short prompt", edits.overflow),
    *_both(MODELS, "a limit that was not reached", edits.in_generation(finish="length")),
    *_both(MODELS, "no generation", edits.in_decision(generation=None)),
    *_both(MODELS, "a text with another action", edits.other_text(lambda text: "<action>sing</action>")),
    *_both(MODELS, "other thoughts before the action", edits.other_text(lambda text: text.replace("hm", "aha")), WORDS),
    *_both(MODELS, "thinking injected", edits.in_generation(reasoning="I am sure."), WORDS),
    Forgery("a prompt digest that is none, for all solvers", "served", edits.every_clone(prompt_digest="not a digest")),
    Forgery("other token ids for all solvers", "served", edits.every_clone(prompt_digest="0" * 64), TOKENS),
    Forgery("other token ids", "served rollouts", edits.in_decision(prompt_digest="0" * 64), TOKENS),
    *_facts("digests of shipped checkpoints exchanged", edits.checkpoints_exchanged),
    *_facts("other weights", edits.fact("sft", "digests", "weights", value="0" * 64)),
    *_facts("another checkpoint of the same spec", edits.fact("sft", "checkpoint", value="rl")),
    *_facts("a greater context", edits.fact("sft", "engine", "context", value=1_000_000)),
    *_facts("another engine's name", edits.fact("sft", "engine", "name", value="vllm")),
    *_facts("a device that is a list", edits.fact("sft", "engine", "device", value=["x"])),
    *_facts("a type of weights that none has", edits.fact("sft", "engine", "dtype", value="float8")),
    *_facts("another version of torch", edits.fact("sft", "engine", "torch", value="9.9"), ENGINE),
    *_facts("another type of weights", edits.fact("sft", "engine", "dtype", value="bfloat16"), ENGINE),
    *_facts("another device", edits.fact("sft", "engine", "device", value="a better one"), ENGINE),
    *_facts("a better guarantee", edits.fact("sft", "guarantee", value="every token is proven optimal")),
    *_facts("a revision of a shipped checkpoint", edits.revision),
    *_facts("a chat template of a shipped checkpoint", edits.fact("sft", "rewrites", value={"thinking": [1]})),
    *_facts("a clock behind a shipped checkpoint", edits.fact("sft", "now", value="2020-01-01T00:00:00")),
    *_facts("a chat with a shipped checkpoint", edits.fact("sft", "prompt", "form", value="chat")),
    *_facts("a template's name over another source", edits.fact("sft", "prompt", "template", value="turns")),
    *_facts("a field of a server", edits.fact("sft", "sampling", "token_limit_field", value="max_completion_tokens")),
    *_both(NEED_TORCH, "labels exchanged", edits.labels_exchanged, WHO),
    *_facts("no sampling", edits.fact("sft", "sampling", value={}, place="sampling")),
    *_facts("a temperature of 99", edits.fact("sft", "sampling", "temperature", value=99), SAMPLING),
    *_facts("replies longer than their limit", edits.fact("sft", "sampling", "max_new_tokens", value=1)),
    *_facts("prompts longer than their limit", edits.fact("sft", "sampling", "max_prompt_tokens", value=3)),
    *_facts("a stop string that was not asked for", edits.in_generation(stop="banana")),
    *_both(NEED_TORCH, "a constrained model that refuses", edits.mute("refused", refusal="I will not")),
    *_both(NEED_TORCH, "a constrained model that says nothing", edits.mute("empty", tokens=0)),
    *_both(NEED_TORCH, "a constrained model cut short", edits.mute("truncated", "go to", finish="length", tokens=1)),
    *_both(NEED_TORCH, "thinking of a model behind no server", edits.in_generation(reasoning="I win")),
    *_both(NEED_TORCH, "a call by a model behind no server", edits.in_decision(flags=["scored", "tool_call"])),
    *_both(NEED_TORCH, "a limit that was not reached", edits.in_generation(finish="length")),
    *_both(NEED_TORCH, "a text without tokens", edits.in_generation(tokens=0)),
    *_facts("a temperature above the range", edits.fact("sft", "sampling", "temperature", value=1001)),
    *_both(NEED_TORCH, "another text", edits.other_text(lambda text: text + " now")),
    *_both(NEED_TORCH, "flags removed", edits.flags_removed),
    *_both(NEED_TORCH, "another rendered prompt", edits.in_generation(rendered="0" * 64)),
]  # fmt: skip
