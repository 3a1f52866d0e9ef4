"""The audit of prompts: each is rendered again from the records, and solvers of one clone got equal ones.

How far equality of inputs reaches depends on the policies: token ids where a policy records them, else the rendered
prompt, and the check says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from handoff.auditing.checks import Audit, Check
from handoff.auditing.prompts import Renderer
from handoff.canonical import canonical
from handoff.protocols.frontier.study import Study
from handoff.records import Decision
from handoff.runs.run import requests_of

CLAIM = "every prompt's digest is that of the prompt that the records give, one per clone for all solvers"
CLAIM_OF_GROUPS = f"{CLAIM} of a declared group"


def check_prompts(audit: Audit, study: Study, templates: Sequence[str] = ()) -> None:
    """Add the check ``prompts`` to ``audit``."""
    check = audit.check("prompts", CLAIM_OF_GROUPS if study.config.prompt_groups else CLAIM)
    spoken = "no prompt of these policies can be rendered here, and no trajectory arrived"
    check.excuse(spoken if _prompts(study) else "no policy is a language model")
    renderer = Renderer(study.policies, check, templates)
    config = study.config
    alike = _alike(check, study)
    for cell, trajectory in study.trajectories.items():
        requests = requests_of(study.task(cell.task), trajectory.reset, (), trajectory.steps, config.reach_budget)
        renderer.require(cell.reacher, study.label(cell), requests, trajectory.steps)
    for cell, start in study.trajectories.items():
        if not start.arrived:
            continue
        first: list[tuple[str, Decision]] = []
        for end in study.endpoints_of(cell):
            if end.steps:
                task = study.task(cell.task)
                requests = requests_of(task, start.reset, start.steps, end.steps, config.solve_budget)
                renderer.require(end.solver, study.label(end.cell), requests, end.steps)
                first.append((end.solver, end.steps[0].decision))
        for solvers, by_ids in alike:
            decisions = [decision for solver, decision in first if solver in solvers]
            _require_equal(check, study.label(cell), decisions, by_ids)
    _note_guarantee(check, study)


def _alike(check: Check, study: Study) -> list[tuple[frozenset[str], bool]]:
    """Solvers whose first prompts must be equal, and whether their token ids must be, too."""
    groups = study.config.prompt_groups
    if not groups:
        return [(frozenset(study.solvers), True)]
    by_prompt: dict[bytes, set[str]] = {}
    for solver, prompt in _prompts(study).items():
        by_prompt.setdefault(canonical(prompt), set()).add(solver)
    declared = frozenset(name for group in groups for name in group)
    missing = sorted(set(_prompts(study)) - declared)
    check.require(not missing, f"solvers {', '.join(missing)} are in none of the declared groups of equal prompts")
    silent = sorted(declared - set(_prompts(study)))
    failure = f"solvers {', '.join(silent)} are in the declared groups of equal prompts, but get no prompts"
    if not check.require(not silent, failure):
        return []
    for first, second in combinations(groups, 2):
        check.require(
            _can_differ(study, first[0], second[0]),
            f"solvers {first[0]} and {second[0]} are declared to get different prompts, but have the same template and "
            "the same tokenizer",
        )
    sides = " | ".join(", ".join(group) for group in groups)
    check.notes.append(
        f"declared before the first episode: solvers get different prompts from equal histories ({sides}). For all of "
        "them equal histories are held (the check inputs), and equal token ids on each side"
    )
    return [
        *((frozenset(group), True) for group in groups),
        *((frozenset(solvers), False) for solvers in by_prompt.values()),
    ]


def _prompts(study: Study) -> dict[str, dict[str, Any]]:
    """What the manifest says of each solver's prompts; a template's name is for people."""
    described = {name: study.policies.get(name) for name in study.solvers}
    prompts = {name: facts.get("prompt") for name, facts in described.items() if isinstance(facts, dict)}
    return {
        name: {key: value for key, value in prompt.items() if key != "template"}
        for name, prompt in prompts.items()
        if isinstance(prompt, dict)
    }


def _can_differ(study: Study, first: str, second: str) -> bool:
    """Whether, by the manifest, two solvers can get different prompts; of a server's tokenizer it knows nothing."""
    prompts = _prompts(study)
    if prompts.get(first) != prompts.get(second):
        return True
    digests = [study.policies[name].get("digests") for name in (first, second)]
    known = [one.get("tokenizer") for one in digests if isinstance(one, dict)]
    return len(known) < 2 or known[0] != known[1]


def _require_equal(check: Check, cell: str, decisions: Sequence[Decision], by_ids: bool) -> None:
    """That the solvers' first prompts are equal, by everything that was recorded of them, or as rendered alone."""
    claims: dict[str, set[Any]] = {
        "different rendered prompts": {d.generation.rendered for d in decisions if d.generation is not None}
    }
    if by_ids:
        claims |= {
            "different prompt token ids": {d.prompt_digest for d in decisions if d.prompt_digest is not None},
            "different numbers of prompt tokens": {d.prompt_tokens for d in decisions if d.prompt_tokens is not None},
        }
    if not any(claims.values()):
        return  # none of them was asked by a prompt
    spoken = [d for d in decisions if d.generation is not None and d.status not in ("context_overflow", "refused")]
    counted = len(spoken) if not by_ids else sum(decision.prompt_tokens is not None for decision in spoken)
    check.require(counted in (0, len(spoken)), f"{cell}: {counted} of {len(spoken)} solvers have a number of tokens")
    for failure, values in claims.items():
        if values:
            check.require(len(values) == 1, f"{cell}: its solvers got {failure}")


def _note_guarantee(check: Check, study: Study) -> None:
    """Name the weaker guarantee where a solver records no token ids."""
    weak = sorted(name for name in _prompts(study) if study.policies[name].get("tokens") != "ids")
    if weak:
        check.notes.append(
            f"no token ids are recorded for {', '.join(weak)}: that solvers got equal inputs rests there on the "
            "rendered prompt and the server's count of tokens"
        )
