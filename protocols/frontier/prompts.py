"""The audit of prompts: each is rendered again from the records, and solvers of one clone got equal ones.

How far equality of inputs reaches depends on the policies: token ids where a policy records them, else the rendered
prompt, and the check says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handoff.auditing.checks import Audit, Check
from handoff.auditing.prompts import Renderer
from handoff.protocols.frontier.study import Study
from handoff.records import Decision
from handoff.runs.run import requests_of

CLAIM = "every prompt's digest is that of the prompt that the records give, one per clone for all solvers"


def check_prompts(audit: Audit, study: Study, templates: Sequence[str] = ()) -> None:
    """Add the check ``prompts`` to ``audit``."""
    check = audit.check("prompts", CLAIM)
    check.excuse("no prompt of these policies can be rendered here, and no trajectory arrived")
    renderer = Renderer(study.policies, check, templates)
    config = study.config
    for cell, trajectory in study.trajectories.items():
        requests = requests_of(study.task(cell.task), trajectory.reset, (), trajectory.steps, config.reach_budget)
        renderer.require(cell.reacher, study.label(cell), requests, trajectory.steps)
    for cell in study.cells():
        start = study.trajectories.get(cell)
        if start is None or not start.arrived:
            continue
        first = []
        for end in study.endpoints_of(cell):
            if end.steps:
                task = study.task(cell.task)
                requests = requests_of(task, start.reset, start.steps, end.steps, config.solve_budget)
                renderer.require(end.solver, study.label(end.cell), requests, end.steps)
                first.append(end.steps[0].decision)
        _require_equal(check, study.label(cell), first)
    _note_guarantee(check, study)


def _require_equal(check: Check, cell: str, decisions: Sequence[Decision]) -> None:
    """That the solvers' first prompts are equal, by everything that was recorded of them."""
    claims: dict[str, set[Any]] = {
        "different rendered prompts": {d.generation.rendered for d in decisions if d.generation is not None},
        "different prompt token ids": {d.prompt_digest for d in decisions if d.prompt_digest is not None},
        "different numbers of prompt tokens": {d.prompt_tokens for d in decisions if d.prompt_tokens is not None},
    }
    spoken = [d for d in decisions if d.generation is not None and d.status not in ("context_overflow", "refused")]
    counted = sum(decision.prompt_tokens is not None for decision in spoken)
    check.require(counted in (0, len(spoken)), f"{cell}: {counted} of {len(spoken)} solvers have a number of tokens")
    for failure, values in claims.items():
        if values:
            check.require(len(values) == 1, f"{cell}: its solvers got {failure}")


def _note_guarantee(check: Check, study: Study) -> None:
    """Name the weaker guarantee where a solver records no token ids."""
    models = {name: study.policies[name] for name in study.solvers if "prompt" in study.policies.get(name, {})}
    weak = sorted(name for name, described in models.items() if described.get("tokens") != "ids")
    if weak:
        check.notes.append(
            f"no token ids are recorded for {', '.join(weak)}: that solvers got equal inputs rests there on the "
            "rendered prompt and the server's count of tokens"
        )
